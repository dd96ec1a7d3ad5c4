"""The results table of a campaign, asked the questions that a report asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError

HOUR = 3600.0
ALIASES = {"sfsj": "h111", "conservative": "baseline"}


class Evidence:
    """Metrics by workload, policy, failure scenario and seed.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    """

    def __init__(self, path: Path) -> None:
        import pandas as pd

        try:
            table = pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise InputError(f"not a table of results: {error}", str(path)) from None
        if table.empty:
            raise InputError("holds no results yet", str(path))
        table["policy"] = table["policy"].replace(ALIASES)
        table["size_class"] = table["size_class"].fillna("")
        self._cells: dict[tuple[Any, ...], dict[int, float]] = {}
        columns = ["workload", "policy", "mtbf_s", "downtime_s", "metric", "size_class"]
        values = table[[*columns, "seed", "value"]].itertuples(index=False, name=None)
        for *key, seed, value in values:
            scenario = tuple(None if pd.isna(part) else part for part in key)
            seeds = self._cells.setdefault(scenario, {})
            seeds[-1 if pd.isna(seed) else int(seed)] = float(value)
        self.workloads: list[str] = list(dict.fromkeys(key[0] for key in self._cells))

    def policies(self, workload: str, mtbf_s: float, downtime_s: float) -> list[str]:
        """Policies with results in a failure scenario, baseline first."""
        found = dict.fromkeys(
            key[1] for key in self._cells if key[0] == workload and key[2:4] == (mtbf_s, downtime_s)
        )
        return sorted(found, key=lambda name: (name != "baseline", name))

    def scenarios(self, workload: str) -> list[tuple[float, float]]:
        """(MTBF, downtime) pairs with results, in seconds."""
        found = {key[2:4] for key in self._cells if key[0] == workload and key[2] is not None}
        return sorted(found)

    def main_scenario(self, workload: str) -> tuple[float, float] | None:
        """The scenario with most policies: the paper's 1 h and 1 h where it was run."""
        pairs = self.scenarios(workload)
        if (HOUR, HOUR) in pairs:
            return HOUR, HOUR
        return max(pairs, key=lambda p: len(self.policies(workload, *p)), default=None)

    def values(
        self,
        workload: str,
        policy: str,
        scenario: tuple[float, float] | None,
        metric: str,
        size_class: str = "",
    ) -> dict[int, float]:
        """A value per seed; without a scenario the failure-free run's (seed -1)."""
        mtbf, downtime = scenario or (None, None)
        return self._cells.get((workload, policy, mtbf, downtime, metric, size_class), {})

    def mean(self, *question: Any, **more: Any) -> float | None:
        """The mean over the seeds; None when there is no result."""
        found = self.values(*question, **more)
        return sum(found.values()) / len(found) if found else None

    def ratios(
        self,
        workload: str,
        policy: str,
        scenario: tuple[float, float],
        metric: str,
        size_class: str = "",
    ) -> list[float]:
        """Per seed, the policy's value over Baseline's on the same failures."""
        ours = self.values(workload, policy, scenario, metric, size_class)
        base = self.values(workload, "baseline", scenario, metric, size_class)
        return [ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)]

    def size_classes(self, workload: str) -> Iterator[str]:
        """Size classes with flows, in ascending order; 'all' last."""
        names = {k[5] for k in self._cells if k[0] == workload and k[4] == "flow_max_s"}
        yield from sorted(names - {"all"}, key=lambda n: int(n.strip("[)").split(",")[0]))
        if "all" in names:
            yield "all"
