# SPDX-License-Identifier: Apache-2.0
"""Check a policy: simulate (*play*) cases until each check has failed or passed all cases.

The checks compare the *usual run* of a case with other runs. The usual run takes place in the
process ``Players.usual``, without additional messages. Each process has its own hash seed and
clock. If a check fails, a smaller case with the same failure is searched (delta debugging) and
written as inputs for ``rebat run`` and a test for pytest. The module also writes the files of a new
policy.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from rebat.check.cases import (
    CheckCase,
    busy_case,
    case_of,
    case_record,
    of_parts,
    parts_of,
    random_case,
    stream_case,
)
from rebat.check.player import PlayRequest
from rebat.check.playing import How, Played, load_policy
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import write_text
from rebat.models.failures.events import write_events
from rebat.models.operations import write_operations
from rebat.workloads.batsim_json import write_workload

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
            for case in (random_case(seed), busy_case(seed), stream_case(seed)):
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


EPOCH_NS = 1_700_000_000 * 10**9
YEARS_NS = 123_456_789 * 10**9
STEP_NS = 4_111_337 * 10**6
"""Step of `OTHER_CLOCK`. It exceeds an hour, and is no multiple of a second or a minute."""


class PlayerSettings(NamedTuple):
    """Hash seed and clock of a process."""

    hash_seed: int
    start_ns: int
    step_ns: int


USUAL = PlayerSettings(1, EPOCH_NS, 1000)
OTHER_HASH = PlayerSettings(2, EPOCH_NS, 1000)
OTHER_CLOCK = PlayerSettings(1, EPOCH_NS + YEARS_NS, STEP_NS)

HANGS = "the policy does not return"
"""Beginning of the problem text if a run exceeds the time limit."""

CRASHES = "the policy ends its process"
"""Beginning of the problem text if the policy's process ends during a run."""


class Player:
    """A process that plays cases. It is started for the first case, and again after a crash.

    Parameters
    ----------
    spec : str
        Name of the policy, as for `check_policy`.
    settings : PlayerSettings
    timeout_s : float
        Time limit for a run, in seconds.
    """

    def __init__(self, spec: str, settings: PlayerSettings, timeout_s: float) -> None:
        self._spec, self._settings, self._timeout_s = spec, settings, timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    def play(self, case: dict[str, Any], how: How = How.EMBEDDED) -> Played:
        """Play a case (see `cases.case_record`)."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError):  # the process ended
            process.stdin.write(msgspec.json.encode(PlayRequest(case, how)) + b"\n")
            process.stdin.flush()
        line = self._line(process)
        if line:
            return msgspec.json.decode(line, type=Played)
        ended = process.poll()
        self.close()
        if ended is None:
            return Played("safety", f"{HANGS} within {self._timeout_s:g} s")
        return Played("safety", f"{CRASHES} (exit status {ended})")

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a process that imports modules from the same folders as this process."""
        spec, hash_seed, *clock = self._spec, *self._settings
        module = "rebat.check.player"
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, spec, *map(str, clock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path},
        )

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """Return the next line that the process writes.

        The line is empty if the time limit is exceeded or the process has ended.
        """
        assert process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout_s):
                return b""
        line = process.stdout.readline()
        if not line:
            process.wait()
        return line

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
        self._process = None


class Players:
    """The three processes that test a policy. The context manager ends them on exit."""

    def __init__(self, spec: str, timeout_s: float) -> None:
        self.usual = Player(spec, USUAL, timeout_s)
        self.other_hash = Player(spec, OTHER_HASH, timeout_s)
        self.other_clock = Player(spec, OTHER_CLOCK, timeout_s)

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        for player in (self.usual, self.other_hash, self.other_clock):
            player.close()


Test = Callable[[Players, dict[str, Any], Played], str]
"""Function of the processes, a case and its usual run. It returns the problem or an empty text."""


class PolicyRule(NamedTuple):
    """A check: the rule, and a test of this rule on one case."""

    name: str
    meaning: str
    test: Test
    compares: bool = True
    """Whether the test compares two runs.

    In this case, the usual run must not have broken a rule.
    """
    needs_usual: bool = False
    """Whether only cases that have neither latency nor split messages are tested."""
    of_streams: bool = False
    """Whether only streams of jobs are tested."""

    def covers(self, case: dict[str, Any], usual: Played) -> bool:
        """Return whether the check applies to a case."""
        if self.compares and usual.rule:
            return False
        if self.needs_usual and (case["latency_s"] or case["split_instants"]):
            return False
        return bool(case["stream"] or not self.of_streams)


