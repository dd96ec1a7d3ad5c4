# SPDX-License-Identifier: Apache-2.0
"""The process in which a policy is tested. It simulates (*plays*) the cases that it reads.

Its arguments are the policy, and the start and the step of the clock in nanoseconds. It reads a
``PlayRequest`` per line, and writes a ``Played`` per line. The standard input of the policy is
empty, and its output is dropped.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from rebat.check.cases import SteppedClock, case_of
from rebat.check.playing import How, Played, play
from rebat.core.errors import InputError


class PlayRequest(msgspec.Struct, frozen=True):
    """A request to play a case."""

    case: dict[str, Any]
    how: How


def main(spec: str, start_ns: int, step_ns: int) -> None:
    """Play cases until standard input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    read = msgspec.json.Decoder(PlayRequest).decode
    SteppedClock(start_ns, step_ns).install()
    for line in requests:
        request = read(line)
        answers.write(msgspec.json.encode(_played(spec, request)) + b"\n")


def _played(spec: str, request: PlayRequest) -> Played:
    try:
        return play(spec, case_of(request.case), request.how)
    except InputError as error:  # another case may have loaded the policy before
        return Played("safety", str(error))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
