# SPDX-License-Identifier: Apache-2.0
"""Index of the batches of a campaign: completion times, gains, and mean times to failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError
from rebat.report.runs_index import Index, Row
from rebat.results.intervals import BySeed, Interval
from rebat.runs.labels import read_results

Trace = tuple[float, float]


class PublishedRow(NamedTuple):
    """A row of Table 1: its number, and the published mean times to failure in hours."""

    number: int
    node_mttf_h: float
    system_mttf_h: float
    remark: str = ""


TABLE_1: dict[Trace, PublishedRow] = {
    (5800, 8): PublishedRow(1, 5462, 1.37),
    (5800, 32): PublishedRow(2, 5700, 1.42),
    (8500, 8): PublishedRow(3, 8004, 2.04),
    (8500, 32): PublishedRow(4, 8345, 2.13, "the paper swaps two digits: the mean is 8354"),
    (16000, 8): PublishedRow(5, 15068, 4.04),
    (16000, 32): PublishedRow(6, 15726, 4.27),
    (22000, 8): PublishedRow(7, 20718, 5.36, "the paper swaps two digits: 5.63"),
    (22000, 32): PublishedRow(8, 21623, 5.72),
}

FIGURES: dict[float, tuple[str, int]] = {
    22000: ("Figure 3", 256), 5800: ("Figure 4", 256), 16000: ("section 3, not drawn there", 512),
}  # fmt: skip
"""By scale of the law: the figure of the completion times, and the number of nodes of its jobs."""

TORUS, JOBS, REPAIR_S = "8x8x8x8", 1000, 540.0
"""Torus, number of jobs and repair time of every batch (section 3)."""

SIZE = 256
LINEAR, RPS = "slurm-linear", "rps"

GAINS: dict[tuple[Trace, float, str], tuple[float, ...]] = {
    ((22000, 32), 48, LINEAR): (0.014,),
    ((22000, 32), 48, RPS): (0.016,),
    ((22000, 32), 72, LINEAR): (0.063,),
    ((22000, 32), 72, RPS): (0.073, 0.051),
    ((22000, 8), 72, RPS): (0.056,),
    ((5800, 8), 48, LINEAR): (0.468,),
    ((5800, 8), 48, RPS): (0.484,),
    ((5800, 8), 72, RPS): (0.235,),
    ((5800, 32), 72, RPS): (0.79,),
}
"""The gains of FAPS published in section 3, by trace, duration (h) and compared policy.

