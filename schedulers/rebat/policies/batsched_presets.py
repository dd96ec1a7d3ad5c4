"""Batsched's schedulers by name: the same starts on the same machines as the C++ program's."""

from __future__ import annotations

from rebat.policies.base import Policy, Requeue
from rebat.policies.composition import Preset, Scheduler
from rebat.policies.planning.batsched import RJMS_DELAY_US, Fcfs, NeedsWalltime
from rebat.policies.planning.list_scheduling import ALL, ListScheduling
from rebat.policies.planning.named import NamedPlan

_SOURCE = "Batsched 1.4"


def _backfilling(depth: int) -> Policy:
    planning = ListScheduling(depth=depth, margin_us=RJMS_DELAY_US, placement=NamedPlan)
    return Scheduler(NeedsWalltime(planning), Requeue())


BATSCHED_PRESETS = [
    Preset(
        "batsched-conservative",
        "conservative backfilling on named machines, walltimes 5 s longer",
        f"{_SOURCE}, conservative_bf",
        lambda: _backfilling(ALL),
    ),
    Preset(
        "batsched-easy",
        "EASY backfilling on named machines, walltimes 5 s longer",
        f"{_SOURCE}, easy_bf",
        lambda: _backfilling(1),
    ),
    Preset(
        "batsched-fcfs",
        "first come, first served, without backfilling",
        f"{_SOURCE}, fcfs",
        lambda: Scheduler(Fcfs(), Requeue()),
    ),
]
"""Rows for the table of presets."""
