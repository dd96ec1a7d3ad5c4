# SPDX-License-Identifier: Apache-2.0
"""The tables of the node-stealing paper, from a campaign's results.

Its own were printed by its program: beside them is what we have as the program does it, and as the
paper says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from rebat.core.units import format_duration
from rebat.metrics.backlog import NOT_COMPARABLE, WHY_NOT, are_comparable
from rebat.papers.common.parts import Table, number, percent, seeds_text, spread
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.evidence import PROGRAM, Evidence
from rebat.results.intervals import Interval
from rebat.results.scenario import Scenario, exact

HEADINGS = {PROGRAM: "as the program", "": "as the paper says"}


def tables(evidence: Evidence) -> Iterator[Table]:
    """Tables 4, 5, 7, 8 and 9: printed and ours, and every scenario of a sweep."""
    for workload, scenario, family in evidence.main_scenarios():
        yield _utilisation(evidence, workload, scenario)
        yield _idle(evidence, workload, scenario)
        yield _steals(evidence, workload, scenario)
        if len(family) > 1:
            yield _sweep(evidence, workload, family)


Ours = Callable[[str], str]
"""What we have for a policy, its semantics in its name."""


def _beside(
    evidence: Evidence, workload: str, scenario: Scenario, printed: Mapping[str, str],
    columns: Mapping[str, Ours],
) -> tuple[list[str], list[list[str]]]:  # fmt: skip
    """Columns and rows: what is printed, then each of ours in the semantics that were run."""
    semantics = evidence.semantics(workload, scenario)
    heads = ["policy", *(["printed"] if printed else [])]
    heads += [f"{what}{HEADINGS[one]}" for what in columns for one in reversed(semantics)]
    rows = []
    for policy in evidence.policies(workload, scenario):
        row = [policy, *([printed.get(policy, "")] if printed else [])]
        row += [ours(one + policy) for ours in columns.values() for one in reversed(semantics)]
        rows.append(row)
    return heads, rows


def seeds_of(evidence: Evidence, workload: str, policies: Iterable[str], *some: Scenario) -> str:
    """On how many seeds the numbers of these policies rest."""
    return seeds_text(
        len(evidence.values(workload, policy, scenario, "useful_utilisation"))
        for policy, scenario in product(policies, some)
    )


def seeds_note(
    evidence: Evidence, workload: str, scenario: Scenario, shown: str = "in brackets"
) -> str:
    """On how many seeds the numbers of a scenario rest, as a note."""
    names = [
        one + policy
        for one in evidence.semantics(workload, scenario)
        for policy in evidence.policies(workload, scenario)
    ]
    count = seeds_of(evidence, workload, names, scenario)
    return f"means over {count}, 95 % intervals {shown}"


def _utilisation(evidence: Evidence, workload: str, scenario: Scenario) -> Table:
    printed = published.printed(published.UTILISATION, workload, scenario)

    def useful(policy: str) -> str:
        found = evidence.spread(workload, policy, scenario, "useful_utilisation")
        return spread(found, "{:.2%}".format)

    def share(policy: str) -> str:
        return percent(_of_all(evidence, workload, policy, scenario))

    texts = {policy: percent(value) for policy, value in printed.items()}
    parts = {"": useful, "of all node time, ": share}
    columns, rows = _beside(evidence, workload, scenario, texts, parts)
    title = f"{workload}: useful utilisation ({scenario.label})"
    note = f"share of node time that was up; {seeds_note(evidence, workload, scenario)}"
    if scenario.accounting == "program":
        note += "; checkpoints are counted as the program does, a closing one as useful time"
    return Table("Tables 4, 7, 8", title, columns, rows, note)


def _of_all(evidence: Evidence, workload: str, policy: str, scenario: Scenario) -> float | None:
    """Useful node time as a share of all, downtime included."""
    useful = evidence.mean(workload, policy, scenario, "platform_useful")
    total = evidence.mean(workload, policy, scenario, "platform_total")
    return None if useful is None or not total else useful / total


def _idle(evidence: Evidence, workload: str, scenario: Scenario) -> Table:
    printed = published.printed(published.IDLE_SHARE, workload, scenario)

    def idle(policy: str) -> Interval | None:
        return evidence.spread(workload, policy, scenario, "platform_idle_share")

    def as_printed(policy: str) -> str:
        found = idle(policy)
        return "" if found is None else percent(published.idle_as_program(found.mean))

    texts = {policy: percent(value) for policy, value in printed.items()}
    parts: dict[str, Ours] = {
        "counted as printed, ": as_printed,
        "": lambda policy: spread(idle(policy), "{:.2%}".format),
    }
    columns, rows = _beside(evidence, workload, scenario, texts, parts)
    title = f"{workload}: time with at least one idle node ({scenario.label})"
    note = (
        "share of the time; nodes that are held for a failed job are not idle; the printed values "
        "divide by 30 days what is measured over 20; " + seeds_note(evidence, workload, scenario)
    )
    return Table("Tables 5a, 8", title, columns, rows, note)


def _steals(evidence: Evidence, workload: str, scenario: Scenario) -> Table:
    printed = {
        policy: f"{steals:.1f} + {empty:.1f}"
        for policy, (steals, empty) in published.printed(
            published.STEALS, workload, scenario
        ).items()
    }

    def counts(policy: str) -> str:
        steals = evidence.spread(workload, policy, scenario, "steals")
        hits = evidence.mean(workload, policy, scenario, "failures_hit")
        if steals is None or hits is None:
            return ""
        return f"{spread(steals, '{:.1f}'.format)} + {hits - steals.mean:.1f}"

    columns, rows = _beside(evidence, workload, scenario, printed, {"": counts})
    title = f"{workload}: how failures under a job were answered ({scenario.label})"
    note = "steals decided + others (a free node, or no victim), in the window; " + seeds_note(
        evidence, workload, scenario
    )
    return Table("Tables 5b, 9", title, columns, rows, note)


def _sweep(evidence: Evidence, workload: str, family: Sequence[Scenario]) -> Table:
    """Every MTBF and downtime that was run, of which the other tables show one."""
    rows = []
    note = seeds = seeds_note(evidence, workload, family[0])
    main = evidence.main_scenario(workload, family)
    for scenario in family:
        for one in evidence.semantics(workload, scenario):
            for policy in evidence.policies(workload, scenario):
                about = (workload, one + policy, scenario)
                flow = evidence.mean(*about, "flow_weighted_mean_s", "all")
                if flow is None:
                    continue
                useful = spread(evidence.spread(*about, "useful_utilisation"), "{:.2%}".format)
                usual = (workload, one + policy, main)
                means = (partial(evidence.mean, *runs) for runs in (about, usual))
                if are_comparable(*means) is False:
                    useful = f"{useful} {NOT_COMPARABLE}"
                    note = f"{seeds}; {WHY_NOT} (with {main.label})"
                rows.append(
                    [
                        _spans(scenario), one + policy, useful,
                        percent(evidence.mean(*about, "platform_idle_share")),
                        number(evidence.mean(*about, "steals")), format_duration(flow),
                    ]
                )  # fmt: skip
    columns = [
        "MTBF, downtime", "policy", "utilisation", "time with an idle node", "steals",
        "weighted mean flow",
    ]  # fmt: skip
    title = f"{workload}: every MTBF and downtime ({family[0].family_label})"
    return Table("cf. Figures 9, 10, 11", title, columns, rows, note)


def _spans(scenario: Scenario) -> str:
    spans = (scenario.mtbf_s, scenario.downtime_s)
    return ", ".join("" if span is None else exact(span) for span in spans)
