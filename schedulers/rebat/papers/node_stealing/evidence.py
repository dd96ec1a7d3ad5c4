# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign, asked the questions that a report asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rebat.results.intervals import Interval, interval
from rebat.results.reading import read_results
from rebat.results.scenario import Scenario, scenario_of_row

HOUR = 3600.0
_COLUMNS = [
    "workload", "policy", *Scenario._fields, "metric", "size_class", "seed", "value",
]  # fmt: skip
ALIASES = {"sfsj": "h111", "conservative": "baseline", "authors-sfsj": "authors-h111"}
VARIANTS = frozenset(f"h{x}{y}{z}" for x in "123" for y in "12" for z in "123")
PROGRAM = "authors-"
"""With this before it a policy is as the authors' program does it; else it is as the paper says."""


def base_of(policy: str) -> str:
    """What a policy is compared with: Baseline of its own semantics."""
    return PROGRAM + "baseline" if policy.startswith(PROGRAM) else "baseline"


class Evidence:
    """Metrics by workload, policy, failure scenario and seed.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    """

    def __init__(self, path: Path) -> None:
        self._cells: dict[tuple[Any, ...], dict[int, float]] = {}
        for row in read_results(path, "simulation", _COLUMNS):
            workload, policy, *about, metric, size_class, seed, value = row
            scenario = scenario_of_row(about)
            cell = (workload, ALIASES.get(policy, policy), scenario, metric, size_class or "")
            self._cells.setdefault(cell, {})[-1 if seed is None else int(seed)] = float(value)
        self.workloads: list[str] = list(dict.fromkeys(key[0] for key in self._cells))

    def policies(self, workload: str, scenario: Scenario) -> list[str]:
        """Policies with results in a failure scenario, baseline first, of either semantics."""
        found = {
            key[1].removeprefix(PROGRAM)
            for key in self._cells
            if key[0] == workload and key[2] == scenario
        }
        return sorted(found, key=lambda name: (name != "baseline", name))

    def semantics(self, workload: str, scenario: Scenario) -> list[str]:
        """'' where policies were run as the paper says, PROGRAM where as the program does."""
        ran = {key[1] for key in self._cells if key[0] == workload and key[2] == scenario}
        found = {PROGRAM if name.startswith(PROGRAM) else "" for name in ran}
        return sorted(found)

    def families(self, workload: str) -> list[list[Scenario]]:
        """Scenarios with failures, those together that differ in MTBF and downtime alone."""
        families: dict[Scenario, dict[Scenario, None]] = {}
        for name, _, scenario, *_ in self._cells:
            if name == workload and scenario.failure_model is not None:
                families.setdefault(scenario.family, {})[scenario] = None
        return [
            sorted(family, key=lambda s: (s.mtbf_s, s.downtime_s)) for family in families.values()
        ]

    def main_scenario(self, workload: str, family: Sequence[Scenario]) -> Scenario:
        """The scenario with most policies: the paper's 1 h and 1 h where it was run."""
        for scenario in family:
            if (scenario.mtbf_s, scenario.downtime_s) == (HOUR, HOUR):
                return scenario
        return max(family, key=lambda scenario: len(self.policies(workload, scenario)))

    def main_scenarios(self) -> Iterator[tuple[str, Scenario, Sequence[Scenario]]]:
        """(workload, main scenario, its family): what tables and figures are made for."""
        for workload in self.workloads:
            for family in self.families(workload):
                yield workload, self.main_scenario(workload, family), family

    def values(
        self, workload: str, policy: str, scenario: Scenario, metric: str, size_class: str = ""
    ) -> dict[int, float]:
        """A value per seed; of a failure-free run under seed -1."""
        return self._cells.get((workload, policy, scenario, metric, size_class), {})

    def mean(self, *question: Any, **more: Any) -> float | None:
        """The mean over the seeds; None when there is no result."""
        found = self.values(*question, **more)
        return sum(found.values()) / len(found) if found else None

    def ratios(
        self, workload: str, policy: str, scenario: Scenario, metric: str, size_class: str = ""
    ) -> list[float]:
        """Per seed, the policy's value over Baseline's on the same failures."""
        ours = self.values(workload, policy, scenario, metric, size_class)
        base = self.values(workload, base_of(policy), scenario, metric, size_class)
        return [ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)]

    def spread(self, *question: Any, **more: Any) -> Interval | None:
        """The mean over the seeds with its interval."""
        return interval(list(self.values(*question, **more).values()))

    def ratio(self, *question: Any, **more: Any) -> Interval | None:
        """The mean of the ratios with its interval."""
        return interval(self.ratios(*question, **more))

    def size_classes(self, workload: str, scenario: Scenario) -> Iterator[str]:
        """Size classes with flows, in ascending order; 'all' last."""
        names = {
            key[4]
            for key in self._cells
            if key[0] == workload and key[2] == scenario and key[3] == "flow_max_s"
        }
        yield from sorted(names - {"all"}, key=lambda n: int(n.strip("[)").split(",")[0]))
        if "all" in names:
            yield "all"
