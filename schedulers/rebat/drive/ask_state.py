# SPDX-License-Identifier: Apache-2.0
"""The state of a driver that asks a policy: tables, states of jobs, news, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import le
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.contract import Changes, News, Refusal
from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import PolicyError
from rebat.core.options import SessionOptions
from rebat.core.units import to_s
from rebat.drive.growing import KINDS, larger, lengthen
from rebat.drive.lifecycle import Lifecycle
from rebat.drive.machine import Nodes
from rebat.drive.messages import Messages
from rebat.drive.parts import LoopMachine
from rebat.drive.site_limits import SiteLimits
from rebat.rules.by_value import arrays_of
from rebat.state import tables
from rebat.state.ledger import Ledger
from rebat.state.rows import zeros

WITH_ATTEMPTS = "hits", "kills", "stops", "waits", "calls"
"""Tables with at most a row per running attempt, and another for what a proposal adds."""


class AskState(Messages):
    """The state that all parts of a session share.

    Attributes
    ----------
    records : Ledger
        The ledger without the records of held nodes.
    changes, news : Changes, News
        What happened since the last plan and the last reaction.
    out : list of Decision
        Decisions for the next reply.
    n_sent : int
        Number of kills in the tables that were sent.
    serial : int
        Serial number of the attempt that enters the queue: its row plus 1.
    nodes : Nodes
    jobs : Lifecycle
        The states of jobs.
    by_rules : ByRules
        The plan of list scheduling, if the policy uses its rules.
    by_tag : dict
        Ids of running attempts by serial number.
    planning : bool
        Whether the policy is currently planning.
    """

    def __init__(self, options: SessionOptions, uptime_us: npt.NDArray[np.int64] | None) -> None:
        self._uptime_us = uptime_us
        self.records = Ledger()
        self.changes, self.news = Changes(), News()
        self.out: list[d.Decision] = []
        self.by_tag: dict[int, str] = {}
        self.by_rules: Any = None
        self.planning = False
        super().__init__(options)

    def _set_up(self, n_nodes: int) -> None:
        super()._set_up(n_nodes)
        self.n_sent = self.serial = 0
        self.records.node_events = self.node_events
        self.machine = LoopMachine(n_nodes, tables.parts_for([n_nodes]))
        self._lengths: tuple[int, ...] = (0, 0, 0, 0)
        self.nodes = Nodes(n_nodes, self._uptime_us if n_nodes else None)
        dialect = self.options.dialect
        parameters = tables.Numbers(
            n_nodes=n_nodes,
            max_attempts=self.options.max_attempts,
            two_passes=dialect.two_passes,
            lowest_held=dialect.held == "lowest",
            six_digits=dialect.digits == "six",
            hold_margin=round(dialect.hold_margin_s * 1e6),
        )
        self.show(
            tables.room_for(
                zeros(tables.Job, 0), zeros(tables.Profile, 1), parameters, 64,
                self.machine.table, tables.no_links(), tables.no_limits(), tables.no_tree(),
                arrays_of(None, 1), compiled=False,
            )
        )  # fmt: skip
        self.jobs, self.limits = Lifecycle(self), SiteLimits()

    def show(self, room: tables.Room) -> None:
        """Use these tables from now on."""
        super().show(room)
        self.nodes.show(room)

    def refuse(self, refusal: Refusal) -> None:
        """Record the refusal of a proposal."""
        if self.options.strict:
            text = f"{refusal.subject} {refusal.reason}"
            raise PolicyError(f"at {to_s(self.now_us)} s the policy's {text}")
        self.note(refusal)

    def note(self, refusal: Refusal) -> None:
        """Record that an accepted proposal was cancelled. This is not an error of the policy."""
        self.records.refusals.append((self.now_us, refusal.subject, refusal.reason))
        self.changes.refused.append(refusal)
        self.news.refused.append(refusal)

    def reserve(self, n_events: int = 0) -> None:
        """Enlarge the tables if there could be too little room for these events, or a proposal."""
        n, rows = self.state.n, self.state
        n.n_out = n.n_calls = 0
        more = 2 * (n_events + n.n_kills + n.n_running + n.n_waits) + 16
        attempts = n.n_attempts + more
        intervals = n.n_nodes_used + 2 * (self.n_nodes + more)
        needed = more, attempts, n.n_holds + more, intervals
        if all(map(le, needed, self._lengths)):
            return
        for name, length in (
            ("attempts", attempts),
            ("lists", attempts),
            ("out", 2 * more + len(self.submitted) + n_events),
            ("hold_records", needed[2]),
            *((name, more) for name in WITH_ATTEMPTS),
        ):
            lengthen(getattr(rows, name), KINDS[name], length)
        if intervals > len(rows.nodes):
            nodes = larger(rows.nodes, intervals, 0)
            self.show(self.room._replace(state=rows._replace(nodes=nodes)))
        if n.limited and len(rows.attempts) > len(rows.client_of):
            clients = larger(rows.client_of, len(rows.attempts), 0)
            self.show(self.room._replace(state=self.state._replace(client_of=clients)))
        self._lengths = (
            min(len(getattr(rows, name)) for name in WITH_ATTEMPTS),
            min(len(rows.attempts), len(rows.lists)),
            len(rows.hold_records),
            len(self.state.nodes),
        )

    def _make_room(self, events: Sequence[e.Event]) -> None:
        self.reserve(len(events))
