# SPDX-License-Identifier: Apache-2.0
"""Small files that stand in for what readers of the documentation have: traces, mostly."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

from rebat.core.streams import stream
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.load import load_workload
from tests.docs.pages import ROOT

NOVEMBER_2018_S = 1_541_030_400


def swf(path: Path, n_jobs: int = 25) -> None:
    """A trace of the first week of a month on 512 nodes, with users and queues."""
    rng = stream(0, "docs", "swf")
    lines = [f"; UnixStartTime: {NOVEMBER_2018_S}", "; MaxProcs: 512"]
    for number, submit in enumerate(sorted(rng.integers(0, 600_000, n_jobs).tolist()), 1):
        size, run = 2 ** int(rng.integers(3, 9)), int(rng.integers(600, 40_000))
        known = [number, submit, -1, run, size, -1, -1, size, 2 * run, -1, 1]
        lines.append(" ".join(map(str, [*known, number % 5, -1, -1, number % 2, -1, -1, -1])))
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def november(path: Path) -> None:
    """That trace as a workload."""
    swf(path.with_name("trace.swf.gz"))
    write_workload(load_workload(path.with_name("trace.swf.gz"), months="2018-11"), path)


def docs(path: Path) -> None:
    """The documentation itself, with the results that came of it."""
    shutil.copytree(ROOT / "docs/findings", path / "findings")


MADE: dict[str, Callable[[Path], None]] = {
    "mira.swf.gz": swf,
    "november.json.gz": november,
    "docs": docs,
}
"""Name -> what makes it."""
