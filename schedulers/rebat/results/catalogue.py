# SPDX-License-Identifier: Apache-2.0
"""The catalogue of all metrics of a run, which tables, figures, reports and documentation use.

To add a metric, compute it in the summary of a run, and add a row here. Comparisons list metrics in
the order of these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rebat.core.errors import InputError, unknown_name
from rebat.results.measures.platform import at_hand
from rebat.results.metric import Metric, Name, Values, name_text

_REPLACEMENTS = ("resizes_by_local", "resizes_by_idle", "resizes_by_remote", "resizes_by_restart")
_PART_OF_RUN = ("backlog_begin", "backlog_end")


def _work_at_hand(values: Values) -> float | None:
    work = at_hand(lambda name: values.get((name, None)))
    return None if work is None else work.share


def _if_emptied(name: str) -> Metric:
    kind = {"mean": "mean", "max": "longest"}[name]
    return Metric(
        f"drains_{name}_s", f"  time until empty, {name}", "time", "low", "",
        f"the {kind} time from an operation's drain until the node is empty",
        of=lambda v: v[f"drains_{name}_s", None] if v["drains_emptied", None] else None,
    )  # fmt: skip


CATALOGUE: tuple[Metric, ...] = (
    Metric("rejected", "jobs rejected", "count", "low", "", "jobs that requested more nodes than the machine has, or that the policy rejected"),
    Metric("given_up", "jobs given up", "count", "low", "", "jobs that ended as failed after `--max-attempts` attempts"),
    Metric("useful_utilisation", "useful utilisation", "share", "high", "node time that was up", "U / (W - downtime): the utilisation in Tables 4 and 8 of Du et al. 2024"),
    Metric("platform_useful", "useful", "node time", "high", "node time", "U: nodes x progress kept within the window, summed over the attempts of completed jobs; checkpoints and recoveries do not count"),
    Metric("platform_checkpoint", "checkpoints", "node time", "low", "node time", "node time of checkpoints, including closing checkpoints"),
    Metric("platform_recovery", "recovery", "node time", "low", "node time", "node time of the stages of recoveries (detection to initialisation), and of reading checkpoints after an interruption"),
    Metric("platform_waste_failure", "wasted by failures", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the failure that interrupted it"),
    Metric("platform_waste_stealing", "wasted by stealing", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the steal that interrupted it"),
    Metric("platform_waste_silent", "wasted by silent errors", "node time", "low", "node time", "node time of attempts that ended with a silent error and ran again, and of the checkpointed progress that was lost"),
    Metric("platform_waste_walltime", "wasted at walltimes", "node time", "low", "node time", "the work, over all attempts, of jobs that were killed at their walltime"),
    Metric("platform_waste_moving", "wasted by moves", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the time at which the policy stopped it, to move the job or to free nodes for another job"),
    Metric("platform_held", "held", "node time", "low", "node time", "nodes that are up and reserved for a job that does not run on them"),
    Metric("platform_downtime", "downtime", "node time", "", "node time", "nodes that are down"),
    Metric("platform_idle", "idle", "node time", "low", "node time", "nodes that are up, run nothing and are not held"),
    Metric("backlog_at_hand", "work at hand", "share", "", "all node time", "(work that remains at the beginning of the window + work submitted within the window) / W", only_with=_PART_OF_RUN, of=_work_at_hand, derived=True),
    Metric("backlog_nothing_waits", "nothing waits", "share", "", "time", "time within the window during which no attempt waits / length of the window", only_with=_PART_OF_RUN),
    Metric("platform_idle_share", "some node idle", "share", "low", "time", "time within the window with at least one node up and free / length of the window; a held node is not free"),
    Metric("fragmentation_blocked_share", "head of the queue blocked", "share", "low", "time", "time during which the first attempt of the queue waits although enough nodes are up and free / length of the window"),
    Metric("fragmentation_blocked_free_nodes", "  free nodes while blocked, mean", "count", "low", "", "the mean number of free nodes while the head of the queue is blocked"),
    Metric("fragmentation_box_waste", "box waste (within idle)", "node time", "low", "all node time", "node time of nodes in the box of an attempt that the attempt did not request"),
    Metric("failures_hit", "failures hitting jobs", "count", "", "", "failures, within the window, of nodes that run a job. If a node of a victim fails before the victim is stopped, this failure counts only with `hit=failed`, as in Du et al. 2024"),
    Metric("free_node_at_hit", "  a node was free", "count", "", "", "failures that hit a job while a node was free (Table 5 of Du et al. 2024)"),
    Metric("steals", "  steals decided", "count", "", "", "decisions to steal within the window (Tables 5 and 9 of Du et al. 2024)"),
    Metric("victims", "  victims interrupted", "count", "low", "", "attempts that were interrupted for a steal"),
    Metric("resizes_by_local", "  continued on fewer nodes", "count", "", "", "attempts hit by a failure that continued on fewer nodes"),
    Metric("resizes_by_idle", "  on idle or spare nodes", "count", "", "", "attempts hit by a failure that continued on idle or spare nodes"),
    Metric("resizes_by_remote", "  on nodes of malleable jobs", "count", "", "", "attempts hit by a failure that continued on nodes returned by malleable jobs"),
    Metric("resizes_by_restart", "  on nodes of moldable jobs", "count", "", "", "attempts hit by a failure that continued on nodes of moldable jobs, which restart from the beginning"),
    Metric("resizes_requeued", "  requeued", "count", "low", "", "attempts hit by a failure whose jobs were requeued", only_with=_REPLACEMENTS),
    Metric("resizes_molded", "jobs started with another size", "count", "", "", "moldable or malleable jobs that first started on another number of nodes than requested"),
    Metric("resizes_grown", "malleable jobs grown", "count", "", "", "resizes of running jobs to more nodes"),
    Metric("resizes_shrunk", "malleable jobs shrunk", "count", "", "", "resizes of running jobs to fewer nodes"),
    Metric("resizes_lent", "malleable jobs shrunk to replace nodes", "count", "", "", "resizes of running jobs to fewer nodes, so that the released nodes replace failed nodes of another job"),
    Metric("resizes_restarted", "moldable jobs restarted to free nodes for other jobs", "count", "low", "", "moldable jobs that restart from the beginning to give nodes to a job with failed nodes"),
    Metric("node_states_empty", "nodes empty", "share", "", "node time", "node time during which no core of the node is in use"),
    Metric("node_states_mixed", "nodes mixed", "share", "", "node time", "node time during which some cores of the node are in use"),
    Metric("node_states_full", "nodes full", "share", "", "node time", "node time during which all cores of the node are in use"),
    Metric("partition_states_*_empty", "  empty in partition *", "share", "", "", "`node_states_empty` of the nodes of a partition"),
    Metric("partition_states_*_mixed", "  mixed in partition *", "share", "", "", "`node_states_mixed` of the nodes of a partition"),
    Metric("partition_states_*_full", "  full in partition *", "share", "", "", "`node_states_full` of the nodes of a partition"),
    Metric("migrations_count", "checkpoints and restarts", "count", "", "", "attempts that were stopped and checkpointed"),
    Metric("migrations_cost", "  their cost", "node time", "low", "core time", "core time of writing checkpoint images and of restarting from them"),
    Metric("drains_nodes", "nodes drained", "count", "", "", "nodes that operations drained"),
    Metric("drains_emptied", "  empty in time", "count", "high", "", "drained nodes that were empty before they returned to service"),
    _if_emptied("mean"),
    _if_emptied("max"),
    Metric("drains_refused", "operations refused", "count", "low", "", "operations that were not carried out"),
    Metric("energy_kwh", "energy, kWh", "count", "low", "", "energy of the nodes; requires the policy option `power`, the watts of a node"),
    Metric("energy_asleep", "  nodes asleep", "share", "", "node time", "node time asleep / W", of=lambda v: v.get(("energy_asleep", None), 0.0)),
    Metric("turnaround_*_max_s", "largest turnaround, partition *", "time", "low", "", "the longest flow of the jobs of a partition"),
    Metric("turnaround_*_mean_s", "mean turnaround, partition *", "time", "low", "", "the mean flow of the jobs of a partition"),
    Metric("service_wait_p50_s", "wait, median", "time", "low", "", "the median time between submission and end during which a job held no nodes"),
    Metric("service_wait_p95_s", "wait, 95th percentile", "time", "low", "", "the waiting time that 95 % of the jobs do not exceed"),
    Metric("service_bounded_slowdown_mean", "bounded slowdown, mean", "factor", "low", "", "max(1, flow / max(10 s, time for which the job held nodes))"),
    Metric("service_bounded_slowdown_p95", "bounded slowdown, 95th percentile", "factor", "low", "", "the bounded slowdown that 95 % of the jobs do not exceed"),
    Metric("fairness_jain", "fairness among users (Jain's index)", "factor", "high", "", "(sum x)^2 / (n sum x^2) of the n users' mean bounded slowdowns x: 1 if all are equal, 1/n if all but one are 0"),
    Metric("recoveries_ettr", "ETTR", "share", "high", "", "effective training time ratio of all jobs: sum(nodes x kept work, without checkpoints) / sum(nodes x time on nodes)"),
    Metric("recoveries_ettr_queued", "ETTR with queueing", "share", "high", "", "the same, with the time in the queue: sum(nodes x kept work, without checkpoints) / sum(nodes x time from submission to end)"),
    Metric("recoveries_mttf_s", "time to failure of a job", "time", "high", "", "time on nodes of all jobs / failures that hit them"),
    Metric("recoveries_second_order", "preemptions for failed jobs", "count", "low", "", "jobs that were preempted for a job that a failure interrupted"),
    Metric("training_ettr", "ETTR of measured jobs", "share", "high", "", "sum(nodes x kept work, without checkpoints) / sum(nodes x time from the first start to the end, without later waits in the queue)", by_class=True),
    Metric("training_ettr_queued", "ETTR of measured jobs, with queueing", "share", "high", "", "sum(nodes x kept work, without checkpoints) / sum(nodes x time from submission to end)", by_class=True),
    Metric("training_mttf_s", "MTTF of measured jobs", "time", "high", "", "run time of the measured jobs / failures that hit them; absent without failures", by_class=True),
    Metric("spares_utilisation", "spare utilisation", "share", "", "time of spare nodes", "`spares_replacing` / (`spares_replacing` + `spares_ready`)"),
    Metric("flow_max_s", "largest flow", "time", "low", "", "the largest flow of a job: its end - its submission, over all attempts", by_class=True),
    Metric("flow_mean_s", "mean flow", "time", "low", "", "the mean flow of the measured jobs", by_class=True),
    Metric("flow_weighted_mean_s", "weighted mean flow", "time", "low", "", "sum(nodes x flow) / sum(nodes)", by_class=True),
)  # fmt: skip
"""Metrics in a comparison of single runs."""

FURTHER: tuple[Metric, ...] = (
    Metric("n_nodes", "nodes", "count", "", "", "nodes of the machine"),
    Metric("jobs", "jobs", "count", "", "", "jobs submitted"),
    Metric("finished", "jobs finished", "count", "high", "", "jobs that ended, without rejected jobs"),
    Metric("succeeded", "jobs succeeded", "count", "high", "", "jobs that completed without an error"),
    Metric("attempts", "attempts", "count", "low", "", "attempts of all jobs"),
    Metric("makespan_s", "makespan", "time", "low", "", "the last end of an attempt"),
    Metric("window_first_s", "window, start", "time", "", "", "the start of the window"),
    Metric("window_last_s", "window, end", "time", "", "", "the end of the window"),
    Metric("selected_jobs", "measured jobs", "count", "", "", "jobs whose flow is measured"),
    Metric("platform_total", "node time", "node time", "", "", "W: nodes x length of the window"),
    Metric("backlog_begin", "work at the beginning", "node time", "", "", "work of jobs submitted before the window that remains at the beginning of the window"),
    Metric("backlog_submitted", "work submitted", "node time", "", "", "work of jobs submitted within the window"),
    Metric("backlog_end", "work at the end", "node time", "", "", "work that remains at the end of the window"),
    Metric("node_failures", "node failures", "count", "", "", "failures of nodes within the window, including idle nodes"),
    Metric("fragmentation_blocked", "blocked nodes", "node time", "low", "", "free nodes x time while the head of the queue is blocked"),
    Metric("resizes_jobs_hit", "jobs hit", "count", "", "", "jobs that a failure hit under a policy that resizes or replaces"),
    Metric("resizes_mean_wait_s", "time without nodes, mean", "time", "low", "", "the mean time between submission and end during which a job held no nodes"),
    Metric("migrations_moved", "work moved", "node time", "", "", "core time of the work in checkpoint images, counted for each image"),
    Metric("migrations_by_*", "checkpoints and restarts: *", "count", "", "", "attempts that were stopped and checkpointed, by purpose"),
    Metric("steals_off_*", "steals that did not happen: *", "count", "", "", "decided steals that were not carried out, by reason"),
    Metric("recoveries_stages_*", "recovery, stage *", "node time", "low", "", "node time of a stage of the recovery"),
    Metric("recoveries_lost_*", "lost to failures, cause *", "node time", "low", "", "lost run time, and time of the stages, after failures with this cause"),
    Metric("spares_ready", "spare nodes ready", "node time", "", "", "nodes that are reserved as spare nodes and up; part of `platform_idle`"),
    Metric("spares_replacing", "spare nodes in use", "node time", "", "", "time of spare nodes that replace a failed node. It begins when the spare node leaves the reserve for the job that lost the node. It ends when the failed node is up again, or when the job releases the spare node. Spare nodes that the policy lends to the queue count only if a job that lost nodes starts on them when they leave the reserve"),
    Metric("turnaround_*_jobs", "jobs of partition *", "count", "", "", "jobs of a partition"),
    Metric("turnaround_*_weighted_mean_s", "weighted mean turnaround, partition *", "time", "low", "", "the weighted mean flow of the jobs of a partition"),
    Metric("flow_jobs", "jobs", "count", "", "", "jobs of a size class", by_class=True),
    Metric("service_wait_mean_s", "wait, mean", "time", "low", "", "the mean waiting time"),
    Metric("service_wait_max_s", "wait, largest", "time", "low", "", "the longest waiting time"),
    Metric("service_slowdown_mean", "slowdown, mean", "factor", "low", "", "flow / time for which the job held nodes"),
    Metric("service_flow_p50_s", "flow, median", "time", "low", "", "the median flow"),
    Metric("service_flow_p95_s", "flow, 95th percentile", "time", "low", "", "the flow that 95 % of the jobs do not exceed"),
    Metric("service_bounded_slowdown_p50", "bounded slowdown, median", "factor", "low", "", "the median bounded slowdown"),
    Metric("service_bounded_slowdown_max", "bounded slowdown, largest", "factor", "low", "", "the largest bounded slowdown"),
    Metric("fairness_users", "users", "count", "", "", "users that have measured jobs"),
    Metric("fairness_median_user", "bounded slowdown, median user", "factor", "low", "", "the median of the users' means"),
    Metric("fairness_worst_user", "bounded slowdown, worst user", "factor", "low", "", "the largest of the users' means"),
)  # fmt: skip
"""Further metrics in a run's files. Comparisons show only those that ``--columns`` selects."""

