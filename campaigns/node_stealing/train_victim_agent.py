# SPDX-License-Identifier: Apache-2.0
"""Train an agent that chooses victims, and compare it with rules on other months.

Usage::

    python campaigns/node_stealing/train_victim_agent.py train FOLDER [MINUTES]
    python campaigns/node_stealing/train_victim_agent.py evaluate FOLDER [MONTHS]
    python campaigns/node_stealing/train_victim_agent.py table FOLDER

``train`` writes FOLDER/victim-agent.npz and FOLDER/training.json. The cross-entropy method adjusts
the weights of a linear agent. In each generation, all agents play the same random windows of
generated months of Mira. The score of an agent is the mean change of the weighted flow (flow x
nodes, summed over jobs) relative to the rule fewest-nodes (V1).

``evaluate`` simulates entire months that differ from the months of the training, and writes
FOLDER/evaluation.json: paired changes of the flow, with 95 % intervals over the months. ``table``
writes these changes as a table to FOLDER/evaluation.md.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rebat.core.jobs import Workload
from rebat.core.numbers import change, ratio, spread, whole
from rebat.core.options import SessionOptions
from rebat.env.agents import RULES, LinearAgent
from rebat.env.decisions import Agent, AgentPolicy
from rebat.env.environment import BatchScheduling
from rebat.env.observation import VICTIM
from rebat.policies.presets import scheduler
from rebat.results.intervals import Interval, interval
from rebat.runs.scenario import ScenarioOptions
from rebat.runs.staging import prepared, staged
from rebat.workloads.generate import mira_like

MONTHS = ("june-2017", "march-2018")
TRAINING_SEEDS = (1, 2, 3)
FIRST_EVALUATION_SEED = 101

OPTIONS: dict[str, Any] = {"mtbf": 3600.0, "downtime": 3600.0, "checkpoint": "young-daly"}
WINDOW = "3d"
POPULATION, ELITE, EPISODES = 14, 4, 12
SPREAD = 1.0
"""Initial standard deviation of each weight."""

NAMES = list(VICTIM.candidate)
POLICIES = {
    "baseline": "baseline",
    "V1 fewest-nodes": "sfsj",
    "V2 latest-release": "baseline:react=stealing,victim=latest-release",
    "least-lost-work": "baseline:react=stealing,victim=least-lost-work",
}
MEASURES = ("mean flow", "maximum flow", "weighted mean flow", "lost work")


class Named:
    """A policy with a trained agent, for `Stage.run`."""

    name = "agent"
    session = SessionOptions()

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def make(self) -> AgentPolicy:
        """Return a new policy."""
        return AgentPolicy(self._agent)


def start_weights() -> np.ndarray:
    """Return weights with which the agent chooses V1's victim, if this choice is valid."""
    weights = np.zeros(len(VICTIM.candidate) + len(VICTIM.context) + 1)
    weights[NAMES.index("rank V1")] = -2.0
    weights[-1] = -3.0
    return weights


def weighted_flow(env: BatchScheduling, agent: Agent, draw: dict[str, int]) -> float:
    """Return the weighted flow of an episode in machine-hours."""
    observation, info = env.reset(options=draw)
    total, over = 0.0, False
    while not over:
        observation, reward, over, _, info = env.step(agent(observation, info["action_mask"]))
        total -= float(reward)
    return total


