# SPDX-License-Identifier: Apache-2.0
"""Compilation of the kernels.

Under ``NUMBA_DISABLE_JIT=1`` the kernels are plain Python, and numba is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = "NUMBA_DISABLE_JIT"
"""Environment variable; with the value 1 the kernels run as plain Python."""


def _compiled(function: Function, **options: Any) -> Function:
    if os.environ.get(PLAIN) == "1":
        return function
    from rebat.kernels.code_cache import machine_code

    compiled: Function = machine_code(function, **options)
    return compiled


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code (plain Python under ``NUMBA_DISABLE_JIT=1``)."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Inline a small step of a kernel into its callers.

    A function call counts references to every array. This takes longer than the step itself.
    """
    return _compiled(function, forceinline=True)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline a small step of a kernel into its callers, without reference counts of arrays.

    The step must not create an array. Reference counts take longer than the step itself.
    (``_nrt`` is the part of numba that counts references.)
    """
    return _compiled(function, forceinline=True, _nrt=False)


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop without reference counts of arrays; the loop must not create an array."""
    return _compiled(function, _nrt=False)
