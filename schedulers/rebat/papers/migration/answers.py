# SPDX-License-Identifier: Apache-2.0
"""What the campaign answers, in sentences that are made of its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

from rebat.papers.common.parts import number
from rebat.papers.common.runs_index import combined, mean, minus
from rebat.papers.migration.beyond import AWAKE, energy_runs, subject
from rebat.papers.migration.claims import LONGEST_S
from rebat.papers.migration.comparing import MINUTES, cell, told
from rebat.papers.migration.evidence import Case, Evidence, Run, named
from rebat.papers.migration.groups import (
    Compared,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    sleeping,
)
from rebat.papers.migration.published import CORES, MIXED, WAITING_FACTOR
from rebat.papers.replacement.tables import change, share
from rebat.papers.torus.load_tables import points

_T_S = 1800.0
"""A mean length of jobs, for an example."""

minutes = MINUTES.shown


def answers(evidence: Evidence) -> Iterator[str]:
    """To the questions that there are runs for."""
    yield from _nearest(evidence)
    yield from _drains(evidence)
    yield from _eternal(evidence)
    yield from _energy(evidence)
    yield from _defragmentation(evidence)
    yield from _proactive(evidence)


def _nearest(evidence: Evidence) -> Iterator[str]:
    loads = figure_4(evidence)
    forms = dict.fromkeys(run.case for one in loads.values() for run in one.others)
    found = {case.label: _distance(evidence, loads, case) for case in forms}
    if found:
        best = min(found, key=lambda name: found[name])
        texts = ", ".join(f"{name} {100 * value:.1f}" for name, value in found.items())
        yield (
            f"Which form of compaction comes nearest to Figure 4? {best[:1].upper()}{best[1:]}. "
            "Distances of its changes of the mixed share from the printed ones, in points, root "
            f"mean square over the loads: {texts}."
        )


def _distance(evidence: Evidence, loads: Mapping[int, Compared], case: Case) -> float:
    """Root mean square over the loads of the fall of the mixed share less the printed one."""
    squares = []
    for load, (base, forms) in loads.items():
        without, with_ = MIXED[load]
        changes = [evidence.change(run, base, "node_states_mixed") for run in forms
                   if run.case == case]  # fmt: skip
        squares += [(one.mean - (with_ - without)) ** 2 for one in changes if one]
    return sqrt(sum(squares) / max(1, len(squares)))


def _drains(evidence: Evidence) -> Iterator[str]:
    for waiting, (migrating, *_) in drained(evidence):
        longest = evidence.mean(migrating, "empty_after_max_s")
        at_once = (
            "at once" if longest and not longest.mean else f"after {cell(longest, minutes)} min"
        )
        mean_s, max_s, empty = (
            evidence.mean(waiting, name)
            for name in ("empty_after_s", "empty_after_max_s", "emptied_share")
        )
        flow = told(evidence.ratio(migrating, waiting, "flow_mean_s"), change)
        yield (
            f"How long does it take to empty a node of {waiting.setting.workload}? By migration it "
            f"is empty {at_once}: an image is taken in no time here, and all that a checkpoint and "
            f"restart takes, up to {LONGEST_S:g} s for a job of {CORES} tasks, is paid when the "
            f"job goes on. By waiting it takes {cell(mean_s, minutes)} min in the mean and "
            f"{cell(max_s, minutes)} min at the longest, of the {cell(empty, share)} of nodes that "
            "got empty before they were taken back; but a node works on while it is waited for, "
            f"and the mean flow by migration is {flow} from that by waiting. If each of the "
            f"{CORES} cores ran a job of its own, memoryless and of mean length T, waiting would "
            f"take T * H_{CORES} = {WAITING_FACTOR:.4f} T, {minutes(WAITING_FACTOR * _T_S)} min "
            f"for jobs of {_T_S / 60:g} min; fewer jobs on a node take less."
        )


def _eternal(evidence: Evidence) -> Iterator[str]:
    for alone, (beside, *_) in eternal(evidence):
        used = told(evidence.change(beside, alone, "useful_utilisation"), points, " points")
        turnaround = told(evidence.ratio(beside, alone, "turnaround_normal_mean_s"), change)
        yield (
            f"What do eternal jobs give and cost ({beside.setting.workload})? Useful utilisation "
            f"changes by {used}, to {cell(evidence.mean(beside, 'useful_utilisation'), share)}; "
            f"the mean turnaround of normal jobs by {turnaround}; "
            f"{cell(evidence.mean(beside, 'migrations_a_day'), number)} preemptions a day, which "
            f"take {cell(evidence.mean(beside, 'cost_share'), share)} of the core time. A "
            "preempted job leaves its cores at once here, and pays when it goes on; on a cluster "
            "normal jobs wait for its checkpoint."
        )


def _energy(evidence: Evidence) -> Iterator[str]:
    texts = list(filter(None, (_saved(evidence, group) for group in sleeping(evidence))))
    if texts:
        yield (
            "Does compaction save energy, and how much of that is sleeping alone? Energy of a day "
            f"against that where no node sleeps: {'; '.join(texts)}."
        )


def _saved(evidence: Evidence, group: Compared) -> str:
    runs = energy_runs(group)
    base, alone, both = (
        evidence.of(runs[name], "energy_kwh") if name in runs else {}
        for name in ("no node sleeps", "sleeping", "compaction and sleeping")
    )
    if not (alone and both):
        return ""
    part = combined(lambda saved: saved[0] / saved[1], minus(base, alone), minus(base, both))

    def text(name: str) -> str:
        return told(evidence.ratio(runs[name], group.base, "energy_kwh"), change)

    awake = f"; compaction where none sleeps {text(AWAKE)}" if AWAKE in runs else ""
    return (
        f"{group.base.setting.workload}: sleeping alone {text('sleeping')}, with compaction "
        f"{text('compaction and sleeping')}, of which sleeping alone is "
        f"{cell(mean(part), '{:.0%}'.format)}{awake}"
    )


def _defragmentation(evidence: Evidence) -> Iterator[str]:
    for base, (moving, *_) in defragmented(evidence):
        blocked = evidence.change(moving, base, "fragmentation_blocked_share")
        used = evidence.change(moving, base, "useful_utilisation")
        yield (
            f"Does defragmentation pay on {base.setting.workload}? The share of time for which the "
            f"head of the queue is blocked changes by {told(blocked, points, ' points')}, useful "
            f"utilisation by {told(used, points, ' points')}, the mean flow by "
            f"{told(evidence.ratio(moving, base, 'flow_mean_s'), change)}, with "
            f"{cell(evidence.mean(moving, 'migrations_a_day'), number)} migrations a day."
        )


def _proactive(evidence: Evidence) -> Iterator[str]:
    for group in foreseen(evidence):
        runs = named([group.base, *group.others])
        for ours in (run for run in group.others if run.case.react == ("foresee",)):
            against = ", ".join(
                f"against {name} "
                + told(evidence.change(ours, runs[name], "useful_utilisation"), points, " points")
                for name in (group.base.case.short, "stealing", "replacement")
                if name in runs
            )
            yield (
                f"Does {ours.case.label} beat node stealing and replacement on "
                f"{subject(group)}? Useful utilisation {against}. {_moved(evidence, group, ours)}"
                f"{_with_stealing(evidence, _beside(group, ours))}"
            )


def _beside(group: Compared, ours: Run) -> Run | None:
    """The same with stealing beside it."""
    both = (run for run in group.others if run.case.react == ("foresee", "stealing"))
    return next((run for run in both if run.case.axes == ours.case.axes), None)


def _moved(evidence: Evidence, group: Compared, ours: Run) -> str:
    """What it did to failures and flows, if it did anything."""
    if not any(evidence.of(ours, "migrations_count").values()):
        used = [evidence.of(run, "useful_utilisation") for run in (ours, group.base)]
        same = used[0] == used[1]
        return "Not one job was moved" + (", and all is as under the baseline." if same else ".")
    hits = [cell(evidence.mean(run, "failures_hit"), number) for run in (ours, group.base)]
    flows = ", ".join(
        f"{words} flow {told(evidence.ratio(ours, group.base, f'flow_{metric}_s'), change)}"
        for words, metric in
        (("mean", "mean"), ("weighted mean", "weighted_mean"), ("largest", "max"))
    )  # fmt: skip
    return f"Failures under a job: {hits[0]}, baseline {hits[1]}. Against the baseline: {flows}."


def _with_stealing(evidence: Evidence, both: Run | None) -> str:
    """Where stealing had nothing to do."""
    if both is None or any(evidence.of(both, "steals").values()):
        return ""
    hit, free = (evidence.of(both, name) for name in ("failures_hit", "free_node_at_hit"))
    why = ", as some node was free at every failure" if hit == free else ""
    return f" With stealing beside it, nothing was stolen{why}."
