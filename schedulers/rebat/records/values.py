# SPDX-License-Identifier: Apache-2.0
"""Values of accounting records: durations, memory, counts, states."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS

UNSET = frozenset(("", "Unknown", "None", "N/A", "INVALID", "NONE"))
NAN = math.nan

UNLIMITED = frozenset(("UNLIMITED", "INFINITE", "Partition_Limit"))
"""Texts that mean "no limit"."""

NO_VALUES = frozenset(float(2**bits - less) for bits in (32, 64) for less in (1, 2))
"""Slurm's numbers INFINITE and NO_VAL in fields of 32 and 64 bits: no limit, or no value."""

NO_VALUES_16 = frozenset((2.0**16 - 1, 2.0**16 - 2))
"""The same in fields of 16 bits."""

STATES = frozenset(
    (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "COMPLETING",
        "CONFIGURING",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PENDING",
        "PREEMPTED",
        "REQUEUED",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
        "RESIZING",
        "REVOKED",
        "RUNNING",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
        "TIMEOUT",
    )
)
CUT = frozenset(("NODE_FAIL", "PREEMPTED", "REQUEUED", "BOOT_FAIL", "REQUEUE_HOLD"))
"""States of attempts that ended before their job."""

OPEN = frozenset(("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "CONFIGURING"))
"""States of attempts without an end."""

_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?\Z")
_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KM]?)\Z")
_UNITS = {"K": 1024, "M": 1024**2}
_MEMORY = re.compile(r"([\d.]+)([KMGTP]?)([cn]?)\Z")
_MEMORY_MB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


def is_unset(text: str) -> bool:
    """Return whether a text has no value, or no limit: a word, or a number of `NO_VALUES`.

    >>> is_unset("INFINITE"), is_unset("4294967295"), is_unset("0xfffffffe"), is_unset("60")
    (True, True, True, False)
    """
    if text in UNSET or text in UNLIMITED:
        return True
    try:
        value = float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text)
    except ValueError:
        return False
    return value in NO_VALUES


@lru_cache(maxsize=100_000)
def duration_s(text: str) -> float:
    """Return a duration in seconds, or NaN if it is unset or unlimited.

    A duration above `MAX_SECONDS` is unlimited. Sites of PBS write 99999999:00:00.

    >>> duration_s("1-02:00:00"), duration_s("05:30"), duration_s("UNLIMITED")
    (93600.0, 330.0, nan)
    >>> duration_s("99999999:00:00")
    nan
    """
    if is_unset(text):
        return NAN
    match = _DURATION.match(text)
    if not match:
        raise InputError(f"invalid duration {text[:40]!r}", expected="[D-]HH:MM:SS")
    days, hours, minutes, seconds = (int((part or "0")[:12]) for part in match.groups())
    value = 86400.0 * days + 3600 * hours + 60 * minutes + seconds
    return value if value <= MAX_SECONDS else NAN


@lru_cache(maxsize=100_000)
def number(text: str) -> float:
    """Return a number of at least 0, or NaN if it is unset or unlimited."""
    if is_unset(text):
        return NAN
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise InputError(f"invalid number {text[:40]!r}", expected="a number of at least 0")
    return value


@lru_cache(maxsize=100_000)
def count(text: str) -> float:
    """Return a number of nodes or cores, or NaN if it is unset.

    Old versions of Slurm print 1,024 as 1K and 1,536 as 1.50K.

    >>> count("16"), count("1K"), count("1.50K")
    (16.0, 1024.0, 1536.0)
    """
    if is_unset(text):
        return NAN
    match = _COUNT.match(text)
    if match and match[2]:
        return float(round(float(match[1]) * _UNITS[match[2]]))
    value = number(text)
    if not value.is_integer():
        raise InputError(f"invalid number {text[:40]!r}", expected="a whole number of at least 0")
    return value


def minutes_s(text: str) -> float:
    """Convert a number of minutes to seconds."""
    return 60.0 * number(text)


@lru_cache(maxsize=100_000)
def memory_mb(text: str) -> float:
    """Return memory in MB, or NaN if it is not readable. Suffixes (per core or node) are ignored.

    >>> memory_mb("4G"), memory_mb("100Mc"), memory_mb("")
    (4096.0, 100.0, nan)
    """
    match = _MEMORY.match(text)
    if is_unset(text.rstrip("KMGTPcn")) or not match or match[1].count(".") > 1 or match[1] == ".":
        return NAN
    return float(match[1][:20]) * _MEMORY_MB[match[2]]


@lru_cache(maxsize=10_000)
def state_of(text: str) -> str:
    """Return the first word of a state.

    >>> state_of("CANCELLED by 1001"), state_of("CANCELLED+")
    ('CANCELLED', 'CANCELLED')
    """
    state = text.split(" ", 1)[0].rstrip("+").upper()
    if state not in STATES:
        raise InputError(
            f"unknown state {text[:40]!r}", expected="a state of Slurm such as COMPLETED"
        )
    return state
