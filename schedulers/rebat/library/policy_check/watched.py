# SPDX-License-Identifier: Apache-2.0
"""A wrapper that checks that a policy does not change the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rebat.contract import Changes, News, Policy, Proposal, View
from rebat.core.errors import RebatError
from rebat.core.units import to_s


class ViewChanged(RebatError):
    """An error: a policy changed the state of jobs or nodes without a proposal."""


class Watched(Policy):
    """A policy wrapper that compares the view before and after each proposal of the policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Return the proposals for running attempts."""
        hit = list(news.hit)
        yield from self._steps("react", view, lambda: self._policy.react(view, news))
        if news.hit != hit:
            raise ViewChanged(f"react at {to_s(view.now_us):g} s changes news.hit")

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Return the proposals for queued attempts."""
        return self._steps("plan", view, lambda: self._policy.plan(view, changes))

    def _steps(
        self, name: str, view: View, call: Callable[[], Iterable[Proposal]]
    ) -> Iterator[Proposal]:
        """Yield the proposals, and check that the policy does not change the view.

        The session may change the view between two proposals.
        """
        before = snapshot(view)
        proposals = iter(call())
        while True:
            proposal = next(proposals, None)
            after = snapshot(view)
            changed = [part for part in before if before[part] != after[part]]
            if changed:
                where = f"{name} at {to_s(view.now_us):g} s"
                raise ViewChanged(f"{where} changes the view: {', '.join(changed)}")
            if proposal is None:
                return
            yield proposal
            before = snapshot(view)


def snapshot(view: View) -> dict[str, object]:
    """Return a copy of the state in a view."""
    machine = view.machine
    attempts = [*view.queue.values(), *(running.attempt for running in view.running.values())]
    return {
        "queue": list(view.queue.items()),
        "running": list(view.running.items()),
        "stopping": list(view.stopping),
        "scheduled": list(view.scheduled),
        "waiting": list(view.waiting),
        "nodes": (machine.tags.tobytes(), machine.down.tobytes(), machine.drained.tobytes()),
        "fields of jobs": repr([view.job(attempt.job_id).fields for attempt in attempts]),
    }
