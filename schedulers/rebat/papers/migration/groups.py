# SPDX-License-Identifier: Apache-2.0
"""Which runs each part of the evaluation is about: found by policies, and by names of workloads
where the paper prints numbers for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebat.papers.migration.evidence import Case, Evidence, Run
from rebat.papers.migration.published import LOADS, WIDE


class Compared(NamedTuple):
    """A run without something, and those with it."""

    base: Run
    others: list[Run]


WITHOUT = Case("cluster")
WAITING = Case("cluster", (), (("drain", "wait"),))
ONE_TARGET = Case("compaction")
SEVERAL_TARGETS = Case("compaction", (), (("targets", "several"),))
PROMOTING, NOT_PROMOTING = Case("priorities"), Case("priorities", ("requeue",))
TIERS = Case("tiers")


def compactions(evidence: Evidence) -> list[Compared]:
    """Each workload without and with the forms of compaction, where it was so run first."""
    found: dict[str, Compared] = {}
    for setting in evidence.settings:
        forms = evidence.runs(setting, lambda case: case.name == "compaction" and not case.react)
        if forms and WITHOUT in evidence.cases(setting):
            found.setdefault(setting.workload, Compared(Run(setting, WITHOUT), forms))
    return list(found.values())


def figure_4(evidence: Evidence) -> dict[int, Compared]:
    """Those of the loads of Figure 4."""
    found = {one.base.setting.workload: one for one in compactions(evidence)}
    return {load: found[name] for name, load in LOADS.items() if name in found}


def table_2(evidence: Evidence) -> dict[int, Compared]:
    """The loads of Table 2, without and with migration into the better partition."""
    found: dict[int, Compared] = {}
    for setting in evidence.settings:
        load = WIDE.get(setting.workload)
        if load and {PROMOTING, NOT_PROMOTING} <= {*evidence.cases(setting)}:
            pair = Compared(Run(setting, NOT_PROMOTING), [Run(setting, PROMOTING)])
            found.setdefault(load, pair)
    return found


def drained(evidence: Evidence) -> Iterator[Compared]:
    """Nodes that an operation drains, emptied by waiting and by migration."""
    for setting in evidence.settings:
        if setting.scenario.operations and {WITHOUT, WAITING} <= {*evidence.cases(setting)}:
            yield Compared(Run(setting, WAITING), [Run(setting, WITHOUT)])


def eternal(evidence: Evidence) -> Iterator[Compared]:
    """A load alone, and with eternal jobs: workloads named ``load-X`` and ``eternal-X``."""
    known = {one for one in evidence.settings if TIERS in evidence.cases(one)}
    for setting in evidence.settings:
        alone = setting._replace(workload=setting.workload.replace("eternal", "load"))
        if setting.workload.startswith("eternal") and {setting, alone} <= known:
            yield Compared(Run(alone, TIERS), [Run(setting, TIERS)])


def _reacting(evidence: Evidence, word: str) -> Iterator[Compared]:
    """Where some policy has a reaction: the first to which none was given, and all others."""
    for setting in evidence.settings:
        cases = evidence.cases(setting)
        base = next((case for case in cases if not case.react), None)
        if base and any(word in case.react for case in cases):
            others = [Run(setting, case) for case in cases if case != base]
            yield Compared(Run(setting, base), others)


def sleeping(evidence: Evidence) -> list[Compared]:
    """Nodes that may sleep, first without; last compaction where none sleeps, if that was run."""
    awake = {
        (one.base.setting.workload, one.base.setting.scenario): run
        for one in compactions(evidence)
        for run in one.others
        if run.case == ONE_TARGET
    }
    found = []
    for base, others in _reacting(evidence, "sleep"):
        alone = awake.get(base.setting[1:])
        found.append(Compared(base, [*others, *([alone] if alone else [])]))
    return found


def defragmented(evidence: Evidence) -> Iterator[Compared]:
    """Boxes of a torus, without and with moves that make room."""
    return _reacting(evidence, "defragment")


def foreseen(evidence: Evidence) -> Iterator[Compared]:
    """Failures that may be foreseen: the baseline, and all that was tried against it."""
    return _reacting(evidence, "foresee")
