# SPDX-License-Identifier: Apache-2.0
"""The Gymnasium environment: its checker, seeds, masks, rewards and processes."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

if not all(map(find_spec, ("gymnasium", "greenlet"))):
    pytest.skip("needs the extra rebat[rl]", allow_module_level=True)

import gymnasium
from gymnasium.utils import env_checker as checker

from rebat.api.workloads import load_workload
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.units import US_PER_S
from rebat.env import BatchScheduling
from rebat.env.agents import RULES
from rebat.env.observation import LAYOUTS
from rebat.env.registration import ID
from rebat.env.rewards import REWARDS, US_PER_H, Totals
from rebat.results.measures.jobs import job_rows
from tests.support.random_episodes import RandomAgent, episodes
from tests.support.scenarios import machine

DECISIONS = sorted(LAYOUTS)
NO_JOBS = Workload("none", 4, (), {})
SMALL = {"mtbf": "15min", "downtime": "20min"}


def played(env: BatchScheduling, agent, **reset):
    """Run an episode; return its observations, rewards, masks and last info."""
    observation, info = env.reset(**reset)
    observations, rewards, masks, over = [observation], [], [info["action_mask"]], False
    draw = info["draw"]
    while not over:
        observation, reward, over, truncated, info = env.step(agent(observation, masks[-1]))
        assert not truncated
        observations.append(observation)
        rewards.append(reward)
        masks.append(info["action_mask"])
    return observations, rewards, masks, info | {"draw": draw}


@pytest.mark.parametrize("decision", DECISIONS)
def test_gymnasiums_checker_finds_nothing(decision, recwarn) -> None:
    env = gymnasium.make(ID, decision=decision, **SMALL)
    checker.check_env(env.unwrapped, skip_render_check=True)
    assert [str(w.message) for w in recwarn if "gymnasium" in str(w.filename)] == []


@pytest.mark.parametrize("decision", DECISIONS)
def test_the_same_seed_is_the_same_episode(decision) -> None:
    env = BatchScheduling(decision, window="2h", **SMALL)
    first = played(env, RandomAgent(1), seed=5)
    again = played(env, RandomAgent(1), seed=5)
    assert checker.data_equivalence(first, again)
    other = played(env, RandomAgent(1), seed=6)
    assert other[3]["draw"] != first[3]["draw"]
    assert not checker.data_equivalence(first, other)


def test_jobs_keep_the_checkpoints_of_their_workload_by_default() -> None:
    small = load_workload("synthetic-small")
    env = BatchScheduling(workload=small, **SMALL)
    workload, _ = env._episodes.stage(env._episodes.chosen({"workload": 0, "first": 0, "seed": 1}))
    profiles = {name: small.profiles[name] for name in workload.profiles}
    assert workload.profiles == profiles
    with pytest.raises(InputError, match="already has checkpoints"):
        BatchScheduling(workload=small, checkpoint="young-daly", **SMALL)


def test_an_episode_can_be_named_and_repeated() -> None:
    env = BatchScheduling("queue", window="2h", **SMALL)
    played(env, RandomAgent(0), seed=1)
    first = played(env, RandomAgent(0))  # the second episode of this seed
    env = BatchScheduling("queue", window="2h", **SMALL)
    assert checker.data_equivalence(first, played(env, RandomAgent(0), options=first[3]["draw"]))


@pytest.mark.parametrize("draw", [{"workload": 1, "first": 0, "seed": 0}, {"first": 0}])
def test_an_episode_that_does_not_exist_is_an_error(draw) -> None:
    with pytest.raises(InputError, match="options"):
        BatchScheduling("queue").reset(options=draw)


@pytest.mark.parametrize("decision", DECISIONS)
def test_the_mask_marks_the_candidates_that_are_valid(decision) -> None:
    env = BatchScheduling(decision, candidates=5, **SMALL)
    observations, _, masks, _ = played(env, RandomAgent(2), seed=1)
    assert len(masks) >= 5
    for observation, mask in zip(observations[:-1], masks[:-1], strict=True):
        rows, context = LAYOUTS[decision].split(observation)
        assert rows.shape == (5, len(LAYOUTS[decision].candidate))
        assert context.shape == (len(LAYOUTS[decision].context),)
        assert mask.shape == (6,) and mask.dtype == np.int8
        assert rows[:, 1].tolist() == mask[:-1].tolist()
        assert mask[:-1].any()
        assert not rows[rows[:, 0] == 0].any()
    assert masks[-1].tolist() == [0, 0, 0, 0, 0, 1]
    assert not observations[-1].any()


def test_the_first_of_an_idle_machine_cannot_be_refused() -> None:
    env = BatchScheduling("queue", machine(4, (1, 5), (4, 5)))
    _, info = env.reset(seed=0)
    assert info["action_mask"][:2].tolist() == [1, 1]
    assert info["action_mask"][-1] == 0
    assert (info["action_mask"] == env.action_masks()).all()
    _, _, _, _, info = env.step(env.action_space.n - 1)  # "none": the first valid job starts
    assert info["invalid_action"]
    assert info["action_mask"][:2].tolist() == [1, 0]  # job 1 has started and ended
    assert info["time"] == pytest.approx(5)


def test_an_invalid_action_counts_as_none() -> None:
    env = BatchScheduling(**SMALL)
    _, info = env.reset(seed=3)
    assert info["action_mask"][-1] == 1
    (invalid, *_) = np.flatnonzero(info["action_mask"] == 0)
    draw, none = info["draw"], len(info["action_mask"]) - 1
    env.reset(options=draw)
    expected = env.step(none)
    for action in (invalid, -1, none + 1, 0.5, np.nan, "a", None, np.array([0]), np.float32(0)):
        env.reset(options=draw)
        step = env.step(action)
        assert step[4].pop("invalid_action"), action
        assert checker.data_equivalence(step, expected)
    for action in (np.int64(none), np.array(none)):
        env.reset(options=draw)
        assert checker.data_equivalence(env.step(action), expected)


def test_a_step_after_the_end_is_an_error() -> None:
    env = BatchScheduling("queue", machine(4, (1, 5)))
    with pytest.raises(InputError, match="reset"):
        env.step(0)
    played(env, RandomAgent(0), seed=0)
    with pytest.raises(InputError, match="reset"):
        env.step(0)


# ---- rewards


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("reward", REWARDS)
def test_the_rewards_add_up_to_the_measure_of_the_run(decision, reward) -> None:
    env = BatchScheduling(decision, reward=reward, **SMALL)
    observation, info = env.reset(seed=4)
    ledger, agent, total, over = env.ledger, RandomAgent(4), 0.0, False
    while not over:
        action = agent(observation, info["action_mask"])
        observation, value, over, _, info = env.step(action)
        assert value <= 0
        total += value
    rows, n_nodes = job_rows(ledger), 128
    columns = {name: rows.column(name).sum() for name in ("flow", "waiting_time")}
    held = rows.column("node_seconds").sum()
    until_s = info["time"]
    expected = {
        "flow": columns["flow"] / 3600,
        "weighted-flow": (rows.column("flow") * rows.column("size")).sum() / n_nodes / 3600,
        "waiting": columns["waiting_time"] / 3600,
        "lost": rows.column("wasted_node_seconds").sum() / n_nodes / 3600,
        "utilisation": (until_s - held / n_nodes) / 3600,
    }
    assert expected["lost"] > 0
    assert total == pytest.approx(-expected[reward], rel=1e-9)
    assert REWARDS[reward](Totals(**info["totals"])) == pytest.approx(total)


def test_a_reward_may_be_a_function() -> None:
    env = BatchScheduling("queue", machine(2, (1, 5), (1, 7)), reward=lambda t: t.alive_us)
    _, rewards, _, _ = played(env, RULES["first-fit"], seed=0)
    assert sum(rewards) == 12 * US_PER_S
    assert REWARDS["flow"](type("T", (), {"alive_us": US_PER_H})) == -1


# ---- processes and errors


def test_several_processes_play_the_same_episodes_as_one() -> None:
    def make():
        return BatchScheduling("queue", window="1h", **SMALL)

    vector = gymnasium.vector.AsyncVectorEnv([make, make])
    try:
        observations, info = vector.reset(seed=[7, 8])
        env = make()
        observation, alone = env.reset(seed=8)
        for _ in range(20):
            assert (observations[1] == observation).all()
            assert (info["action_mask"][1] == alone["action_mask"]).all()
            actions = info["action_mask"].argmax(axis=1)
            observations, rewards, over, _, info = vector.step(actions)
            observation, reward, alone_over, _, alone = env.step(int(actions[1]))
            assert rewards[1] == reward and over[1] == alone_over
    finally:
        vector.close()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"reward": "money"}, "unknown reward 'money'"),
        ({"decision": "none"}, "unknown decision 'none'"),
        ({"mtfb": "1h"}, "unknown option 'mtfb'; did you mean mtbf"),
        ({"operations": "drains.jsonl"}, "unknown option 'operations'"),
        ({"workload": "absent.json"}, "absent.json: cannot read"),
        ({"workload": []}, "workload: is empty"),
        ({"window": "soon"}, "soon"),
        ({"window": "0s"}, "window: is 0 s .expected at least 0.000001 s"),
        ({"window": 1e-7}, "window: is 1e-07 s"),
        ({"workload": NO_JOBS}, "workload: none has no jobs"),
        ({"candidates": 0}, "candidates: is 0 .expected at least 3"),
        ({"candidates": -1}, "candidates: is -1"),
        ({"candidates": 1.5}, "candidates: is 1.5 .expected a whole number of at least 3"),
        ({"downtime": -1}, "-1 is not a duration"),
    ],
)
def test_a_wrong_setting_is_an_error(settings, error) -> None:
    with pytest.raises(InputError, match=error):
        BatchScheduling(**settings)


def test_a_scenario_without_decisions_is_an_error() -> None:
    env = BatchScheduling("victim", machine(4, (1, 5)))
    with pytest.raises(InputError, match="has no decision for the agent"):
        env.reset(seed=0)


@pytest.mark.parametrize("decision", DECISIONS)
def test_random_episodes_break_no_invariant(decision) -> None:
    assert episodes(decision, 3, seed=1) >= 20


def test_a_reset_ends_the_running_simulation() -> None:
    env = BatchScheduling("queue", **SMALL)
    env.reset(seed=0)
    running = env._episode
    env.step(int(env.action_masks().argmax()))
    assert not running._greenlet.dead
    env.reset()
    assert running._greenlet.dead and env._episode is not running
    env.close()
    env.close()


def test_an_error_of_the_simulation_reaches_the_step_and_ends_the_episode(monkeypatch) -> None:
    env = BatchScheduling("queue", **SMALL)
    env.reset(seed=0)
    monkeypatch.setattr(env._episode.session, "_plan", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        for _ in range(100):
            env.step(int(env.action_masks().argmax()))
    with pytest.raises(InputError, match="reset"):
        env.step(0)
