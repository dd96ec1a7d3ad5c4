# SPDX-License-Identifier: Apache-2.0
"""Agents as policies: they decide like the rules that they copy, and can replace any policy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rebat
from rebat.api.workloads import load_workload
from rebat.check.check_policy import check_policy
from rebat.cli.main import main
from rebat.core.errors import InputError, PolicyError
from rebat.engine.engine import Engine, EngineOptions
from rebat.env.agents import RULES, LinearAgent
from rebat.env.decisions import RANKS, AgentPolicy
from rebat.env.observation import LAYOUTS
from rebat.models.checkpoint import add_young_daly
from rebat.policies.presets import scheduler
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.run_csv import rows_csv
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.runs.single import simulate
from rebat.runs.staging import staged
from rebat.wire.conversation import Conversation, run_remote, session_for
from tests.support.amount import few
from tests.support.random_episodes import RandomAgent
from tests.support.scenarios import Custom, check_run, failures, machine, run, workloads

relaxed = settings(max_examples=few(60), suppress_health_check=[HealthCheck.too_slow])

PRESETS = {
    "fewest-nodes": "sfsj",
    "latest-release": "baseline:react=stealing,victim=latest-release",
    "least-lost-work": "baseline:react=stealing,victim=least-lost-work",
}
"""The scheduler of rebat that decides like each rule for agents."""


def stage():
    """Return the paper's small workload, with a failure of a node every 15 minutes on average."""
    options = rebat.failures(mtbf="15min", downtime="20min", seed=3)
    scenario = Scenario(failures=FailureScenario(options.failure_law(), 3))
    return staged(load_workload("synthetic-small"), scenario)


def csv(result) -> list[str]:
    """Return all rows about the jobs of a run."""
    return [*jobs_csv(result.jobs), *rows_csv(result.rows)]


@pytest.mark.parametrize("rule", PRESETS)
@relaxed
@given(workload=workloads(), events=failures(), checkpoints=st.booleans())
def test_an_agent_that_decides_as_a_rule_gives_the_bytes_of_its_scheduler(
    rule, workload, events, checkpoints
) -> None:
    if checkpoints:
        workload = add_young_daly(workload, n_nodes=10, mtbf_s=20, cost_s=1.0, recovery_s=2.0)
    policy = Custom(AgentPolicy(RULES[rule], candidates=len(RANKS)))
    assert csv(simulate(workload, policy, machine_events=events)) == csv(
        run(PRESETS[rule], workload, events)
    )


@pytest.mark.parametrize("candidates", [3, 16])
@pytest.mark.parametrize("rule", PRESETS)
def test_so_it_does_on_many_jobs(rule, candidates) -> None:
    stolen = stage().run(scheduler(PRESETS[rule]))
    assert len(stolen.ledger.steals) >= 5
    again = stage().run(Custom(AgentPolicy(RULES[rule], candidates=candidates)))
    assert csv(again) == csv(stolen)


def test_the_rules_differ_on_these_jobs() -> None:
    results = [csv(stage().run(Custom(AgentPolicy(RULES[rule])))) for rule in PRESETS]
    assert results[0] != results[1] != results[2] != results[0]


@relaxed
@given(workload=workloads(), events=failures())
def test_an_agent_that_starts_the_first_that_fits_is_greedy(workload, events) -> None:
    policy = Custom(AgentPolicy(RULES["first-fit"], decision="queue", candidates=40))
    assert csv(simulate(workload, policy, machine_events=events)) == csv(
        run("greedy", workload, events)
    )


@pytest.mark.parametrize("decision", LAYOUTS)
@relaxed
@given(workload=workloads(), events=failures(), seed=st.integers(0, 9))
def test_a_random_agent_is_safe_and_observes_numbers_from_0_to_1(
    decision, workload, events, seed
) -> None:
    agent = RandomAgent(seed)

    def looking(observation, mask):
        assert observation.dtype == np.float32
        assert (observation >= 0).all() and (observation <= 1).all()
        rows, _ = LAYOUTS[decision].split(observation)
        assert rows[:, 1].tolist() == mask[:-1].tolist()
        return agent(observation, mask)

    policy = AgentPolicy(looking, decision=decision, candidates=4)
    result = simulate(workload, Custom(policy), machine_events=events)
    check_run(result)
    assert len(result.rows) == len(workload.jobs)


def test_an_action_that_the_mask_excludes_is_an_error_with_its_place(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "from rebat.env import AgentPolicy\n\n\n"
        "class Mine(AgentPolicy):\n"
        "    decision = 'queue'\n\n"
        "    def agent(self, observation, mask):\n"
        "        return 99\n"
    )
    with pytest.raises(PolicyError, match=r"returned action 99 \(expected one of: 0\)"):
        simulate(machine(4, (1, 5)), scheduler(f"{tmp_path}/mine.py:Mine"))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"decision": "starts"}, "unknown decision 'starts'"),
        ({"base": "easy"}, "'easy' steals no nodes"),
        ({"decision": "queue", "base": "batsched-fcfs"}, "'batsched-fcfs' has another planning"),
        ({"candidates": 2}, "is 2 .expected at least 3"),
        ({"base": "sfsj:detect=5"}, "has other semantics"),
        ({"base": "absent"}, "unknown policy 'absent'"),
    ],
)
def test_a_setting_that_is_not_possible_is_an_error(settings, error) -> None:
    with pytest.raises(InputError, match=error):
        AgentPolicy(RULES["first-fit"], **settings)


