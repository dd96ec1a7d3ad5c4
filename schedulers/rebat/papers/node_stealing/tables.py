# SPDX-License-Identifier: Apache-2.0
"""The tables of the node-stealing paper, from a campaign's results.

Its own were printed by its program: beside them is what we have as the program does it, and as the
paper says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rebat.core.units import exact, format_duration
from rebat.papers.common.parts import Table, number, percent
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.runs import (
    HEADINGS,
    Family,
    main_of,
    main_settings,
    policies,
    seeds_note,
    semantics,
)
from rebat.results.intervals import spread
from rebat.results.measures.backlog import NOT_COMPARABLE, WHY_NOT

Ours = Callable[[str], str]
"""What we have for a policy, its semantics in its name."""


def tables(runs: RunIndex[str]) -> Iterator[Table]:
    """Tables 4, 5, 7, 8 and 9: printed and ours, and every scenario of a sweep."""
    for setting, family in main_settings(runs):
        yield _utilisation(runs, setting)
        yield _idle(runs, setting)
        yield _steals(runs, setting)
        if len(family) > 1:
            yield _sweep(runs, family)


def _beside(
    runs: RunIndex[str], setting: Setting, printed: Mapping[str, str], columns: Mapping[str, Ours]
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: what is printed, then each of ours in the semantics that were run."""
    names = semantics(runs, setting)[::-1]
    heads = ["policy", *(["printed"] if printed else [])]
    heads += [f"{what}{HEADINGS[one]}" for what in columns for one in names]
    rows = []
    for policy in policies(runs, setting):
        row = [policy, *([printed.get(policy, "")] if printed else [])]
        rows.append([*row, *(ours(one + policy) for ours in columns.values() for one in names)])
    return heads, rows


def _utilisation(runs: RunIndex[str], setting: Setting) -> Table:
    def useful(policy: str) -> str:
        found = runs.interval(setting, policy, "useful_utilisation")
        return spread(found, "{:.2%}".format)

    def of_all(policy: str) -> str:
        """As a share of all node time, downtime included."""
        useful = runs.mean(setting, policy, "platform_useful")
        total = runs.mean(setting, policy, "platform_total")
        return percent(None if useful is None or not total else useful / total)

    printed = published.printed(published.UTILISATION, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    columns, rows = _beside(runs, setting, texts, {"": useful, "of all node time, ": of_all})
    title = f"{setting.workload}: useful utilisation ({setting.scenario.label})"
    note = f"share of node time that was up; {seeds_note(runs, setting)}"
    if setting.scenario.accounting == "program":
        note += "; checkpoints are counted as the program does, a closing one as useful time"
    return Table("Tables 4, 7, 8", title, columns, rows, note)


def _idle(runs: RunIndex[str], setting: Setting) -> Table:
    def idle(policy: str) -> str:
        found = runs.interval(setting, policy, "platform_idle_share")
        return spread(found, "{:.2%}".format)

    def as_printed(policy: str) -> str:
        found = runs.mean(setting, policy, "platform_idle_share")
        return "" if found is None else percent(published.idle_as_program(found))

    printed = published.printed(published.IDLE_SHARE, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    parts = {"counted as printed, ": as_printed, "": idle}
    columns, rows = _beside(runs, setting, texts, parts)
    title = f"{setting.workload}: time with at least one idle node ({setting.scenario.label})"
    note = (
        "share of the time; nodes that are held for a failed job are not idle; the printed values "
        "divide by 30 days what is measured over 20; " + seeds_note(runs, setting)
    )
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
    columns, rows = _beside(runs, setting, texts, {"": counts})
    title = f"{setting.workload}: how failures under a job were answered ({setting.scenario.label})"
    note = "steals decided + others (a free node, or no victim), in the window; "
    return Table("Tables 5b, 9", title, columns, rows, note + seeds_note(runs, setting))


def _sweep(runs: RunIndex[str], family: Family) -> Table:
    """Every MTBF and downtime that was run, of which the other tables show one."""
    rows = []
    note = seeds = seeds_note(runs, family[0])
    main = main_of(runs, family)
    for setting in family:
        for policy in (a + p for a in semantics(runs, setting) for p in policies(runs, setting)):
            flow = runs.mean(setting, policy, "flow_weighted_mean_s")
            if flow is None:
                continue
            found = runs.interval(setting, policy, "useful_utilisation")
            useful = spread(found, "{:.2%}".format)
            if runs.comparable((setting, policy), (main, policy)) is False:
                useful = f"{useful} {NOT_COMPARABLE}"
                note = f"{seeds}; {WHY_NOT} (with {main.scenario.label})"
            spans = (setting.scenario.mtbf_s, setting.scenario.downtime_s)
            rows.append(
                [
                    ", ".join("" if span is None else exact(span) for span in spans), policy,
                    useful, percent(runs.mean(setting, policy, "platform_idle_share")),
                    number(runs.mean(setting, policy, "steals")), format_duration(flow),
                ]
            )  # fmt: skip
    columns = [
        "MTBF, downtime", "policy", "utilisation", "time with an idle node", "steals",
        "weighted mean flow",
    ]  # fmt: skip
    title = f"{main.workload}: every MTBF and downtime ({main.scenario.family_label})"
    return Table("cf. Figures 9, 10, 11", title, columns, rows, note)
