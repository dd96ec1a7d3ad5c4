# SPDX-License-Identifier: Apache-2.0
"""What each user, or each queue, got: a row of rebat_users.csv and rebat_queues.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebat.results.measures.jobs import JobRows
from rebat.results.measures.service import Service, groups, service_of

COUNTED = ("attempts", "failures", "stolen", "wasted_node_seconds", "node_seconds")
"""Columns of a job that are added up over a group's jobs."""

GROUP_COLUMNS = ("jobs", "finished", *COUNTED, *Service.__struct_fields__)


def group_rows(rows: JobRows, column: str) -> Iterator[tuple[Any, ...]]:
    """Of every user or queue: its name, and `GROUP_COLUMNS`; times in seconds.

    Waiting times, flows and slowdowns are those of its jobs that finished; NaN if none did.
    """
    for name, some in groups(rows, column):
        finished = some[some.has_finished]
        service = service_of(finished)
        counted = (some.column(field).sum().item() for field in COUNTED)
        felt = (
            getattr(service, field) if service else float("nan")
            for field in Service.__struct_fields__
        )
        yield name, len(some), len(finished), *counted, *felt
