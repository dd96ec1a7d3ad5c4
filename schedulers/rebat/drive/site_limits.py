# SPDX-License-Identifier: Apache-2.0
"""The limits of a site as tables (`rebat.rules.limits`), and their reasons as text."""

from __future__ import annotations

from typing import Any

from rebat.core.traits import Traits
from rebat.drive.growing import larger
from rebat.policies.limits import (
    EXCEEDS,
    Limit,
    groups_of,
    owner_of,
    read_limits,
    why_barred,
    why_never,
)
from rebat.state import codes
from rebat.state.rows import array_of
from rebat.state.tables import Client, Group, Limits, Membership, Room


class SiteLimits:
    """The groups with limits and the clients, in the order in which their jobs become known.

    Parameters
    ----------
    text : str
        See `rebat.policies.limits.read_limits`.
    """

    def __init__(self, text: str = "") -> None:
        self._limits = read_limits(text)
        self._clients = [Client(largest=codes.NO_LIMIT)]
        self._memberships: list[Membership] = []
        self._groups: list[tuple[str, str, Limit]] = []
        self._row_of: dict[tuple[str, str], int] = {}
        self._client_of: dict[tuple[str, ...], int] = {}

    def client_of(self, traits: Traits) -> int:
        """Return the client of a job. It is added if it is new."""
        if not self._limits:
            return 0
        key = owner_of(traits)
        if key not in self._client_of:
            client = Client(len(self._memberships), largest=codes.NO_LIMIT)
            for kind, name, limit in groups_of(self._limits, traits):
                group = self._row_of.setdefault((kind, name), len(self._groups))
                if group == len(self._groups):
                    self._groups.append((kind, name, limit))
                self._memberships.append(Membership(group))
                client.n_groups += 1
                client.largest = min(client.largest, limit.nodes or codes.NO_LIMIT)
            self._client_of[key] = len(self._clients) if client.n_groups else 0
            if client.n_groups:
                self._clients.append(client)
        return self._client_of[key]

    def _new_groups(self, n: int) -> list[Group]:
        return [Group(limit.jobs, limit.nodes) for _, _, limit in self._groups[n:]]

    def tables(self) -> Limits:
        """Return the tables for a simulation."""
        return Limits(
            array_of(Group, self._new_groups(0)),
            array_of(Client, self._clients),
            array_of(Membership, self._memberships),
        )

    def extend(self, room: Room) -> Room:
        """Add what is new to the tables of a simulation."""
        state = room.state
        if len(state.clients) == len(self._clients):
            return room
        state.groups.extend(self._new_groups(len(state.groups)))
        state.clients.extend(self._clients[len(state.clients) :])
        state.memberships.extend(self._memberships[len(state.memberships) :])
        state.n.counts_changed = 1
        return room._replace(
            state=state._replace(allowed=larger(state.allowed, len(self._clients), 0))
        )

    def _of(self, c: int) -> list[tuple[int, str, str, Limit]]:
        """Return the row, kind, name and limit of each group of a client."""
        client = self._clients[c]
        rows = self._memberships[client.first_group : client.first_group + client.n_groups]
        return [(row.group, *self._groups[row.group]) for row in rows]

    def why_never(self, c: int, size: int) -> str:
        """Return why a job can never start because of a limit."""
        reasons = (why_never(kind, name, limit, size) for _, kind, name, limit in self._of(c))
        return next(filter(None, reasons), "")

    def why_barred(self, state: Any, c: int, size: int) -> str:
        """Return why a job cannot start now because of a limit."""
        rows = ((state.groups[g], *rest) for g, *rest in self._of(c))
        reasons = (
            why_barred(kind, name, limit, (row.n_jobs, row.n_nodes), size)
            for row, kind, name, limit in rows
        )
        return EXCEEDS + next(filter(None, reasons), "")
