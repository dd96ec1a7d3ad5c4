# SPDX-License-Identifier: Apache-2.0
"""Claims of the migration paper, and rebat's own statements.

Numbers are means over seeds with 95 % intervals. Differences are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from rebat.core.numbers import share
from rebat.report.claims import ABOVE, BELOW, Claim, Judgement, Rule, above, below, compared, judge
from rebat.report.runs_index import Run, difference
from rebat.results.intervals import BySeed, combined, interval, minus

from .beyond import energy_runs, subject
from .runs import (
    FIGURE_3,
    FIGURE_3_LOAD,
    FORMS,
    LONGEST_S,
    MIXED,
    STATES,
    TABLE_2,
    ComparedGroup,
    MigrationCase,
    Runs,
    compactions,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    named,
    sleeping,
    states_of,
    table_2,
)

Numbers = Mapping[str, tuple[BySeed, float]]
"""rebat's values and the published value, for each label."""


def published_values(index: Runs) -> Iterator[Judgement]:
    """Compare the groups of numbers of Figures 3 and 4 and of Table 2."""
    loads = figure_4(index)
    if loads:
        yield from _figure_4(index, loads)
    if FIGURE_3_LOAD in loads:
        yield from _figure_3(index, loads[FIGURE_3_LOAD])
    for load, pair in table_2(index).items():
        yield from _table_2(index, load, pair)


def _group(about: str, text: str, paper: str, numbers: Numbers) -> Judgement:
    both = {label: (interval(values), value) for label, (values, value) in numbers.items()}
    return compared(about, text, paper, both)


def _all(numbers: Numbers) -> str:
    return ", ".join(share.bare(printed) for _, printed in numbers.values())


def _figure_4(index: Runs, loads: Mapping[int, ComparedGroup]) -> Iterator[Judgement]:
    mixed = "node_states_mixed"
    before = {load: index.values(*item.base, mixed) for load, item in loads.items()}
    numbers = {f"{load} %": (values, MIXED[load][0]) for load, values in before.items()}
    about = f"loads {', '.join(map(str, loads))} %"
    text = f"without migration {_all(numbers)} % of node time is mixed"
    yield _group(about, text, "Figure 4", numbers)
    for case in FORMS:
        changes: Numbers = {
            f"{load} %": (
                minus(index.values(*run, mixed), before[load]),
                MIXED[load][1] - MIXED[load][0],
            )
            for load, item in loads.items()
            for run in item.others
            if run.case == case
        }
        text = f"{case.label}: the share of mixed nodes changes by {_all(changes)} points"
        yield _group(about, text, "Figure 4", changes)


def _figure_3(index: Runs, pair: ComparedGroup) -> Iterator[Judgement]:
    runs = {run.case.label: (run, 1) for case in FORMS for run in pair.others if run.case == case}
    for name, (run, which) in {"without migration": (pair.base, 0), **runs}.items():
        values = states_of(index, run)
        numbers = {state: (values[state], FIGURE_3[state][which]) for state in STATES}
        text = f"{name}: nodes are empty, mixed and full for {_all(numbers)} % of their time"
        yield _group(f"load {FIGURE_3_LOAD} %", text, "Figure 3", numbers)


def _table_2(index: Runs, load: int, pair: ComparedGroup) -> Iterator[Judgement]:
    for which, (run, name) in enumerate(((pair.base, "without"), (pair.others[0], "with"))):
        numbers = {
            f"{partition} {state}": (
                index.values(*run, f"partition_states_{partition}_{state}"),
                states[state][which],
            )
            for partition, states in TABLE_2[load].items()
            for state in STATES
        }
        text = (
            f"{name} migration nodes are empty, mixed and full, first in the low and then in the "
            f"high partition, for {_all(numbers)} % of node time"
        )
        yield _group(f"two partitions, load {load} %", text, "Table 2", numbers)


SMALL = below(0.01)
"""Share of the core time, or of the mean turnaround, below which an overhead is small."""

AN_ORDER, ORDERS = above(10), above(100)
"""Factors that count as one and as several orders of magnitude."""

_NOT_TRIED = "not in the paper"


