# SPDX-License-Identifier: Apache-2.0
"""Published numbers of the migration paper, each next to rebat's interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebat.report.claims import Judgement, compared
from rebat.results.intervals import BySeed, interval, minus

from .published import FIGURE_3, FIGURE_3_LOAD, MIXED, STATES, TABLE_2
from .runs import FORMS, ComparedGroup, Runs, figure_4, table_2
from .tables import states_of

Numbers = Mapping[str, tuple[BySeed, float]]
"""rebat's values and the published value, for each label."""


def judgements(index: Runs) -> Iterator[Judgement]:
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
    return ", ".join(f"{100 * printed:.1f}" for _, printed in numbers.values())


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