For 5.6, 5.1, 23.5 and 79 %, the paper states no duration. rebat compares these with its runs of the
longest jobs.
"""

LARGEST_GAIN = 0.82
"""The largest published gain (abstract and section 5)."""


HOUR_S = 3600.0
LISTS = ("16", "aligned", "all")
CASES = (
    ("slurm-linear", None),
    *(("rps", which) for which in LISTS),
    *(("faps", which) for which in LISTS),
    ("ceiling", None),
)


class BatchSetting(NamedTuple):
    """The setting of compared batches: trace, torus, number of jobs, and nodes of each job.

    A setting without jobs contains only failures.
    """

    trace: str
    torus: str
    jobs: int = 0
    size: int = 0
    begin_s: float | None = None
    trace_end_s: float | None = None

    @property
    def label(self) -> str:
        """The setting as readable text."""
        text = f"{self.trace}, {self.jobs} jobs of {self.size} nodes on {self.torus}"
        return f"{text}, {self.convention}" if self.begin_s or self.trace_end_s else text

    @property
    def convention(self) -> str:
        """The age of the machine and the end of its failure trace, as text."""
        age = f"machine aged {self.begin_s / HOUR_S:,.0f} h" if self.begin_s else "new machine"
        end_s = self.trace_end_s
        return age if end_s is None else f"{age}, no failures after {end_s / HOUR_S:,.0f} h"


class PlacementCase(NamedTuple):
    """A case of a setting: duration of the jobs, policy, and list of boxes."""

    duration_s: float
    policy: str
    which: str | None


ALONE = PlacementCase(0.0, "", None)
"""The case of a setting without jobs."""

_COLUMNS = (
    "trace",
    "torus",
    "size",
    "jobs",
    "begin_s",
    "trace_end_s",
    "duration_s",
    "policy",
    "list",
    "seed",
    "metric",
    "value",
)


def batches(path: Path) -> Iterator[Row[BatchSetting, PlacementCase]]:
    """Yield the rows of batches and of settings without jobs in ``results.parquet``."""
    for row in read_results(path, "batch", _COLUMNS):
        trace, torus, size, jobs, *ages, duration_s, policy, which, seed, metric, value = row
        if policy is None:
            yield BatchSetting(trace, torus), ALONE, metric, "", int(seed), value
        else:
            setting = BatchSetting(trace, torus, int(jobs), int(size), *ages)
            yield setting, PlacementCase(duration_s, policy, which), metric, "", int(seed), value


class Batches(Index[BatchSetting, PlacementCase]):
    """Index of completion times, aborts and mean times to failure (MTTFs).

    Completion times and aborts are indexed by setting and case, MTTFs by trace and torus.

    Parameters
    ----------
    rows : iterable of Row
    laws : mapping
        For each trace, its mean scale (h) and mean shape, or None if its law is not the paper's.
    """

    def __init__(self, rows: Any, laws: Mapping[str, Trace | None]) -> None:
        super().__init__(rows)
        self.laws = laws
        self._convention: tuple[float | None, float | None] = (None, None)
        self.traces = [setting for setting in self.settings if not setting.jobs]
        self.settings = [setting for setting in self.settings if setting.jobs]

    @property
    def tori(self) -> list[str]:
        """The tori of all settings."""
        return sorted({setting.torus for setting in (*self.settings, *self.traces)})

    def trace(self, setting: BatchSetting) -> Trace | None:
        """Return the scale (h) and the shape of a setting's trace.

        Return None if the torus or the jobs are not those of the paper.
        """
        own = (setting.torus, setting.jobs or JOBS)
        return self.laws.get(setting.trace) if own == (TORUS, JOBS) else None

    @property
    def conventions(self) -> list[tuple[float | None, float | None]]:
        """The conventions (age of the machine, end of the failure trace) that have runs."""
        return list(dict.fromkeys((s.begin_s, s.trace_end_s) for s in self.settings))

    def under(self, convention: tuple[float | None, float | None]) -> Batches:
        """Return a copy that treats only settings with this convention as the paper's.

        A convention is a combination of the age of the machine and the end of its failure trace.
        """
        results = copy(self)
        results._convention = convention
        return results

    def of_scale(self, scale_h: float, size: int) -> list[BatchSetting]:
        """Return the settings of the paper whose trace has this scale, sorted by shape."""
        traces = {
            s: trace
            for s in self.settings
            if (s.size, s.begin_s, s.trace_end_s) == (size, *self._convention)
            and (trace := self.trace(s))
        }
        return sorted((s for s in traces if traces[s][0] == scale_h), key=lambda s: traces[s])

    def setting(self, trace: Trace, size: int) -> BatchSetting | None:
        """Return the paper's setting with a trace. Return None if it has no runs."""
        matches = [s for s in self.of_scale(trace[0], size) if self.trace(s) == trace]
        if len(matches) > 1:
            names = " and ".join(s.trace for s in matches)
            raise InputError(f"{names} are the same law", "law", "one name per law")
        return matches[0] if matches else None

    def durations_s(self, setting: BatchSetting) -> list[float]:
        """Return the durations of the jobs of a setting's batches."""
        return sorted({case.duration_s for case in self.cases(setting)})

    def lists(self, setting: BatchSetting) -> list[str]:
        """Return the lists of boxes from which FAPS chose."""
        return [which for policy, which in self.played(setting) if policy == "faps" and which]

    def played(self, setting: BatchSetting) -> list[tuple[str, str | None]]:
        """Return the policies that have runs, each with its list of boxes."""
        matches = {(case.policy, case.which) for case in self.cases(setting)}
        return [case for case in CASES if case in matches]

    def of(
        self, setting: BatchSetting, case: PlacementCase, metric: str = "completion_s"
    ) -> Interval | None:
        """Return the mean of a metric over the seeds."""
        return self.interval(setting, case, metric)

    def gains(self, setting: BatchSetting, case: PlacementCase, over: str) -> BySeed:
        """Return by how much a batch ends earlier than under policy ``over`` with the same boxes.

        The gain is relative to the completion time of the other policy. Values are paired by seed,
        so both policies have the same failures.
        """
        base = case._replace(policy=over, which=case.which if over == "rps" else None)
        mine, theirs = (self.values(setting, c, "completion_s") for c in (case, base))
        return {seed: 1 - mine[seed] / theirs[seed] for seed in mine if seed in theirs}

    def faps_gains(self, trace: Trace, size: int, hours: float, which: str, over: str) -> BySeed:
        """Return the gains of FAPS in a setting of the paper.

        Return an empty dict if it has no runs.
        """
        setting = self.setting(trace, size)
        return (
            self.gains(setting, PlacementCase(hours * HOUR_S, "faps", which), over)
            if setting
            else {}
        )
