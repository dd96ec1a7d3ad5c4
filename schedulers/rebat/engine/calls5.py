# SPDX-License-Identifier: Apache-2.0
"""Calls that a scheduler requests from Batsim 5: a single call or periodic calls.

A single call may be requested for a time in the past.
"""

from __future__ import annotations

from rebat.core import decisions as d
from rebat.core import decisions5 as d5
from rebat.core.events import CallRequested
from rebat.engine.aborts import AbortRule
from rebat.engine.state import EngineState


class PeriodicCalls(EngineState):
    """The part of the engine that carries out requests for calls."""

    _periodic: dict[str, tuple[d5.PeriodicCall, int, int]]
    """Periodic calls by name, with the time of the next call and the number of calls so far."""

    def _call_me_later(self, decision: d.CallMeLater) -> None:
        self._calls += 1
        self._push(max(decision.when_us, self.now_us), self._on_call, decision.name)

    def _call_periodically(self, call: d5.PeriodicCall) -> None:
        others = [other.period_us for other, _, _ in self._periodic.values()]
        pairs = [(min(call.period_us, p), max(call.period_us, p)) for p in others]
        wrong = (
            "an offset"
            if call.offset_us
            else "no period"
            if not call.period_us or call.n_periods == 0
            else f"{call.name} is in use"
            if call.name in self._periodic
            else "no multiple of the other periods"
            if any(b % a for a, b in pairs)
            else ""
        )
        if wrong:
            raise self._abort(AbortRule.PERIODIC, wrong)
        self._calls += 1
        self._await_tick(call, 0)

    def _await_tick(self, call: d5.PeriodicCall, n_done: int) -> None:
        at_us = (self.now_us // call.period_us + 1) * call.period_us
        self._periodic[call.name] = call, at_us, n_done
        self._push(at_us, self._on_tick, None)

    def _on_tick(self, _: None) -> None:
        """Send all periodic calls of the current time, in the order of their requests."""
        for name, (call, at_us, n_done) in list(self._periodic.items()):
            if at_us != self.now_us:
                continue
            last = n_done + 1 == call.n_periods
            self._outbox.append(CallRequested(at_us=at_us, name=name, last=last))
            if last:
                self._stop_call(d5.StopCall(at_us=at_us, name=name))
            else:
                self._await_tick(call, n_done + 1)

    def _stop_call(self, decision: d5.StopCall) -> None:
        if self._periodic.pop(decision.name, None):
            self._calls -= 1