class InGroup(NamedTuple):
    """The subject of a claim: a base run, and the runs compared with it."""

    runs: Runs
    base: Run[MigrationCase]
    others: list[Run[MigrationCase]]

    def changes(self, metric: str, share: bool = False) -> list[dict[int, float]]:
        """Return, for each run, its metric minus that of the base run, by seed.

        With ``share``, the differences are relative to the base.
        """
        return [
            {**difference(self.runs, run, self.base, metric, share=share)} for run in self.others
        ]

    def values(self, metric: str) -> BySeed:
        """Return a metric of the base run by seed."""
        return self.runs.values(*self.base, metric)


def _claim(
    text: str, quantity: str, values: Callable[[InGroup], BySeed], rule: Rule, paper: str,
    own: bool = False,
) -> Claim:  # fmt: skip
    return Claim(text, quantity, rule, paper, lambda on: interval(values(on)), own=own)


def _change(metric: str, share: bool = False) -> Callable[[InGroup], BySeed]:
    return lambda on: on.changes(metric, share)[0]


def _of_all(pick: Callable[[list[float]], float], metric: str) -> Callable[[InGroup], BySeed]:
    """Return a function that, for each seed, applies ``pick`` (such as min) to all changes."""
    return lambda on: combined(pick, *on.changes(metric))


_LEAST = "mean of the smallest change over the variants ({n})"
COMPACTION = (
    _claim("every variant of compaction lowers the share of mixed nodes", _LEAST,
           _of_all(max, "node_states_mixed"), BELOW, "{mixed} (section 4.4, Figure 4)"),
)  # fmt: skip
COMPACTION_AT_50 = tuple(
    _claim(f"every variant of compaction raises the share of {state} nodes", _LEAST,
           _of_all(min, f"node_states_{state}"), ABOVE,
           f"{{{state}}} (section 4.4, Figure 3)")
    for state in ("full", "empty")
)  # fmt: skip
OVERHEAD = (
    _claim("{form}: checkpoints and restarts cost little", "their mean share of core time",
           lambda on: on.values("cost_share"), SMALL,
           "a requirement of section 1 for the checkpoint library: "
           'overhead "should be kept to a minimum"'),
)  # fmt: skip
PRIORITIES = tuple(
    _claim(f"migration {words} the share of {state} nodes in the high partition", "mean change",
           _change(f"partition_states_high_{state}"), rule,
           f"{{{state}}} (section 4.5, Table 2)")
    for state, rule, words in (("full", ABOVE, "raises"), ("mixed", BELOW, "lowers"))
)  # fmt: skip
"""Claims that are judged only at a load of 75 %.

At 90 % the changes in the paper are small, and the paper claims no direction.
"""

DRAINS = tuple(
    _claim(f"migration empties a node {words} faster than waiting",
           f"mean time until a node is empty with waiting / {LONGEST_S:g} s (Table 1)",
           lambda on: {s: value / LONGEST_S for s, value in on.values("empty_after_s").items()},
           rule, "up to several orders of magnitude (section 4.2)")
    for rule, words in ((AN_ORDER, "an order of magnitude"), (ORDERS, "orders of magnitude"))
)  # fmt: skip
ETERNAL = (
    _claim("eternal jobs raise the useful utilisation", "mean change",
           _change("useful_utilisation"), ABOVE, "the cluster increases its usage (section 3.3.2)"),
    _claim("eternal jobs do not delay normal jobs", "mean relative change of the mean turnaround",
           _change("turnaround_normal_mean_s", share=True), SMALL,
           "they yield to other jobs (section 3.3.2)"),
)  # fmt: skip
ENERGY = (
    _claim("compaction saves energy if empty nodes sleep",
           "mean relative change of the energy, compared with only sleeping",
           _change("energy_kwh", share=True), BELOW,
           "named as an application, not measured (sections 3.3.4 and 5)", own=True),
)  # fmt: skip
DEFRAGMENTATION = (
    _claim("defragmentation lowers the share of time in which the head of the queue is blocked",
           "mean change",
           _change("fragmentation_blocked_share"), BELOW, _NOT_TRIED, True),
    _claim("defragmentation raises the useful utilisation", "mean change",
           _change("useful_utilisation"), ABOVE, _NOT_TRIED, True),
)  # fmt: skip
PROACTIVE = (
    _claim("{ours} has a higher useful utilisation than {base}",
           "mean difference of the useful utilisation under the same failures",
           _change("useful_utilisation"), ABOVE, _NOT_TRIED, True),
)  # fmt: skip
AGAINST = {("foresee",): ("baseline", "stealing", "replacement"),
           ("foresee", "stealing"): ("stealing",)}  # fmt: skip
