# SPDX-License-Identifier: Apache-2.0
"""What the rooms of a session share."""

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
    """The date, what is to be told to the policy and to Batsim, and the records.

    ``kills`` are the attempts whose kill goes out with this reply; ``by_tag`` the ids of running
    attempts by serial, ``by_hold`` those of nodes held for a job; ``planning`` while
    the policy is asked to plan.
    """

    options: SessionOptions
    ledger: Ledger
    began: SimulationBegan | None = None
    ended: bool = False
    now_us: int = 0
    serial: int = 0
    statics_over: bool = False
    registering: bool = False
    changes: Changes = msgspec.field(default_factory=Changes)
    news: News = msgspec.field(default_factory=News)
    out: list[Decision] = []
    kills: list[str] = []
    by_tag: dict[int, str] = {}
    by_hold: dict[int, str] = {}
    planning: bool = False

    def next_serial(self) -> int:
        """The next number of an entry into the queue or a hold."""
        self.serial += 1
        return self.serial

    def refuse(self, refusal: Refusal) -> None:
        """A proposal is not carried out.

        Raises
        ------
        PolicyError
            When the session is strict.
        """
        if self.options.strict:
            what = f"{refusal.subject} {refusal.reason}"
            raise PolicyError(f"at {to_s(self.now_us)} s the policy's {what}")
        self.note(refusal)

    def note(self, refusal: Refusal) -> None:
        """Something that was asked for did not happen, through nobody's fault."""
        self.ledger.refusals.append((self.now_us, refusal.subject, refusal.reason))
        self.changes.refused.append(refusal)
        self.news.refused.append(refusal)
