# SPDX-License-Identifier: Apache-2.0
"""What a site states, and what is missing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.numbers import counted, duration
from rebat.core.traits import traits_of
from rebat.models.failures.events import machine_mtbf_s
from rebat.models.failures.recorded import Trace
from rebat.policies.presets import Preset, preset, scheduler
from rebat.policies.windows import read_reservations
from rebat.runs.staging import on_machine
from rebat.studies.calibration.distance import read_waits
from rebat.workloads.checkpoint_table import UsualCosts, with_checkpoints_of
from rebat.workloads.load import load_workload
from rebat.workloads.machine import names_in, partitions_in_use, stated_rules_of
from rebat.workloads.site import Site, mtbf_of, read_site

MISSING = {
    "past": "past: 'rebat advise' cannot state what failures cost in the record",
    "failures": "failures: 'rebat advise' needs them, or a law of failures (--law, --mtbf)",
    "checkpoints": "checkpoints: simulations assume that no job writes checkpoints",
    "price": "price: answers are in node-hours only",
    "time_zone": "time_zone: dates are in UTC",
}
"""What is missing, by field."""


class SiteFindings(NamedTuple):
    """What a site states, by field, and sentences on what is missing."""

    stated: dict[str, str]
    missing: list[str]
    next_step: str


def checked_site(path: Path) -> SiteFindings:
    """Read all files of a site, and return what they contain.

    Raises
    ------
    InputError
        If the site or one of its files is invalid, or if a file does not fit the others.
    """
    site = read_site(path)
    workload = load_workload(path, checkpoints=False)
    stated = {
        "title": site.title,
        "jobs": f"{counted(len(workload.jobs), 'job')}, {counted(workload.n_nodes, 'node')}",
        "past": _past(site, workload),
        "failures": _failures(site, workload),
        "rules": _rules(workload, path),
        "policy": _policy(site, workload),
        "partitions": _partitions(site, workload, path),
        "checkpoints": _checkpoints(site, workload, path),
        "price": _price(site),
        "time zone": site.time_zone,
    }
    missing = [text for name, text in MISSING.items() if not getattr(site, name)]
    missing += _outside(workload)
    ready = site.failures or "--mtbf TIME "
    step = f"rebat advise {path} {'' if site.failures else ready}--out advice"
    return SiteFindings({name: text for name, text in stated.items() if text}, missing, step)


def _price(site: Site) -> str:
    price = site.price
    return f"{price.node_hour:g} {price.currency} per node-hour" if price else ""


def _past(site: Site, workload: Workload) -> str:
    folder = site.file("past")
    if folder is None:
        return ""
    waits = read_waits(folder, workload)
    return f"{counted(len(waits.ids), 'recorded wait')} after the first twentieth of the record"


def _failures(site: Site, workload: Workload) -> str:
    file = site.file("failures")
    if file is None:
        return ""
    events = list(Trace(str(file)).events(workload.n_nodes))
    n = sum(not event.available for event in events)
    mtbf_s = machine_mtbf_s(events)
    mtbf = f", MTBF of the machine {duration(mtbf_s)}" if mtbf_s else ""
    return f"{counted(n, 'failure')}{mtbf}"


def _policy(site: Site, workload: Workload) -> str:
    try:
        chosen = scheduler(site.scheduler.policy)
    except InputError as error:
        raise error.at("scheduler: policy") from None
    if isinstance(chosen, Preset):
        placed = on_machine(chosen, workload, workload.n_nodes)
        placed.partitions(workload.n_nodes, 1)
    return site.scheduler.policy


def _rules(workload: Workload, path: Path) -> str:
    """Return the rules of the site. Raise InputError if an option of a rule is invalid."""
    rules = stated_rules_of(workload.machine)
    try:
        if rules:
            point = preset("easy:rules=all").with_rules(rules).point
            for row in read_reservations(point.common.reservations):
                if int(row.nodes.intervals[-1, 1]) >= workload.n_nodes:
                    problem = f"reservation {row.name} has nodes {row.nodes}"
                    raise InputError(problem, expected=f"0 to {workload.n_nodes - 1}")
    except InputError as error:
        raise error.at(f"{path}: rules") from None
    return ", ".join(f"{key} {value[:60]}" for key, value in rules.items())


def _partitions(site: Site, workload: Workload, path: Path) -> str:
    if isinstance(site.partitions, dict) and (workload.machine or {}).get("nodes"):
        names = set(names_in((workload.machine or {})["nodes"]))
        for name, row in site.partitions.items():
            listed = names_in(row.nodes)
            if not listed or set(listed) - names:
                problem = f"contains {min(set(listed) - names, default=repr(row.nodes))}"
                expected = "names of nodes of the workload, like n[1-8]"
                raise InputError(problem, f"{path}: partitions: {name}: nodes", expected)
    if site.partitions == "none":
        return "none: a job can start on any nodes"
    rows = partitions_in_use(workload)
    return ", ".join(f"{row} {counted(row.nodes.size, 'node')}" for row in rows)


def _outside(workload: Workload) -> list[str]:
    """Return sentences on jobs that name no partition, or are larger than their partition."""
    sizes = {row.name: row.nodes.size for row in partitions_in_use(workload)}
    if not sizes:
        return []
    queues = Counter[str]()
    large = Counter[str]()
    for job in workload.jobs:
        queue = traits_of(job.extra).queue
        if queue not in sizes:
            queues[queue] += 1
        elif job.n_nodes > sizes[queue]:
            large[queue] += 1
    return [
        *(
            f"partitions: {counted(n, 'job')} without a stated partition ({name or 'none'}): each "
            "runs in the first partition of the highest tier whose limits allow it"
            for name, n in queues.items()
        ),
        *(
            f"partitions: {counted(n, 'job')} of {name} need more nodes than it has"
            for name, n in large.items()
        ),
    ]


def _checkpoints(site: Site, workload: Workload, path: Path) -> str:
    if not site.checkpoints:
        return ""
    try:
        rows = site.rows(UsualCosts())
    except InputError as error:
        raise error.at(str(path)) from None
    mtbf_s = mtbf_of(site, workload.n_nodes)
    count = with_checkpoints_of(workload, rows, workload.n_nodes, mtbf_s)[1]
    if not count:
        expected = "users, queues or ids of jobs of the workload"
        raise InputError("describes no job", f"{path}: checkpoints", expected)
    return f"{counted(count, 'job')} of {len(workload.jobs)}"
