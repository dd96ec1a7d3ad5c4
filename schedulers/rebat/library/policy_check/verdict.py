# SPDX-License-Identifier: Apache-2.0
"""Check a policy: simulate (*play*) cases until each check has failed or passed all cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.library.policy_check.cases import (
    CheckCase,
    case_record,
    of_parts,
    parts_of,
    random_case,
    stream_case,
)
from rebat.library.policy_check.playing import load_policy
from rebat.library.policy_check.processes import CRASHES, HANGS, Players
from rebat.library.policy_check.rules import RULES, PolicyRule
from rebat.library.policy_check.shrink import smallest

MOST, FEW = 300, 10
"""Maximum number of runs for shrinking a case. `FEW` applies if each run needs a new process."""


class FailingCase(msgspec.Struct, frozen=True):
    """A case that fails a check, reduced to the parts that are needed for the failure."""

    seed: int
    problem: str
    case: CheckCase


class CheckedRule(msgspec.Struct):
    """The result of a check."""

    name: str
    meaning: str
    cases: int = 0
    """Number of cases that were tested."""
    failing: FailingCase | None = None

    @property
    def state(self) -> str:
        """'passed', 'failed', or 'not tested' if no case could be tested."""
        if self.failing:
            return "failed"
        return "passed" if self.cases else "not tested"


class PolicyCheck(msgspec.Struct):
    """The result of the checks of a policy."""

    policy: str
    checks: list[CheckedRule]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.state == "passed" for check in self.checks)

    @property
    def verdict(self) -> str:
        """The result as one line."""
        names: dict[str, list[str]] = {}
        for check in self.checks:
            names.setdefault(check.state, []).append(check.name)
        text = f"{self.policy}: {len(names.get('passed', []))} of {len(self.checks)} checks passed"
        for state in ("failed", "not tested"):
            if state in names:
                text += f"; {state}: {', '.join(names[state])}"
        return text

    def __str__(self) -> str:
        rows = [
            f"  {c.name}: {c.failing.problem} (seed {c.failing.seed})"
            for c in self.checks
            if c.failing
        ]
        return "\n".join([self.verdict, *rows])


OnCase = Callable[[int], None]


def checked_policy(
    policy: str, seeds: int, skip: Collection[str], timeout_s: float, on_progress: OnCase | None
) -> PolicyCheck:
    """Test a policy with random cases, see `rebat.check_policy`."""
    names = [rule.name for rule in RULES]
    for name in skip:
        if name not in names:
            raise unknown_name("check", name, names)
    rules = [rule for rule in RULES if rule.name not in skip]
    if not rules:
        raise InputError("skips all checks", "skip", "at least one check that is not skipped")
    load_policy(policy, 4).make()  # raises the errors of the file
    with Players(policy, timeout_s) as players:
        checker = _Checker(players, rules)
        for seed in range(seeds):
            for case in (random_case(seed), stream_case(seed)):
                checker.test(seed, case)
            if on_progress:
                on_progress(seed + 1)
    return PolicyCheck(policy, checker.rows)


class _Checker:
    """The results of the checks, and the checks that have not failed so far."""

    def __init__(self, players: Players, rules: list[PolicyRule]) -> None:
        self._players = players
        self._open = dict(zip((rule.name for rule in rules), rules, strict=True))
        self.rows = [CheckedRule(rule.name, rule.meaning) for rule in rules]
        self._stops = False
        """Whether the checks stop early, because the policy hangs or ends its process."""

    def test(self, seed: int, case: CheckCase) -> None:
        """Test a case with each check that has not failed. If a check fails, shrink the case."""
        for name, problem in self._problems(case):
            row = next(row for row in self.rows if row.name == name)
            row.cases += 1
            if problem:
                rule = self._open.pop(name)
                row.failing = self._shrunk(rule, seed, case, problem)

    def _problems(self, case: CheckCase) -> Iterator[tuple[str, str]]:
        """Yield name and problem for each applicable check that has not failed so far."""
        if self._stops or not self._open:
            return
        record = case_record(case)
        usual = self._players.usual.play(record)
        self._stops = usual.problem.startswith((HANGS, CRASHES))
        for rule in [*self._open.values()]:
            if rule.covers(record, usual):
                yield rule.name, rule.test(self._players, record, usual)

    def _shrunk(self, rule: PolicyRule, seed: int, case: CheckCase, problem: str) -> FailingCase:
        """Return the smallest case that fails the same check."""
        if HANGS in problem:
            return FailingCase(seed, problem, case)
        most = FEW if CRASHES in problem else MOST
        last = [problem]  # a policy that reads the clock may not fail again in the same way

        def fails(parts: list[Any]) -> bool:
            small = of_parts(case, parts)
            text = test_case(self._players, rule, small) if small.workload.jobs else ""
            if text:
                last.append(text)
            return bool(text)

        small = of_parts(case, smallest(parts_of(case), fails, most))
        return FailingCase(seed, last[-1], small)


def test_case(players: Players, rule: PolicyRule, case: CheckCase) -> str:
    """Test a case with a check, and return the problem.

    The problem is empty if the case passes the check, or if the check does not apply to the case.
    """
    record: dict[str, Any] = case_record(case)
    usual = players.usual.play(record)
    return rule.test(players, record, usual) if rule.covers(record, usual) else ""


def problem_in(policy: str, check: str, case: CheckCase, timeout_s: float = 30.0) -> str:
    """Test a policy with one check and one case. Return the problem, or an empty text."""
    rules = {rule.name: rule for rule in RULES}
    if check not in rules:
        raise unknown_name("check", check, rules)
    with Players(policy, timeout_s) as players:
        return test_case(players, rules[check], case)