NODE_TIME = tuple(m for m in CATALOGUE if m.whole == "node time" and m.unit == "node time")
"""One metric for each use of the window's node time. Their shares add up to 1."""

USUAL: tuple[Name, ...] = (
    ("useful_utilisation", None),
    ("platform_idle_share", None),
    ("failures_hit", None),
    ("steals", None),
    ("flow_max_s", "all"),
    ("flow_mean_s", "all"),
    ("flow_weighted_mean_s", "all"),
)
"""Default metrics of a comparison of several seeds."""

VERDICT: tuple[Name, ...] = (USUAL[0], ("flow_mean_s", "all"), ("flow_max_s", "all"))
"""Metrics in a verdict. They are also the default metrics of a table with one row per policy."""

N_PRINTED = 10
"""Number of rows of a printed comparison, unless all metrics are requested."""

FIRST_PRINTED: tuple[Name, ...] = (
    ("rejected", None),
    ("given_up", None),
    ("drains_refused", None),
    *USUAL,
    ("platform_waste_failure", None),
    ("service_bounded_slowdown_mean", None),
    ("platform_idle", None),
)
"""Metrics that a printed comparison shows first, sorted by importance."""

RATIOS: tuple[Name, ...] = (USUAL[0], *USUAL[-3:])
"""Metrics whose ratios are shown in figures."""


@lru_cache
def metric(name: str) -> Metric:
    """Return the metric of this name. In the catalogue, ``*`` matches any partition or purpose.

    >>> metric("platform_idle").heading, metric("turnaround_gpu_max_s").title
    ('idle, share of node time', 'largest turnaround, partition gpu')
    """
    for row in (*CATALOGUE, *FURTHER):
        if (named := row.named(name)) is not None:
            return named
    raise unknown_name("metric", name, (row.name for row in (*CATALOGUE, *FURTHER)))


def columns(texts: Iterable[str], recorded: Sequence[Name]) -> tuple[Name, ...]:
    """Return the metrics that ``texts`` (the option ``--columns``) selects from ``recorded``.

    A text is a name as in comparison.csv, for example ``flow_max_s:all``.
    """
    names = []
    for text in texts:
        name, _, size_class = text.strip().partition(":")
        of = (name, size_class or None)
        if of not in recorded and (name, "all") in recorded:
            of = (name, "all")
        if of not in recorded:
            error = unknown_name("metric", text.strip(), map(name_text, recorded))
            raise InputError(error.problem, "--columns", "a metric of comparison.csv")
        names.append(of)
    return tuple(names)
