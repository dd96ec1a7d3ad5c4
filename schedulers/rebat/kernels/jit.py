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
"""Environment variable; 1 leaves the kernels as plain Python."""


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
    """Compile a small step of a kernel into its callers.

    A function call counts references to every array, which costs more than the step itself.
    """
    return _compiled(function, forceinline=True)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small step of a kernel, which creates no array, into its callers.

    Otherwise numba counts references to every array at every call, which takes longer than the
    steps themselves. (``_nrt`` is numba's runtime, which counts them.)
    """
    return _compiled(function, forceinline=True, _nrt=False)


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop of steps that creates no array, also without counting references."""
    return _compiled(function, _nrt=False)
