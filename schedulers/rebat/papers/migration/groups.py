# SPDX-License-Identifier: Apache-2.0
"""Which runs each part of the evaluation is about: found by policies, and by names of workloads
where the paper prints numbers for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebat.papers.common.runs_index import Run
from rebat.papers.migration.published import LOADS, WIDE
from rebat.papers.migration.runs import MigrationCase, Runs


class ComparedGroup(NamedTuple):
    """A run without something, and those with it."""

    base: Run[MigrationCase]
    others: list[Run[MigrationCase]]


WITHOUT = MigrationCase("cluster")
WAITING = MigrationCase("cluster", (), (("drain", "wait"),))
ONE_TARGET = MigrationCase("compaction")
SEVERAL_TARGETS = MigrationCase("compaction", (), (("targets", "several"),))
FORMS = (ONE_TARGET, SEVERAL_TARGETS)
"""The forms of compaction that are held against the paper's."""

PROMOTING, NOT_PROMOTING = MigrationCase("priorities"), MigrationCase("priorities", ("requeue",))
TIERS = MigrationCase("tiers")


def compactions(index: Runs) -> list[ComparedGroup]:
    """Each workload without and with the forms of compaction, where it was so run first."""
    found: dict[str, ComparedGroup] = {}
    for setting in index.settings:
        forms = [
            Run(setting, case)
            for case in index.cases(setting)
            if case.name == "compaction" and not case.react
        ]
        if forms and WITHOUT in index.cases(setting):
            found.setdefault(setting.workload, ComparedGroup(Run(setting, WITHOUT), forms))
    return list(found.values())


def figure_4(index: Runs) -> dict[int, ComparedGroup]:
    """Those of the loads of Figure 4."""
    found = {one.base.setting.workload: one for one in compactions(index)}
    return {load: found[name] for name, load in LOADS.items() if name in found}


def table_2(index: Runs) -> dict[int, ComparedGroup]:
    """The loads of Table 2, without and with migration into the better partition."""
    found: dict[int, ComparedGroup] = {}
    for setting in index.settings:
        load = WIDE.get(setting.workload)
        if load and {PROMOTING, NOT_PROMOTING} <= {*index.cases(setting)}:
            pair = ComparedGroup(Run(setting, NOT_PROMOTING), [Run(setting, PROMOTING)])
            found.setdefault(load, pair)
    return found


def drained(index: Runs) -> Iterator[ComparedGroup]:
    """Nodes that an operation drains, emptied by waiting and by migration."""
    for setting in index.settings:
        if setting.scenario.operations and {WITHOUT, WAITING} <= {*index.cases(setting)}:
            yield ComparedGroup(Run(setting, WAITING), [Run(setting, WITHOUT)])


def eternal(index: Runs) -> Iterator[ComparedGroup]:
    """A load alone, and with eternal jobs: workloads named ``load-X`` and ``eternal-X``."""
    known = {one for one in index.settings if TIERS in index.cases(one)}
    for setting in index.settings:
        alone = setting._replace(workload=setting.workload.replace("eternal", "load"))
        if setting.workload.startswith("eternal") and {setting, alone} <= known:
            yield ComparedGroup(Run(alone, TIERS), [Run(setting, TIERS)])


def _reacting(index: Runs, word: str) -> Iterator[ComparedGroup]:
    """Where some policy has a reaction: the first to which none was given, and all others."""
    for setting in index.settings:
        cases = index.cases(setting)
        base = next((case for case in cases if not case.react), None)
        if base and any(word in case.react for case in cases):
            others = [Run(setting, case) for case in cases if case != base]
            yield ComparedGroup(Run(setting, base), others)


def sleeping(index: Runs) -> list[ComparedGroup]:
    """Nodes that may sleep, first without; last compaction where none sleeps, if that was run."""
    awake = {
        (one.base.setting.workload, one.base.setting.scenario): run
        for one in compactions(index)
        for run in one.others
        if run.case == ONE_TARGET
    }
    found = []
    for base, others in _reacting(index, "sleep"):
        alone = awake.get(base.setting[1:])
        found.append(ComparedGroup(base, [*others, *([alone] if alone else [])]))
    return found


def defragmented(index: Runs) -> Iterator[ComparedGroup]:
    """Boxes of a torus, without and with moves that make room."""
    return _reacting(index, "defragment")


def foreseen(index: Runs) -> Iterator[ComparedGroup]:
    """Failures that may be foreseen: the baseline, and all that was tried against it."""
    return _reacting(index, "foresee")
