# SPDX-License-Identifier: Apache-2.0
"""Entire commands with the rules compiled and interpreted: CPU time, wall-clock time, and ratios.

Each command is a process of its own. ``rebat warmup baseline`` must compile the rules before. A
million jobs and the long campaigns run only if they are named, the million only compiled.

Run: ``python -m benchmarks.bench_ways [--rival COMMAND] [WORK ...]``

``--rival`` names another simulator, which runs the works that consist only of jobs. The shell
executes COMMAND, in which ``{swf}`` is the file of the jobs in the Standard Workload Format.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.__main__ import ROOT, TRACES
from benchmarks.bench_scale import OPTIONS, jobs_of
from rebat.workloads.batsim_json import write_workload

KTH = TRACES / "KTH-SP2-1996-2.1-cln.swf.gz"
REBAT = [sys.executable, "-m", "rebat"]
FAILURES = ["--mtbf", "1h", "--downtime", "1h", "--checkpoint", "young-daly"]
MONTH = ["run", "mira-like-june-2017", *FAILURES, "-p", "baseline"]
WORKS = {
    "kth": ["run", "{folder}/kth.json", "-p", "easy"],
    "jobs": ["run", "{folder}/100000.json", "-p", "easy"],
    "month": MONTH,
    "seeds": [*MONTH, "-p", "sfsj", "--seeds", "50"],
    "short-runs": ["campaign", "run", "{folder}/short.toml", "--results", "{out}"],
    "advise": ["advise", "{folder}/small.json", "--mtbf", "6h", "--seeds", "10", "--minutes", "99"],
    "calibrate": ["calibrate", "{folder}/past.json", "{folder}/past"],
    "million": ["run", "{folder}/1000000.json", *OPTIONS],
    "full": ["campaign", "run", str(ROOT / "campaigns/node_stealing/full.toml")],
}
"""Arguments of ``rebat`` by the name of the work."""

SHORT_RUNS = """
name = "short-runs"
[workloads.short]
file = "short.json"
[[grid]]
name = "short"
workloads = ["short"]
policies = ["baseline", "easy"]
[grid.failures]
mtbf = "1h"
downtime = "1h"
seeds = {seeds}
"""


def prepare(folder: Path, work: str) -> None:
    """Write the inputs of a work."""

    def rebat(*arguments: str | Path) -> None:
        subprocess.run([*REBAT, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    if work == "kth":
        rebat("workload", "import", KTH, "--max-jobs", 20_000, "-o", folder / "kth.json")
    if work == "calibrate":
        rebat(
            "workload", "import", KTH, "--max-jobs", 5_000, "-o", folder / "past.json",
            "--schedule", folder / "past",
        )  # fmt: skip
    for name, count in (("jobs", 100_000), ("million", 1_000_000), ("advise", 2_000)):
        if work == name:
            file = "small" if work == "advise" else count
            write_workload(jobs_of(count), folder / f"{file}.json")
    if work == "short-runs":
        write_workload(jobs_of(200), folder / "short.json")
        (folder / "short.toml").write_text(SHORT_RUNS.format(seeds=[*range(500)]))


def cost_of(command: Sequence[str], **environment: str) -> tuple[float, float, float]:
    """Run a command. Return its CPU time (s), wall-clock time (s) and peak memory (MB)."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as messages:
        child = subprocess.Popen(
            command, stdout=messages, stderr=messages, env={**os.environ, **environment}
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start
        if status:
            messages.seek(0)
            sys.exit(f"failed: {' '.join(command)}\n{messages.read().decode()}")
    return usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024


def rows(folder: Path, work: str, rival: str | None) -> Iterator[tuple[str, float, float, float]]:
    """Run a work in each way. Yield the way and its cost."""
    for way in ("auto",) if work == "million" else ("auto", "interpreted"):
        out = folder / way
        arguments = [text.format(folder=folder, out=out) for text in WORKS[work]]
        option = "--results" if arguments[0] == "campaign" else "--out"
        command = [*REBAT, *arguments, *([] if option in arguments else [option, str(out / work)])]
        yield "compiled" if way == "auto" else way, *cost_of(command, REBAT_ENGINE=way)
    if rival and work in ("kth", "jobs"):
        name, swf = WORKS[work][1].format(folder=folder), folder / f"{work}.swf"
        subprocess.run([*REBAT, "workload", "export", name, "-o", str(swf)], check=True)
        yield "rival", *cost_of(["/bin/sh", "-c", rival.format(swf=swf)])


def main() -> None:
    """Print a row per work and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="*", metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--rival", metavar="COMMAND")
    chosen = parser.parse_args()
    for work in chosen.works or [work for work in WORKS if work not in ("million", "full")]:
        if work in ("kth", "calibrate") and not KTH.exists():
            print(f"(skipped: {work}, no {KTH.name} in the folder of traces)")
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder, work)
            first: tuple[float, float] | None = None
            for way, cpu_s, wall_s, peak_mb in rows(folder, work, chosen.rival):
                first = first or (cpu_s, wall_s)
                print(
                    f"{work:<10} {way:<9} {cpu_s:8.1f} s of CPU {wall_s:8.1f} s {peak_mb:6,.0f} MB"
                    f"   {cpu_s / first[0]:5.1f} and {wall_s / first[1]:5.1f} times the loop",
                    flush=True,
                )


if __name__ == "__main__":
    main()
