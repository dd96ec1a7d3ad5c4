# SPDX-License-Identifier: Apache-2.0
"""Imports of foreign records by format, for tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from rebat.core.jobs import Workload
from rebat.workloads.importing import import_jobs, read_jobs
from rebat.workloads.recorded import ImportedWorkload

read_swf = partial(read_jobs, form="swf")
read_alcf = partial(read_jobs, form="alcf")


def import_swf(path: Path, schedule: bool = False, **options: Any) -> ImportedWorkload:
    return import_jobs(path, "swf", schedule=schedule, **options)


def import_alcf(path: Path, schedule: bool = False, **options: Any) -> ImportedWorkload:
    return import_jobs(path, "alcf", schedule=schedule, **options)


def import_accounting(form: str, path: Path, **options: Any) -> ImportedWorkload:
    return import_jobs(path, form, **options)


def read_table(path: Path, **options: Any) -> Workload:
    return read_jobs(path, "table", **options)
