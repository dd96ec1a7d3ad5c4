# SPDX-License-Identifier: Apache-2.0
"""Distances with all rules of a site, without each rule, and without rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rebat.core.jobs import Workload
from rebat.core.numbers import hundredths, share
from rebat.policies.site_rules import rules_in, without_each
from rebat.report.table import Table
from rebat.studies.calibration.design import POLICIES, CalibratedRun, Configuration
from rebat.studies.calibration.distance import Nearness
from rebat.workloads.machine import RULES_OF_SITE

ALL = ":rules=all"
RULED = tuple(f"{name}{ALL}" for name in ("baseline", "easy", "greedy"))
"""Policies with all rules that a site states, in addition to `design.POLICIES`."""

MEANINGS = {
    "order": "priorities and fair share",
    "limits": "limits of users and accounts",
    "reservations": "reservations of nodes",
}
"""The rules of a site, for a reader."""


def usual_policies(workload: Workload) -> tuple[str, ...]:
    """Return the policies that a calibration simulates if the user names none."""
    return (*POLICIES, *(RULED if rules_in(workload.machine) else ()))


def unstated(workload: Workload) -> list[str]:
    """Return a phrase that lists the rules that a workload does not state, if there are any."""
    stated = rules_in(workload.machine)
    missing = [MEANINGS[name] for name in RULES_OF_SITE if name not in stated]
    return [f"{', '.join(missing)} (the workload states none)"] if missing else []


class Worth(msgspec.Struct, frozen=True):
    """The distance of a policy with all rules, without one of them, or without all (``rule``).

    ``ratio`` is the distance divided by that with all rules, with its interval as text.
    """

    rule: str
    policy: str
    distance: str
    ratio: str = ""
    correlation: float = 0.0
    same_order: float = 0.0


def with_and_without(
    ranked: Sequence[tuple[CalibratedRun, Nearness]], workload: Workload
) -> dict[str, Configuration]:
    """Return configurations of the nearest policy with all rules: without each, and without all.

    The keys are the rules that are left out. The configuration with all rules has an empty key.
    """
    rows = [run.configuration for run, _ in ranked if run.configuration.policy.endswith(ALL)]
    rows = [row for row in rows if not row.spec]
    if not rows:
        return {}
    chosen, stated = rows[0], rules_in(workload.machine)
    base = chosen.policy.removesuffix(ALL)
    configurations = {"": chosen}
    for rule, others in without_each(stated).items() if len(stated) > 1 else ():
        policy = f"{base}:rules={others}"
        configurations[rule] = msgspec.structs.replace(chosen, policy=policy)
    configurations["all"] = msgspec.structs.replace(chosen, policy=base)
    return configurations


def table_of_rules(rows: Sequence[Worth]) -> Table:
    """Return the table of distances without rules."""
    columns = ["rules", "policy", "distance", "farther than with all rules", "rank correlation",
               "same order"]  # fmt: skip
    cells = [
        [
            _title(row.rule),
            row.policy,
            row.distance,
            row.ratio,
            hundredths(row.correlation),
            share(row.same_order),
        ]
        for row in rows
    ]
    return Table("with and without each rule", "What the rules explain", columns, cells)


def _title(rule: str) -> str:
    if not rule:
        return "all"
    return "none" if rule == "all" else f"without {MEANINGS[rule]}"


def sentences_on_rules(rows: Sequence[Worth]) -> Iterator[str]:
    """Yield a sentence on the distance with all stated rules, and without them."""
    by_rule: Mapping[str, Worth] = {row.rule: row for row in rows}
    if "" in by_rule and "all" in by_rule:
        with_all, without = by_rule[""], by_rule["all"]
        yield (
            f"With the rules of the site, the distance of {without.policy} is "
            f"{with_all.distance}; without them, it is {without.distance}."
        )
