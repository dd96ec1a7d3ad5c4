# SPDX-License-Identifier: Apache-2.0
"""Sentences about the first decision at which two policies differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rebat.core.formatting import counted
from rebat.core.nodes import NodeSet
from rebat.core.units import format_duration, to_s
from rebat.results.compare.parting import Ends, Knowledge, Parting, PolicyChoice

MOST_NAMED = 5
"""Maximum number of waiting jobs in a sentence."""

SAME = "{} and {} make the same decisions in the entire run"


class DifferenceText(NamedTuple):
    """Sentences about both policies' decisions, the state before them, and the ends of jobs."""

    decisions: list[str]
    knowledge: str
    end: str


def difference_text(names: tuple[str, str], parted: Parting, result: Ends) -> DifferenceText:
    """Return the sentences about the first difference between two policies with these names."""
    at_s, second = to_s(parted.at_us), names[1]
    decisions = [
        f"{names[0]} and {second} differ at {format_duration(at_s)} ({at_s:.6f} s), "
        f"after {parted.n_equal} equal decisions",
        *(_decided(name, choices) for name, choices in zip(names, parted.only, strict=True)),
    ]
    verb = "ends" if result.earlier == 1 else "end"
    end = (
        f"In the end: {counted(result.earlier, 'job')} {verb} earlier with {second}, "
        f"{result.later} later, "
        f"{result.same} at the same time."
    )
    return DifferenceText(decisions, f"State before, in both runs: {_knowledge(parted.knew)}.", end)


def _decided(name: str, choices: Sequence[PolicyChoice]) -> str:
    if not choices:
        return f"  {name}: none of these decisions"
    return f"  {name}: {'; '.join(map(_choice, choices))}"


def _choice(choice: PolicyChoice) -> str:
    again = f", attempt {choice.attempt}" if choice.attempt else ""
    size = counted(choice.nodes, "node")
    if choice.verb == "reject":
        return f"reject job {choice.job}"
    where = NodeSet.from_intervals(choice.places)
    why = f" ({choice.why})" if choice.why else ""
    on = f"nodes {where}" if choice.places else size
    return f"{choice.verb} job {choice.job}{again} on {on}{why}"


def _knowledge(knew: Knowledge) -> str:
    first = ", ".join(knew.queue[:MOST_NAMED])
    queue = f"{counted(len(knew.queue), 'job')} in the queue"
    if first:
        more = ", ..." if len(knew.queue) > MOST_NAMED else ""
        queue += f" ({first}{more})"
    held = f", {knew.held} held" if knew.held else ""
    free = f"{counted(knew.free, 'node')} free"
    return f"{queue}, {len(knew.running)} running, {free}, {knew.down} down{held}"
