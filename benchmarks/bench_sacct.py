# SPDX-License-Identifier: Apache-2.0
"""Import of a million records of sacct: seconds and peak memory.

Run: ``python -m benchmarks.bench_sacct [RECORDS]``
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rebat.workloads.batsim_json import write_workload
from rebat.workloads.importing import import_jobs

HEADER = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|Submit|Start|End|ElapsedRaw|Suspended|State|NNodes|"
    "NCPUS|ReqMem|TimelimitRaw|NodeList|JobName|Priority\n"
)


def write_dump(path: Path, count: int, seed: int = 0) -> None:
    """Write records of random jobs on 1,000 nodes."""
    draw = np.random.default_rng(seed)
    submit = 1_700_000_000 + np.sort(draw.integers(0, 30_000_000, count))
    wait, run = draw.integers(0, 9_000, count), draw.integers(1, 80_000, count)
    first, size = draw.integers(1, 900, count), 2 ** draw.integers(0, 6, count)
    columns = (values.tolist() for values in (submit, wait, run, first, size))
    with path.open("w") as file:
        file.write(HEADER)
        for number, (at, waited, ran, low, nodes) in enumerate(zip(*columns, strict=True), 1):
            start = at + waited
            file.write(
                f"{number}|{number}|u{number % 500}|a{number % 40}|p{number % 5}|normal|{at}|"
                f"{start}|{start + ran}|{ran}|00:00:00|COMPLETED|{nodes}|{nodes * 64}|4000M|1440|"
                f"n[{low:04}-{low + nodes - 1:04}]|job {number % 99}|{number % 7}\n"
            )


def main() -> None:
    """Print the duration of each step and the peak memory."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.txt"
        write_dump(dump, count)
        begin = time.perf_counter()
        workload = import_jobs(dump, "sacct").workload
        read = time.perf_counter()
        write_workload(workload, Path(folder) / "jobs.json.gz")
        written = time.perf_counter()
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{count} records: read {read - begin:.1f} s, write {written - read:.1f} s, "
          f"peak {peak_gb:.2f} GB")  # fmt: skip


if __name__ == "__main__":
    main()
