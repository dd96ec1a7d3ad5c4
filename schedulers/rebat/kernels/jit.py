# SPDX-License-Identifier: Apache-2.0
"""Compilation of the kernels.

A kernel is compiled, or loaded from the cache, when it is first used. Most commands use few of the
kernels or none, and then do not import numba.

Under ``NUMBA_DISABLE_JIT=1`` the kernels are plain Python, and numba is not imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = "NUMBA_DISABLE_JIT"
"""Environment variable; with the value 1 the kernels run as plain Python."""


class Kernel:
    """A function that numba compiles when it is first used.

    Attributes are those of the compiled function. One of them, ``_numba_type_``, is what numba
    needs to compile a call of this kernel by another kernel.

    Parameters
    ----------
    function : callable
    options : dict
        Options of ``numba.njit``.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    @cached_property
    def compiled(self) -> Any:
        """The function compiled by numba. It replaces the kernel in the kernel's module."""
        from rebat.kernels.code_cache import machine_code

        function = self._function
        compiled = machine_code(function, **self._options)
        module = vars(sys.modules[function.__module__])
        if module.get(function.__name__) is self:
            module[function.__name__] = compiled
        return compiled


def _compiled(function: Function, **options: Any) -> Any:
    return function if os.environ.get(PLAIN) == "1" else Kernel(function, options)


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