def _broken(name: str) -> Test:
    """Return a test that fails if the usual run breaks the rule of this name."""
    return lambda players, case, usual: usual.problem if usual.rule == name else ""


def _repeat(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.usual.play(case, How.TWICE), "a second run")


def _hash_seed(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.other_hash.play(case), "a process with another hash seed")


def _clock(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.other_clock.play(case), "a run at another time of day")


def _messages(players: Players, case: dict[str, Any], usual: Played) -> str:
    noisy = players.usual.play(case, How.NOISY)
    return _difference(usual, noisy, "a run with additional messages", schedule_only=True)


def _wire(players: Players, case: dict[str, Any], usual: Played) -> str:
    wire = players.usual.play(case, How.WIRE)
    return _difference(usual, wire, "a run over Batsim's protocol", schedule_only=True)


def _difference(usual: Played, other: Played, which: str, schedule_only: bool = False) -> str:
    """Describe how two runs differ. The text is empty if they are equal."""
    if other.rule == "repeat":
        return other.problem
    if other.rule:
        return f"only in {which}: {other.problem}"
    if other.schedule != usual.schedule:
        return f"{which} has another schedule"
    if not schedule_only and other.decisions != usual.decisions:
        return f"{which} has the same schedule, but other decisions"
    return ""


RULES = (
    PolicyRule(
        "safety",
        "no error, no refused proposal, at most one attempt per node, no attempt on a dead node",
        _broken("safety"),
        compares=False,
    ),
    PolicyRule("ends", "every job ends, exactly once", _broken("ends"), compares=False),
    PolicyRule(
        "starvation",
        "no job waits longer than the longest walltime x the number of jobs submitted up to it",
        _broken("starvation"),
        compares=False,
        of_streams=True,
    ),
    PolicyRule("view", "the policy does not change the view", _broken("view"), compares=False),
    PolicyRule("repeat", "a second run in the same process decides the same", _repeat),
    PolicyRule("hash-seed", "a process with another hash seed decides the same", _hash_seed),
    PolicyRule("clock", "at another time of day it decides the same", _clock),
    PolicyRule(
        "messages",
        "additional messages, and instants in parts, do not change the schedule",
        _messages,
        needs_usual=True,
    ),
    PolicyRule(
        "wire",
        "over Batsim's protocol, the schedule is the same",
        _wire,
        needs_usual=True,
    ),
)
"""The checks, in the order in which they are reported."""


T = TypeVar("T")


