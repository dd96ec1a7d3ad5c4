# SPDX-License-Identifier: Apache-2.0
"""A notice when a process begins to compile. This module does not import numba."""

from __future__ import annotations

from collections.abc import Callable


class Compiling:
    """Notifies users when a process begins to compile.

    Attributes
    ----------
    on_begin : callable, optional
        Called once, when the first function is compiled, with whether machine code can be stored.
    """

    on_begin: Callable[[bool], None] | None = None

    def begins(self, can_store: bool) -> None:
        """Note that a function will be compiled, because its machine code is not on disk."""
        on_begin, self.on_begin = self.on_begin, None
        if on_begin:
            on_begin(can_store)


compiling = Compiling()
