# SPDX-License-Identifier: Apache-2.0
"""The tables of the node-stealing paper, from a campaign's results.

The published values come from the authors' program. The tables compare them with rebat's values,
with the semantics of the program and with those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rebat.core.units import exact, format_duration
from rebat.papers.common.parts import Table, means_note, number, percent
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.runs import (
    HEADINGS,
    Family,
    main_of,
    main_settings,
    policies,
    seeds_of_all,
    semantics,
)
from rebat.results.intervals import spread
from rebat.results.measures.platform import NOT_COMPARABLE, WHY_NOT

Ours = Callable[[str], str]
"""Function of a policy (with the prefix of its version) that returns rebat's value as text."""


def tables(runs: RunIndex[str]) -> Iterator[Table]:
    """Yield Tables 4, 5, 7, 8 and 9 with published and rebat's values, and tables of sweeps."""
    for setting, family in main_settings(runs):
        yield _utilisation(runs, setting)
        yield _idle(runs, setting)
        yield _steals(runs, setting)
        if len(family) > 1:
            yield _sweep(runs, family)


def _compared(
    runs: RunIndex[str], setting: Setting, printed: Mapping[str, str], columns: Mapping[str, Ours]
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of a table: published values, and rebat's values in each version."""
    names = semantics(runs, setting)[::-1]
    heads = ["policy", *(["published"] if printed else [])]
    heads += [f"{heading}{HEADINGS[name]}" for heading in columns for name in names]
    rows = []
    for policy in policies(runs, setting):
        row = [policy, *([printed.get(policy, "")] if printed else [])]
        rows.append([*row, *(ours(name + policy) for ours in columns.values() for name in names)])
    return heads, rows


def _utilisation(runs: RunIndex[str], setting: Setting) -> Table:
    def useful(policy: str) -> str:
        estimate = runs.interval(setting, policy, "useful_utilisation")
        return spread(estimate, "{:.2%}".format)

    def of_all(policy: str) -> str:
        """Return the useful node time divided by all node time, including downtime."""
        useful = runs.mean(setting, policy, "platform_useful")
        total = runs.mean(setting, policy, "platform_total")
        return percent(None if useful is None or not total else useful / total)

    printed = published.printed(published.UTILISATION, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    columns, rows = _compared(runs, setting, texts, {"": useful, "of all node time, ": of_all})
    title = f"{setting.workload}: useful utilisation ({setting.scenario.label})"
    note = f"share of the node time that was up; {means_note(seeds_of_all(runs, setting), rows)}"
    if setting.scenario.accounting == "program":
        note += "; checkpoints are counted as in the program: a final checkpoint is useful time"
    return Table("Tables 4, 7, 8", title, columns, rows, note)


def _idle(runs: RunIndex[str], setting: Setting) -> Table:
    def idle(policy: str) -> str:
        estimate = runs.interval(setting, policy, "platform_idle_share")
        return spread(estimate, "{:.2%}".format)

    def as_printed(policy: str) -> str:
        idle_share = runs.mean(setting, policy, "platform_idle_share")
        return "" if idle_share is None else percent(published.idle_as_program(idle_share))

    printed = published.printed(published.IDLE_SHARE, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    parts = {"counted as published, ": as_printed, "": idle}
    columns, rows = _compared(runs, setting, texts, parts)
    title = f"{setting.workload}: time with at least one idle node ({setting.scenario.label})"
    note = (
        "share of time; nodes held for a failed job do not count as idle; published values are "
        "measured over 20 days but divided by 30 days; "
    ) + means_note(seeds_of_all(runs, setting), rows)
    return Table("Tables 5a, 8", title, columns, rows, note)


def _steals(runs: RunIndex[str], setting: Setting) -> Table:
    def counts(policy: str) -> str:
        steals = runs.interval(setting, policy, "steals")
        hits = runs.mean(setting, policy, "failures_hit")
        if steals is None or hits is None:
            return ""
        return f"{spread(steals, '{:.1f}'.format)} + {hits - steals.mean:.1f}"

    printed = published.printed(published.STEALS, setting)
    texts = {policy: f"{steals:.1f} + {empty:.1f}" for policy, (steals, empty) in printed.items()}
    columns, rows = _compared(runs, setting, texts, {"": counts})
    title = f"{setting.workload}: reactions to failures that hit a job ({setting.scenario.label})"
    note = (
        "number of decisions to steal + number of other reactions (a node was free, or there was "
        "no victim), in the window; "
    ) + means_note(seeds_of_all(runs, setting), rows)
    return Table("Tables 5b, 9", title, columns, rows, note)


def _sweep(runs: RunIndex[str], family: Family) -> Table:
    """Return a table with the results for all MTBFs and downtimes of a family."""
    rows, apart = [], ""
    main = main_of(runs, family)
    for setting in family:
        for policy in (a + p for a in semantics(runs, setting) for p in policies(runs, setting)):
            flow = runs.mean(setting, policy, "flow_weighted_mean_s")
            if flow is None:
                continue
            estimate = runs.interval(setting, policy, "useful_utilisation")
            useful = spread(estimate, "{:.2%}".format)
            if runs.comparable((setting, policy), (main, policy)) is False:
                useful = f"{useful} {NOT_COMPARABLE}"
                apart = f"; {WHY_NOT} (compared with {main.scenario.label})"
            spans = (setting.scenario.mtbf_s, setting.scenario.downtime_s)
            rows.append(
                [
                    ", ".join("" if span is None else exact(span) for span in spans),
                    policy,
                    useful,
                    percent(runs.mean(setting, policy, "platform_idle_share")),
                    number(runs.mean(setting, policy, "steals")),
                    format_duration(flow),
                ]
            )
    columns = [
        "MTBF, downtime",
        "policy",
        "useful utilisation",
        "time with an idle node",
        "steals",
        "weighted mean flow",
    ]
    title = f"{main.workload}: all MTBFs and downtimes ({main.scenario.family_label})"
    note = means_note(seeds_of_all(runs, family[0]), rows)
    return Table("cf. Figures 9, 10, 11", title, columns, rows, note + apart)
