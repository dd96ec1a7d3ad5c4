# SPDX-License-Identifier: Apache-2.0
"""Answers to questions about job migration: sentences with the numbers of a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

from rebat.report.parts import change, number, points, share
from rebat.report.runs_index import Run, change_of, mean_of
from rebat.results.intervals import (
    Interval,
    Shown,
    combined,
    interval,
    minus,
    narrow,
)

from .beyond import AWAKE, energy_runs, subject
from .published import CORES, LONGEST_S, MIXED, WAITING_FACTOR
from .runs import (
    ComparedGroup,
    MigrationCase,
    Runs,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    minutes,
    named,
    ratio_of,
    sleeping,
)

_T_S = 1800.0
"""Mean run time of the jobs in an example, in seconds."""


def effect(mean: Interval | None, shown: Shown, unit: str = "") -> str:
    """Format a mean difference with its interval. Add a mark if the interval contains 0.

    >>> effect(Interval(0.02, -0.01, 0.05, 9), points, " points").replace("\xa0", " ")
    '+2.00 [-1.00, +5.00] points (not significant)'
    """
    if mean is None:
        return "unknown"
    unsure = mean.contains(0) and mean.width
    return narrow(mean, shown) + unit + (" (not significant)" if unsure else "")


def answers(index: Runs) -> Iterator[str]:
    """Yield an answer to each question for which there are runs."""
    yield from _nearest(index)
    yield from _drains(index)
    yield from _eternal(index)
    yield from _energy(index)
    yield from _defragmentation(index)
    yield from _proactive(index)


def _nearest(index: Runs) -> Iterator[str]:
    loads = figure_4(index)
    forms = dict.fromkeys(run.case for group in loads.values() for run in group.others)
    distances = {case.label: _distance(index, loads, case) for case in forms}
    if distances:
        best = min(distances, key=lambda name: distances[name])
        texts = ", ".join(f"{name} {100 * value:.1f}" for name, value in distances.items())
        yield (
            f"Which variant of compaction is closest to Figure 4? {best[:1].upper()}{best[1:]}. "
            "The list shows the root mean square differences from the published changes of the "
            f"share of mixed nodes, over the loads, in points: {texts}."
        )


def _distance(index: Runs, loads: Mapping[int, ComparedGroup], case: MigrationCase) -> float:
    """Return the distance of a form of compaction from Figure 4, over all loads.

    Compaction changes the share of mixed nodes. The distance is the root mean square difference
    between rebat's and the published change.
    """
    squares = []
    for load, (base, forms) in loads.items():
        without, with_ = MIXED[load]
        changes = [
            change_of(index, run, base, "node_states_mixed") for run in forms if run.case == case
        ]
        squares += [(change.mean - (with_ - without)) ** 2 for change in changes if change]
    return sqrt(sum(squares) / max(1, len(squares)))


def _drains(index: Runs) -> Iterator[str]:
    for waiting, (migrating, *_) in drained(index):
        longest = mean_of(index, migrating, "empty_after_max_s")
        delay = (
            "immediately"
            if longest and not longest.mean
            else f"after at most {narrow(longest, minutes)} min"
        )
        mean_s, max_s, empty = (
            mean_of(index, waiting, name)
            for name in ("empty_after_s", "empty_after_max_s", "emptied_share")
        )
        flow = effect(ratio_of(index, migrating, waiting, "flow_mean_s"), change)
        yield (
            f"How long does it take to empty a node of {waiting.setting.workload}? With migration "
            f"the node is empty {delay}. Writing an image takes no time in these simulations: a "
            "job pays for the entire checkpoint and restart when it continues, up to "
            f"{LONGEST_S:g} s for a job of {CORES} tasks. Waiting takes {narrow(mean_s, minutes)} "
            f"min on average and {narrow(max_s, minutes)} min at most, for the "
            f"{narrow(empty, share)} of nodes that were empty before they returned to service. "
            "But while an administrator waits, the jobs on the node continue to run. Compared "
            f"with waiting, migration changes the mean flow by {flow}. If each of the {CORES} "
            "cores ran a separate job with an exponential run time of mean T, waiting would take "
            f"T * H_{CORES} = {WAITING_FACTOR:.4f} T: {minutes(WAITING_FACTOR * _T_S)} min for "
            f"jobs of {_T_S / 60:g} min. With fewer jobs on a node, waiting takes less time."
        )


def _eternal(index: Runs) -> Iterator[str]:
    for alone, (mixed, *_) in eternal(index):
        used = effect(change_of(index, mixed, alone, "useful_utilisation"), points, " points")
        turnaround = effect(ratio_of(index, mixed, alone, "turnaround_normal_mean_s"), change)
        yield (
            f"What is the effect of eternal jobs ({mixed.setting.workload})? Useful utilisation "
            f"changes by {used}, to {narrow(mean_of(index, mixed, 'useful_utilisation'), share)}. "
            f"The mean turnaround of normal jobs changes by {turnaround}. There are "
            f"{narrow(mean_of(index, mixed, 'migrations_a_day'), number)} preemptions a day. They "
            f"take {narrow(mean_of(index, mixed, 'cost_share'), share)} of the core time. In "
            "these simulations a preempted job leaves its cores immediately and pays for the "
            "checkpoint when it continues. On a real cluster, normal jobs would wait until the "
            "checkpoint is written."
        )


def _energy(index: Runs) -> Iterator[str]:
    texts = list(filter(None, (_saved(index, group) for group in sleeping(index))))
    if texts:
        yield (
            "Does compaction save energy, and how much energy does sleeping save without "
            "compaction? Changes of the energy of a day, compared with nodes that never sleep: "
            f"{'; '.join(texts)}."
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
        return effect(ratio_of(index, runs[name], group.base, "energy_kwh"), change)

    awake = f", only compaction {text(AWAKE)}" if AWAKE in runs else ""
    return (
        f"{group.base.setting.workload}: only sleeping {text('sleeping')}, sleeping and "
        f"compaction {text('compaction and sleeping')} (only sleeping achieves "
        f"{narrow(interval(part), '{:.0%}'.format)} of this saving){awake}"
    )


def _defragmentation(index: Runs) -> Iterator[str]:
    for base, (moving, *_) in defragmented(index):
        blocked = change_of(index, moving, base, "fragmentation_blocked_share")
        used = change_of(index, moving, base, "useful_utilisation")
        yield (
            f"Is defragmentation useful on {base.setting.workload}? The share of time in which the "
            f"head of the queue is blocked changes by {effect(blocked, points, ' points')}, useful "
            f"utilisation by {effect(used, points, ' points')}, and the mean flow by "
            f"{effect(ratio_of(index, moving, base, 'flow_mean_s'), change)}. There are "
            f"{narrow(mean_of(index, moving, 'migrations_a_day'), number)} migrations a day."
        )


def _proactive(index: Runs) -> Iterator[str]:
    for group in foreseen(index):
        runs = named([group.base, *group.others])
        for ours in (run for run in group.others if run.case.react == ("foresee",)):
            gains = {
                name: change_of(index, ours, runs[name], "useful_utilisation")
                for name in (group.base.case.short, "stealing", "replacement")
                if name in runs
            }
            against = ", ".join(
                f"{effect(gain, points, ' points')} compared with {name}"
                for name, gain in gains.items()
            )
            yield (
                f"Is {ours.case.label} better than node stealing and replacement on "
                f"{subject(group)}? Useful utilisation changes by {against}. "
                f"{_moved(index, group, ours)}{_with_stealing(index, _combined(group, ours))}"
            )


def _combined(group: ComparedGroup, ours: Run[MigrationCase]) -> Run[MigrationCase] | None:
    both = (run for run in group.others if run.case.react == ("foresee", "stealing"))
    return next((run for run in both if run.case.axes == ours.case.axes), None)


def _moved(index: Runs, group: ComparedGroup, ours: Run[MigrationCase]) -> str:
    """Return a text on the changes of failures and flows, or a text that no job was moved."""
    if not any(index.values(*ours, "migrations_count").values()):
        used = [index.values(*run, "useful_utilisation") for run in (ours, group.base)]
        same = used[0] == used[1]
        return "No job was moved" + (", so the result is that of the baseline." if same else ".")
    hits = [narrow(mean_of(index, run, "failures_hit"), number) for run in (ours, group.base)]
    flows = ", ".join(
        f"{words} flow {effect(ratio_of(index, ours, group.base, f'flow_{metric}_s'), change)}"
        for words, metric in (
            ("mean", "mean"),
            ("weighted mean", "weighted_mean"),
            ("largest", "max"),
        )
    )
    return (
        f"Failures that hit a job: {hits[0]} (baseline: {hits[1]}). Compared with the baseline: "
        f"{flows}."
    )


def _with_stealing(index: Runs, both: Run[MigrationCase] | None) -> str:
    """Return a sentence if no node was stolen in the run ``both``, otherwise an empty text."""
    if both is None or any(index.values(*both, "steals").values()):
        return ""
    hit, free = (index.values(*both, name) for name in ("failures_hit", "free_node_at_hit"))
    why = ", because a node was free at every failure" if hit == free else ""
    return f" In combination with stealing, no node was stolen{why}."
