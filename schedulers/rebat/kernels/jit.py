# SPDX-License-Identifier: Apache-2.0
"""Compilation of kernels and rules.

A *kernel* is a function over arrays. It runs as plain Python until that has taken a third of a
second, which few runs need, and as machine code from then on. If its machine code is on disk, it
runs as machine code at once. In plain Python, a kernel calls other kernels as plain functions. A
command whose kernels are not compiled does not import numba.

A *rule* is a function over the tables of a simulation. Python interprets it. `machine_code_of`
compiles it with all rules that it calls, for runs that are long enough.

Under ``NUMBA_DISABLE_JIT=1`` all kernels and rules are plain Python, and numba is not imported.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, update_wrapper
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = "NUMBA_DISABLE_JIT"
"""Environment variable. If its value is 1, kernels and rules run as plain Python."""

if os.environ.get(PLAIN) == "1":  # random numbers and sets of bits are products modulo 2**64
    warnings.filterwarnings("ignore", "overflow", RuntimeWarning, r"rebat\.kernels\.")

INTERPRETED_S = 0.3
"""Time for which a kernel runs as plain Python before it is compiled. Compiling takes longer."""


ALWAYS = float("inf")


class Kernel:
    """A function that numba compiles when this saves time.

    It has the attributes of the compiled function. numba needs one of them, ``_numba_type_``, to
    compile calls of this kernel in other kernels.

    Parameters
    ----------
    function : callable
    options : dict
        Options of ``numba.njit``.
    left_s : float, optional
        Time for which Python may still interpret it. By default, it is determined at the first use.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], left_s: float | None = None
    ) -> None:
        update_wrapper(self, function)
        self._function, self._options, self._left_s = function, options, left_s

    def __call__(self, *arguments: Any) -> Any:
        if self._left_s is None:
            self._left_s = 0.0 if _is_on_disk(self._function) else INTERPRETED_S
        if self._left_s <= 0:
            return self.compiled(*arguments)
        begin = perf_counter()
        try:
            with np.errstate(over="ignore"):  # as machine code does
                return self.interpreted(*arguments)
        finally:
            self._left_s -= perf_counter() - begin

    @property
    def is_loaded(self) -> bool:
        """Whether the compiled function exists, for some arguments."""
        return "compiled" in vars(self)

    def is_on_disk(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether machine code for these arguments is in the cache. If so, it is used."""
        is_there = _is_on_disk(self._function, arguments)
        if is_there and self._left_s is None:
            self._left_s = 0.0
        return is_there

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    @cached_property
    def interpreted(self) -> Any:
        """The function for Python. It calls other kernels as plain functions too."""

        def plain(called: Any) -> Any:
            return called.interpreted if isinstance(called, Kernel) else called

        copied = _copy(self._function)
        self.interpreted = copied  # first, because a field can have the name of the kernel
        _replace_calls(copied, plain)
        return copied

    @cached_property
    def compiled(self) -> Any:
        """The compiled function. It replaces the kernel in the module of the kernel."""
        from rebat.kernels.code_cache import machine_code

        function = self._function
        compiled = machine_code(function, **self._options)
        if self._left_s != ALWAYS:
            self._left_s, module = 0.0, vars(sys.modules[function.__module__])
            if module.get(function.__name__) is self:
                module[function.__name__] = compiled
        return compiled


def _is_on_disk(function: Any, arguments: tuple[Any, ...] | None = None) -> bool:
    """Return whether machine code of a kernel is in the cache, for these arguments or for any."""
    source = Path(function.__code__.co_filename)
    name = f"{source.stem}.{function.__qualname__}-"
    files = (file.name for folder in _folders(source) for file in folder.iterdir())
    if not any(file.startswith(name) for file in files):
        return False
    from rebat.kernels.code_cache import is_cached_for

    return is_cached_for(function, arguments)


def _folders(source: Path) -> list[Path]:
    """Return the folders in which numba may store machine code of a file, if they exist."""
    chosen, own = os.environ.get("NUMBA_CACHE_DIR"), source.parent / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "numba"
    folders = [*Path(chosen).glob("*")] if chosen else [own, *home.glob("*")]
    return [folder for folder in folders if folder.is_dir()]


def may_compile() -> bool:
    """Return whether kernels and rules may be compiled."""
    return os.environ.get(PLAIN) != "1"


def is_ready(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a kernel or rule is compiled for these arguments, in memory or on disk."""
    if not may_compile():
        return True
    kernel = machine_code_of(function) if function in _RULES else function
    if isinstance(kernel, Kernel) and not kernel.is_loaded:
        return kernel.is_on_disk(arguments)
    from rebat.kernels.code_cache import is_compiled_for

    return is_compiled_for(kernel, arguments)


def _compiled(function: Function, left_s: float | None = None, **options: Any) -> Any:
    return Kernel(function, options, left_s) if may_compile() else function


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a kernel."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Inline a small step of a kernel into its callers.

    Otherwise, each call would count references to every array, which takes longer than the step.
    """
    return _compiled(function, ALWAYS, part=True, forceinline=True)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline a small step of a kernel into its callers, without reference counts of arrays.

    The step must not create an array. Counting references would take longer than the step itself.
    ``_nrt`` is the option of numba that enables reference counts. Python always interprets a step:
    machine code could return an array that is no longer there.
    """
    return _compiled(function, ALWAYS, part=True, forceinline=True, _nrt=False)


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a kernel without reference counts of arrays. It must not create an array."""
    return _compiled(function, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a kernel like `loop` that only kernels call. It is compiled with each of them."""
    return _compiled(function, ALWAYS, part=True, _nrt=False)


_RULES: dict[Any, dict[str, Any]] = {}
_MACHINE_CODE: dict[Any, Any] = {}


def whole_rule(function: Function) -> Function:
    """Declare a rule that Python calls as machine code, with all rules that it calls."""
    _RULES[function] = {"_nrt": False, "whole": True}
    return function


def rule(function: Function) -> Function:
    """Declare a rule, which must not create an array. It remains a plain function."""
    _RULES[function] = {"_nrt": False, "part": True}
    return function


def inlined_rule(function: Function) -> Function:
    """Declare a rule that is small, or has only one caller. Compiled, it is inlined.

    Otherwise, each call would copy the addresses of all tables, which takes 0.1 microseconds.
    """
    _RULES[function] = {"_nrt": False, "part": True, "forceinline": True}
    return function


def chosen(rules: Sequence[Callable[[Any], Any]]) -> Callable[[int, Any], Any]:
    """Return a rule that calls the rule with a number. All of them have one argument.

    Machine code cannot look up a function in a table, so it compares the number with that of each.
    """
    if unmarked := [each.__name__ for each in rules if each not in _RULES]:
        raise TypeError(f"{', '.join(unmarked)}: a rule needs the mark @inlined_rule")
    choice: Any = None
    for each in reversed(rules):
        choice, rest = _copy(_last if choice is None else _first_or_rest), choice
        choice.__globals__.update(first=each, rest=rest)
        inlined_rule(choice)
    made: Callable[[int, Any], Any] = choice
    return made


first: Any = None
rest: Any = None
"""The rules that copies of `_first_or_rest` and `_last` call."""


def _first_or_rest(number: int, argument: Any) -> Any:
    return first(argument) if number == 0 else rest(number - 1, argument)


def _last(number: int, argument: Any) -> Any:
    return first(argument)


def reads(function: Any, fields: Collection[str]) -> bool:
    """Return whether a rule or one that it calls reads an attribute with one of these names."""
    names = set(function.__code__.co_names)
    called = [function.__globals__[name] for name in names & function.__globals__.keys()]
    rules = [each for each in called if isinstance(each, FunctionType) and each in _RULES]
    return not names.isdisjoint(fields) or any(reads(each, fields) for each in rules)


def machine_code_of(function: Any) -> Any:
    """Return a rule as a kernel, which calls the rules that it uses as kernels too.

    It is compiled at its first use. Under ``NUMBA_DISABLE_JIT=1``, it is the rule itself.
    """
    if not may_compile():
        return function
    if function not in _MACHINE_CODE:
        copied = _copy(function)
        _MACHINE_CODE[function] = Kernel(copied, _RULES[function], 0.0)

        def as_kernel(called: Any) -> Any:
            is_rule = isinstance(called, FunctionType) and called in _RULES
            return machine_code_of(called) if is_rule else called

        _replace_calls(copied, as_kernel)
    return _MACHINE_CODE[function]


def _copy(function: Any) -> Any:
    """Return a copy of a function with its own global names."""
    names = dict(function.__globals__)
    copied = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copied.__qualname__, copied.__doc__ = function.__qualname__, function.__doc__
    return copied


def _replace_calls(copied: Any, replaced: Callable[[Any], Any]) -> None:
    """Replace what a copy of a function calls by name."""
    names = copied.__globals__
    for name in names.keys() & set(copied.__code__.co_names):
        names[name] = replaced(names[name])
