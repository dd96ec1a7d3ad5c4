# SPDX-License-Identifier: Apache-2.0
"""What the paper says of migration, and what our runs say beyond it, by rules beside the verdict.

Numbers are means over seeds with 95 % intervals (Student's t), differences paired by seed. A
statement of an order holds by the sign of the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from rebat.papers.common.parts import Judgement
from rebat.papers.common.runs_index import combined, mean, minus, relative
from rebat.papers.migration.beyond import energy_runs, subject
from rebat.papers.migration.evidence import Evidence, Run, named
from rebat.papers.migration.groups import (
    compactions,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    sleeping,
    table_2,
)
from rebat.papers.migration.printed import FORMS
from rebat.papers.migration.published import (
    CORES,
    FIGURE_3,
    FIGURE_3_LOAD,
    MIXED,
    TABLE_1_S,
    TABLE_2,
    USUAL_MB,
)
from rebat.papers.replacement.claims import ABOVE, BELOW, Rule
from rebat.results.intervals import BySeed

SMALL = Rule("below 0.01", high=0.01)
"""An overhead is small below 1 % of the core time; so is a delay of the mean turnaround."""

AN_ORDER, ORDERS = Rule("above 10", low=10.0), Rule("above 100", low=100.0)
"""One order of magnitude, and several."""

LONGEST_S = TABLE_1_S[USUAL_MB][CORES]
"""What a checkpoint and restart of a job takes that fills a node, all included (Table 1)."""

_NOT_TRIED = "not in the paper"
_NAMED = "named as a use, not measured (sections 3.3.4 and 5)"


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """All statements that there is evidence for."""
    yield from _compaction(evidence)
    yield from _middle_loads(evidence)
    yield from _overhead(evidence)
    yield from _priorities(evidence)
    yield from _drains(evidence)
    yield from _eternal(evidence)
    yield from _energy(evidence)
    yield from _defragmentation(evidence)
    yield from _proactive(evidence)


def judged(
    about: str, claim: str, what: str, values: BySeed, rule: Rule, paper: str
) -> Iterator[Judgement]:
    """A statement, where there are values: their mean must lie within the bounds of the rule."""
    found = mean(values)
    if found is None:
        return
    half = found.half or 0.0
    reaches = any(abs(found.mean - bound) < half for bound in (rule.low, rule.high))
    unsure = " (the seeds do not decide)" if reaches else ""
    yield Judgement(about, claim, f"{what}, {rule.words}{unsure}", found.mean,
                    rule.holds(found.mean), paper, found.half)  # fmt: skip


def _change(evidence: Evidence, ours: Run, base: Run, metric: str) -> BySeed:
    return minus(evidence.of(ours, metric), evidence.of(base, metric))


def _percent(both: tuple[float, float]) -> str:
    return f"{100 * both[0]:.1f} to {100 * both[1]:.1f} %"


def _compaction(evidence: Evidence) -> Iterator[Judgement]:
    """Every form of it: the worst of them, seed by seed."""
    for load, (base, forms) in figure_4(evidence).items():
        changes = [_change(evidence, run, base, "node_states_mixed") for run in forms]
        yield from judged(
            f"load {load} %", "every form of compaction lowers the mixed share",
            f"mean of the least change of the {len(forms)} forms", combined(max, *changes), BELOW,
            f"{_percent(MIXED[load])} (section 4.4, Figure 4)",
        )  # fmt: skip
    if FIGURE_3_LOAD in figure_4(evidence):
        base, forms = figure_4(evidence)[FIGURE_3_LOAD]
        for state in ("full", "empty"):
            changes = [_change(evidence, run, base, f"node_states_{state}") for run in forms]
            yield from judged(
                f"load {FIGURE_3_LOAD} %", f"every form of compaction raises the {state} share",
                f"mean of the least change of the {len(forms)} forms", combined(min, *changes),
                ABOVE, f"{_percent(FIGURE_3[state])} (section 4.4, Figure 3)",
            )  # fmt: skip


def _middle_loads(evidence: Evidence) -> Iterator[Judgement]:
    """Workloads of one seed have nothing in common but their number, so this is not paired."""
    loads = figure_4(evidence)
    if len(loads) < len(MIXED):
        return
    for case in FORMS:
        falls = {}
        for load, (base, forms) in loads.items():
            for run in (run for run in forms if run.case == case):
                falls[load] = _change(evidence, base, run, "node_states_mixed")
        for end in (25, 90):
            if falls.keys() == loads.keys():
                middle = combined(fmean, falls[50], falls[75])
                yield from judged(
                    f"load {end} %", f"{case.label} gains more in the middle loads than here",
                    f"mean fall of the mixed share at 50 and 75 % less that at {end} %",
                    minus(middle, falls[end]), ABOVE, "section 4.4",
                )  # fmt: skip


def _overhead(evidence: Evidence) -> Iterator[Judgement]:
    for base, forms in compactions(evidence):
        for run in (run for run in forms if run.case in FORMS):
            yield from judged(
                base.setting.workload, f"{run.case.label}: checkpoints and restarts cost little",
                "mean share of core time", evidence.of(run, "cost_share"), SMALL,
                "overhead kept to a minimum (sections 1 and 4.1)",
            )  # fmt: skip


def _priorities(evidence: Evidence) -> Iterator[Judgement]:
    """At 75 % alone: at 90 % the paper's changes are small, and have no sign that is claimed."""
    load = 75
    if load in table_2(evidence):
        base, (with_, *_) = table_2(evidence)[load]
        for state, rule, words in (("full", ABOVE, "raises"), ("mixed", BELOW, "lowers")):
            yield from judged(
                f"two partitions, load {load} %",
                f"migration {words} the {state} share of the high partition", "mean change",
                _change(evidence, with_, base, f"partition_states_high_{state}"), rule,
                f"{_percent(TABLE_2[load]['high'][state])} (section 4.5, Table 2)",
            )  # fmt: skip