"""The reactions of proactive policies, each with the policies that they are compared with."""


class Loads(NamedTuple):
    """The subject of a claim on several loads.

    ``falls`` contains the decrease of the mixed share at each load.
    """

    falls: Mapping[int, BySeed]

    def gap(self, end: int) -> BySeed:
        """Return the mean decrease at the middle loads minus the decrease at the load ``end``.

        Seeds are not paired, because workloads with the same seed but different loads have
        different jobs.
        """
        return minus(combined(fmean, self.falls[50], self.falls[75]), self.falls[end])


MIDDLE = tuple(
    Claim(f"{{form}} reduces the share of mixed nodes more at 50 and 75 % than at {end} %",
          f"mean reduction at 50 and 75 %, minus the reduction at {end} %", ABOVE,
          "section 4.4",
          lambda on, end=end: interval(on.gap(end)),
          f"load {end} %")
    for end in (25, 90)
)  # fmt: skip


def judgements(index: Runs) -> Iterator[Judgement]:
    """Judge all claims for which there are runs."""
    yield from _compaction(index)
    yield from _middle_loads(index)
    for base, forms in compactions(index):
        for run in (run for run in forms if run.case in FORMS):
            words = {"form": run.case.label}
            yield from judge(OVERHEAD, InGroup(index, run, []), base.setting.workload, words)
    if 75 in table_2(index):
        words = {state: _percent(both) for state, both in TABLE_2[75]["high"].items()}
        on = InGroup(index, *table_2(index)[75])
        yield from judge(PRIORITIES, on, "two partitions, load 75 %", words)
    for pair in drained(index):
        yield from judge(DRAINS, InGroup(index, *pair), f"{pair.base.setting.workload}, drains")
    for pair in eternal(index):
        yield from judge(ETERNAL, InGroup(index, *pair), pair.others[0].setting.workload)
    for group in sleeping(index):
        runs = energy_runs(group)
        if {"sleeping", "compaction and sleeping"} <= runs.keys():
            on = InGroup(index, runs["sleeping"], [runs["compaction and sleeping"]])
            yield from judge(ENERGY, on, group.base.setting.workload)
    for pair in defragmented(index):
        yield from judge(DEFRAGMENTATION, InGroup(index, *pair), pair.base.setting.workload)
    for group in foreseen(index):
        yield from _proactive(index, group)


def _percent(both: tuple[float, float]) -> str:
    return share.between(*both)


def _compaction(index: Runs) -> Iterator[Judgement]:
    """Judge all forms of compaction together. For each seed, use the worst form."""
    for load, pair in figure_4(index).items():
        words = {"n": len(pair.others), "mixed": _percent(MIXED[load])}
        yield from judge(COMPACTION, InGroup(index, *pair), f"load {load} %", words)
    if FIGURE_3_LOAD in figure_4(index):
        pair = figure_4(index)[FIGURE_3_LOAD]
        shares = {state: _percent(both) for state, both in FIGURE_3.items()}
        words = {"n": len(pair.others), **shares}
        yield from judge(COMPACTION_AT_50, InGroup(index, *pair), f"load {FIGURE_3_LOAD} %", words)


def _middle_loads(index: Runs) -> Iterator[Judgement]:
    loads = figure_4(index)
    if len(loads) < len(MIXED):
        return
    for case in FORMS:
        falls = {
            load: difference(index, base, run, "node_states_mixed")
            for load, (base, forms) in loads.items()
            for run in forms
            if run.case == case
        }
        if falls.keys() == loads.keys():
            yield from judge(MIDDLE, Loads(falls), words={"form": case.label})


def _proactive(index: Runs, group: ComparedGroup) -> Iterator[Judgement]:
    runs = named([group.base, *group.others])
    for name, ours in runs.items():
        for base in AGAINST.get(ours.case.react, ()):
            if base in runs:
                on = InGroup(index, runs[base], [ours])
                yield from judge(PROACTIVE, on, subject(group), {"ours": name, "base": base})
