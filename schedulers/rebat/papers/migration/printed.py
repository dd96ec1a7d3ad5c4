# SPDX-License-Identifier: Apache-2.0
"""Claims on numbers in the paper: each must lie within the interval of rebat's number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebat.papers.common.claims import Claim, Rule, judge
from rebat.papers.common.parts import Judgement
from rebat.papers.migration.groups import FORMS, ComparedGroup, figure_4, table_2
from rebat.papers.migration.published import FIGURE_3, FIGURE_3_LOAD, MIXED, STATES, TABLE_2
from rebat.papers.migration.runs import Runs
from rebat.papers.migration.tables import INSIDE, NEAR, OUTSIDE, place_of, states_of
from rebat.results.intervals import BySeed, minus

Numbers = Mapping[str, tuple[BySeed, float]]
"""A label -> our values, and the printed value."""


def judgements(index: Runs) -> Iterator[Judgement]:
    """Judge groups of numbers in the paper: all must lie within rebat's intervals."""
    return judge(claims(index), index)


def claims(index: Runs) -> Iterator[Claim]:
    """Yield the claims on Figures 3 and 4, and on Table 2."""
    loads = figure_4(index)
    if loads:
        yield from _figure_4(index, loads)
    if FIGURE_3_LOAD in loads:
        yield from _figure_3(index, loads[FIGURE_3_LOAD])
    for load, pair in table_2(index).items():
        yield from _table_2(index, load, pair)


def _claim(about: str, text: str, paper: str, numbers: Numbers) -> Claim:
    places = {label: place_of(*both) for label, both in numbers.items()}
    n = len(places)
    inside = sum(place == INSIDE for place in places.values())
    others = "".join(_listed(places, place) for place in (NEAR, OUTSIDE))
    return Claim(
        text, f"share of the {n} published numbers within the intervals of rebat",
        Rule(f"all{others}", 1, 1, True),
        paper, lambda index: inside / n if n and None not in places.values() else None, about,
    )  # fmt: skip


def _listed(places: Mapping[str, str | None], wanted: str) -> str:
    labels = [label for label, place in places.items() if place == wanted]
    return f"; {wanted}: {', '.join(labels)}" if labels else ""


def _all(numbers: Numbers) -> str:
    """List the printed values, in percent or points."""
    return ", ".join(f"{100 * printed:.1f}" for _, printed in numbers.values())


def _figure_4(index: Runs, loads: Mapping[int, ComparedGroup]) -> Iterator[Claim]:
    mixed = "node_states_mixed"
    before = {load: index.values(*item.base, mixed) for load, item in loads.items()}
    numbers = {f"{load} %": (values, MIXED[load][0]) for load, values in before.items()}
    about = f"loads {', '.join(map(str, loads))} %"
    text = f"without migration {_all(numbers)} % of node time is mixed"
    yield _claim(about, text, "Figure 4", numbers)
    for case in FORMS:
        changes: Numbers = {
            f"{load} %": (
                minus(index.values(*run, mixed), before[load]), MIXED[load][1] - MIXED[load][0],
            )
            for load, item in loads.items()
            for run in item.others
            if run.case == case
        }  # fmt: skip
        text = f"{case.label}: the mixed share changes by {_all(changes)} points"
        yield _claim(about, text, "Figure 4", changes)


def _figure_3(index: Runs, pair: ComparedGroup) -> Iterator[Claim]:
    runs = {run.case.label: (run, 1) for case in FORMS for run in pair.others if run.case == case}
    for name, (run, which) in {"without migration": (pair.base, 0), **runs}.items():
        values = states_of(index, run)
        numbers = {state: (values[state], FIGURE_3[state][which]) for state in STATES}
        text = f"{name}: nodes are empty, mixed and full for {_all(numbers)} % of their time"
        yield _claim(f"load {FIGURE_3_LOAD} %", text, "Figure 3", numbers)


def _table_2(index: Runs, load: int, pair: ComparedGroup) -> Iterator[Claim]:
    for which, (run, name) in enumerate(((pair.base, "without"), (pair.others[0], "with"))):
        numbers = {
            f"{partition} {state}": (index.values(*run, f"partition_states_{partition}_{state}"),
                                     states[state][which])
            for partition, states in TABLE_2[load].items()
            for state in STATES
        }  # fmt: skip
        text = (
            f"{name} migration nodes are empty, mixed and full, first in the low and then in the "
            f"high partition, for {_all(numbers)} % of node time"
        )
        yield _claim(f"two partitions, load {load} %", text, "Table 2", numbers)
