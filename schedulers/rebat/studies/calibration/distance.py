# SPDX-License-Identifier: Apache-2.0
"""The recorded waits of a workload, and the distance of simulated waits from them.

Waits span several orders of magnitude, and many are 0. Distances therefore use the logarithm of the
wait plus one minute, and are reported as factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.api.remarks import OFFSET_S
from rebat.core.arrays import Floats, Ints
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.traits import USUAL, traits_of
from rebat.results.files.run_folder import read_source
from rebat.results.files.tables import Rows
from rebat.results.intervals import BySeed

Mask = npt.NDArray[np.bool_]


N_PARTS = 20
"""Number of equal parts into which the recorded time is divided to compute intervals."""

FEWEST_JOBS = 10
"""Minimum number of jobs in a part for which a distance is computed."""

MOST_PAIRS = 200_000
"""Maximum number of pairs of jobs from which the order of starts is estimated."""

SHARES = (0.5, 0.9, 0.95)


class RecordedWaits(NamedTuple):
    """Jobs of a recorded schedule, in the order of their submission.

    Attributes
    ----------
    ids : array of str
    submit_s : array of float
        Submission time in seconds.
    wait_s : array of float
        Wait until the first start, in seconds.
    size : array of int
        Number of nodes.
    queue, user : array of str
        Queue or partition, and user, or empty texts if they are unknown.
    """

    ids: npt.NDArray[np.object_]
    submit_s: Floats
    wait_s: Floats
    size: Ints
    queue: npt.NDArray[np.object_]
    user: npt.NDArray[np.object_]

    def of(self, mask: Mask) -> RecordedWaits:
        """Return the jobs that are selected by a mask."""
        return RecordedWaits(
            self.ids[mask],
            self.submit_s[mask],
            self.wait_s[mask],
            self.size[mask],
            self.queue[mask],
            self.user[mask],
        )

    @property
    def kind(self) -> Ints:
        """A number for each partition and size class. Waits are compared within these groups."""
        from rebat.results.measures.jobs import size_classes

        classes = [low for low, _ in size_classes(int(self.size.max()))]
        _, queue = np.unique(self.queue.astype(str), return_inverse=True)
        return queue * len(classes) + np.searchsorted(classes, self.size, side="right")

    @property
    def part(self) -> Ints:
        """The part of the recorded time in which each job was submitted, from 0."""
        first, last = float(self.submit_s.min()), float(self.submit_s.max())
        width = (last - first) / N_PARTS or 1.0
        return np.minimum((self.submit_s - first) // width, N_PARTS - 1).astype(np.int64)


class Quantiles(msgspec.Struct, frozen=True):
    """Recorded and simulated waits of a group of jobs, in seconds."""

    group: str
    jobs: int
    recorded_mean_s: float
    simulated_mean_s: float
    recorded_s: dict[str, float]
    """Quantiles of the recorded and of the simulated waits, by probability (as text)."""
    simulated_s: dict[str, float]


class Nearness(msgspec.Struct, frozen=True):
    """Measures of the agreement of simulated and recorded waits.

    Attributes
    ----------
    jobs : int
        Number of jobs compared.
    distance : dict of int to float
        Distance of the distributions in each part of the recorded time (see
        `distribution_distance`).
    factor_of_job : float
        Median over jobs of the factor between recorded and simulated wait. Factors are at least 1.
    correlation : float
        Spearman's rank correlation of the waits. NaN if all waits are equal.
    same_order : float
        Share of job pairs that start in the same order in the simulation as in the record. A pair
        is two jobs that waited at the same time in the recorded schedule. NaN if there are no
        pairs.
    """

    jobs: int
    distance: dict[int, float]
    factor_of_job: float
    correlation: float
    same_order: float


def logarithm(wait_s: Floats) -> Floats:
    """Return the binary logarithm of (wait + one minute) / one minute for each wait."""
    return np.log2((wait_s + OFFSET_S) / 60.0)


def distribution_distance(recorded_s: Floats, simulated_s: Floats) -> float:
    """Return the mean absolute difference between logarithms of waits at the same quantile.

    This is the Wasserstein distance of the two distributions. A distance of 1 is a factor of two.

    >>> distribution_distance(np.array([0.0, 60.0]), np.array([180.0, 60.0]))
    1.0
    """
    ours, theirs = np.sort(logarithm(simulated_s)), np.sort(logarithm(recorded_s))
    return float(np.abs(ours - theirs).mean())


def nearness(recorded: RecordedWaits, simulated_s: Floats) -> Nearness:
    """Compare recorded and simulated waits of the same jobs in the same order."""
    apart = np.abs(logarithm(recorded.wait_s) - logarithm(simulated_s))
    return Nearness(
        jobs=len(simulated_s),
        distance=by_part(recorded, simulated_s),
        factor_of_job=float(2 ** np.median(apart)),
        correlation=rank_correlation(recorded.wait_s, simulated_s),
        same_order=same_order(recorded, simulated_s),
    )


def by_part(recorded: RecordedWaits, simulated_s: Floats) -> dict[int, float]:
    """Return the distance in each part of the recorded time with `FEWEST_JOBS` or more jobs.

    Waits are compared within each partition and size class, and the distance is the mean over the
    jobs. Groups with fewer than `FEWEST_JOBS` jobs in the part are compared together.
    """
    part, kind = recorded.part, recorded.kind
    masks = ((number, part == number) for number in range(N_PARTS))
    return {
        number: _within_groups(kind[mask], recorded.wait_s[mask], simulated_s[mask])
        for number, mask in masks
        if mask.sum() >= FEWEST_JOBS
    }


def _within_groups(kind: Ints, recorded_s: Floats, simulated_s: Floats) -> float:
    kinds, group, count = np.unique(kind, return_inverse=True, return_counts=True)
    group = np.where(count[group] < FEWEST_JOBS, len(kinds), group)
    total = 0.0
    for each in np.unique(group):
        mask = group == each
        total += mask.sum() * distribution_distance(recorded_s[mask], simulated_s[mask])
    return float(total / len(kind))


class Unexplained(msgspec.Struct, frozen=True):
    """A part of the record: how far its simulated waits are from the recorded waits.

    Attributes
    ----------
    kind, name : str
        For example ``partition`` and its name.
    jobs : int
    factor : float
        Distance of the two distributions, as a factor.
    share : float
        Share of the distance of its kind. The shares of all rows of a kind add up to 1.
    longer : float
        Geometric mean of the recorded waits (plus one minute), divided by that of the simulated
        waits.
    """

    kind: str
    name: str
    jobs: int
    factor: float
    share: float
    longer: float


def unexplained(
    recorded: RecordedWaits, simulated_s: Floats, clock: Callable[[Floats], list[str]] | None
) -> list[Unexplained]:
    """Return the partitions, sizes, users and hours of the record, the farthest of a kind first.

    ``clock`` returns the hour of the day of times, or None if the record has no dates.
    """
    from rebat.results.measures.jobs import size_classes

    classes = size_classes(int(recorded.size.max()))
    places = np.searchsorted([low for low, _ in classes], recorded.size, side="right") - 1
    labels: dict[str, list[str]] = {
        "partition": recorded.queue.tolist(),
        "size": [_class(classes[i][0], classes[i][1] - 1) for i in places.tolist()],
        "user": recorded.user.tolist(),
    }
    if clock is not None:
        labels["hour"] = clock(recorded.submit_s)
    rows = []
    for kind, names in labels.items():
        column = np.array(names, dtype=object)
        of_kind = [*_groups_of(kind, column, recorded.wait_s, simulated_s)]
        total = sum(row.share for row in of_kind)
        rows += [
            msgspec.structs.replace(row, share=row.share / total if total else 0.0)
            for row in sorted(of_kind, key=lambda row: -row.share)
        ]
    return rows


def _groups_of(
    kind: str, names: npt.NDArray[np.object_], recorded_s: Floats, simulated_s: Floats
) -> Iterator[Unexplained]:
    for name in sorted(set(names.tolist()) - {""}):
        mask = names == name
        if mask.sum() < FEWEST_JOBS:
            continue
        apart = distribution_distance(recorded_s[mask], simulated_s[mask])
        longer = float((logarithm(recorded_s[mask]) - logarithm(simulated_s[mask])).mean())
        n = int(mask.sum())
        yield Unexplained(kind, str(name), n, 2.0**apart, apart * n, 2.0**longer)


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's rank correlation, or NaN if all values of ``a`` or ``b`` are equal."""
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (a, b)]
    if any(np.ptp(values) == 0 for values in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def same_order(recorded: RecordedWaits, simulated_s: Floats) -> float:
    """Return the share of pairs of jobs that start in the recorded order (see `Nearness`).

    A pair consists of two jobs that waited at the same time in the record. The function examines
    pairs that are 1, 2, 4, ... positions apart in the order of submission, until it has found
    `MOST_PAIRS` pairs.
    """
    order = np.argsort(recorded.submit_s, kind="stable")
    submit, wait = recorded.submit_s[order], recorded.wait_s[order]
    start, ours = submit + wait, submit + simulated_s[order]
    same = pairs = 0
    gap = 1
    while gap < len(order) and pairs < MOST_PAIRS:
        together = submit[gap:] < start[:-gap]  # the earlier job still waited then
        theirs = start[gap:] - start[:-gap]
        together &= (wait[gap:] > 0) & (theirs != 0)
        mine = ours[gap:] - ours[:-gap]
        same += int((np.sign(mine) == np.sign(theirs))[together].sum())
        pairs += int(together.sum())
        gap *= 2
    return same / pairs if pairs else float("nan")


def quantiles(group: str, recorded_s: Floats, simulated_s: Floats) -> Quantiles:
    """Return means and quantiles of the waits of a group."""
    columns = [
        {f"{share:g}": float(np.quantile(values, share)) for share in SHARES}
        for values in (recorded_s, simulated_s)
    ]
    means = float(recorded_s.mean()), float(simulated_s.mean())
    return Quantiles(group, len(recorded_s), *means, *columns)


def groups(recorded: RecordedWaits, simulated_s: Floats) -> Iterator[Quantiles]:
    """Yield the waits of all jobs, of each size class, and of each queue."""
    from rebat.results.measures.jobs import size_classes

    yield quantiles("all", recorded.wait_s, simulated_s)
    for low, high in size_classes(int(recorded.size.max())):
        mask = (recorded.size >= low) & (recorded.size < high)
        if mask.sum() >= FEWEST_JOBS:
            yield quantiles(_class(low, high - 1), recorded.wait_s[mask], simulated_s[mask])
    names = sorted(set(recorded.queue.tolist()) - {""})
    for name in names if len(names) > 1 else ():
        mask = recorded.queue == name
        if mask.sum() >= FEWEST_JOBS:
            yield quantiles(f"queue {name}", recorded.wait_s[mask], simulated_s[mask])


def _class(low: int, high: int) -> str:
    """Return the name of a size class.

    >>> _class(1, 1), _class(2, 3)
    ('1 node', '2 to 3 nodes')
    """
    return f"{low} to {high} nodes" if high > low else f"{low} node{'s' * (low > 1)}"


def closer(a: Nearness, b: Nearness) -> BySeed:
    """Return the distance of ``b`` minus that of ``a`` in each part of the recorded time."""
    return {part: b.distance[part] - a.distance[part] for part in a.distance.keys() & b.distance}


FOLDER, FILE, SUMMARY = "recorded", "rebat_jobs.csv", "summary.json"
Texts = npt.NDArray[np.object_]
COLUMNS = ("job_id", "submission_time", "first_start", "size")

FEWEST = 100
"""Minimum number of jobs for a comparison."""


def read_waits(folder: Path, workload: Workload) -> RecordedWaits:
    """Return the waits of the jobs of a workload in its recorded schedule.

    The record is divided into `distance.N_PARTS` equal parts. Jobs of the first part are left out,
    because the simulated machine is empty at the beginning, unlike the real machine.
    """
    path = next((p for p in (folder / FOLDER / FILE, folder / FILE) if p.is_file()), None)
    if path is None:
        expected = "a folder of 'rebat workload import --schedule'"
        raise InputError("has no recorded schedule", str(folder), expected)
    rows = Rows(path, COLUMNS)
    numbers = [np.array(rows.texts(name), dtype=object) for name in COLUMNS[1:]]
    started = numbers[1] != ""
    submit_s, start_s, size = (_numbers(rows, column, started) for column in numbers)
    ids = np.array(rows.names("job_id"), dtype=object)[started]
    owners = {job.id: traits_of(job.extra) for job in workload.jobs}
    traits = [owners.get(name, USUAL) for name in ids.tolist()]
    queues, users = (
        np.array([*(getattr(each, name) for each in traits), ""], dtype=object)[:-1]
        for name in ("queue", "user")
    )
    sizes = size.astype(np.int64)
    waits = RecordedWaits(ids, submit_s, start_s - submit_s, sizes, queues, users)
    ours = waits.of(np.array([name in owners for name in ids], dtype=bool))
    if len(ours.ids) < FEWEST:
        problem = f"has {len(ours.ids)} jobs of {workload.name} that started"
        raise InputError(problem, str(path), f"at least {FEWEST} jobs of the same import")
    return ours.of(ours.part > 0)


def _numbers(rows: Rows, column: Texts, started: Mask) -> Floats:
    try:
        numbers: Floats = column[started].astype(np.float64)
    except ValueError:
        raise InputError("a number is invalid", str(rows.path), "a file written by rebat") from None
    return numbers


class RecordedUse(NamedTuple):
    """Use of the nodes in a record.

    Attributes
    ----------
    utilisation : float
        Useful node time, divided by the node time of all nodes, or NaN if it is unknown.
    shared : int
        Number of attempts that share nodes.
    """

    utilisation: float = math.nan
    shared: int = 0


def read_use(folder: Path) -> RecordedUse:
    """Return the use of nodes from the summary of a recorded schedule."""
    path = next((p for p in (folder / FOLDER / SUMMARY, folder / SUMMARY) if p.is_file()), None)
    if path is None:
        return RecordedUse()
    try:
        summary = msgspec.json.decode(path.read_bytes())
        platform = summary["metrics"]["platform"]
        return RecordedUse(
            float(platform["useful"] / platform["total"]), read_source(path.parent).shared_attempts
        )
    except (msgspec.DecodeError, KeyError, TypeError, ZeroDivisionError):
        return RecordedUse()
