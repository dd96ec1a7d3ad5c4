"""A policy that is not trusted: whatever goes wrong in it is one line that says where and when."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from rebat.core.attempts import Cause
from rebat.core.errors import PolicyError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.models.checkpoint import Remaining
from rebat.policies.base import (
    Action,
    Changes,
    Failure,
    Interrupt,
    Policy,
    Reject,
    Resume,
    Start,
    View,
)

PLANS, ACTIONS = (Start, Reject), (Interrupt, Resume)
_FIELDS: dict[type, dict[str, Any]] = {
    Start: {"attempt_id": str, "nodes": (NodeSet, NoneType)},
    Reject: {"attempt_id": str},
    Interrupt: {
        "attempt_id": str,
        "cause": Cause,
        "priority": int,
        "remaining": Remaining,
        "hold_us": int,
    },
    Resume: {"job_id": str},
}
"""What the fields of proposals must be."""


class Guarded:
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

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which queued attempts to start, or to reject, now."""
        return self._ask(view, PLANS, self._policy.plan, view, changes)

    def recover(self, view: View, failure: Failure) -> Iterable[Action]:
        """What to interrupt when nodes fail."""
        return self._ask(view, ACTIONS, self._policy.recover, view, failure)

    def review(self, view: View) -> Iterable[Action]:
        """What has come due or fallen through since."""
        return self._ask(view, ACTIONS, self._policy.review, view)

    def _ask(
        self, view: View, kinds: tuple[type, ...], method: Callable[..., Any], *arguments: Any
    ) -> list[Any]:
        """The proposals of a method, generators run to their end.

        Raises
        ------
        PolicyError
            When it raises, answers something else than proposals, or wants to exit.
        """
        where = f"{self._name}.{method.__name__} at {to_s(view.now_us):.12g} s"
        try:
            answer = method(*arguments)
            proposals = list(answer) if isinstance(answer, Iterable) else None
        except (Exception, SystemExit) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise PolicyError(f"{self._line_of(error, method)}: {where}: {what}") from error
        wrong = _wrong(answer, proposals, kinds)
        if wrong:
            raise PolicyError(f"{place_of(method)}: {where}: {wrong}")
        return proposals or []

    def _line_of(self, error: BaseException, method: Callable[..., Any]) -> str:
        """The last line of the policy's own files that ran; or where what fails is defined."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename in self._files]
        if own:
            return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return str(getattr(error, "place", "")) or place_of(method)


def _wrong(answer: object, proposals: list[Any] | None, kinds: tuple[type, ...]) -> str | None:
    """What is wrong with an answer; None when it is made of proposals."""
    names = " and ".join(kind.__name__ for kind in kinds)
    if proposals is None:
        return f"returned {_short(answer)} (expected a list of {names}, or to yield them)"
    for proposal in proposals:
        if not isinstance(proposal, kinds):
            return f"proposed {_short(proposal)} (expected {names})"
        for field, kind in _FIELDS[type(proposal)].items():
            value = getattr(proposal, field)
            if not isinstance(value, kind):
                return f"proposed a {type(proposal).__name__} whose {field} is {_short(value)}"
    return None


def place_of(function: Any) -> str:
    """File and line of a function's definition."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else str(function)


def _short(value: object) -> str:
    """A value that is not ours to print at length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
