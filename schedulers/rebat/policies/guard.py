# SPDX-License-Identifier: Apache-2.0
"""A wrapper for user-defined policies: an error becomes one line with place and time."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import msgspec

from rebat.contract import (
    Changes,
    Drain,
    News,
    Note,
    PlannedStarts,
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
from rebat.contract.proposals import PlanByRules
from rebat.core.errors import PolicyError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s

PROPOSALS: tuple[type, ...] = (Start, Reject, Stop, Release, Wake, Drain, Undrain, Note)


class Guarded(Policy):
    """A wrapper that checks every answer of a policy.

    Parameters
    ----------
    policy : Policy
    name : str
        Name of the policy in errors.
    files : sequence of str
        The policy's own files. An error names the last executed line of these files.
    """

    def __init__(self, policy: Policy, name: str, files: Sequence[str]) -> None:
        self._policy, self._name, self._files = policy, name, frozenset(files)

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Return checked proposals for running attempts."""
        return self._ask(view, "react", view, news)

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Return checked proposals for queued attempts."""
        return self._ask(view, "plan", view, changes)

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the checked planned starts of queued attempts."""
        method = getattr(self._policy, "planned", super().planned)
        where, answer = self._report(view, "planned", method)
        if answer is None or (isinstance(answer, PlannedStarts) and answer.describes(view)):
            return answer
        raise _wrong(where, method, answer, "PlannedStarts.of(view, {...}), or None")

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the checked reasons of queued attempts."""
        method = getattr(self._policy, "reasons", super().reasons)
        where, answer = self._report(view, "reasons", method)
        if isinstance(answer, Mapping):
            queued = all(name in view.queue for name in answer)
            if queued and all(isinstance(text, str) for text in answer.values()):
                return answer
        raise _wrong(where, method, answer, "a dict of texts by id of a queued attempt")

    def _report(self, view: View, name: str, method: Callable[..., Any]) -> tuple[str, Any]:
        """Call a method. Return its name with the time, for error messages, and its answer."""
        where = self._where(view, name)
        try:
            return where, method(view)
        except (Exception, SystemExit) as error:
            raise self._raised(where, method, error) from error

    def _where(self, view: View, name: str) -> str:
        return f"{self._name}.{name} at {to_s(view.now_us):.12g} s"

    def _ask(self, view: View, name: str, *arguments: Any) -> Iterator[Proposal]:
        """Yield the proposals of a method after checking each of them."""
        where, method = self._where(view, name), getattr(self._policy, name)
        answers = self._answers(where, method, *arguments)
        for answer in answers:
            problem = _error_in(answer)
            if problem:
                raise PolicyError(f"{place_of(method)}: {where}: {problem}")
            if isinstance(answer, PlanByRules):
                yield msgspec.structs.replace(answer, call=partial(self._call, where, method))
            else:
                yield answer

    def _call(self, where: str, method: Callable[..., Any], function: Any, *given: Any) -> Any:
        """Call a function of the policy, while the rules plan."""
        try:
            return function(*given)
        except (Exception, SystemExit) as error:
            raise self._raised(where, method, error) from error

    def _answers(self, where: str, method: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        try:
            answer = method(*arguments)
            if isinstance(answer, Iterable):
                yield from answer
                return
        except PolicyError:  # a part with its own guard
            raise
        except (Exception, SystemExit) as error:
            raise self._raised(where, method, error) from error
        raise _wrong(where, method, answer, "a list of proposals, or to yield them")

    def _raised(self, where: str, method: Callable[..., Any], error: BaseException) -> PolicyError:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return PolicyError(f"{self._line_of(error, method)}: {where}: {text}")

    def _line_of(self, error: BaseException, method: Callable[..., Any]) -> str:
        """Return the last executed line of the policy's files, or else the place of the method."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename in self._files]
        if own:
            return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return str(getattr(error, "place", "")) or place_of(method)


def _wrong(where: str, method: Callable[..., Any], answer: object, expected: str) -> PolicyError:
    text = f"returned {_short(answer)} (expected {expected})"
    return PolicyError(f"{place_of(method)}: {where}: {text}")


def _error_in(proposal: object) -> str | None:
    """Return what is wrong with a proposal. Return None if the proposal is valid."""
    if isinstance(proposal, PlanByRules):
        return None
    if not isinstance(proposal, PROPOSALS) or not isinstance(proposal, msgspec.Struct):
        names = ", ".join(kind.__name__ for kind in PROPOSALS)
        return f"proposed {_short(proposal)} (expected {names})"
    return _field_error(proposal)


def _field_error(proposal: msgspec.Struct) -> str | None:
    """Return which field of a proposal is wrong. Return None if all fields are valid."""
    for field in msgspec.structs.fields(proposal):
        value = getattr(proposal, field.name)
        if isinstance(value, msgspec.Struct) and isinstance(value, field.type):
            if problem := _field_error(value):
                return problem
        elif not isinstance(value, field.type):
            problem = f"proposed a {type(proposal).__name__} whose {field.name} is {_short(value)}"
            return f"{problem} (expected {_expected(field.type)})"
    return None


_KINDS = {
    int: "a whole number",
    str: "a text",
    NodeSet: "a NodeSet, like NodeSet.parse('0-3')",
    NoneType: "None",
}


def _expected(kind: Any) -> str:
    """Describe the type of a field for an error message."""
    return ", or ".join(_KINDS.get(k, k.__name__) for k in get_args(kind) or (kind,))


def place_of(function: Any) -> str:
    """Return file and line of a function's definition."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else str(function)


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
