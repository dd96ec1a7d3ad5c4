# SPDX-License-Identifier: Apache-2.0
"""The metrics of a run, for JSON and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.numbers import duration
from rebat.core.units import parse_duration, to_us
from rebat.models.boxes import Allotment
from rebat.models.checkpoint import Accounting
from rebat.models.power import NodePower
from rebat.results.measures.changes import (
    Drains,
    Migrations,
    Resizes,
    Spares,
    drains,
    migrations,
    resizes,
    spares,
)
from rebat.results.measures.jobs import (
    EVERY_JOB,
    Fairness,
    Flow,
    JobRows,
    Owners,
    Selection,
    Service,
    by_class,
    fairness,
    flow_of,
    job_rows,
    job_times,
    select,
    service_of,
)
from rebat.results.measures.platform import (
    ASLEEP,
    DAY_US,
    PAPER_WINDOW,
    Backlog,
    Energy,
    Fragmentation,
    NodeStates,
    PlatformTime,
    WalltimeKills,
    Window,
    backlog,
    energy,
    fragmentation,
    free_steps,
    idle_time,
    node_states,
    platform_time,
    usage,
    uses_of,
)
from rebat.results.measures.recoveries import Recoveries, Training, recoveries, training_by_class
from rebat.results.metric import Metric
from rebat.state.ledger import Ledger

MONTH_SPAN_US = 25 * DAY_US, 35 * DAY_US
"""A workload counts as a month if its submissions span a time (us) in this range."""


class Measures(msgspec.Struct, frozen=True):
    """Settings of the measures.

    Attributes
    ----------
    window
        Window of node time. The default (None) is days 10 to 30 if the workload spans a month, as
        in the paper, and the entire run otherwise.
    selection
        Measured jobs. The default (None) is the middle 60 % if the workload spans a month, as in
        the paper, and all jobs otherwise.
    walltime_kills
        Whether the work of jobs killed at their walltime counts as 'wasted' or 'useful'. It can be
        useful because a killed job may have written results.
    accounting
        How checkpoint time and useful time are separated (see `checkpoint.Accounting`).
    load
        Factor by which submission times were divided. The window is divided as well.
    """

    window: Window | None = None
    selection: Selection | None = None
    walltime_kills: WalltimeKills = "wasted"
    accounting: Accounting = "exact"
    load: float = 1.0


class Layout(msgspec.Struct, frozen=True):
    """Properties of the machine and its scheduler that metrics need.

    Attributes
    ----------
    allotted : Allotment, optional
        Function that maps the requested to the allocated number of nodes (default: both are equal).
    cores_per_node : int
        Number of cores that form a node. If it is above 1, Batsim's hosts are cores.
    partitions : dict
        The nodes of each partition.
    states : bool
        Whether the states of the nodes of each partition are measured.
    partition_of : dict
        The partition of each job that can run in only one partition, by the job's Batsim id. Other
        jobs count for the partition in which they ended.
    owners : dict
        User and queue of each job, by its name.
    power : NodePower
    """

    allotted: Allotment | None = None
    cores_per_node: int = 1
    partitions: Mapping[str, NodeSet] = {}
    states: bool = False
    partition_of: Mapping[str, str] = {}
    owners: Owners = {}
    power: NodePower | None = None


# fmt: off
_PARTITION_STATES = {
    "empty": Metric("  empty in partition *", "share", "", "", "`node_states_empty` of the nodes of a partition"),
    "mixed": Metric("  mixed in partition *", "share", "", "", "`node_states_mixed` of the nodes of a partition"),
    "full": Metric("  full in partition *", "share", "", "", "`node_states_full` of the nodes of a partition"),
}
_TURNAROUND = {
    "jobs": Metric("jobs of partition *", "count", "", "", "jobs of a partition", listed=False),
    "max_s": Metric("largest turnaround, partition *", "time", "low", "", "the longest flow of the jobs of a partition"),
    "mean_s": Metric("mean turnaround, partition *", "time", "low", "", "the mean flow of the jobs of a partition"),
    "weighted_mean_s": Metric("weighted mean turnaround, partition *", "time", "low", "", "the weighted mean flow of the jobs of a partition", listed=False),
}
# fmt: on


class RunSummary(msgspec.Struct, frozen=True):
    """The metrics of a run. Failures and steals are counted within the window.

    A field is None or empty if the run has no data for it: several cores or the power of nodes,
    partitions, users, causes or stages of failures, and spare nodes.
    """

    # fmt: off
    n_nodes: Annotated[int, Metric("nodes", "count", "", "", "nodes of the machine", listed=False)]
    jobs: Annotated[int, Metric("jobs", "count", "", "", "jobs submitted", listed=False)]
    finished: Annotated[int, Metric("jobs finished", "count", "high", "", "jobs that ended, without rejected jobs", listed=False)]
    rejected: Annotated[int, Metric("jobs rejected", "count", "low", "", "jobs that requested more nodes than the machine has, or that the policy rejected")]
    succeeded: Annotated[int, Metric("jobs succeeded", "count", "high", "", "jobs that completed without an error", listed=False)]
    attempts: Annotated[int, Metric("attempts", "count", "low", "", "attempts of all jobs", listed=False)]
    makespan_s: Annotated[float, Metric("makespan", "time", "low", "", "the last end of an attempt", listed=False)]
    window_s: Annotated[tuple[float, float], (Metric("window, start", "time", "", "", "the start of the window", listed=False), Metric("window, end", "time", "", "", "the end of the window", listed=False))]
    selected_jobs: Annotated[int, Metric("measured jobs", "count", "", "", "jobs whose flow is measured", listed=False)]
    platform: PlatformTime
    backlog: Backlog
    useful_utilisation: Annotated[float, Metric("useful utilisation", "share", "high", "node time that was up", "U / (W - downtime): the utilisation in Tables 4 and 8 of Du et al. 2024")]
    flows: dict[str, Flow | None]
    node_failures: Annotated[int, Metric("node failures", "count", "", "", "failures of nodes within the window, including idle nodes", listed=False)]
    failures_hit: Annotated[int, Metric("failures hitting jobs", "count", "", "", "failures, within the window, of nodes that run a job. If a node of a victim fails before the victim is stopped, this failure counts only with `hit=failed`, as in Du et al. 2024")]
    steals: Annotated[int, Metric("  steals decided", "count", "", "", "decisions to steal within the window (Tables 5 and 9 of Du et al. 2024)")]
    victims: Annotated[int, Metric("  victims interrupted", "count", "low", "", "attempts that were interrupted for a steal")]
    free_node_at_hit: Annotated[int, Metric("  a node was free", "count", "", "", "failures that hit a job while a node was free (Table 5 of Du et al. 2024)")]
    fragmentation: Fragmentation
    resizes: Resizes
    migrations: Migrations
    drains: Drains
    node_states: NodeStates | None = None
    energy: Energy | None = None
    partition_states: Annotated[dict[str, NodeStates], _PARTITION_STATES] = {}
    turnaround: Annotated[dict[str, Flow | None], _TURNAROUND] = {}
    steals_off: Annotated[dict[str, int], Metric("steals that did not happen: *", "count", "", "", "decided steals that were not carried out, by reason", listed=False)] = {}
    service: Service | None = None
    service_classes: dict[str, Service | None] = {}
    fairness: Fairness | None = None
    given_up: Annotated[int, Metric("jobs given up", "count", "low", "", "jobs that ended as failed after `--max-attempts` attempts")] = 0
    recoveries: Recoveries | None = None
    training_classes: dict[str, Training | None] = {}
    spares: Spares | None = None
    # fmt: on


def part_of_run(window_s: Sequence[float], makespan_s: float) -> str:
    """Return the window as the start of a sentence. Empty if it covers the entire run."""
    low, high = window_s
    if low <= 0 and high >= makespan_s:
        return ""
    return f"from {duration(low)} to {duration(high)}, "


def parse_window(text: str) -> Window | None:
    """Parse a window such as '10d:30d'. Return None for 'auto'."""
    if text == "auto":
        return None
    expected = "auto or START:END, like 10d:30d"
    first, separator, last = text.partition(":")
    if not separator:
        raise InputError(f"{text!r} is not a window", expected=expected)
    window = to_us(parse_duration(first)), to_us(parse_duration(last))
    if window[0] >= window[1]:
        raise InputError(f"window {text!r} is empty", expected=expected)
    return window


def parse_selection(text: str) -> Selection | None:
    """Parse a selection: '0.2:0.8', '0.2:0.8:time' or 'all'. Return None for 'auto'."""
    if text == "auto":
        return None
    if text == "all":
        return EVERY_JOB
    parts = text.split(":")
    expected = "auto, all, or FIRST:LAST[:count|time], like 0.2:0.8:count"
    try:
        first, last = float(parts[0]), float(parts[1])
    except (ValueError, IndexError):
        raise InputError(f"invalid job selection {text!r}", expected=expected) from None
    by = parts[2] if len(parts) == 3 else "count"
    if not 0 <= first < last <= 1 or by not in ("count", "time") or len(parts) > 3:
        raise InputError(f"invalid job selection {text!r}", expected=expected)
    return Selection(first, last, by)


def summarise(
    ledger: Ledger, n_nodes: int, measures: Measures, layout: Layout | None = None
) -> tuple[RunSummary, JobRows]:
    """Return the summary of a run and the rows of its jobs."""
    layout = layout or Layout()
    attempts = ledger.attempts
    makespan = int(attempts.column("end_us").max(initial=0))
    span_us = int(np.ptp(attempts.column("submit_us"))) if attempts else 0
    month = MONTH_SPAN_US[0] <= span_us * measures.load <= MONTH_SPAN_US[1]
    window = measures.window or (PAPER_WINDOW if month else None)
    if window and measures.load != 1:
        window = round(window[0] / measures.load), round(window[1] / measures.load)
    window = window or (0, max(makespan, 1))
    kills, accounting = measures.walltime_kills, measures.accounting
    free = free_steps(ledger, n_nodes)
    blocked = fragmentation(ledger, n_nodes, window, layout.allotted, free)
    idle = idle_time(free, window)
    del free  # reduces the memory needed for the uses
    uses = uses_of(ledger, window, accounting)
    platform = platform_time(ledger, n_nodes, window, kills, accounting, uses, idle)
    waiting = backlog(ledger, window, accounting, uses)
    del uses  # reduces the memory needed for the rows
    rows = job_rows(ledger, layout.owners)
    selected = select(rows, measures.selection or (Selection() if month else EVERY_JOB))

    times = job_times(selected)
    classes = {n: times.take(places, axis=1) for n, places in by_class(selected, n_nodes)}

    def within(times_us: Sequence[int] | npt.NDArray[np.int64]) -> int:
        at_us = np.asarray(times_us, dtype=np.int64)
        return int(np.count_nonzero((window[0] <= at_us) & (at_us < window[1])))

    hits = [free for at, free in ledger.failures_that_hit if window[0] <= at < window[1]]
    event_us, up, _ = ledger.node_events.columns()
    summary = RunSummary(
        n_nodes=n_nodes,
        jobs=len(rows),
        finished=int(rows.has_finished.sum()),
        rejected=int(attempts.having("cause", Cause.REJECTED).sum()),
        succeeded=rows.column("final_state").tolist().count("COMPLETED_SUCCESSFULLY"),
        attempts=int(rows.column("attempts").sum()),
        makespan_s=makespan / 1e6,
        window_s=(window[0] / 1e6, window[1] / 1e6),
        selected_jobs=len(selected),
        platform=platform,
        backlog=waiting,
        useful_utilisation=platform.useful_utilisation,
        flows={name: flow_of(of) for name, of in (classes | {"all": times}).items()},
        node_failures=within(event_us[~up]),
        failures_hit=len(hits),
        steals=within(ledger.steals),
        victims=within(attempts.column("end_us")[attempts.having("cause", Cause.STOLEN)]),
        free_node_at_hit=sum(free > 0 for free in hits),
        fragmentation=blocked,
        resizes=resizes(ledger, rows, window),
        migrations=migrations(ledger, window),
        drains=drains(ledger, window, layout.cores_per_node),
        turnaround=_turnaround(ledger, selected, layout),
        service=service_of(times),
        service_classes={name: service_of(of) for name, of in classes.items()},
        fairness=fairness(selected),
        given_up=len(ledger.given_up),
        recoveries=(of_failures := recoveries(ledger)),
        training_classes=training_by_class(ledger, selected, n_nodes) if of_failures else {},
        spares=spares(ledger, window),
        steals_off=dict(
            Counter(why for at, why in ledger.steals_off if window[0] <= at < window[1])
        ),
        **_of_cores(ledger, n_nodes, window, layout),
    )
    return summary, rows


def _of_cores(ledger: Ledger, n_nodes: int, window: Window, layout: Layout) -> dict[str, Any]:
    """Return those metrics of nodes and cores for which the run has the necessary data."""
    cores = layout.cores_per_node
    sleeping = any(why == ASLEEP for *_, why in ledger.drain_events)
    if cores == 1 and not (layout.states or sleeping or layout.power):
        return {}
    of = usage(ledger, n_nodes // cores, cores, window)
    by_name = {
        name: node_states(of, cores, np.unique(nodes.ids // cores))
        for name, nodes in (layout.partitions.items() if layout.states else ())
    }
    metrics: dict[str, Any] = {"partition_states": by_name}
    if cores > 1:
        metrics["node_states"] = node_states(of, cores)
    if layout.power or sleeping:
        metrics["energy"] = energy(of, ledger, cores, window, layout.power)
    return metrics


def _turnaround(ledger: Ledger, rows: JobRows, layout: Layout) -> dict[str, Flow | None]:
    """Return the flow of the jobs of each partition."""
    if not layout.partitions:
        return {}
    complete = len(layout.partition_of) == len(rows)
    attempts = () if complete else ledger.attempts
    ended = {r.attempt.job_id: r.nodes for r in attempts if r.nodes is not None}
    groups: dict[str, list[int]] = {name: [] for name in layout.partitions}
    for place, name_of_job in enumerate(rows.column("job_id")):
        job_id = f"w0!{name_of_job}"
        name = layout.partition_of.get(job_id)
        for other, nodes in layout.partitions.items():
            if name is None and job_id in ended and nodes.meets(ended[job_id]):
                name = other
        if name is not None:
            groups[name].append(place)
    return {name: flow_of(job_times(rows[np.array(at, dtype=int)])) for name, at in groups.items()}


def as_json(summary: RunSummary) -> dict[str, Any]:
    """Return a summary as plain JSON values."""
    value: dict[str, Any] = msgspec.to_builtins(summary)
    if summary.recoveries is None:
        del value["recoveries"], value["training_classes"]
    if summary.spares is None:
        del value["spares"]
    return value
