# SPDX-License-Identifier: Apache-2.0
"""The configuration whose waits are nearest to the recorded waits, and its distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from rebat.core.formatting import counted
from rebat.library.calibration.design import CalibratedRun
from rebat.library.calibration.distance import (
    Nearness,
    Quantiles,
    RecordedWaits,
    closer,
    groups,
)
from rebat.library.calibration.record import RecordedUse
from rebat.results.intervals import Interval, interval

GOOD, FAIR = 1.5, 2.5
"""The largest distances that are called good and fair."""


class ComparedConfiguration(msgspec.Struct, frozen=True):
    """A configuration with its distance to the recorded waits.

    Attributes
    ----------
    title, policy : str
    nodes : int
    jobs : int
        Number of jobs compared.
    distance, low, high : float
        Mean factor between recorded and simulated waits at the same quantile, with its interval.
        There is no interval if too few parts of the record have a distance.
    farther, farther_low, farther_high : float, optional
        The distance divided by that of the nearest configuration, with its interval.
    factor_of_job, correlation, same_order : float
        See `Nearness`.
    utilisation : float
        Useful node time, divided by the node time of all nodes of the recorded machine.
    """

    title: str
    policy: str
    nodes: int
    jobs: int
    distance: float
    low: float | None
    high: float | None
    farther: float | None
    farther_low: float | None
    farther_high: float | None
    factor_of_job: float
    correlation: float
    same_order: float
    utilisation: float

    @property
    def distance_text(self) -> str:
        """The distance and its interval, as text."""
        return _text(self.distance, self.low, self.high)

    @property
    def farther_text(self) -> str:
        """The distance divided by that of the nearest configuration, as text.

        The text is empty for the nearest configuration.
        """
        if self.farther is None:
            return ""
        return f"x {_text(self.farther, self.farther_low, self.farther_high)}"

    @property
    def as_near(self) -> bool:
        """Whether the configuration is not significantly farther than the nearest one."""
        return self.farther is not None and not (self.farther_low and self.farther_low > 1)


class Verdict(msgspec.Struct, frozen=True):
    """The result of a calibration. The nearest configuration is first."""

    configurations: list[ComparedConfiguration]
    groups: list[Quantiles]
    """Waits under the nearest configuration."""
    utilisation: float
    """Useful node time of the record, divided by the node time of all nodes of the machine."""
    shared: int
    """Number of recorded attempts that share nodes."""
    failed: dict[str, str] = {}
    """Reasons why configurations could not be simulated, by title of the configuration."""
    recorded_jobs: int = 0
    """Number of recorded jobs that can be compared, after the first part of the record."""

    @property
    def nearest(self) -> ComparedConfiguration:
        """The nearest configuration."""
        return self.configurations[0]

    @property
    def sentences(self) -> list[str]:
        """The verdict in sentences."""
        return [
            *_nearest(self),
            *_left_out(self),
            *_others(self),
            _of_jobs(self.nearest),
            *_means(self),
            *_used(self),
            *(f"{title} failed: {reason}" for title, reason in self.failed.items()),
        ]


def verdict_of(
    ranked: Sequence[tuple[CalibratedRun, Nearness]],
    recorded: RecordedWaits,
    used: RecordedUse,
    failed: dict[str, str],
    n_nodes: int,
) -> Verdict:
    """Return the verdict on simulated configurations, which are sorted by distance.

    ``n_nodes`` is the size of the recorded machine.
    """
    (first, nearest), *_ = ranked
    rows = [_row(run, near, nearest, n_nodes) for run, near in ranked]
    waits = list(groups(*first.compared(recorded)))
    return Verdict(rows, waits, *used, failed, len(recorded.ids))


def _row(
    run: CalibratedRun, near: Nearness, nearest: Nearness, n_nodes: int
) -> ComparedConfiguration:
    distance, low, high = _factors(interval(near.distance))
    low = low and max(low, 1.0)  # a factor of 1 means equal waits
    farther = (None, None, None) if near is nearest else _factors(interval(closer(nearest, near)))
    configuration = run.configuration
    return ComparedConfiguration(
        configuration.title,
        configuration.policy,
        configuration.nodes,
        near.jobs,
        distance or math.nan,
        low,
        high,
        *farther,
        near.factor_of_job,
        near.correlation,
        near.same_order,
        run.useful_nodes / n_nodes,
    )


def _factors(estimate: Interval | None) -> tuple[float | None, float | None, float | None]:
    """Convert a mean of binary logarithms and its interval to factors."""
    if estimate is None:
        return None, None, None
    low, high = (None if x is None else 2.0**x for x in (estimate.low, estimate.high))
    return 2.0**estimate.mean, low, high


def _text(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.2f}" + ("" if low is None else f" [{low:.2f}, {high:.2f}]")


def _nearest(verdict: Verdict) -> Iterator[str]:
    near = verdict.nearest
    grade = "good" if near.distance <= GOOD else "fair" if near.distance <= FAIR else "poor"
    yield (
        f"{near.title} is nearest: at the same quantile, its waits and the recorded waits of "
        f"{near.jobs} jobs differ by a factor of {near.distance_text} on average. This is {grade}."
    )


def _left_out(verdict: Verdict) -> Iterator[str]:
    near, total = verdict.nearest, verdict.recorded_jobs
    if near.jobs < total:
        yield (
            f"{total - near.jobs} of {total} recorded jobs are left out: in this simulation they "
            f"do not start, for example because they need more than {counted(near.nodes, 'node')}."
        )
    fewest = min(verdict.configurations, key=lambda item: item.jobs)
    if fewest.jobs < near.jobs:
        yield (
            f"Not all configurations are compared on the same jobs: {fewest.title} leaves out "
            f"{total - fewest.jobs} of {total} recorded jobs."
        )


def _others(verdict: Verdict) -> Iterator[str]:
    equal = [item.title for item in verdict.configurations[1:] if item.as_near]
    if equal:
        names = ", ".join(equal[:3]) + (f" and {len(equal) - 3} more" if len(equal) > 3 else "")
        yield f"These configurations are not significantly farther: {names}."
    elif len(verdict.configurations) > 1:
        second = verdict.configurations[1]
        yield (
            f"The next configuration, {second.title}, is farther by a factor of "
            f"{second.farther_text[2:]}."
        )


def _of_jobs(near: ComparedConfiguration) -> str:
    return (
        f"Single jobs: half of the waits differ by a factor of more than {near.factor_of_job:.1f}; "
        f"the rank correlation is {near.correlation:.2f}. Use the simulation for distributions, "
        "not for single jobs."
    )


def _means(verdict: Verdict) -> Iterator[str]:
    row = verdict.groups[0]
    if row.recorded_mean_s > 0:
        change = row.simulated_mean_s / row.recorded_mean_s - 1
        direction = "longer" if change > 0 else "shorter"
        yield f"The simulated mean wait is {abs(change):.0%} {direction} than the recorded one."


def _used(verdict: Verdict) -> Iterator[str]:
    if not (math.isnan(verdict.utilisation) or math.isnan(verdict.nearest.utilisation)):
        yield (
            "Useful node time, as a share of the node time of all nodes of the recorded machine: "
            f"{verdict.utilisation:.1%} recorded, {verdict.nearest.utilisation:.1%} simulated."
        )
    if verdict.shared:
        yield (
            f"In the record {verdict.shared} attempts share nodes. In the simulation jobs never "
            "share nodes, so the simulated machine has a higher load."
        )