# ---- the linear agent


def linear(seed: int = 0, decision: str = "victim") -> LinearAgent:
    layout = LAYOUTS[decision]
    n = len(layout.candidate) + len(layout.context) + 1
    return LinearAgent.of_weights(decision, np.random.default_rng(seed).normal(size=n))


def test_an_agent_survives_its_file(tmp_path) -> None:
    agent = linear()
    agent.save(tmp_path / "a.npz")
    again = LinearAgent.load(tmp_path / "a.npz")
    assert again.decision == "victim"
    assert (again.weights == agent.weights).all()


def test_it_chooses_the_valid_action_with_the_largest_score() -> None:
    layout = LAYOUTS["victim"]
    weights = np.zeros(len(layout.candidate) + len(layout.context) + 1)
    weights[list(layout.candidate).index("size")] = 1.0
    weights[-1] = 0.25  # the score of the action "none"
    agent = LinearAgent.of_weights("victim", weights)
    rows = np.zeros((4, len(layout.candidate)))
    rows[:3, 2] = [0.3, 0.5, 0.9]
    observation = layout.flat(rows.tolist(), [0.0] * len(layout.context), 4)
    assert agent(observation, np.array([1, 1, 0, 0, 1], dtype=np.int8)) == 1
    assert agent(observation, np.array([0, 0, 0, 0, 1], dtype=np.int8)) == 4
    rows[:3, 2] = [0.1, 0.2, 0.9]
    observation = layout.flat(rows.tolist(), [0.0] * len(layout.context), 4)
    assert agent(observation, np.array([1, 1, 0, 0, 1], dtype=np.int8)) == 4


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b"no"), "cannot be read"),
        (lambda path: np.savez(path, weights=np.zeros(3)), "cannot be read"),
        (
            lambda path: np.savez(path, decision="victim", features=["a"], weights=np.zeros(3)),
            "was trained with input features that differ",
        ),
        (
            lambda path: np.savez(
                path, decision=np.array([{}], dtype=object), features=["a"], weights=np.zeros(3)
            ),
            "cannot be read",
        ),
    ],
    ids=["absent", "text", "incomplete", "other features", "objects"],
)
def test_a_file_that_is_no_agent_is_an_error(change, error, tmp_path) -> None:
    path = tmp_path / "a.npz"
    linear().save(path)
    change(path)
    with pytest.raises(InputError, match=rf"a\.npz.*{error}"):
        LinearAgent.load(path)


def test_a_file_with_another_hash_is_an_error(tmp_path) -> None:
    path = tmp_path / "a.npz"
    linear().save(path)
    with pytest.raises(InputError, match="has changed"):
        LinearAgent.load(path, sha256="0" * 64)


# ---- agents in all commands that run a policy

MINE = """\
from pathlib import Path

from rebat.env import AgentPolicy, LinearAgent


class Mine(AgentPolicy):
    decision = "{decision}"
    agent = LinearAgent.load(Path(__file__).with_name("a.npz"))
"""


@pytest.fixture(params=["victim", "queue"])
def mine(request, tmp_path) -> str:
    """A file with a policy that uses a linear agent."""
    linear(1, request.param).save(tmp_path / "a.npz")
    (tmp_path / "mine.py").write_text(MINE.format(decision=request.param))
    return f"{tmp_path}/mine.py:Mine"


def test_a_run_gives_the_same_bytes_again(mine, tmp_path) -> None:
    for out in ("one", "two"):
        assert main(
            ["run", "synthetic-small", "-p", mine, "--mtbf", "30min", "--out", str(tmp_path / out)]
        ) in (0, None)
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.csv"))
    assert len(names) >= 5
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_it_decides_the_same_over_the_wire(mine) -> None:
    embedded = stage().run(scheduler(mine))
    played = stage()
    engine = Engine(
        played.workload, n_nodes=played.n_nodes, events=played.events,
        options=EngineOptions(acknowledge_dynamic_jobs=True),
    )  # fmt: skip
    conversation = Conversation(lambda _, began: session_for(mine, {}, began, strict=True))
    run_remote(engine, conversation.answer)
    assert [*jobs_csv(engine.ended)] == [*jobs_csv(embedded.jobs)]


def test_it_runs_with_seeds(mine) -> None:
    result = rebat.run(
        "synthetic-small", ["sfsj", mine], failures=rebat.failures(mtbf="30min"), seeds=2, workers=1
    )
    assert set(result.metrics["policy"]) == {"sfsj", "Mine"}


@pytest.mark.slow
def test_the_policy_check_passes(mine: str) -> None:
    queue = scheduler(mine).kind.decision == "queue"
    skipped = ["starvation"] if queue else []  # random weights may let a job wait for all others
    checked = check_policy(mine, seeds=4, skip=skipped)
    assert checked.passed, str(checked)


WITHOUT = """\
import sys

sys.modules["{package}"] = None
from rebat.env import AgentPolicy

AgentPolicy(min)
from rebat.core.errors import InputError

try:
    from rebat.env import BatchScheduling
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("package", ["gymnasium", "greenlet"])
def test_without_the_extra_only_the_environment_is_missing(package) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package=package)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == (
        f"rebat.env: {package} is not installed; install it with: pip install 'rebat[rl]' "
        "(in a checkout of rebat: pip install '.[rl]')"
    )
