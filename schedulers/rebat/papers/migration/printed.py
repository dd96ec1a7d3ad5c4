# SPDX-License-Identifier: Apache-2.0
"""Numbers that the paper prints, held against the intervals of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebat.papers.common.parts import Judgement
from rebat.papers.common.runs_index import minus
from rebat.papers.migration.comparing import INSIDE, NEAR, OUTSIDE, place_of
from rebat.papers.migration.evidence import Case, Evidence
from rebat.papers.migration.groups import (
    ONE_TARGET,
    SEVERAL_TARGETS,
    Compared,
    figure_4,
    table_2,
)
from rebat.papers.migration.published import FIGURE_3, FIGURE_3_LOAD, MIXED, STATES, TABLE_2
from rebat.papers.migration.tables import states_of
from rebat.results.intervals import BySeed

Numbers = Mapping[str, tuple[BySeed, float]]
"""What they are -> our values, and the printed one."""

FORMS: tuple[Case, ...] = (ONE_TARGET, SEVERAL_TARGETS)
"""The forms of compaction that are held against the paper's."""


class Printed(NamedTuple):
    """Printed numbers that are judged together."""

    subject: str
    claim: str
    paper: str
    numbers: Numbers


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """Of each group, how many of its numbers lie in our intervals: all of them must."""
    for group in groups(evidence):
        places = {label: place_of(*both) for label, both in group.numbers.items()}
        if places and None not in places.values():
            number = sum(place == INSIDE for place in places.values()) / len(places)
            rule = f"share of the {len(places)} printed numbers in our intervals, all"
            said = "".join(_listed(places, place) for place in (NEAR, OUTSIDE))
            yield Judgement(
                group.subject, group.claim, rule + said, number, number == 1, group.paper
            )


def _listed(places: Mapping[str, str | None], wanted: str) -> str:
    found = [label for label, place in places.items() if place == wanted]
    return f"; {wanted}: {', '.join(found)}" if found else ""


def groups(evidence: Evidence) -> Iterator[Printed]:
    """Those of Figures 3 and 4, and of Table 2."""
    loads = figure_4(evidence)
    if loads:
        yield from _figure_4(evidence, loads)
    if FIGURE_3_LOAD in loads:
        yield from _figure_3(evidence, loads[FIGURE_3_LOAD])
    for load, pair in table_2(evidence).items():
        yield from _table_2(evidence, load, pair)


def _said(numbers: Numbers) -> str:
    """The printed ones, in percent or points."""
    return ", ".join(f"{100 * printed:.1f}" for _, printed in numbers.values())


def _figure_4(evidence: Evidence, loads: Mapping[int, Compared]) -> Iterator[Printed]:
    mixed = "node_states_mixed"
    before = {load: evidence.of(one.base, mixed) for load, one in loads.items()}
    numbers: dict[str, tuple[BySeed, float]] = {
        f"{load} %": (values, MIXED[load][0]) for load, values in before.items()
    }
    subject = f"loads {', '.join(map(str, loads))} %"
    claim = f"without migration {_said(numbers)} % of node time is mixed"
    yield Printed(subject, claim, "Figure 4", numbers)
    for case in FORMS:
        numbers = {
            f"{load} %": (
                minus(evidence.of(run, mixed), before[load]), MIXED[load][1] - MIXED[load][0],
            )
            for load, one in loads.items()
            for run in one.others
            if run.case == case
        }  # fmt: skip
        claim = f"{case.label}: the mixed share changes by {_said(numbers)} points"
        yield Printed(subject, claim, "Figure 4", numbers)


def _figure_3(evidence: Evidence, pair: Compared) -> Iterator[Printed]:
    runs = {
        run.case.label: (run, 1) for case in FORMS for run in pair.others if run.case == case
    }  # fmt: skip
    for name, (run, which) in {"without migration": (pair.base, 0), **runs}.items():
        values = states_of(evidence, run)
        numbers = {state: (values[state], FIGURE_3[state][which]) for state in STATES}
        claim = f"{name}: nodes are empty, mixed, full for {_said(numbers)} % of their time"
        yield Printed(f"load {FIGURE_3_LOAD} %", claim, "Figure 3", numbers)


def _table_2(evidence: Evidence, load: int, pair: Compared) -> Iterator[Printed]:
    for which, (run, name) in enumerate(((pair.base, "without"), (pair.others[0], "with"))):
        numbers = {}
        for partition, states in TABLE_2[load].items():
            values = states_of(evidence, run, f"partition_states_{partition}")
            for state in STATES:
                numbers[f"{partition} {state}"] = values[state], states[state][which]
        claim = (
            f"{name} migration the low partition is empty, mixed, full, and then the high one, "
            f"for {_said(numbers)} % of node time"
        )
        yield Printed(f"two partitions, load {load} %", claim, "Table 2", numbers)
