# SPDX-License-Identifier: Apache-2.0
"""The lines of standard error that do not depend on the speed of the machine."""

from __future__ import annotations

_OF_SPEED = ("compiling the kernels", "compiles a faster loop", "done | ")


def messages(error: str) -> list[str]:
    """Return the lines without progress, and without notes on compilation.

    Whether a program prints these depends on what is compiled already, and on how long it takes.
    """
    return [line for line in error.splitlines() if not any(text in line for text in _OF_SPEED)]
