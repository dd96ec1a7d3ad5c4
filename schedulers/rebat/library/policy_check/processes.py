# SPDX-License-Identifier: Apache-2.0
"""Processes that simulate (*play*) cases. Each process has its own hash seed and clock."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from rebat.library.policy_check.player import PlayRequest
from rebat.library.policy_check.playing import How, Played

EPOCH_NS = 1_700_000_000 * 10**9
YEARS_NS = 123_456_789 * 10**9
STEP_NS = 4_111_337 * 10**6
"""Step of `OTHER_CLOCK`. It exceeds an hour, and is no multiple of a second or a minute."""


class PlayerSettings(NamedTuple):
    """Hash seed and clock of a process."""

    hash_seed: int
    start_ns: int
    step_ns: int


USUAL = PlayerSettings(1, EPOCH_NS, 1000)
OTHER_HASH = PlayerSettings(2, EPOCH_NS, 1000)
OTHER_CLOCK = PlayerSettings(1, EPOCH_NS + YEARS_NS, STEP_NS)

HANGS = "the policy does not return"
"""Beginning of the problem text if a run exceeds the time limit."""

CRASHES = "the policy ends its process"
"""Beginning of the problem text if the policy's process ends during a run."""


class Player:
    """A process that plays cases. It is started for the first case, and again after a crash.

    Parameters
    ----------
    spec : str
        Name of the policy, as for `check_policy`.
    settings : PlayerSettings
    timeout_s : float
        Time limit for a run, in seconds.
    """

    def __init__(self, spec: str, settings: PlayerSettings, timeout_s: float) -> None:
        self._spec, self._settings, self._timeout_s = spec, settings, timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    def play(self, case: dict[str, Any], how: How = How.EMBEDDED) -> Played:
        """Play a case (see `cases.case_record`)."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError):  # the process ended
            process.stdin.write(msgspec.json.encode(PlayRequest(case, how)) + b"\n")
            process.stdin.flush()
        line = self._line(process)
        if line:
            return msgspec.json.decode(line, type=Played)
        ended = process.poll()
        self.close()
        if ended is None:
            return Played("safety", f"{HANGS} within {self._timeout_s:g} s")
        return Played("safety", f"{CRASHES} (exit status {ended})")

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a process that imports modules from the same folders as this process."""
        spec, hash_seed, *clock = self._spec, *self._settings
        module = "rebat.library.policy_check.player"
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, spec, *map(str, clock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path},
        )

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """Return the next line that the process writes.

        The line is empty if the time limit is exceeded or the process has ended.
        """
        assert process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout_s):
                return b""
        line = process.stdout.readline()
        if not line:
            process.wait()
        return line

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
        self._process = None


class Players:
    """The three processes that test a policy. The context manager ends them on exit."""

    def __init__(self, spec: str, timeout_s: float) -> None:
        self.usual = Player(spec, USUAL, timeout_s)
        self.other_hash = Player(spec, OTHER_HASH, timeout_s)
        self.other_clock = Player(spec, OTHER_CLOCK, timeout_s)

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        for player in (self.usual, self.other_hash, self.other_clock):
            player.close()
