# SPDX-License-Identifier: Apache-2.0
"""The state of a driver that asks a policy: tables, states of jobs, news, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.contract import Changes, News, Refusal
from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError, PolicyError
from rebat.core.options import SessionOptions
from rebat.core.traits import Traits
from rebat.core.units import to_s
from rebat.drive.growing import with_rows
from rebat.drive.lifecycle import Lifecycle
from rebat.drive.machine import Nodes
from rebat.drive.messages import Messages
from rebat.drive.parts import whole_machine
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.policies.shares import Shares
from rebat.rules.by_value import arrays_of
from rebat.rules.room import instant_fits
from rebat.state import rooms, tables
from rebat.state.ledger import Ledger
from rebat.state.rows import zeros


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
    site : LoopMachine
        The partitions, if the rules plan. Nodes have the same numbers as on the machine.
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
        self.machine = whole_machine(n_nodes)
        self.nodes = Nodes(n_nodes)
        dialect = self.options.dialect
        parameters = tables.Numbers(
            n_nodes=n_nodes,
            cores=self.options.cores_per_node,
            max_attempts=self.options.max_attempts,
            two_passes=dialect.two_passes,
            lowest_held=dialect.held == "lowest",
            six_digits=dialect.digits == "six",
            hold_margin=round(dialect.hold_margin_s * 1e6),
            replacing=True,  # policies can move attempts
        )
        self.show(
            rooms.room_for(
                zeros(tables.Job, 0), zeros(tables.Profile, 1), parameters, 64,
                self.machine, tables.no_links(), tables.no_limits(), tables.no_tree(),
                arrays_of([], 1), compiled=False,
            )
        )  # fmt: skip
        if self._uptime_us is not None and n_nodes:
            rooms.set_uptimes(self.state, self._uptime_us)
        self.jobs, self.limits, self.shares = Lifecycle(self), SiteLimits(), Shares()
        self.windows, self.site = SiteWindows("", self.machine), self.machine

    def show(self, room: tables.Room) -> None:
        """Use these tables from now on."""
        super().show(room)
        self.nodes.show(room)

    def place(self, j: int, traits: Traits) -> None:
        """Write to the row of a job in which partition it runs, if the rules plan."""
        if not self.site.partitions:
            return
        row, wall_us = self.state.jobs[j], self.state.jobs[j].wall
        try:
            columns = self.site.columns_of(traits, row.size, wall_us, adapts=True)
        except InputError as error:
            raise error.at(f"job {self.submitted[j]}") from None
        for name, value in columns.items():
            setattr(row, name, value)

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
        """Let the tables grow, so that these events fit, and any proposals of an instant.

        At most, failures and proposals stop all running attempts.
        """
        bound = n_events, n_events + 1, self.n_nodes
        if not instant_fits(self.state, *bound):
            self.show(with_rows(self.room, *bound))

    def _make_room(self, events: Sequence[e.Event]) -> None:
        self.reserve(len(events))
