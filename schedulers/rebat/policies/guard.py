# SPDX-License-Identifier: Apache-2.0
"""A policy that is not trusted: whatever goes wrong in it is one line that says where and when."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.contract import (
    Changes,
    Drain,
    News,
    Note,
    Policy,
    Proposal,
    Reject,
    Release,
    Start,
    Stop,
    Undrain,
    View,
    Wake,
)
from rebat.core.errors import PolicyError
from rebat.core.units import to_s

PROPOSALS: tuple[type, ...] = (Start, Reject, Stop, Release, Wake, Drain, Undrain, Note)


class Guarded(Policy):
    """A policy whose every answer is checked.

    Parameters
    ----------
    policy : Policy
    name : str
        What errors call it.
    files : sequence of str
        Its own files: an error is told with the last line of them that ran.
    """

    def __init__(self, policy: Policy, name: str, files: Sequence[str]) -> None:
        self._policy, self._name, self._files = policy, name, frozenset(files)

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """What is to become of what runs."""
        return self._ask(view, self._policy.react, view, news)

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        return self._ask(view, self._policy.plan, view, changes)

    def _ask(self, view: View, method: Callable[..., Any], *arguments: Any) -> Iterator[Proposal]:
        """The proposals of a method, each checked before it is handed on.

        Raises
        ------
        PolicyError
            When it raises, answers something else than proposals, or wants to exit.
        """
        where = f"{self._name}.{method.__name__} at {to_s(view.now_us):.12g} s"
        answers = self._answers(where, method, *arguments)
        for answer in answers:
            wrong = _wrong(answer)
            if wrong:
                raise PolicyError(f"{place_of(method)}: {where}: {wrong}")
            yield answer

    def _answers(self, where: str, method: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        try:
            answer = method(*arguments)
            if isinstance(answer, Iterable):
                yield from answer
                return
        except (Exception, SystemExit) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise PolicyError(f"{self._line_of(error, method)}: {where}: {what}") from error
        raise PolicyError(
            f"{place_of(method)}: {where}: returned {_short(answer)} "
            "(expected a list of proposals, or to yield them)"
        )

    def _line_of(self, error: BaseException, method: Callable[..., Any]) -> str:
        """The last line of the policy's own files that ran; or where what fails is defined."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename in self._files]
        if own:
            return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return str(getattr(error, "place", "")) or place_of(method)


def _wrong(proposal: object) -> str | None:
    """What is wrong with what should be a proposal."""
    if not isinstance(proposal, PROPOSALS) or not isinstance(proposal, msgspec.Struct):
        names = ", ".join(kind.__name__ for kind in PROPOSALS)
        return f"proposed {_short(proposal)} (expected {names})"
    return _wrong_field(proposal)


def _wrong_field(proposal: msgspec.Struct) -> str | None:
    """What is wrong with a field of a proposal, or of what it wants then."""
    for field in msgspec.structs.fields(proposal):
        value = getattr(proposal, field.name)
        if isinstance(value, msgspec.Struct) and isinstance(value, field.type):
            if wrong := _wrong_field(value):
                return wrong
        elif not isinstance(value, field.type):
            return f"proposed a {type(proposal).__name__} whose {field.name} is {_short(value)}"
    return None


def place_of(function: Any) -> str:
    """File and line of a function's definition."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else str(function)


def _short(value: object) -> str:
    """A value that is not ours to print at length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
