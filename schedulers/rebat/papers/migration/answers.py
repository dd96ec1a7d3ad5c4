# SPDX-License-Identifier: Apache-2.0
"""What the campaign answers, in sentences that are made of its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

from rebat.papers.common.parts import change, number, points, share
from rebat.papers.common.runs_index import Run
from rebat.papers.common.tables import change_of, mean_of
from rebat.papers.migration.beyond import AWAKE, energy_runs, subject
from rebat.papers.migration.groups import (
    ComparedGroup,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    sleeping,
)
from rebat.papers.migration.published import CORES, LONGEST_S, MIXED, WAITING_FACTOR
from rebat.papers.migration.runs import MigrationCase, Runs, minutes, named, ratio_of
from rebat.results.intervals import (
    STUDENT,
    Interval,
    Shown,
    combined,
    interval,
    minus,
    narrow,
)

_T_S = 1800.0
"""A mean length of jobs, for an example."""


def told(found: Interval | None, shown: Shown, unit: str = "") -> str:
    """A mean with its interval in a sentence, with what the seeds say of its sign.

    >>> told(Interval(0.02, -0.01, 0.05, 3, 0.03), points, " points").replace("\xa0", " ")
    '+2.00 ± 3.00 points (the seeds do not decide)'
    """
    if found is None:
        return "unknown"
    unsure = bool(found.half) and not found.tells_from(0)
    return narrow(found, shown) + unit + (" (the seeds do not decide)" if unsure else "")


def answers(index: Runs) -> Iterator[str]:
    """To the questions that there are runs for."""
    yield from _nearest(index)
    yield from _drains(index)
    yield from _eternal(index)
    yield from _energy(index)
    yield from _defragmentation(index)
    yield from _proactive(index)


def _nearest(index: Runs) -> Iterator[str]:
    loads = figure_4(index)
    forms = dict.fromkeys(run.case for one in loads.values() for run in one.others)
    found = {case.label: _distance(index, loads, case) for case in forms}
    if found:
        best = min(found, key=lambda name: found[name])
        texts = ", ".join(f"{name} {100 * value:.1f}" for name, value in found.items())
        yield (
            f"Which form of compaction comes nearest to Figure 4? {best[:1].upper()}{best[1:]}. "
            "Distances of its changes of the mixed share from the printed ones, in points, root "
            f"mean square over the loads: {texts}."
        )


def _distance(index: Runs, loads: Mapping[int, ComparedGroup], case: MigrationCase) -> float:
    """Root mean square over the loads of the fall of the mixed share less the printed one."""
    squares = []
    for load, (base, forms) in loads.items():
        without, with_ = MIXED[load]
        changes = [change_of(index, run, base, "node_states_mixed") for run in forms
                   if run.case == case]  # fmt: skip
        squares += [(one.mean - (with_ - without)) ** 2 for one in changes if one]
    return sqrt(sum(squares) / max(1, len(squares)))


def _drains(index: Runs) -> Iterator[str]:
    for waiting, (migrating, *_) in drained(index):
        longest = mean_of(index, migrating, "empty_after_max_s")
        at_once = (
            "at once" if longest and not longest.mean else f"after {narrow(longest, minutes)} min"
        )
        mean_s, max_s, empty = (
            mean_of(index, waiting, name)
            for name in ("empty_after_s", "empty_after_max_s", "emptied_share")
        )
        flow = told(ratio_of(index, migrating, waiting, "flow_mean_s"), change)
        yield (
            f"How long does it take to empty a node of {waiting.setting.workload}? By migration it "
            f"is empty {at_once}: an image is taken in no time here, and all that a checkpoint and "
            f"restart takes, up to {LONGEST_S:g} s for a job of {CORES} tasks, is paid when the "
            f"job goes on. By waiting it takes {narrow(mean_s, minutes)} min in the mean and "
            f"{narrow(max_s, minutes)} min at the longest, of the {narrow(empty, share)} of nodes "
            "that got empty before they were taken back; but a node works on while it is waited "
            "for, "
            f"and the mean flow by migration is {flow} from that by waiting. If each of the "
            f"{CORES} cores ran a job of its own, memoryless and of mean length T, waiting would "
            f"take T * H_{CORES} = {WAITING_FACTOR:.4f} T, {minutes(WAITING_FACTOR * _T_S)} min "
            f"for jobs of {_T_S / 60:g} min; fewer jobs on a node take less."
        )


def _eternal(index: Runs) -> Iterator[str]:
    for alone, (beside, *_) in eternal(index):
        used = told(change_of(index, beside, alone, "useful_utilisation"), points, " points")
        turnaround = told(ratio_of(index, beside, alone, "turnaround_normal_mean_s"), change)
        yield (
            f"What do eternal jobs give and cost ({beside.setting.workload})? Useful utilisation "
            f"changes by {used}, to "
            f"{narrow(mean_of(index, beside, 'useful_utilisation'), share)}; "
            f"the mean turnaround of normal jobs by {turnaround}; "
            f"{narrow(mean_of(index, beside, 'migrations_a_day'), number)} preemptions a day, "
            f"which take {narrow(mean_of(index, beside, 'cost_share'), share)} of the core time. A "
            "preempted job leaves its cores at once here, and pays when it goes on; on a cluster "
            "normal jobs wait for its checkpoint."
        )


def _energy(index: Runs) -> Iterator[str]:
    texts = list(filter(None, (_saved(index, group) for group in sleeping(index))))
    if texts:
        yield (
            "Does compaction save energy, and how much of that is sleeping alone? Energy of a day "
            f"against that where no node sleeps: {'; '.join(texts)}."
        )


def _saved(index: Runs, group: ComparedGroup) -> str:
    runs = energy_runs(group)
    base, alone, both = (
        index.values(*runs[name], "energy_kwh") if name in runs else {}
        for name in ("no node sleeps", "sleeping", "compaction and sleeping")
    )
    if not (alone and both):
        return ""
    part = combined(lambda saved: saved[0] / saved[1], minus(base, alone), minus(base, both))

    def text(name: str) -> str:
        return told(ratio_of(index, runs[name], group.base, "energy_kwh"), change)

    awake = f"; compaction where none sleeps {text(AWAKE)}" if AWAKE in runs else ""
    return (
        f"{group.base.setting.workload}: sleeping alone {text('sleeping')}, with compaction "
        f"{text('compaction and sleeping')}, of which sleeping alone is "
        f"{narrow(interval(part, STUDENT), '{:.0%}'.format)}{awake}"
    )


def _defragmentation(index: Runs) -> Iterator[str]:
    for base, (moving, *_) in defragmented(index):
        blocked = change_of(index, moving, base, "fragmentation_blocked_share")
        used = change_of(index, moving, base, "useful_utilisation")
        yield (
            f"Does defragmentation pay on {base.setting.workload}? The share of time for which the "
            f"head of the queue is blocked changes by {told(blocked, points, ' points')}, useful "
            f"utilisation by {told(used, points, ' points')}, the mean flow by "
            f"{told(ratio_of(index, moving, base, 'flow_mean_s'), change)}, with "
            f"{narrow(mean_of(index, moving, 'migrations_a_day'), number)} migrations a day."
        )


def _proactive(index: Runs) -> Iterator[str]:
    for group in foreseen(index):
        runs = named([group.base, *group.others])
        for ours in (run for run in group.others if run.case.react == ("foresee",)):
            against = ", ".join(
                f"against {name} "
                + told(change_of(index, ours, runs[name], "useful_utilisation"), points, " points")
                for name in (group.base.case.short, "stealing", "replacement")
                if name in runs
            )
            yield (
                f"Does {ours.case.label} beat node stealing and replacement on "
                f"{subject(group)}? Useful utilisation {against}. {_moved(index, group, ours)}"
                f"{_with_stealing(index, _beside(group, ours))}"
            )


def _beside(group: ComparedGroup, ours: Run[MigrationCase]) -> Run[MigrationCase] | None:
    """The same with stealing beside it."""
    both = (run for run in group.others if run.case.react == ("foresee", "stealing"))
    return next((run for run in both if run.case.axes == ours.case.axes), None)


def _moved(index: Runs, group: ComparedGroup, ours: Run[MigrationCase]) -> str:
    """What it did to failures and flows, if it did anything."""
    if not any(index.values(*ours, "migrations_count").values()):
        used = [index.values(*run, "useful_utilisation") for run in (ours, group.base)]
        same = used[0] == used[1]
        return "Not one job was moved" + (", and all is as under the baseline." if same else ".")
    hits = [narrow(mean_of(index, run, "failures_hit"), number) for run in (ours, group.base)]
    flows = ", ".join(
        f"{words} flow {told(ratio_of(index, ours, group.base, f'flow_{metric}_s'), change)}"
        for words, metric in
        (("mean", "mean"), ("weighted mean", "weighted_mean"), ("largest", "max"))
    )  # fmt: skip
    return f"Failures under a job: {hits[0]}, baseline {hits[1]}. Against the baseline: {flows}."


def _with_stealing(index: Runs, both: Run[MigrationCase] | None) -> str:
    """Where stealing had nothing to do."""
    if both is None or any(index.values(*both, "steals").values()):
        return ""
    hit, free = (index.values(*both, name) for name in ("failures_hit", "free_node_at_hit"))
    why = ", as some node was free at every failure" if hit == free else ""
    return f" With stealing beside it, nothing was stolen{why}."