def _drains(evidence: Evidence) -> Iterator[Judgement]:
    for waiting, _ in drained(evidence):
        times = evidence.of(waiting, "empty_after_s")
        factors = {seed: value / LONGEST_S for seed, value in times.items()}
        for rule, words in ((AN_ORDER, "an order of magnitude"), (ORDERS, "orders of magnitude")):
            yield from judged(
                f"{waiting.setting.workload}, drains",
                f"migration empties a node {words} faster than waiting",
                f"mean time until a node is empty by waiting / {LONGEST_S:g} s (Table 1)", factors,
                rule, "up to several orders of magnitude (section 4.2)",
            )  # fmt: skip


def _eternal(evidence: Evidence) -> Iterator[Judgement]:
    for alone, (beside, *_) in eternal(evidence):
        about = beside.setting.workload
        yield from judged(
            about, "eternal jobs raise the useful utilisation", "mean change",
            _change(evidence, beside, alone, "useful_utilisation"), ABOVE,
            "the cluster increases its usage (section 3.3.2)",
        )  # fmt: skip
        times = (evidence.of(run, "turnaround_normal_mean_s") for run in (beside, alone))
        yield from judged(
            about, "they do not delay normal jobs", "mean relative change of the mean turnaround",
            relative(*times), SMALL, "they yield to other jobs (section 3.3.2)",
        )  # fmt: skip


def _energy(evidence: Evidence) -> Iterator[Judgement]:
    for group in sleeping(evidence):
        runs = energy_runs(group)
        if {"sleeping", "compaction and sleeping"} <= runs.keys():
            both = (
                evidence.of(runs[n], "energy_kwh") for n in ("compaction and sleeping", "sleeping")
            )
            yield from judged(
                group.base.setting.workload, "compaction saves energy where empty nodes sleep",
                "mean relative change of the energy from sleeping alone", relative(*both), BELOW,
                _NAMED,
            )  # fmt: skip


def _defragmentation(evidence: Evidence) -> Iterator[Judgement]:
    for base, others in defragmented(evidence):
        for metric, rule, words in (
            ("fragmentation_blocked_share", BELOW, "the head of the queue is blocked less"),
            ("useful_utilisation", ABOVE, "better use of the machine"),
        ):
            yield from judged(
                base.setting.workload, f"defragmentation: {words}", "mean change",
                _change(evidence, others[0], base, metric), rule, _NOT_TRIED,
            )  # fmt: skip


def _proactive(evidence: Evidence) -> Iterator[Judgement]:
    bases = {("foresee",): ("baseline", "stealing", "replacement"),
             ("foresee", "stealing"): ("stealing",)}  # fmt: skip
    for group in foreseen(evidence):
        runs = named([group.base, *group.others])
        for name, ours in runs.items():
            for base in bases.get(ours.case.react, ()):
                if base in runs:
                    yield from judged(
                        subject(group), f"{name} makes better use of the machine than {base}",
                        "mean change of the useful utilisation on the same failures",
                        _change(evidence, ours, runs[base], "useful_utilisation"), ABOVE,
                        _NOT_TRIED,
                    )  # fmt: skip
