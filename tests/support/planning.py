# SPDX-License-Identifier: Apache-2.0
"""List scheduling by the rules, as a planning for custom policies of tests."""

from __future__ import annotations

from typing import Any

from rebat.contract import Changes, View
from rebat.policies.composition import Wrapping
from rebat.policies.placement.plans import AnyOptions, NamedOptions, Placement
from rebat.policies.placement.torus import TorusFirstOptions
from rebat.policies.planning.by_rules import RulePlanning
from rebat.policies.planning.list_scheduling import ListOptions
from rebat.policies.point import Point


def by_list(placement: Placement | str = "any", **options: Any) -> RulePlanning:
    """Return list scheduling with a placement by name, or with one that is not in any table."""
    named = {"any": AnyOptions(), "named": NamedOptions()}
    chosen = named[placement] if isinstance(placement, str) else TorusFirstOptions()
    point = Point(ListOptions(**options), chosen)
    made = chosen.make(None, 0) if isinstance(placement, str) else placement
    return RulePlanning(point, made)


class Watched(Wrapping):
    """List scheduling whose planned starts a test reads before each next plan.

    Attributes
    ----------
    promised : dict
        The last planned start of each attempt in microseconds, by id.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(by_list(**options))
        self.promised: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._touched = True

    def plan(self, view: View, changes: Changes) -> Any:
        self.watch(view)
        self._touched = bool(
            changes.failed_nodes or changes.rejuvenated_nodes or changes.resubmitted
        )
        self._ids |= {attempt.serial: attempt.id for attempt in view.queue.values()}
        return self._planning.plan(view, changes)

    def watch(self, view: View) -> None:
        """Read the last plan. Without failures, no planned start moves to a later time."""
        if not self._ids:
            return
        planned = view._by_rules.planned()
        for serial, start_us in zip(
            planned.serials.tolist(), planned.starts_us.tolist(), strict=True
        ):
            name = self._ids[serial]
            if not self._touched:
                assert start_us <= self.promised.get(name, start_us), name
            self.promised[name] = start_us
