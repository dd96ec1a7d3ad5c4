# SPDX-License-Identifier: Apache-2.0
"""Completion times of a campaign, asked the questions that a report asks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.papers.torus.published import JOBS, TORUS, Trace
from rebat.results.reading import read_results

HOUR_S = 3600.0
LISTS = ("16", "aligned", "all")
CASES = (
    ("slurm-linear", None), *(("rps", which) for which in LISTS),
    *(("faps", which) for which in LISTS), ("ceiling", None),
)  # fmt: skip


class Setting(NamedTuple):
    """What is compared: batches of so many jobs of a size, on a torus with a trace."""

    trace: str
    torus: str
    jobs: int
    size: int

    @property
    def label(self) -> str:
        return f"{self.trace}, {self.jobs} jobs of {self.size} nodes on {self.torus}"


class Case(NamedTuple):
    """One of them: how long the jobs are, and who chose where."""

    duration_s: float
    policy: str
    which: str | None


class Mean(NamedTuple):
    """A mean over n seeds with half its 95 % confidence interval (None: of one seed)."""

    value: float
    half: float | None
    n: int

    def holds(self, value: float) -> bool:
        """Whether the interval does."""
        return self.half is not None and abs(value - self.value) <= self.half


BySeed = Mapping[int, float]
_COLUMNS = (
    "trace", "torus", "size", "jobs", "duration_s", "policy", "list", "seed", "metric", "value",
)  # fmt: skip


class Evidence:
    """Completion times and aborts by setting, case and seed; MTTFs by trace, torus and seed.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    laws : mapping
        Of every trace its mean scale (h) and shape, if it could be one of the paper's.
    """

    def __init__(self, path: Path, laws: Mapping[str, Trace | None]) -> None:
        self.laws = laws
        self.batches: dict[Setting, dict[Case, dict[str, dict[int, float]]]] = {}
        self.mttf_s: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        for row in read_results(path, "batch", _COLUMNS):
            trace, torus, size, jobs, duration_s, policy, which, seed, metric, value = row
            if policy is None:
                found = self.mttf_s.setdefault((trace, torus), {})
            else:
                cases = self.batches.setdefault(Setting(trace, torus, int(jobs), int(size)), {})
                found = cases.setdefault(Case(duration_s, policy, which), {})
            found.setdefault(metric, {})[int(seed)] = value

    @property
    def tori(self) -> list[str]:
        """Where batches ran and failures were counted."""
        return sorted({s.torus for s in self.batches} | {torus for _, torus in self.mttf_s})

    def paper_trace(self, trace: str, torus: str, jobs: int = JOBS) -> Trace | None:
        """Scale (h) and shape of a trace, where torus and number of jobs are the paper's too."""
        return self.laws.get(trace) if (torus, jobs) == (TORUS, JOBS) else None

    def trace(self, setting: Setting) -> Trace | None:
        """The same of a setting."""
        return self.paper_trace(setting.trace, setting.torus, setting.jobs)

    def settings(self, scale_h: float, size: int) -> list[Setting]:
        """The paper's with a trace of a scale, by shape."""
        traces = {s: trace for s in self.batches if s.size == size and (trace := self.trace(s))}
        return sorted((s for s in traces if traces[s][0] == scale_h), key=lambda s: traces[s])

    def setting(self, trace: Trace, size: int) -> Setting | None:
        """The paper's with a trace.

        Raises
        ------
        InputError
            When there are two: which is meant?
        """
        found = [s for s in self.settings(trace[0], size) if self.trace(s) == trace]
        if len(found) > 1:
            names = " and ".join(s.trace for s in found)
            raise InputError(f"{names} are one law", "law", "one name for one law")
        return found[0] if found else None

    def durations_s(self, setting: Setting) -> list[float]:
        return sorted({case.duration_s for case in self.batches[setting]})

    def lists(self, setting: Setting) -> list[str]:
        """Those that FAPS chose from."""
        cases = self.batches[setting]
        return [w for w in LISTS if any(c.policy == "faps" and c.which == w for c in cases)]

    def cases(self, setting: Setting) -> list[tuple[str, str | None]]:
        """Policies with their lists, those that were played."""
        played = {(case.policy, case.which) for case in self.batches[setting]}
        return [case for case in CASES if case in played]

    def of(self, setting: Setting, case: Case, metric: str = "completion_s") -> Mean | None:
        """The mean of a metric over the seeds."""
        values = self.batches[setting].get(case, {}).get(metric)
        return mean_of(list(values.values())) if values else None

    def gains(self, setting: Setting, case: Case, over: str) -> BySeed:
        """By how much a batch ends sooner than under another policy with the same list.

        It is the share of the other's time, paired by seed: both met the same failures.
        """
        base = case._replace(policy=over, which=case.which if over == "rps" else None)
        mine, theirs = (
            self.batches[setting].get(c, {}).get("completion_s", {}) for c in (case, base)
        )
        return {seed: 1 - mine[seed] / theirs[seed] for seed in mine if seed in theirs}

    def gain(self, setting: Setting, case: Case, over: str) -> Mean | None:
        """The mean of these."""
        gains = self.gains(setting, case, over)
        return mean_of(list(gains.values())) if gains else None

    def faps_gains(self, trace: Trace, size: int, hours: float, which: str, over: str) -> BySeed:
        """The gains of FAPS in the paper's setting; none where it did not run."""
        setting = self.setting(trace, size)
        return self.gains(setting, Case(hours * HOUR_S, "faps", which), over) if setting else {}


def mean_of(values: Sequence[float], among: int = 1) -> Mean:
    """With Student's interval; of so many at once it is widened as Bonferroni says."""
    from scipy.stats import t

    mean, n = statistics.fmean(values), len(values)
    if n < 2:
        return Mean(mean, None, n)
    half = float(t.ppf(1 - 0.025 / among, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return Mean(mean, half, n)


def extreme(pick: Callable[..., Mean], samples: Sequence[BySeed]) -> Mean | None:
    """The largest (or smallest) mean; its interval is one that all have at once with 95 %."""
    known = [list(values.values()) for values in samples if values]
    means = [mean_of(values, among=len(known)) for values in known]
    return pick(means, key=lambda mean: mean.value) if means else None


def difference(one: BySeed, other: BySeed) -> Mean | None:
    """Of two by the same seeds."""
    values = [one[seed] - other[seed] for seed in one if seed in other]
    return mean_of(values) if values else None
