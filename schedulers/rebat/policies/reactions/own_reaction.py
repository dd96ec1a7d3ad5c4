# SPDX-License-Identifier: Apache-2.0
"""A user-defined reaction from a file, ``react=FILE.py:NAME``."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from rebat.contract import Move, News, Policy, Proposal, Stop, View
from rebat.core.errors import InputError, PolicyError
from rebat.policies.composition import Reaction
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.guard import Guarded
from rebat.policies.own import created, file_of, name_of, own_rule


class OwnReaction:
    """A function of view and news, or a class with this function as its method ``react``.

    A class can have a state. It can also be a policy, whose method ``plan`` is then not used.
    """

    def __init__(self, rule: Any) -> None:
        method = getattr(rule, "react", None) if isinstance(rule, type) else rule
        if not callable(method) or method is Policy.react:
            expected = "react(view, news), which returns proposals"
            raise InputError(f"class {rule.__name__} has no method react", expected=expected)
        self._rule = rule

    def make(self, place: str) -> Reaction:
        """Return a new reaction, whose proposals are checked. ``place`` is its specification."""
        file, is_class = file_of(place), isinstance(self._rule, type)
        made: Any = created(self._rule, file) if is_class else SimpleNamespace(react=self._rule)
        return Guarded(made, name_of(place), [file])


class Staying(Reaction):
    """A reaction that may not move jobs, because nodes are reserved.

    Parameters
    ----------
    reaction : Reaction
    place : str
        File and name of the reaction.
    """

    def __init__(self, reaction: Reaction, place: str) -> None:
        self._reaction, self._place = reaction, place

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Yield the proposals of the reaction. Raise PolicyError at a move."""
        for proposal in self._reaction.react(view, news):
            if isinstance(proposal, Stop) and isinstance(proposal.then, Move):
                problem = f"moves {proposal.attempt_id}, which is not possible with reservations"
                raise PolicyError(f"{self._place}: {problem}")
            yield proposal


class OwnReactionOptions(ReactionOptions, frozen=True):
    """React with a function or a class in a file, FILE.py:NAME."""

    file: str

    @property
    def name(self) -> str:
        """The file and its function or class."""
        return self.file

    def make(self, context: Context) -> Reaction:
        """Return the reaction."""
        reaction: Reaction = own_rule("react", self.file, OwnReaction).make(self.file)
        return Staying(reaction, self.file) if context.reserves else reaction
