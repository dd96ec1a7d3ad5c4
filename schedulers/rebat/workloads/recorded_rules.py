# SPDX-License-Identifier: Apache-2.0
"""The rules of the site in a workload, and the reservations in which its recorded jobs ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.records.findings import finding
from rebat.records.hosts import HostLists, expanded
from rebat.records.judge import listed
from rebat.records.slurm_rules import RecordedReservation, SlurmRules
from rebat.workloads.accounted import AccountedJobs
from rebat.workloads.machine import names_in
from rebat.workloads.trace import TraceColumns

RESERVATION = "reservation"
"""Field of a job: the reservation in which it ran."""


class NamedReservation(NamedTuple):
    """A recorded reservation with a unique name, and its further words (its owners)."""

    name: str
    recorded: RecordedReservation
    words: Sequence[str]


class Reserved(NamedTuple):
    """The reservations of a record, and its jobs with the reservations in which they ran."""

    trace: TraceColumns
    rows: list[NamedReservation]


def reservations_of(record: AccountedJobs, stated: SlurmRules) -> Reserved:
    """Return the reservations of a site, and the jobs with the reservations in which they ran.

    The column Reservation states them. Without this column, a job ran in a reservation if it
    started in its time, and only on its nodes. If the record states the jobs of a reservation, its
    users and accounts do not count: their other jobs do not use it.
    """
    table, last = record.table, record.jobs.last
    start_s, codes = table.column("start")[last], table.host_lists.codes[last]
    recorded = table.text(RESERVATION)[last]
    stated_jobs = RESERVATION in table.texts
    names, rows = Counter[str](), []
    owner = np.full(len(last), "", dtype=object)
    notes = []
    for row in stated.reservations:
        names[row.name] += 1
        name = row.name if names[row.name] == 1 else f"{row.name}-{names[row.name]}"
        words = stated.owners.get(row.name, [])
        owned = [word for word in words if not word.startswith("every=")]
        during = (start_s >= row.begin_s) & (start_s < row.end_s)
        if stated_jobs:
            ran = during & (recorded == row.name)
        elif not owned and during.any():
            ran = during & _inside(table.host_lists, row.nodes)[codes]
        else:
            ran = np.zeros(len(last), dtype=np.bool_)
        owner[ran] = name
        if ran.any():
            words = [word for word in words if word not in owned]
            if not owned:
                notes.append(_unowned(name, record.trace.ids[ran].tolist()))
        rows.append(NamedReservation(name, row, words))
    unknown = int(((recorded != "") & (owner == "") & record.jobs.started).sum())
    if unknown:
        notes.append(
            f"{exactly(unknown, 'job')} ran in a reservation that the rules do not state: "
            "simulated like other jobs"
        )
    trace = _with_reservations(record.trace, owner)
    for note in notes:
        trace = trace.noting(note)
    return Reserved(trace, rows)


def _inside(lists: HostLists, nodes: str) -> npt.NDArray[np.bool_]:
    """Return whether each distinct list of nodes contains only nodes of a reservation."""
    reserved = {*expanded(nodes)}
    mask = np.array([name in reserved for name in lists.names] or [False])
    count = np.bincount(lists.owners, mask[lists.nodes], len(lists.sizes))
    inside: npt.NDArray[np.bool_] = (count == lists.sizes) & (lists.sizes > 0)
    return inside


def _unowned(name: str, ids: Sequence[str]) -> str:
    jobs = f"{'job' if len(ids) == 1 else 'jobs'} {listed(ids)}"
    return finding(
        f"reservation {name} states no users, but {exactly(len(ids), 'job')} ran in it ({jobs}): "
        "in a simulation with rules=reservations, they start in its time, on its nodes",
        "export reservations with the column Associations to state who may use it",
    )


def _with_reservations(trace: TraceColumns, owner: npt.NDArray[np.object_]) -> TraceColumns:
    """Return the jobs with the names of their reservations. Jobs with equal values share a dict."""
    assert trace.extras is not None
    extras = trace.extras.copy()
    shared: dict[tuple[int, str], dict[str, object]] = {}
    for at, (extra, name) in enumerate(zip(trace.extras.tolist(), owner.tolist(), strict=True)):
        if name or RESERVATION in extra:
            key = id(extra), name
            if key not in shared:
                fields = {key: value for key, value in extra.items() if key != RESERVATION}
                shared[key] = fields | ({RESERVATION: name} if name else {})
            extras[at] = shared[key]
    return replace(trace, extras=extras)


def with_rules(
    workload: Workload,
    options: Mapping[str, str],
    reservations: Sequence[NamedReservation],
    origin_s: float,
) -> Workload:
    """Return a workload with the rules of its site. Reservations begin at the simulation's times.

    Reservations that ended before the first submission, and those of other nodes, are left out. A
    note counts them.
    """
    machine = dict(workload.machine or {})
    rules = dict(options)
    left_out = Counter[str]()
    rows = [*_reservation_texts(machine, reservations, origin_s, left_out)]
    if rows:
        rules["reservations"] = "+".join(rows)
    notes = [f"{exactly(n, 'reservation')} left out: {why}" for why, n in sorted(left_out.items())]
    return msgspec.structs.replace(
        workload, machine={**machine, "rules": rules}, notes=(*workload.notes, *notes)
    )


def _reservation_texts(
    machine: Mapping[str, object],
    reservations: Sequence[NamedReservation],
    origin_s: float,
    left_out: Counter[str],
) -> Iterator[str]:
    numbers = {name: at for at, name in enumerate(names_in(machine.get("nodes")))}
    for name, row, words in reservations:
        nodes = NodeSet.of(numbers[node] for node in names_in(row.nodes) if node in numbers)
        begin_s = max(0.0, row.begin_s - origin_s)
        length_s = row.end_s - origin_s - begin_s
        if not nodes.size:
            left_out["no node of the machine"] += 1
        elif length_s <= 0 and not any(word.startswith("every=") for word in words):
            left_out["ended before the first submission"] += 1
        else:
            times = f"begin={begin_s:.6f}:length={length_s:.6f}"
            yield ":".join([quote(name, safe=""), str(nodes), times, *words])
