# SPDX-License-Identifier: Apache-2.0
"""Rules of a site from a file: limits and queue orders, also by the users of jobs."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from rebat.check.cases import outages, workload
from rebat.cli.main import main
from rebat.core.errors import InputError, PolicyError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset, scheduler
from rebat.runs.single import RunResult, simulate
from tests.support.amount import few
from tests.support.both_ways import with_owners

HOUR_US = 3_600_000_000
RULES = """
HOUR = 3_600_000_000
USERS = {"a": 0, "b": 1}

def by_user(attempt):
    return USERS.get(attempt.traits.user, 2), attempt.n_nodes

def one_job(attempt, running, view):
    user = attempt.traits.user
    return not user or user not in [other.traits.user for other in running]

def any_job(attempt, running, view):
    import numpy as np
    return np.bool_(True)

def from_the_second_hour(attempt, running, view):
    return True if view.now_us >= HOUR else HOUR

def nothing(attempt, running, view):
    pass

def past(attempt, running, view):
    return 0

def broken(attempt, running, view):
    return view.nodes
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("site") / "mine.py"
    file.write_text(RULES)
    return file


def starts(result: RunResult) -> list[tuple[str, int, int, str]]:
    rows = ((a.attempt.id, a.start_us, a.end_us, a.cause) for a in result.ledger.attempts)
    return sorted(rows)


def run(spec: str, seed: int) -> RunResult:
    rng = random.Random(seed)
    n_nodes = 2 * rng.randint(1, 5)  # outages hit pairs of nodes
    made = with_owners(workload(rng, n_nodes), rng)
    return simulate(made, scheduler(spec), machine_events=outages(rng, made.n_nodes))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("own", "known"),
    [
        ("greedy:limits={0}:one_job", "greedy:limits=user:jobs=1"),
        ("baseline:planning=fifo,limits={0}:one_job", "baseline:planning=fifo,limits=user:jobs=1"),
        ("easy:limits={0}:one_job", "easy:limits=user:jobs=1"),
        ("baseline:limits={0}:one_job", "baseline:limits=user:jobs=1"),
        ("h121:placement=named,limits={0}:one_job", "h121:placement=named,limits=user:jobs=1"),
        ("baseline:limits={0}:one_job,depth=3", "baseline:limits=user:jobs=1,depth=3"),
        (
            "easy:limits={0}:one_job,reservations=n:0:begin=30:length=9",
            "easy:limits=user:jobs=1,reservations=n:0:begin=30:length=9",
        ),
        ("h313:limits={0}:any_job", "h313"),
    ],
)
def test_a_limit_from_a_file_decides_as_the_same_limit(own, known, rules: Path) -> None:
    for seed in range(few(40)):
        assert starts(run(own.format(rules), seed)) == starts(run(known, seed)), seed


def test_a_limit_states_when_it_is_asked_again(rules: Path) -> None:
    for react in ("", ",react=replacement"):
        result = run(f"easy:limits={rules}:from_the_second_hour{react}", 3)
        assert min(a.start_us for a in result.ledger.attempts if a.start_us >= 0) == HOUR_US


def tiered(rows: list[tuple[int, int, int, str, str]]) -> Workload:
    """Return jobs of 4 nodes: size, submission, run time, partition and user."""
    jobs = tuple(
        Job(str(n), size, to_us(at), to_us(200), f"d{run}", {"partition": where, "user": user})
        for n, (size, at, run, where, user) in enumerate(rows)
    )
    profiles = {f"d{run}": {"type": "delay", "delay": run} for _, _, run, _, _ in rows}
    return Workload("w", 4, jobs, profiles)


@pytest.mark.parametrize("limit", ["user:jobs=1", "{0}:one_job"])
def test_preemption_under_limits_comes_to_an_end(limit: str, rules: Path) -> None:
    """A job that starts in a plan is not preempted in the same instant, again and again."""
    rows = [
        (2, 0, 50, "lo", "b"),
        (4, 2, 40, "hi", "b"),
        (1, 2, 40, "lo", "b"),
        (3, 3, 40, "hi", "a"),
    ]
    spec = "baseline:planning=fifo,partitions=hi:all:2+lo:all:1,limits=" + limit.format(rules)
    down = [MachineEvent(to_us(at), up, NodeSet.of([3])) for at, up in ((1, False), (200, True))]
    result = simulate(tiered(rows), scheduler(spec), machine_events=down)
    ended = {row[0]: row[2] / 1e6 for row in starts(result)}
    assert ended == {"w0!0": 3, "w0!0#1": 104, "w0!1": 240, "w0!2": 144, "w0!3": 280}


def test_a_job_that_a_limit_bars_preempts_no_other(rules: Path) -> None:
    rows = [(3, 0, 100, "lo", "x"), (1, 1, 40, "hi", "c"), (2, 1, 40, "hi", "c")]
    spec = "baseline:planning=fifo,partitions=hi:all:2+lo:all:1,limits=user:jobs=1"
    result = simulate(tiered(rows), scheduler(spec))
    ends = {a.attempt.id: a.end_us / 1e6 for a in result.ledger.attempts}
    assert ends["w0!0"] == ends["w0!1"] == 41  # not at 1 s


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("nothing", r"^mine\.py:19: nothing\.plan at .*None \(expected True, False, or a later"),
        ("past", r"^mine\.py:22: past\.plan at .*returned 0 \(expected True, False, or a later"),
        ("broken", r"^mine\.py:26: broken\.plan at .*AttributeError"),
    ],
)
def test_limits_that_fail_are_told(rule: str, told: str, rules: Path) -> None:
    with pytest.raises(PolicyError, match=told):
        run(f"easy:limits={rules}:{rule}", 3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("limits={0}:absent", "has no 'absent'"),
        ("limits={0}:USERS", "is not a rule for limits"),
        ("limits={0}:one_job,react=preempt", "limits are not possible with react=preempt"),
        ("shares={0}:one_job", "shares"),
    ],
)
def test_limits_that_cannot_be(change: str, told: str, rules: Path) -> None:
    with pytest.raises(InputError, match=told):
        scheduler(f"easy:{change.format(rules)}")


@pytest.mark.sampled
@pytest.mark.parametrize("placement", ["any", "named"])
def test_an_order_by_user_is_the_same_in_all_ways(placement: str, rules: Path) -> None:
    """The rules compute the keys, or a policy is asked because of the reaction."""
    for seed in range(few(40)):
        spec = f"easy:order={rules}:by_user,placement={placement}"
        asked = f"{spec},react=exclude,hits=999"
        assert starts(run(spec, seed)) == starts(run(asked, seed)), seed


def test_the_code_of_a_limit_is_recorded(rules: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(rules.parent)
    spec = "easy:limits=mine.py:any_job"
    assert [source.name for source in preset(spec).sources] == ["any_job"]
    main(["run", "toy", "-p", spec, "--explain", "--out", str(tmp_path / "out")])
    main(["reproduce", str(tmp_path / "out"), "--yes"])
    without = msgspec.structs.replace(preset(spec).point.common, limits="")
    assert without == preset("easy").point.common
