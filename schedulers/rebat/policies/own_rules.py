# SPDX-License-Identifier: Apache-2.0
"""Rules of one's own, ``FILE.py:FUNCTION``, made to fit where a rule of the tables goes.

What a file's function answers is checked, and completed by what every rule must have: a failed job
goes before a victim and that before the others, and ties are broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.policies.base import Machine
from rebat.policies.guard import place_of
from rebat.policies.own import file_of, load, name_of
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.placement.plans import Placement
from rebat.policies.queue_order import Key
from rebat.policies.reactions.victims import Candidate, Steal

Rule = Callable[..., Any]


class OwnOrder(msgspec.Struct, frozen=True):
    """A queue order from a function of an attempt: the smallest number first."""

    rule: Rule

    def __call__(self, attempt: Attempt) -> Key:
        """The function's numbers, behind the priority."""
        return (-attempt.priority, *_numbers(self.rule, self.rule(attempt)), attempt.serial)


class OwnVictim(msgspec.Struct, frozen=True):
    """A victim rule from a function of a candidate: the smallest number is the victim."""

    rule: Rule

    def __call__(self, candidate: Candidate) -> tuple[Any, ...]:
        """The function's numbers; among equals the earliest released."""
        return (*_numbers(self.rule, self.rule(candidate)), *candidate.release)


class OwnCriterion(msgspec.Struct, frozen=True):
    """A criterion from a function of a steal: whether to steal."""

    rule: Rule

    def __call__(self, steal: Steal) -> bool:
        """The function's answer."""
        answer = self.rule(steal)
        if not isinstance(answer, bool):
            raise UnfitAnswer(self.rule, answer, "True or False")
        return answer


class OwnChooser(msgspec.Struct, frozen=True):
    """A placement from a function of a mask of free nodes, a request and the machine."""

    rule: Rule

    def __call__(self, free: Mask, request: Request, machine: Machine) -> NodeSet | None:
        """The function's nodes."""
        nodes = self.rule(free.copy(), request, machine)
        if nodes is None:
            return None
        if not isinstance(nodes, NodeSet) or nodes.size < request.n_nodes:
            raise UnfitAnswer(self.rule, nodes, f"a NodeSet of {request.n_nodes} nodes, or None")
        if not all(node < len(free) and free[node] for node in nodes):
            raise UnfitAnswer(self.rule, nodes, "nodes that are free")
        return nodes


OWN_RULES: dict[str, Callable[[Any], Any]] = {
    "order": OwnOrder,
    "placement": lambda rule: Placement(OwnChooser(rule)),
    "victim": OwnVictim,
    "criterion": OwnCriterion,
}
"""Axis -> what makes a rule of it from what a file holds."""


def own_rule(axis: str, place: str) -> Any:
    """The rule of an axis that a file holds.

    Raises
    ------
    InputError
        When it cannot be loaded, or is no rule.
    """
    found = load(place)
    where = f"{file_of(place)}: {name_of(place)}"
    if not callable(found):
        raise InputError(f"is no {axis} rule", where, "a function")
    try:
        return OWN_RULES[axis](found)
    except InputError as error:
        raise error.at(where) from None


class UnfitAnswer(TypeError):
    """A rule answered what it may not; ``place`` is where it is defined."""

    def __init__(self, rule: Rule, answer: object, expected: str) -> None:
        super().__init__(f"the rule returned {answer!r:.60} (expected {expected})")
        self.place = place_of(rule)


def _numbers(rule: Rule, answer: Any) -> tuple[float, ...]:
    values = answer if isinstance(answer, tuple) else (answer,)
    try:
        unfit = not values or any(math.isnan(value) for value in values)
    except TypeError:
        unfit = True
    if unfit:
        raise UnfitAnswer(rule, answer, "a number, or a tuple of numbers")
    return values