def smallest(parts: Sequence[T], fails: Callable[[list[T]], bool], most: int) -> list[T]:
    """Return a sublist that fails, but that would pass if any one element were removed.

    The algorithm is ddmin of Zeller and Hildebrandt (2002), without its tests of subsets: it
    removes chunks, at first halves, then smaller ones. It ends after ``most`` calls of ``fails``.

    >>> smallest(range(20), lambda some: {3, 7} <= {*some}, most=99)
    [3, 7]
    """
    present, chunk, calls = list(parts), max(1, len(parts) // 2), 0
    while calls < most:
        removed, place = False, 0
        while place < len(present) and calls < most:
            rest = present[:place] + present[place + chunk :]
            calls += 1
            if fails(rest):
                present, removed = rest, True
            else:
                place += chunk
        if chunk == 1 and not removed:
            break
        chunk = max(1, chunk // 2)
    return present


TEST = '''"""{problem}"""

import json

from rebat import recheck

CASE = json.loads(
    """
{case}
"""
)


def test_{name}():
    assert recheck({policy!r}, {check!r}, CASE) == ""
'''


def write_cases(checked: PolicyCheck, folder: Path) -> list[Path]:
    """Write the failing cases of a policy, and return the paths of the test files.

    For a failed check NAME, the files are NAME.json (the workload), NAME.events (failures),
    NAME-operations.json (drains and migrations, if there are any), and test_NAME.py.
    """
    paths = []
    for check in checked.checks:
        if check.failing:
            paths.append(_write(checked.policy, check.name, check.failing, folder))
    return paths


def _write(policy: str, check: str, failing: FailingCase, folder: Path) -> Path:
    case, record = failing.case, case_record(failing.case)
    write_workload(case_of(record).workload, folder / f"{check}.json")
    if case.events:
        write_events(case.events, folder / f"{check}.events", cores_per_node=case.cores_per_node)
    if case.operations:
        write_operations(record["operations"], folder / f"{check}-operations.json")
    text = TEST.format(
        problem=f"{check}: {failing.problem}".replace("\\", "/").replace('"', "'"),
        case=_json(record),
        name=check.replace("-", "_"),
        policy=policy,
        check=check,
    )
    path = folder / f"test_{check.replace('-', '_')}.py"
    write_text(path, text)
    return path


def _json(record: dict[str, Any]) -> str:
    """Return JSON with escaped backslashes, for the literal string of a test."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    return text.replace("\\", "\\\\")


def recheck(policy: str, check: str, case: dict[str, Any]) -> str:
    """Test a policy with one check and a stored case.

    Returns
    -------
    str
        The problem, or an empty text if the policy passes.

    Raises
    ------
    InputError
        If the policy cannot be loaded, the check is unknown, or the case is invalid.
    """
    return problem_in(policy, check, case_of(case))


POLICY = '''"""A policy for rebat: first come, first served, with backfilling (EASY)."""

from rebat.contract import Policy, Start


class {name}(Policy):
    """A waiting job may start early if this does not delay the first job of the queue."""

    def plan(self, view, changes):
        """Yield a proposal for each job that starts now. Times are in microseconds (_us)."""
        free, queue = view.n_free, list(view.queue.values())
        running = [(run.planned_end_us, run.n_nodes) for run in view.running.values()]
        while queue and queue[0].n_nodes <= free:
            attempt = queue.pop(0)
            free -= attempt.n_nodes
            running.append((view.now_us + attempt.walltime_us, attempt.n_nodes))
            yield Start(attempt.id)
        if queue:
            start_us, spare = reservation(queue[0].n_nodes, free, running)
            for attempt in queue[1:]:
                ends_before = view.now_us + attempt.walltime_us <= start_us
                if attempt.n_nodes <= (free if ends_before else min(free, spare)):
                    free -= attempt.n_nodes
                    spare -= 0 if ends_before else attempt.n_nodes
                    yield Start(attempt.id)


def reservation(n_nodes, free, running):
    """Return when this number of nodes is free at the latest, and how many more are free then."""
    for end_us, released in sorted(running):
        free += released
        if free >= n_nodes:
            return end_us, free - n_nodes
    return float("inf"), free  # nodes are down: no job can delay the first one
'''

NEW_TEST = '''"""Tests of {name}: it runs, and keeps the rules of every policy."""

from pathlib import Path

import rebat

POLICY = f"{{Path(__file__).with_name('{file}')}}:{name}"


def test_it_runs_all_jobs():
    result = rebat.run("toy", [POLICY], failures=rebat.failures(file="toy"))
    assert len(result.jobs) == 5


def test_it_keeps_the_rules_of_every_policy():
    checked = rebat.check_policy(POLICY, seeds=5)
    assert checked.passed, str(checked)
'''


def new_policy(name: str, folder: Path, force: bool = False) -> list[Path]:
    """Write NAME.py and test_NAME.py to a folder. Return both paths.

    Parameters
    ----------
    name : str
        Name of the file. The name of the class is the same with a capital letter.
    force : bool
        Whether to replace existing files.
    """
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise InputError(f"invalid name {name!r}", "NAME", "letters, digits and _, like my_policy")
    file = name.lower()
    texts = {folder / f"{file}.py": POLICY, folder / f"test_{file}.py": NEW_TEST}
    for path in texts:
        if path.exists() and not force:
            raise InputError("exists", str(path), "a new name, or --force to replace the file")
    for path, text in texts.items():
        write_text(path, text.format(name=class_name(name), file=f"{file}.py"))
    return [*texts]


def class_name(name: str) -> str:
    """Return the name of the class of a policy.

    >>> class_name("my_policy"), class_name("MyPolicy")
    ('MyPolicy', 'MyPolicy')
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
