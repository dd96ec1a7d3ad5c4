# SPDX-License-Identifier: Apache-2.0
"""Small files that replace files of readers of the documentation, mostly traces."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

from rebat.core.durations import stream
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.load import load_workload
from tests.support.pages import ROOT

NOVEMBER_2018_S = 1_541_030_400


def swf(path: Path, n_jobs: int = 25) -> None:
    """Write a trace of the first week of a month on 512 nodes, with users and queues."""
    rng = stream(0, "docs", "swf")
    lines = [f"; UnixStartTime: {NOVEMBER_2018_S}", "; MaxProcs: 512"]
    for number, submit in enumerate(sorted(rng.integers(0, 600_000, n_jobs).tolist()), 1):
        size, run = 2 ** int(rng.integers(3, 9)), int(rng.integers(600, 40_000))
        known = [number, submit, -1, run, size, -1, -1, size, 2 * run, -1, 1]
        lines.append(" ".join(map(str, [*known, number % 5, -1, -1, number % 2, -1, -1, -1])))
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def archive(path: Path) -> None:
    """Write a trace with waiting times: 25 jobs, one after another, on 64 processors."""
    rng = stream(0, "docs", "archive")
    lines, free = ["; MaxProcs: 64"], 0
    for number in range(1, 26):
        submit, size, run = 300 * number, int(rng.integers(1, 65)), int(rng.integers(60, 2_000))
        start = max(submit, free)
        free = start + run
        lines.append(f"{number} {submit} {start - submit} {run} {size} -1 -1 {size} 3600 -1 1 "
                     f"{number % 5} -1 -1 1 -1 -1 -1")  # fmt: skip
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def november(path: Path) -> None:
    """Write the trace of `swf` as a workload."""
    swf(path.with_name("trace.swf.gz"))
    write_workload(load_workload(path.with_name("trace.swf.gz"), months="2018-11"), path)


def sacct(path: Path) -> None:
    """Write a dump of two hundred completed jobs on the nodes n01 to n15."""
    rng = stream(0, "docs", "sacct")
    rows = ["JobID|JobIDRaw|User|Partition|Submit|Start|End|State|NNodes|NCPUS|TimelimitRaw|"
            "NodeList|Priority"]  # fmt: skip
    for number in range(1, 201):
        submit, first = 1_767_225_600 + 600 * number, int(rng.integers(1, 14))
        start, run = submit + int(rng.integers(0, 900)), int(rng.integers(60, 7_000))
        nodes = f"n[{first:02}-{first + 2:02}]"
        rows.append(f"{number}|{number}|u{number % 3}|batch|{submit}|{start}|{start + run}|"
                    f"COMPLETED|3|48|120|{nodes}|1")  # fmt: skip
    path.write_text("\n".join(rows) + "\n")


def events(path: Path) -> None:
    """Write two failures and a drain of these nodes."""
    path.write_text(
        "NodeName|Start|End|StateRaw|State|Reason\n"
        "n03|1767240000|1767247200|2049|DOWN*|Not responding\n"
        "n11|1767290000|1767293600|1|DOWN|power supply\n"
        "n05|1767300000|1767303600|514|DRAIN|firmware\n"
    )


def pbs(path: Path) -> None:
    """Write an accounting log with three jobs."""
    lines = []
    for number in range(1, 4):
        begin = 1_767_225_600 + 60 * number
        lines.append(
            f"01/01/2026 00:0{number}:00;E;{number}.pbs;user=alice queue=workq ctime={begin} "
            f"qtime={begin} start={begin + 5} exec_vnode=(n{number}:ncpus=4) "
            f"Resource_List.ncpus=4 Resource_List.nodect=1 Resource_List.walltime=01:00:00 "
            f"end={begin + 605} Exit_status=0"
        )
    path.write_text("\n".join(lines) + "\n")


def seren(path: Path) -> None:
    """Write three jobs with the columns of AcmeTrace."""
    path.write_text(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,"
        "duration,queue,gpu_time\n"
        + "".join(
            f"{number},u{number},{number},{8 * number},128,Other,COMPLETED,"
            f"2023-03-01 0{number}:00:00+08:00,2023-03-01 0{number}:00:30+08:00,"
            f"2023-03-01 0{number}:50:30+08:00,3000,30,0\n"
            for number in (1, 2, 3)
        )
    )


def gpu_jobs(path: Path) -> None:
    """Write jobs of three GPU clusters, with times in milliseconds."""
    path.write_text(
        "job,owner,cluster,status,submitted,started,hours,gpus,limit\n"
        "a,alice,east,done,1767225600000,1767225660000,1.5,12,120\n"
        "b,bob,north,done,1767225601000,1767225660000,1.5,8,120\n"
        "c,bob,west,done,1767225602000,1767225660000,0.25,8,none\n"
        "d,bob,west,rejected,1767225603000,,,8,none\n"
    )


def docs(path: Path) -> None:
    """Copy the findings of the documentation with their results."""
    shutil.copytree(ROOT / "docs/findings", path / "findings")


MADE: dict[str, Callable[[Path], None]] = {
    "mira.swf.gz": swf,
    "archive.swf.gz": archive,
    "november.json.gz": november,
    "docs": docs,
    "jobs.txt": sacct,
    "events.txt": events,
    "pbs.log": pbs,
    "trace_seren.csv": seren,
    "jobs.csv": gpu_jobs,
}
"""Name of each input, and the function that writes it."""
