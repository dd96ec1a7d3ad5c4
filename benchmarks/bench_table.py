# SPDX-License-Identifier: Apache-2.0
"""Import of a million jobs from a table: seconds and peak memory.

Run: ``python -m benchmarks.bench_table csv|parquet [JOBS]``
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rebat.workloads.batsim_json import write_workload
from rebat.workloads.importing import read_jobs

OTHER = 20
"""Columns of numbers that no mapping reads."""

MAPPING = """\
title = "benchmark"
[columns]
id = "id"
submit = "submit"
start = "start"
end = "end"
requested = "nodes"
walltime = {column = "limit", unit = "min"}
user = "user"
queue = "queue"
"""


def write_table(path: Path, count: int, seed: int = 0) -> None:
    """Write random jobs with dates in text (CSV) or as timestamps (Parquet)."""
    import pandas as pd

    draw = np.random.default_rng(seed)
    submit = 1_700_000_000 + np.sort(draw.integers(0, 30_000_000, count))
    start = submit + draw.integers(0, 9_000, count)
    times = {"submit": submit, "start": start, "end": start + draw.integers(1, 80_000, count)}
    columns = {
        "id": np.arange(count),
        **{name: pd.to_datetime(values, unit="s", utc=True) for name, values in times.items()},
        "nodes": 2 ** draw.integers(0, 6, count),
        "limit": 1440,
        "user": np.char.add("u", draw.integers(0, 500, count).astype(str)),
        "queue": np.char.add("q", draw.integers(0, 5, count).astype(str)),
        **{f"other_{number}": draw.random(count) for number in range(OTHER)},
    }
    frame = pd.DataFrame(columns)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def main() -> None:
    """Print the duration of each step and the peak memory."""
    form = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        table, mapping = Path(folder) / f"jobs.{form}", Path(folder) / "mapping.toml"
        mapping.write_text(MAPPING)
        # in another process, so that the peak does not include this step
        code = f"from benchmarks.bench_table import *; write_table(Path({str(table)!r}), {count})"
        subprocess.run([sys.executable, "-c", code], check=True)
        begin = time.perf_counter()
        workload = read_jobs(table, mapping=mapping, n_nodes=1_000)
        read = time.perf_counter()
        read_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        write_workload(workload, Path(folder) / "jobs.json.gz")
        written = time.perf_counter()
        size_mb = table.stat().st_size / 2**20
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{count} jobs, {form} of {size_mb:.0f} MB: read {read - begin:.1f} s, {read_gb:.2f} GB; "
          f"write {written - read:.1f} s, {peak_gb:.2f} GB")  # fmt: skip


if __name__ == "__main__":
    main()
