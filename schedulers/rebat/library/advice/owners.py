# SPDX-License-Identifier: Apache-2.0
"""The users and queues that lose the most work to failures, read from the files of runs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from rebat.campaign.store import Store
from rebat.library.advice.design import AdvisedSite, today
from rebat.runs.simulating import units

LEAST_SHARE = 0.05
"""A sentence names an owner only if the owner has at least this share of the lost work."""

LEAST_RATIO = 1.5
"""A named owner's share of the lost work is at least this many times its share of node time."""


class WorkOwner(msgspec.Struct, frozen=True):
    """A user or a queue, with its shares over all runs.

    Attributes
    ----------
    kind
        ``user`` or ``queue``.
    name
        Name of the user or queue.
    used
        Share of all used node time.
    lost
        Share of all lost node time.
    interruptions
        Mean number of failures of the owner's jobs in a run.
    """

    kind: str
    name: str
    used: float
    lost: float
    interruptions: float

    @property
    def text(self) -> str:
        """A sentence on the owner."""
        return (
            f"{self.kind.capitalize()} {self.name} has {self.used:.0%} of the node time, but "
            f"{self.lost:.0%} of the lost node time."
        )


def owners_of(site: AdvisedSite, folder: Path, seeds: Sequence[int]) -> list[WorkOwner]:
    """Return users and queues, from the runs of today's policy with failures."""
    folders = [
        Store(folder).run_folder(unit.key)
        for unit in units(today(site, seeds))
        if unit.spec.scenario.failures is not None
    ]
    return [owner for kind in ("user", "queue") for owner in _owners(kind, folders)]


def _owners(kind: str, folders: Sequence[Path]) -> Iterator[WorkOwner]:
    used: dict[str, float] = {}
    lost: dict[str, float] = {}
    failures: dict[str, float] = {}
    for path in (folder / f"rebat_{kind}s.csv" for folder in folders):
        for row in _rows(path):
            name = row[kind]
            used[name] = used.get(name, 0.0) + float(row["node_seconds"])
            lost[name] = lost.get(name, 0.0) + float(row["wasted_node_seconds"])
            failures[name] = failures.get(name, 0.0) + float(row["failures"])
    all_used, all_lost = sum(used.values()), sum(lost.values())
    if all_used and all_lost:
        for name in sorted(used, key=lambda name: -lost[name]):
            shares = used[name] / all_used, lost[name] / all_lost
            yield WorkOwner(kind, name, *shares, failures[name] / len(folders))


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def losers(owners: Sequence[WorkOwner]) -> list[WorkOwner]:
    """Return the user and the queue that lose the most, if this is clearly more than they use."""
    chosen = []
    for kind in ("user", "queue"):
        of_kind = [owner for owner in owners if owner.kind == kind]
        if len(of_kind) > 1:
            worst = max(of_kind, key=lambda owner: owner.lost)
            if worst.lost >= max(LEAST_SHARE, LEAST_RATIO * worst.used):
                chosen.append(worst)
    return chosen
