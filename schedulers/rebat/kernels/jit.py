# SPDX-License-Identifier: Apache-2.0
"""Compilation of the kernels.

A kernel is compiled, or loaded from the cache, at its first use. Most commands use few kernels or
none. A command that uses no kernels does not import numba.

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
"""Environment variable. If its value is 1, the kernels run as plain Python."""


class Kernel:
    """A function that numba compiles at its first use.

    It has the attributes of the compiled function. numba needs one of them, ``_numba_type_``, to
    compile calls of this kernel in other kernels.

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
        """The compiled function. It replaces the kernel in the module of the kernel."""
        from rebat.kernels.code_cache import machine_code

        function = self._function
        compiled = machine_code(function, **self._options)
        module = vars(sys.modules[function.__module__])
        if module.get(function.__name__) is self:
            module[function.__name__] = compiled
        return compiled


def is_ready(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a kernel is compiled for these arguments, in memory or on disk."""
    if os.environ.get(PLAIN) == "1" or os.environ.get("REBAT_PLAIN_SIM") == "1":
        return True
    from rebat.kernels.code_cache import is_compiled_for

    return is_compiled_for(function, arguments)


def _compiled(function: Function, **options: Any) -> Any:
    if os.environ.get("REBAT_PLAIN_SIM") == "1" and function.__module__.startswith("rebat.sim"):
        return function
    return function if os.environ.get(PLAIN) == "1" else Kernel(function, options)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code. If ``NUMBA_DISABLE_JIT=1``, keep it as plain Python."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Inline a small step of a kernel into its callers.

    Otherwise, each call would count references to every array, which takes longer than the step.
    """
    return _compiled(function, forceinline=True)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline a small step of a kernel into its callers, without reference counts of arrays.

    The step must not create an array. Python must not call a step that returns an array. Counting
    references would take longer than the step itself. ``_nrt`` is the option of numba that enables
    reference counts.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop without reference counts of arrays. The loop must not create an array."""
    return _compiled(function, _nrt=False)
