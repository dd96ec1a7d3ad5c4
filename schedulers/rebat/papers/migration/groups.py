# SPDX-License-Identifier: Apache-2.0
"""The runs for each part of the evaluation.

Runs are selected by policy. If the paper publishes numbers, they are also selected by the name of
the workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebat.papers.common.runs_index import Run
from rebat.papers.migration.published import LOADS, WIDE
from rebat.papers.migration.runs import MigrationCase, Runs


class ComparedGroup(NamedTuple):
    """A base run, and the runs compared with it."""

    base: Run[MigrationCase]
    others: list[Run[MigrationCase]]


WITHOUT = MigrationCase("cluster")
WAITING = MigrationCase("cluster", (), (("drain", "wait"),))
ONE_TARGET = MigrationCase("compaction")
SEVERAL_TARGETS = MigrationCase("compaction", (), (("targets", "several"),))
FORMS = (ONE_TARGET, SEVERAL_TARGETS)
"""The forms of compaction that are compared with the paper."""

PROMOTING, NOT_PROMOTING = MigrationCase("priorities"), MigrationCase("priorities", ("requeue",))
TIERS = MigrationCase("tiers")


def compactions(index: Runs) -> list[ComparedGroup]:
    """Return the runs without and with compaction, for each workload.

    The runs are from the first setting of the workload that has runs of both kinds.
    """
    groups: dict[str, ComparedGroup] = {}
    for setting in index.settings:
        forms = [
            Run(setting, case)
            for case in index.cases(setting)
            if case.name == "compaction" and not case.react
        ]
        if forms and WITHOUT in index.cases(setting):
            groups.setdefault(setting.workload, ComparedGroup(Run(setting, WITHOUT), forms))
    return list(groups.values())


def figure_4(index: Runs) -> dict[int, ComparedGroup]:
    """Return the runs without and with compaction, for each load of Figure 4."""
    groups = {group.base.setting.workload: group for group in compactions(index)}
    return {load: groups[name] for name, load in LOADS.items() if name in groups}


def table_2(index: Runs) -> dict[int, ComparedGroup]:
    """Return the runs without and with migration into the high partition, by load (Table 2)."""
    groups: dict[int, ComparedGroup] = {}
    for setting in index.settings:
        load = WIDE.get(setting.workload)
        if load and {PROMOTING, NOT_PROMOTING} <= {*index.cases(setting)}:
            pair = ComparedGroup(Run(setting, NOT_PROMOTING), [Run(setting, PROMOTING)])
            groups.setdefault(load, pair)
    return groups


def drained(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of settings with drains, in which jobs on drained nodes wait or migrate."""
    for setting in index.settings:
        if setting.scenario.operations and {WITHOUT, WAITING} <= {*index.cases(setting)}:
            yield ComparedGroup(Run(setting, WAITING), [Run(setting, WITHOUT)])


def eternal(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of each load without and with eternal jobs.

    The names of the workloads are ``load-X`` and ``eternal-X``.
    """
    tiered = {setting for setting in index.settings if TIERS in index.cases(setting)}
    for setting in index.settings:
        alone = setting._replace(workload=setting.workload.replace("eternal", "load"))
        if setting.workload.startswith("eternal") and {setting, alone} <= tiered:
            yield ComparedGroup(Run(alone, TIERS), [Run(setting, TIERS)])


def _reacting(index: Runs, word: str) -> Iterator[ComparedGroup]:
    """Yield the runs of settings that have a certain reaction.

    The base is the first policy without this reaction.
    """
    for setting in index.settings:
        cases = index.cases(setting)
        base = next((case for case in cases if not case.react), None)
        if base and any(word in case.react for case in cases):
            others = [Run(setting, case) for case in cases if case != base]
            yield ComparedGroup(Run(setting, base), others)


def sleeping(index: Runs) -> list[ComparedGroup]:
    """Return the runs of settings in which nodes may sleep. In the base run, no node sleeps.

    If there is a run of compaction without sleeping nodes, it is the last of its group.
    """
    awake = {
        (group.base.setting.workload, group.base.setting.scenario): run
        for group in compactions(index)
        for run in group.others
        if run.case == ONE_TARGET
    }
    groups = []
    for base, others in _reacting(index, "sleep"):
        alone = awake.get(base.setting[1:])
        groups.append(ComparedGroup(base, [*others, *([alone] if alone else [])]))
    return groups


def defragmented(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of torus settings without and with defragmentation."""
    return _reacting(index, "defragment")


def foreseen(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of settings with proactive migration.

    The base is the first policy without it.
    """
    return _reacting(index, "foresee")