def train(folder: Path, minutes: float) -> None:
    """Train until the time is over, and write the agent and a row per generation."""
    months = [mira_like(month, seed) for month in MONTHS for seed in TRAINING_SEEDS]
    env = BatchScheduling("victim", months, window=WINDOW, reward="weighted-flow", **OPTIONS)
    rng = np.random.default_rng(0)
    mean, spread = start_weights(), np.full(len(start_weights()), SPREAD)
    rows: list[dict[str, float]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < 60 * minutes:
        draws = [env.reset(seed=None if rows or n else 0)[1]["draw"] for n in range(EPISODES)]
        base = np.array([weighted_flow(env, RULES["fewest-nodes"], draw) for draw in draws])
        drawn = mean + spread * rng.normal(size=(POPULATION - 1, len(mean)))
        population = np.vstack([mean, drawn])
        scores = [score(env, weights, draws, base) for weights in population]
        elite = population[np.argsort(scores)[:ELITE]]
        mean = 0.5 * mean + 0.5 * elite.mean(axis=0)
        spread = np.maximum(0.5 * spread + 0.5 * elite.std(axis=0), 0.1)
        rows.append(
            {"mean agent": scores[0], "best": min(scores), "median": float(np.median(scores))}
        )
        print(f"generation {len(rows)}: {rows[-1]}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        LinearAgent.of_weights("victim", mean).save(folder / "victim-agent.npz")
        record = {
            "months": MONTHS, "seeds": TRAINING_SEEDS, "window": WINDOW, "options": OPTIONS,
            "population": POPULATION, "elite": ELITE, "episodes": EPISODES,
            "minutes": round((time.monotonic() - begin) / 60, 1), "generations": rows,
        }  # fmt: skip
        (folder / "training.json").write_text(json.dumps(record, indent=1) + "\n")


def score(
    env: BatchScheduling, weights: np.ndarray, draws: list[dict[str, int]], base: np.ndarray
) -> float:
    """Return the mean change of the weighted flow of the episodes, relative to V1."""
    agent = LinearAgent.of_weights("victim", weights)
    flows = np.array([weighted_flow(env, agent, draw) for draw in draws])
    return float((flows / base - 1).mean())


def measured(month: Workload, seed: int, policy: Any) -> dict[str, float]:
    """Simulate a month. Return its metrics in hours and node-hours, and the number of steals."""
    scenario = ScenarioOptions(seed=seed, **OPTIONS).scenario()
    result = staged(prepared(month, scenario), scenario).run(policy)
    flow, size = result.rows.column("flow"), result.rows.column("size")
    wasted = result.rows.column("wasted_node_seconds").sum()
    values = (flow.mean(), flow.max(), (flow * size).sum() / size.sum(), wasted)
    row = {name: float(value) / 3600 for name, value in zip(MEASURES, values, strict=True)}
    return row | {"steals": len(result.ledger.steals)}


def evaluate(folder: Path, n_months: int) -> None:
    """Compare the agent with rules, on months that were not used for training."""
    agent = LinearAgent.load(folder / "victim-agent.npz")
    runs: list[dict[str, Any]] = []
    for number in range(n_months):
        name, seed = MONTHS[number % len(MONTHS)], FIRST_EVALUATION_SEED + number
        month = mira_like(name, seed)
        values = {title: measured(month, seed, scheduler(spec)) for title, spec in POLICIES.items()}
        values["agent"] = measured(month, seed, Named(agent))
        runs.append({"month": name, "seed": seed, "values": values})
        flows = [f"{title} {ratio(row['mean flow'])} h" for title, row in values.items()]
        print(f"{name}-{seed}: {', '.join(flows)}", flush=True)
        record = {"options": OPTIONS, "changes": changes(runs), "runs": runs}
        (folder / "evaluation.json").write_text(json.dumps(record, indent=1) + "\n")
    for base, row in changes(runs).items():
        for measure, (mean, low, high) in row.items():
            shown = "" if mean is None else spread(Interval(mean, low, high), change)
            print(f"agent relative to {base}, {measure}: {shown}")


def changes(runs: list[dict[str, Any]]) -> dict[str, dict[str, list[float | None]]]:
    """Return the agent's paired changes by policy and metric: mean and ends of the interval."""
    table: dict[str, dict[str, list[float | None]]] = {}
    for base in POLICIES:
        table[base] = {}
        for measure in MEASURES:
            pairs = [(r["values"]["agent"][measure], r["values"][base][measure]) for r in runs]
            change = interval([ours / other - 1 for ours, other in pairs])
            assert change is not None
            table[base][measure] = [change.mean, change.low, change.high]
    return table


def table(folder: Path) -> str:
    """Return the changes as a Markdown table."""
    record = json.loads((folder / "evaluation.json").read_text())
    n, runs = len(record["runs"]), record["runs"]
    lines = [
        f"| relative to | {' | '.join(MEASURES)} | steals in a month |",
        "|---" * (len(MEASURES) + 2) + "|",
    ]
    for base in POLICIES:
        changes = [record["changes"][base][name] for name in MEASURES]
        cells = [spread(Interval(mean, low, high, n), change, 0.0) for mean, low, high in changes]
        steals = fmean(run["values"][base]["steals"] for run in runs)
        lines.append(f"| {base} | {' | '.join(cells)} | {whole(steals)} |")
    steals = fmean(run["values"]["agent"]["steals"] for run in runs)
    lines.append(f"| (the agent) |{' |' * len(MEASURES)} {whole(steals)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Run the command that the arguments name: train, evaluate or table."""
    match arguments:
        case ["train", folder, *minutes]:
            train(Path(folder), float(minutes[0]) if minutes else 12)
        case ["evaluate", folder, *months]:
            evaluate(Path(folder), int(months[0]) if months else 20)
        case ["table", folder]:
            (Path(folder) / "evaluation.md").write_text(table(Path(folder)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
