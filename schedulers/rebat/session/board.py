# SPDX-License-Identifier: Apache-2.0
"""The board: the state that all parts of a session share."""

from __future__ import annotations

import msgspec

from rebat.contract import Changes, News, Refusal
from rebat.core.decisions import Decision
from rebat.core.errors import PolicyError
from rebat.core.events import SimulationBegan
from rebat.core.options import SessionOptions
from rebat.core.units import to_s
from rebat.session.ledger import Ledger


class Board(msgspec.Struct):
    """The current time, the changes to report to the policy, and the decisions for Batsim."""

    options: SessionOptions
    ledger: Ledger
    began: SimulationBegan | None = None
    ended: bool = False
    now_us: int = 0
    serial: int = 0
    statics_over: bool = False
    """Whether every job of the workload has been submitted."""
    registering: bool = False
    """Whether Batsim accepts new jobs."""
    changes: Changes = msgspec.field(default_factory=Changes)
    news: News = msgspec.field(default_factory=News)
    out: list[Decision] = []
    """Decisions for the next reply."""
    kills: list[str] = []
    """Ids of the attempts that the next reply kills."""
    by_tag: dict[int, str] = {}
    """Ids of running attempts by serial number."""
    by_hold: dict[int, str] = {}
    """Ids of held sets of nodes (see `session.holds`) by serial number."""
    planning: bool = False
    """Whether the policy is currently planning."""

    def next_serial(self) -> int:
        """Return the next serial number, for an entry into the queue or for held nodes."""
        self.serial += 1
        return self.serial

    def refuse(self, refusal: Refusal) -> None:
        """Record the refusal of a proposal.

        Raises
        ------
        PolicyError
            If the session is strict.
        """
        if self.options.strict:
            text = f"{refusal.subject} {refusal.reason}"
            raise PolicyError(f"at {to_s(self.now_us)} s the policy's {text}")
        self.note(refusal)

    def note(self, refusal: Refusal) -> None:
        """Record that an accepted proposal was cancelled. This is not an error of the policy."""
        self.ledger.refusals.append((self.now_us, refusal.subject, refusal.reason))
        self.changes.refused.append(refusal)
        self.news.refused.append(refusal)
