# SPDX-License-Identifier: Apache-2.0
"""Periodic checkpoints, their time, and their effect on the run times of jobs.

Section 5.2 (eqs 1 and 2) of Du, Marchal, Pallez and Robert, "Improving Batch Schedulers with Node
Stealing for Failed Jobs", CCPE 2024. The module ``remaining`` computes the work that remains after
an interruption.

An execution consists of recovery ``Rf``, work ``Tf``, checkpoint ``C``, then work ``T`` and
checkpoint ``C`` repeatedly. The length of a job includes its regular checkpoints. Writing a regular
checkpoint therefore counts as progress.

Light checkpoints (in memory or on a local disk) are written between the regular ones (remote
storage). A period of a job consists of *parts*, each with a light checkpoint at its end. The
regular checkpoint follows the last part. If there are several light tiers, a part of one tier
consists of parts of the next lighter tier. A failure loses the work since the last checkpoint that
survives the failure, including work of earlier attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Bools
from rebat.core.errors import InputError, short
from rebat.core.job_table import Ints, Jobs
from rebat.core.jobs import Workload, delays_us_of
from rebat.core.options import YoungDaly
from rebat.core.table import Column, distinct
from rebat.core.units import FOREVER_US, MAX_SECONDS, US_PER_S, to_s, to_us
from rebat.models.interruptions import level_of, surviving_tier

Rounding = Literal["ceil", "floor"]

Accounting = Literal["exact", "program"]
"""Which time of an attempt counts as checkpoint time. exact: all checkpoints, also one that closes
an incomplete period. program: only checkpoints of complete periods, as in the program of the
node-stealing authors. There, a checkpoint that closes an incomplete period counts as work.
"""

Time = TypeVar("Time", int, float)
"""A number of whole microseconds (int) or of seconds (float)."""


class CheckpointPattern(NamedTuple, Generic[Time]):
    """The checkpoint pattern of an execution: R_first, T_first, C, then T and C repeatedly.

    ``restart`` is the cost to restart from the state with which the execution began. ``moment`` is
    0.1 s. If a victim with timing T2 is still recovering, the authors' program kills it after this
    time.
    """

    period: Time
    cost: Time
    recovery: Time
    first_period: Time
    first_recovery: Time
    restart: Time
    moment: Time

    @property
    def first_end(self) -> Time:
        """End of the first checkpoint: t_first = R_first + T_first + C."""
        return self.first_recovery + self.first_period + self.cost

    @property
    def cycle(self) -> Time:
        """T + C."""
        return self.period + self.cost


PERIOD_FIELD = "checkpoint_period"
"""The profile field that states that a job writes checkpoints."""


class Checkpointing(msgspec.Struct, frozen=True):
    """How one execution writes checkpoints.

    Attributes
    ----------
    period_us : int
        T of the paper: time between two checkpoints, in microseconds.
    cost_us : int
        C of the paper: time to write a checkpoint.
    recovery_us : int
        R of the paper: time of a recovery.
    first_period_us, first_recovery_us : int
        T_first and R_first of the paper. For an original submission they are T and 0.
    closing : bool
        Whether a checkpoint also ends an incomplete last period (eq. 1 rounds up).
    image_us : int
        Cost to restart from the image with which the execution began. 0 means that there is no
        image.
    light : LightCheckpoints, optional
        Light checkpoints within the periods. Periods include the time to write them.
    """

    period_us: int
    cost_us: int
    recovery_us: int
    first_period_us: int
    first_recovery_us: int = 0
    closing: bool = True
    image_us: int = 0
    light: LightCheckpoints | None = None

    @property
    def restart_us(self) -> int:
        """Cost to restart from the state with which this execution began."""
        return self.image_us or self.recovery_us

    @property
    def pattern(self) -> CheckpointPattern[int]:
        """This checkpointing as a `CheckpointPattern`, for the rules in ``remaining``."""
        return CheckpointPattern(
            self.period_us,
            self.cost_us,
            self.recovery_us,
            self.first_period_us,
            self.first_recovery_us,
            self.restart_us,
            US_PER_S // 10,
        )

    @property
    def first_end_us(self) -> int:
        """End of the first checkpoint: t_first = R_first + T_first + C."""
        return self.first_recovery_us + self.first_period_us + self.cost_us

    @property
    def cycle_us(self) -> int:
        """T + C."""
        return self.period_us + self.cost_us

    @property
    def never(self) -> bool:
        """Whether no checkpoint is written."""
        return self.period_us == NEVER.period_us

    @property
    def perfect(self) -> bool:
        """Whether an interruption loses no work."""
        return self.cycle_us <= 1


_ENDLESS_US = round(MAX_SECONDS * US_PER_S)
NEVER = Checkpointing(_ENDLESS_US, 0, 0, first_period_us=_ENDLESS_US)
"""The checkpointing of a job that writes no checkpoint."""


def work_in_us(c: Checkpointing | None, length_us: int) -> int:
    """Return the work in a run time: the run time minus its checkpoints (eq. 1).

    ``length_us`` is the run time without recovery. If it ends during a closing checkpoint, the time
    of this incomplete checkpoint is also subtracted. (Equation 1 does not produce this case.)
    """
    if c is None:
        return length_us
    closing_us = c.cost_us if c.closing else 0
    beyond_us = length_us - c.first_period_us - c.cost_us
    if beyond_us <= 0:
        return min(c.first_period_us, max(0, length_us - closing_us))
    cycles, position_us = divmod(beyond_us, c.cycle_us)
    last_us = min(c.period_us, max(0, position_us - closing_us))
    return c.first_period_us + cycles * c.period_us + last_us


def with_checkpoints_us(c: Checkpointing | None, work_us: int) -> int:
    """Return a run time with checkpoints: the work plus a checkpoint per period (eq. 1).

    The run time does not include recovery.

    >>> with_checkpoints_us(Checkpointing(100, 10, 7, first_period_us=40), 41)
    61
    >>> with_checkpoints_us(Checkpointing(100, 10, 7, first_period_us=40, closing=False), 41)
    51
    """
    if c is None:
        return work_us
    beyond_us = work_us - c.first_period_us
    if c.closing:
        periods = 1 + max(0, -(-beyond_us // c.period_us))
    else:
        periods = 1 + beyond_us // c.period_us if beyond_us >= 0 else 0
    return work_us + periods * c.cost_us


def saved_in(worked: float, cycle: float) -> float:
    """Return the part of a recorded attempt that its checkpoints saved: its complete cycles.

    ``worked`` is the run time after the recovery, and ``cycle`` is the period plus the cost.
    """
    worked = max(worked, 0)
    return worked // cycle * cycle if cycle else worked


def young_daly_period_s(n_nodes: int, machine_nodes: int, mtbf_s: float, cost_s: float) -> float:
    """Return the Young/Daly period P_YD = sqrt(2 mu_job C) in seconds (section 5.2).

    mu_job is mtbf x machine_nodes / n_nodes.
    """
    return math.sqrt(2 * (mtbf_s * machine_nodes / n_nodes) * cost_s)


def n_below_period(workload: Workload, n_nodes: int, mtbf_s: float, cost_s: float) -> int:
    """Return the number of ``delay`` jobs that are shorter than their Young/Daly period."""
    jobs = Jobs.of(workload.jobs)
    rows, codes = distinct(jobs.profile_codes, jobs.n_nodes)
    profiles = [workload.profiles[jobs.profile_names[code]] for code in jobs.profile_codes[rows]]
    short = [
        profile.get("type") == "delay"
        and profile["delay"] < young_daly_period_s(size, n_nodes, mtbf_s, cost_s)
        for profile, size in zip(profiles, jobs.n_nodes[rows].tolist(), strict=True)
    ]
    return int(np.count_nonzero(np.array(short, dtype=bool)[codes]))


def add_young_daly(
    workload: Workload,
    *,
    n_nodes: int,
    mtbf_s: float,
    cost_s: float = 300.0,
    recovery_s: float = 300.0,
    rounding: Rounding = "floor",
) -> Workload:
    """Return the workload with run times and walltimes that include checkpoints (eqs 1 and 2).

    Parameters
    ----------
    n_nodes : int
        Number of nodes of the machine.
    mtbf_s : float
        MTBF of the entire machine in seconds.
    cost_s, recovery_s : float
        C and R, in seconds (5 minutes in section 5.2).
    rounding : 'ceil' or 'floor'
        How the number of checkpoints of a job is rounded. Equations 1 and 2 round up: a checkpoint
        also closes an incomplete last period, so every job writes at least one checkpoint. The text
        of section 6.1 matches rounding down: a job shorter than its period writes no checkpoint.
    """
    cost_us, round_ = to_us(cost_s), np.ceil if rounding == "ceil" else np.floor

    def period_s_on(size: int) -> float:
        return young_daly_period_s(size, n_nodes, mtbf_s, cost_s)

    def fields_on(size: int) -> dict[str, Any]:
        fields = {
            "checkpoint_period": period_s_on(size),
            "checkpoint_cost": cost_s,
            "recovery_cost": recovery_s,
            "Tfirst": period_s_on(size),
            "Rfirst": 0.0,
        }
        return fields | ({"checkpoint_rounding": rounding} if rounding == "floor" else {})

    def longer_us(lengths_us: Ints, sizes: Column) -> Ints:
        rows, codes = distinct(sizes)
        periods_s = np.array([period_s_on(size) for size in sizes[rows].tolist()])
        counts = round_(lengths_us / US_PER_S / periods_s[codes])
        return lengths_us + writing_us(counts, cost_us)

    return lengthened_workload(workload, fields_on, longer_us)


def add_perfect(workload: Workload) -> Workload:
    """Return the workload with perfect checkpoints: an interrupted job continues exactly where it
    stopped.

    No work is lost, and checkpoints and recovery cost nothing (section III of Prabhakaran et al.
    2018). In the profile, the checkpoint period is a microsecond.
    """
    check_delays(workload)
    fields = {"checkpoint_period": to_s(1), "checkpoint_cost": 0, "recovery_cost": 0}
    profiles = {
        name: profile | fields if profile.get("type") == "delay" else profile
        for name, profile in workload.profiles.items()
    }
    return msgspec.structs.replace(workload, profiles=profiles)


def without_checkpoints(workload: Workload) -> Workload:
    """Return the workload with run times and walltimes that include no checkpoints.

    This reverses `add_young_daly`, `add_perfect` and `rebat.models.tiers.add_tiers`.
    """
    by_profile = {name: checkpointing_of(fields) for name, fields in workload.profiles.items()}
    profiles = {
        name: _plain(fields, c) if (c := by_profile[name]) else fields
        for name, fields in workload.profiles.items()
    }

    jobs = Jobs.of(workload.jobs)
    of_code = [by_profile[name] for name in jobs.profile_names]
    rows, codes = distinct(jobs.profile_codes, jobs.walltime_us)
    pairs = zip(jobs.profile_codes[rows].tolist(), jobs.walltime_us[rows].tolist(), strict=True)
    plain_us = [
        _plain_us(c, us) if (c := of_code[code]) and 0 <= us < FOREVER_US else us
        for code, us in pairs
    ]
    walltime_us = np.array(plain_us, np.int64)[codes]
    changed = jobs.changed(walltime_us, jobs.profile_codes, jobs.profile_names)
    return msgspec.structs.replace(workload, jobs=changed, profiles=profiles)


def _plain(profile: dict[str, Any], c: Checkpointing) -> dict[str, Any]:
    fields = {
        name: value
        for name, value in profile.items()
        if name not in (*_TIMES, "checkpoint_rounding") and not name.startswith("light_")
    }
    return fields | {"delay": to_s(_plain_us(c, to_us(profile["delay"])))}


def _plain_us(c: Checkpointing, length_us: int) -> int:
    """Return a run time without the checkpoints of all tiers."""
    work_us = work_in_us(c, length_us)
    for tier in reversed(c.light.tiers if c.light else ()):
        work_us -= work_us // (tier.period_us + tier.cost_us) * tier.cost_us
    return work_us


def checkpointed_profile(workload: Workload) -> str | None:
    """Return the name of the first profile that has checkpoints, or None if no profile has any."""
    return next((name for name, p in workload.profiles.items() if PERIOD_FIELD in p), None)


def checkpointing_of(profile: dict[str, Any]) -> Checkpointing | None:
    """Return the checkpointing that the fields of a Batsim profile describe.

    Return None if the profile has no such fields.
    """
    if PERIOD_FIELD not in profile:
        return None
    period_s = profile[PERIOD_FIELD]
    defaults_s = (0, 0, 0, period_s, 0)
    times_s = tuple(map(profile.get, _TIMES, defaults_s))
    closing = profile.get("checkpoint_rounding") != "floor"
    try:
        checkpointing = _regular(times_s, closing)
    except TypeError:  # a field is a list or an object
        checkpointing = _checked(times_s, closing)
    light = light_of(profile)
    return msgspec.structs.replace(checkpointing, light=light) if light else checkpointing


_TIMES = (PERIOD_FIELD, "checkpoint_cost", "recovery_cost", "Tfirst", "Rfirst")
"""Profile fields with the first attributes of `Checkpointing`, in seconds."""


def _checked(times_s: tuple[Any, ...], closing: bool) -> Checkpointing:
    """Return the checkpointing without light checkpoints."""
    for name, value in zip(_TIMES, times_s, strict=True):
        if not isinstance(value, (int, float)) or not 0 <= value <= MAX_SECONDS:
            raise InputError(f"profile field {name} is {value!r}", expected="seconds, 0 or more")
    period, cost, recovery, first_period, first_recovery = map(to_us, times_s)
    if period == 0:
        raise InputError("profile field checkpoint_period is 0", expected="seconds, above 0")
    return Checkpointing(period, cost, recovery, first_period, first_recovery, closing)


_regular = lru_cache(maxsize=2**16)(_checked)
"""The same with a cache, because many jobs of a workload have the same checkpointing."""


def checkpoint_kinds(
    profiles: Sequence[dict[str, Any]],
) -> tuple[list[Checkpointing | None], list[int]]:
    """Return the distinct checkpointings of profiles, and the position of each profile's in them.

    For the errors, see `checkpointing_of`.
    """
    try:
        times_s = [*map(_times_of, profiles)]
    except KeyError:
        times_s = [tuple(map(profile.get, _TIMES)) for profile in profiles]
    roundings = [profile.get("checkpoint_rounding") for profile in profiles]
    lights = [
        repr([*map(profile.get, _LIGHT_FIELDS)]) if "light_period" in profile else None
        for profile in profiles
    ]
    keys = [*zip(times_s, roundings, lights, strict=True)]
    try:
        distinct_profiles = dict(zip(keys, profiles, strict=True))
    except TypeError:  # a field is a list or an object
        return [*map(checkpointing_of, profiles)], [*range(len(profiles))]
    codes = {key: code for code, key in enumerate(distinct_profiles)}
    kinds = [*map(checkpointing_of, distinct_profiles.values())]
    return kinds, [*map(codes.__getitem__, keys)]


_times_of = itemgetter(*_TIMES)


def derived_checkpointing(
    n_nodes: int, machine_nodes: int, young_daly: YoungDaly | None
) -> Checkpointing | None:
    """Return the checkpointing of a job that is not a resubmission.

    The Young/Daly period depends on its number of nodes.

    Return None if ``young_daly`` is None.
    """
    if young_daly is None:
        return None
    period_s = young_daly_period_s(n_nodes, machine_nodes, young_daly.mtbf_s, young_daly.cost_s)
    period = to_us(min(period_s, MAX_SECONDS))
    return Checkpointing(period, to_us(young_daly.cost_s), to_us(young_daly.recovery_s), period)


class Patterns(NamedTuple):
    """The checkpointing of each attempt, as int64 arrays of shape (n,).

    Attempts without checkpoints have the values of `NEVER`.
    """

    which: Ints
    """For each attempt, the index of its checkpointing in ``distinct``."""
    distinct: Sequence[Checkpointing | None]
    period_us: Ints
    cost_us: Ints
    first_period_us: Ints
    first_recovery_us: Ints
    closing: Ints
    """1 if a checkpoint also ends an incomplete last period, otherwise 0."""
    light: Ints
    """1 if the attempt writes light checkpoints, otherwise 0."""

    @classmethod
    def of(cls, which: Ints, distinct: Sequence[Checkpointing | None]) -> Patterns:
        """Return the patterns of attempts.

        ``which`` contains, for each attempt, the index of its checkpointing in ``distinct``.
        """
        rows = [_numbers(each or NEVER) for each in distinct]
        table = np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields) - 2).T
        return cls(which, distinct, *table.take(which, axis=1))

    def take(self, rows: Ints) -> Patterns:
        """Return the patterns of an array of rows."""
        which, distinct, *columns = self
        return Patterns(which[rows], distinct, *(column[rows] for column in columns))

    @property
    def cycle_us(self) -> Ints:
        """T + C."""
        return self.period_us + self.cost_us


def _numbers(c: Checkpointing) -> tuple[int, ...]:
    light = c.light is not None
    return c.period_us, c.cost_us, c.first_period_us, c.first_recovery_us, c.closing, light


def checkpoint_times_us(
    c: Patterns, until_us: Ints, length_us: Ints, ended: Bools, accounting: Accounting
) -> Ints:
    """Return the checkpoint time (us) in the first ``until_us`` of each attempt's progress.

    Parameters
    ----------
    until_us : int64 array, shape (n,)
        The part of the progress to examine, after the recovery, in microseconds.
    length_us : int64 array, shape (n,)
        The total progress after the recovery, in microseconds.
    ended : bool array, shape (n,)
        Whether the job completed with this attempt, possibly with a closing checkpoint.
    """
    closes = ended & (c.closing != 0)
    written = (until_us > c.first_period_us) | (closes & (until_us > length_us - c.cost_us))
    rows = np.flatnonzero(written | (c.light != 0))
    time_us = np.zeros_like(until_us)
    if len(rows):
        of_rows = until_us[rows], length_us[rows], closes[rows]
        time_us[rows] = _deep_us(c.take(rows), *of_rows, accounting)
    for at in rows[c.light[rows] != 0].tolist():
        pattern = c.distinct[c.which[at]]
        assert pattern is not None
        time_us[at] += _light_us(pattern, int(until_us[at] - time_us[at]))
    return time_us


def checkpoint_time_us(
    c: Checkpointing | None, until_us: int, length_us: int, ended: bool, accounting: Accounting
) -> int:
    """Return the checkpoint time of one attempt in microseconds; see `checkpoint_times_us`.

    >>> c = Checkpointing(100, 10, 7, first_period_us=100)
    >>> [checkpoint_time_us(c, 160, 160, True, how) for how in ("exact", "program")]
    [20, 10]
    >>> checkpoint_time_us(c, 155, 160, True, "exact")
    15
    """
    pattern = Patterns.of(np.zeros(1, dtype=np.int64), [c])
    until, length = (np.array([us], dtype=np.int64) for us in (until_us, length_us))
    return int(checkpoint_times_us(pattern, until, length, np.array([ended]), accounting)[0])


def _light_us(c: Checkpointing, worked_us: int) -> int:
    """Return the time of light checkpoints. ``worked_us`` does not include regular checkpoints.

    With a single light tier, the times between light checkpoints are counted from the start of the
    attempt.
    """
    assert c.light is not None
    if len(c.light.tiers) == 1:
        return c.light.written_us(worked_us)
    begin_us = c.period_us - c.first_period_us
    return c.light.written_us(begin_us + worked_us) - c.light.written_us(begin_us)


def _deep_us(
    c: Patterns, until_us: Ints, length_us: Ints, closes: Bools, accounting: Accounting
) -> Ints:
    """Return the time of regular checkpoints; see `checkpoint_times_us`.

    ``closes`` is a mask of the attempts that end with a closing checkpoint.
    """
    n_complete = np.maximum(0, length_us - c.first_period_us + c.period_us) // c.cycle_us
    after_us = c.first_period_us + (n_complete - 1) * c.cycle_us + c.cost_us
    last_us = np.where(n_complete > 0, after_us, 0)
    complete_us = n_complete * c.cost_us
    if accounting == "program":
        return np.where(until_us <= last_us, _regular_us(c, until_us), complete_us)
    period_us = np.where(n_complete > 0, c.period_us, c.first_period_us)
    closing_us = np.minimum(period_us, np.maximum(0, length_us - last_us - c.cost_us))
    period_us = np.where(closes, closing_us, period_us)
    beyond_us = complete_us + np.maximum(0, until_us - last_us - period_us)
    return np.where(until_us <= last_us, _regular_us(c, until_us), beyond_us)


def _regular_us(c: Patterns, until_us: Ints) -> Ints:
    """Return the time of the checkpoints that end complete periods."""
    cycles, position_us = np.divmod(until_us - c.first_period_us, c.cycle_us)
    time_us = cycles * c.cost_us + np.minimum(position_us, c.cost_us)
    return np.where(until_us <= c.first_period_us, 0, time_us)


def check_delays(workload: Workload) -> None:
    """Raise InputError if the profile of a job allows no checkpoints. Only delays allow them."""
    jobs = Jobs.of(workload.jobs)
    for name in jobs.profile_names:
        kind = workload.profiles[name].get("type")
        if kind != "delay":
            problem = f"the profile type is {kind!r}, which allows no checkpoints"
            raise InputError(problem, f"job {jobs.first_of(name).id}", "a delay profile")


def writing_us(counts: npt.NDArray[Any], cost_us: int) -> Ints:
    """Return the times (us) to write numbers of checkpoints, shape (n,)."""
    if (counts * float(cost_us) >= FOREVER_US).any():
        problem = f"the checkpoints of a job take more than {to_s(FOREVER_US):.0e} s"
        raise InputError(problem, expected="a longer MTBF, or cheaper checkpoints")
    return counts.astype(np.int64) * cost_us


def lengthened_workload(
    workload: Workload,
    fields_on: Callable[[int], dict[str, Any]],
    longer_us: Callable[[Ints, Column], Ints],
) -> Workload:
    """Return the workload with lengthened profiles and walltimes.

    Parameters
    ----------
    fields_on : callable
        Function of a number of nodes that returns the checkpoint fields of a profile.
    longer_us : callable
        Function of times (us) and numbers of nodes, both of shape (n,), that returns the longer
        times (us).
    """
    check_delays(workload)
    jobs, of_name = Jobs.of(workload.jobs), workload.profiles
    delays_us = delays_us_of([of_name[name] for name in jobs.profile_names])
    rows, codes = distinct(jobs.profile_codes, jobs.n_nodes)
    before, sizes = jobs.profile_codes[rows], jobs.n_nodes[rows]
    fields = {size: fields_on(size) for size in sorted(set(sizes.tolist()))}
    delays_s = longer_us(delays_us[before], sizes) / US_PER_S
    names = [jobs.profile_names[code] for code in before.tolist()]
    profiles = {
        f"{name}@{size}": {**of_name[name], "delay": delay_s, **fields[size]}
        for name, size, delay_s in zip(names, sizes.tolist(), delays_s.tolist(), strict=True)
    }
    walltime_us, limited = jobs.walltime_us.copy(), jobs.walltime_us >= 0
    walltime_us[limited] = longer_us(walltime_us[limited], jobs.n_nodes[limited])
    changed = jobs.changed(walltime_us, codes, [*profiles])
    return msgspec.structs.replace(workload, jobs=changed, profiles=profiles)


Survives = Literal["process", "node", "group"]
"""Failures that light checkpoints survive.

