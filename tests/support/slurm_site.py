# SPDX-License-Identifier: Apache-2.0
"""A made-up Slurm site with NODE_FAIL attempts, whose losses are known by construction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rebat.core.durations import stream

ORIGIN_S = 1_767_225_600
"""2026-01-01, UTC."""

FIELDS = (
    "JobID|JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|State|NNodes|NCPUS|TimelimitRaw|"
    "NodeList|Priority"
)
LANES = (1, 1, 2, 4, 8, 16)
"""Consecutive nodes that run one job after another."""


class Truth(NamedTuple):
    """What failures destroyed. Keys are pairs such as ``("user", "u1")``.

    Attributes
    ----------
    lost_s, used_s : dict of float
        Node-seconds of the NODE_FAIL attempts, and of all attempts.
    failures : int
        Number of NODE_FAIL attempts.
    down_s : float
        Node-seconds in which nodes were down.
    first_s, last_s : float
        First submission and last end.
    wait_s : float
        Mean wait of the jobs: all time between submission and end without nodes.
    jobs : Path
        The output of sacct.
    events : Path
        The output of sacctmgr.
    """

    lost_s: dict[tuple[str, str], float]
    used_s: dict[tuple[str, str], float]
    failures: int
    down_s: float
    first_s: float
    last_s: float
    wait_s: float
    jobs: Path
    events: Path

    @property
    def all_lost_s(self) -> float:
        return sum(s for (kind, _), s in self.lost_s.items() if kind == "user")

    @property
    def all_used_s(self) -> float:
        return sum(s for (kind, _), s in self.used_s.items() if kind == "user")


def write_site(
    folder: Path,
    per_lane: int = 60,
    fails: float = 0.15,
    lanes: Sequence[int] = LANES,
    wait_s: int = 1200,
) -> Truth:
    """Write jobs.txt and events.txt.

    Each lane runs ``per_lane`` jobs. A job fails with probability ``fails``, one of its nodes is
    down for 30 to 90 min, and the job runs again. A job starts at most ``wait_s`` after its
    submission.
    """
    rng = stream(0, "tests", "slurm site")
    rows, downs, waits = [], [], []
    lost_s: dict[tuple[str, str], float] = defaultdict(float)
    used_s: dict[tuple[str, str], float] = defaultdict(float)
    first, number, last_s, down_s, failures = 1, 0, 0.0, 0.0, 0
    for size in lanes:
        at = ORIGIN_S
        nodes = f"n{first:03}" if size == 1 else f"n[{first:03}-{first + size - 1:03}]"
        for _ in range(per_lane):
            number += 1
            user, queue = f"u{number % 3}", "wide" if size > 2 else "narrow"
            submit, start = at, at + int(rng.integers(0, wait_s + 1))
            waits.append(start - submit)
            lengths = [int(rng.integers(3600, 40 * 3600))]
            if rng.random() < fails:
                lengths.insert(0, int(rng.integers(600, 30 * 3600)))
            for attempt, run in enumerate(lengths):
                failed, end = attempt < len(lengths) - 1, start + run
                state = "NODE_FAIL" if failed else "COMPLETED"
                rows.append(
                    f"{number}|{number}|{user}|{queue}|{submit}|{start}|{end}|{run}|{state}|{size}|"
                    f"{16 * size}|4320|{nodes}|1"
                )
                month = f"{datetime.fromtimestamp(end, UTC):%Y-%m}"
                low = 1 << (size.bit_length() - 1)
                for key in (("user", user), ("queue", queue), ("month", month),
                            ("size", f"[{low}, {2 * low})")):  # fmt: skip
                    used_s[key] += run * size
                    lost_s[key] += run * size * failed
                at = end
                if failed:
                    failures += 1
                    down, node = int(rng.integers(1800, 5400)), first + int(rng.integers(0, size))
                    downs.append(f"n{node:03}|{end}|{end + down}|1|DOWN|broken")
                    down_s, start = down_s + down, end + down
                    waits[-1] += down
            last_s = max(last_s, at)
        first += size
    (folder / "jobs.txt").write_text("\n".join([FIELDS, *rows]) + "\n")
    events = ["NodeName|Start|End|StateRaw|State|Reason", *downs]
    (folder / "events.txt").write_text("\n".join(events) + "\n")
    return Truth(
        dict(lost_s), dict(used_s), failures, down_s, ORIGIN_S, last_s, sum(waits) / len(waits),
        folder / "jobs.txt", folder / "events.txt",
    )  # fmt: skip
