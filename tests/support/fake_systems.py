# SPDX-License-Identifier: Apache-2.0
"""Commands of batch systems for tests, which start a job's script as a local process.

The number of a job is that of its process, which leads a process group. The queue is a folder.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

SUBMIT = """#!/bin/bash
{refuse}
script=${{1:-/dev/stdin}}
cp "$script" {queue}/script.$$
setsid bash {queue}/script.$$ > {queue}/log.$$ 2>&1 < /dev/null &
touch {queue}/job.$!
printf '{said}\\n' $!
"""
CANCEL = """#!/bin/bash
for job in "$@"; do kill -- -"$job"; rm -f {queue}/job."$job"; done
"""
LIST = """#!/bin/bash
for job in {queue}/job.*; do
    number=${{job##*.}}
    if kill -0 "$number" 2> /dev/null; then printf '{line}\\n' "$number"; fi
done
"""


class Commands(NamedTuple):
    """The names of the commands of a batch system, and the texts that they print."""

    submit: str
    cancel: str
    listing: str
    said: str
    line: str


COMMANDS = {
    "slurm": Commands("sbatch", "scancel", "squeue", "Submitted batch job %s", "%s RUNNING"),
    "pbs": Commands("qsub", "qdel", "qstat", "%s.server", "%s.server rebat me 00:00:01 R main"),
    "sge": Commands(
        "qsub", "qdel", "qstat", 'Your job %s ("rebat") has been submitted',
        "%s 0.5 rebat me r 11/22/2026 07:00:00 main@node1 1",
    ),
    "lsf": Commands(
        "bsub", "bkill", "bjobs", "Job <%s> is submitted to queue <main>.",
        "%s me RUN main here node1 rebat Nov 22 07:00",
    ),
}  # fmt: skip


class Fake:
    """A batch system whose commands are scripts in a folder."""

    def __init__(self, folder: Path, name: str, refuse: str = "") -> None:
        self.bin, self.queue = folder / "bin", folder / "queue"
        self.bin.mkdir()
        self.queue.mkdir()
        names = COMMANDS[name]
        for command, text in (
            (names.submit, SUBMIT), (names.cancel, CANCEL), (names.listing, LIST),
        ):  # fmt: skip
            path = self.bin / command
            path.write_text(
                text.format(queue=self.queue, refuse=refuse, said=names.said, line=names.line)
            )
            path.chmod(0o755)

    @property
    def path(self) -> str:
        """The value of PATH with which the scripts are found first."""
        return f"{self.bin}{os.pathsep}{os.environ['PATH']}"

    def jobs(self) -> list[str]:
        """Return the numbers of the running jobs."""
        numbers = [path.suffix[1:] for path in self.queue.glob("job.*")]
        return [number for number in numbers if Path("/proc", number).exists()]

    def cancel(self, number: str) -> None:
        """Kill a job without the batch system's command."""
        subprocess.run(["kill", "--", f"-{number}"], check=True)

    def empties(self, within_s: float = 180.0) -> bool:
        """Return whether all jobs end within this number of seconds.

        A worker that starts after its scheduler was killed ends after Dask's death timeout (60 s).
        """
        until = time.monotonic() + within_s
        while self.jobs() and time.monotonic() < until:
            time.sleep(0.1)
        return not self.jobs()