process: failures after which the node is still usable. node: also failures of a single node.
group: also failures of a group of nodes (a rack, a switch).
"""

FIELDS = ("light_period", "light_cost", "light_recovery")

_LIGHT_FIELDS = (*FIELDS, "light_survives", "light_software", "light_group")
"""The profile fields that `light_of` reads."""


class Failure(msgspec.Struct, frozen=True):
    """A failure of an attempt.

    Attributes
    ----------
    ran_us : int
        How long the attempt had run.
    cause : str
    first, last : int
        Lowest and highest number of those of its nodes that failed.
    """

    ran_us: int
    cause: str = ""
    first: int = 0
    last: int = 0


class LightTier(msgspec.Struct, frozen=True):
    """A tier of light checkpoints. Times are in microseconds.

    Attributes
    ----------
    period_us : int
        Time between two checkpoints, including checkpoints of lighter tiers.
    cost_us : int
        Time to write a checkpoint.
    recovery_us : int
        Time to read a checkpoint.
    survives : 'process', 'node' or 'group'
    """

    period_us: int
    cost_us: int
    recovery_us: int
    survives: Survives

    @property
    def part_us(self) -> int:
        """Length of a part: the period plus the checkpoint at its end."""
        return self.period_us + self.cost_us

    @property
    def level(self) -> int:
        """The failures that it survives, as a number of `rebat.models.interruptions`."""
        return _LEVEL[self.survives]


class LightCheckpoints(msgspec.Struct, frozen=True):
    """Light checkpoints of an execution.

    Attributes
    ----------
    tiers : tuple of LightTier
        The tiers from the lightest to the heaviest. Each survives more failures than the previous
        tier.
    software : tuple of str
        Causes of failures after which the node is still usable.
    group : int
        Number of consecutive nodes that form a group, which can fail together.
    """

    tiers: tuple[LightTier, ...]
    software: tuple[str, ...] = ()
    group: int = 1

    def surviving(self, failure: Failure) -> int:
        """Return the number of the lightest tier that survives a failure.

        0 means regular checkpoints, 1 the heaviest light tier.
        """
        is_software = failure.cause in self.software
        level = level_of(is_software, failure.first, failure.last, self.group)
        return int(surviving_tier(self.tiers, level))

    def written_us(self, worked_us: int) -> int:
        """Return the time in ``worked_us`` that was spent to write light checkpoints."""
        return _written_us(self.tiers, worked_us)


def _written_us(tiers: tuple[LightTier, ...], worked_us: int) -> int:
    if not tiers:
        return 0
    *lighter, tier = tiers
    count, position_us = divmod(worked_us, tier.part_us)
    in_part_us = _written_us(tuple(lighter), tier.period_us) + tier.cost_us
    writing_us = max(0, position_us - tier.period_us)
    lighter_us = _written_us(tuple(lighter), min(position_us, tier.period_us))
    return count * in_part_us + lighter_us + writing_us


_LEVEL: dict[str, int] = {name: level for level, name in enumerate(get_args(Survives))}


def light_of(profile: dict[str, Any]) -> LightCheckpoints | None:
    """Return the light checkpoints in a Batsim profile.

    Return None if it has none. If there are several light tiers, each field is a list that begins
    with the lightest tier.
    """
    if "light_period" not in profile:
        return None
    columns = [_seconds_us(profile, name) for name in FIELDS]
    survives = _several(profile.get("light_survives", "node"))
    for value in survives:
        if value not in _LEVEL:
            expected = " or ".join(_LEVEL)
            raise InputError(f"profile field light_survives is {short(value)}", expected=expected)
    if {len(column) for column in columns} != {len(survives)}:
        names = ", ".join((*FIELDS, "light_survives"))
        raise InputError(f"profile fields {names} have different lengths", expected="equal lengths")
    tiers = tuple(LightTier(*values) for values in zip(*columns, survives, strict=True))
    _check_tiers(tiers)
    software, group = profile.get("light_software", ""), profile.get("light_group", 1)
    if not isinstance(software, str):
        raise InputError(f"profile field light_software is {short(software)}", expected="a text")
    if not isinstance(group, int) or group < 1:
        expected = "a number of nodes, 1 or more"
        raise InputError(f"profile field light_group is {short(group)}", expected=expected)
    return LightCheckpoints(tiers, tuple(part for part in software.split("+") if part), group)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) and value else [value]


def _seconds_us(profile: dict[str, Any], name: str) -> list[int]:
    values = []
    for value in _several(profile.get(name, 0)):
        if not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            raise InputError(
                f"profile field {name} is {short(value)}", expected="seconds, 0 or more"
            )
        values.append(to_us(value))
    return values


def _check_tiers(tiers: tuple[LightTier, ...]) -> None:
    if not all(tier.period_us for tier in tiers):
        raise InputError("profile field light_period is 0", expected="seconds, above 0")
    for lighter, tier in pairwise(tiers):
        if tier.period_us % lighter.part_us:
            expected = "a multiple of the period and cost of the lighter tier"
            raise InputError(
                f"profile field light_period has {to_s(tier.period_us):g}", expected=expected
            )
        if _LEVEL[tier.survives] <= _LEVEL[lighter.survives]:
            problem = f"profile field light_survives has {tier.survives} after {lighter.survives}"
            raise InputError(problem, expected=f"the order {', '.join(_LEVEL)}")
