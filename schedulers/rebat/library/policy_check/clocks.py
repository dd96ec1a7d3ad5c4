# SPDX-License-Identifier: Apache-2.0
"""A clock that is controlled by a test and replaces the clock of the system."""

from __future__ import annotations

import datetime
import time
from typing import Any

NAMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
"""Functions of the module ``time`` that return seconds. ``NAME_ns`` returns nanoseconds."""


class SteppedClock:
    """A clock that advances by a fixed step whenever it is read.

    Parameters
    ----------
    start_ns : int
        Time of the first reading, in nanoseconds since the Unix epoch.
    step_ns : int
        Time by which each reading advances the clock, in nanoseconds.
    """

    def __init__(self, start_ns: int, step_ns: int) -> None:
        self._now_ns, self._step_ns = start_ns, step_ns

    def nanoseconds(self) -> int:
        """Read the clock, in nanoseconds."""
        self._now_ns += self._step_ns
        return self._now_ns

    def seconds(self) -> float:
        """Read the clock, in seconds."""
        return self.nanoseconds() / 1e9

    def install(self) -> None:
        """Replace the clocks of ``time`` and ``datetime`` in this process.

        Modules that imported a function before the call still use the clock of the system.
        """
        for name in NAMES:
            setattr(time, name, self.seconds)
            setattr(time, f"{name}_ns", self.nanoseconds)
        clock, local = self, time.localtime

        class DateTime(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return cls.fromtimestamp(clock.seconds(), tz)

            @classmethod
            def utcnow(cls) -> Any:
                return cls.now(datetime.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> Any:
                return cls.now()

        class Date(datetime.date):
            @classmethod
            def today(cls) -> Any:
                return cls.fromtimestamp(clock.seconds())

        def localtime(seconds: Any = None) -> time.struct_time:
            return local(clock.seconds() if seconds is None else seconds)

        setattr(datetime, "datetime", DateTime)  # noqa: B010  (mypy: not to a type)
        setattr(datetime, "date", Date)  # noqa: B010
        time.localtime = localtime
