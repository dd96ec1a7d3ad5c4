# SPDX-License-Identifier: Apache-2.0
"""User-defined code from a Python file: a policy, ``FILE.py:CLASS``, or a rule of an axis.

The file is read again at every use. Therefore, a run never reuses module variables of an earlier
run, and the recorded hash is the hash of the executed code.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.policies.guard import place_of

Rule = Callable[..., Any]
"""A function of the user's file."""

MARK = ".py:"
"""Text that marks a specification (``FILE.py:NAME``) of user-defined code."""


ALLOWED = "REBAT_PYTHON_FILES"
"""Environment variable with the SHA-256 hashes of the Python files that may run, joined by commas.

If it is not set, every file that the user names may run.
"""


class OwnCode(msgspec.Struct, frozen=True):
    """Source of user-defined code; ``file`` is the file name without its folder."""

    file: str
    name: str
    sha256: str


def is_own(text: object) -> bool:
    """Return whether the value of an option names code in a file."""
    return isinstance(text, str) and MARK in text


def placed(spec: str, folder: Path | None = None) -> str:
    """Return the specification with the absolute path of the file."""
    file, _, name = spec.strip().rpartition(":")
    return f"{(folder or Path()).absolute() / file}:{name}"


def file_of(place: str) -> str:
    """Return the file of a specification."""
    return place.rpartition(":")[0]


def name_of(place: str) -> str:
    """Return the name of the class or function in a specification."""
    return place.rpartition(":")[2]


def source_of(place: str) -> OwnCode:
    """Return name and hash of the file of a specification."""
    path = Path(file_of(place))
    return OwnCode(path.name, name_of(place), hashlib.sha256(_bytes(path)).hexdigest())


def load(place: str) -> Any:
    """Load the class or function of a specification from a fresh module."""
    file, name = file_of(place), name_of(place)
    module = load_module(file)
    if not hasattr(module, name):
        raise InputError(f"has no {name!r}", file, "FILE.py:NAME")
    return getattr(module, name)


def load_module(file: str) -> ModuleType:
    """Load a file as a fresh module."""
    _bytes(Path(file))
    loader = Fresh(f"own code {file}", file)
    module_spec = spec_from_loader(loader.name, loader)
    assert module_spec is not None
    module = module_from_spec(module_spec)
    sys.modules[loader.name] = module  # dataclasses need their module in sys.modules
    try:
        loader.exec_module(module)
    except NotAllowed:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot be imported: {type(error).__name__}: {error}", file) from error
    return module


class NotAllowed(InputError):
    """Error: `ALLOWED` is set and does not contain the hash of a Python file."""


class Fresh(SourceFileLoader):
    """An import loader that compiles the current contents of a file, and writes no cache file."""

    def get_code(self, fullname: str) -> CodeType:
        content, allowed = self.get_data(self.path), os.environ.get(ALLOWED)
        if allowed is not None and hashlib.sha256(content).hexdigest() not in allowed.split(","):
            expected = "a Python file that was confirmed, with its content unchanged"
            raise NotAllowed("may not run", self.path, expected)
        code: CodeType = self.source_to_code(content, self.path)
        return code


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(str(reason), str(path), "FILE.py:NAME") from None


def own_rule(option: str, place: str, maker: Callable[[Any], Any]) -> Any:
    """Create a rule from the function in a file."""
    function = load(place)
    where = f"{file_of(place)}: {name_of(place)}"
    if not callable(function):
        raise InputError(f"is not a rule for {option}", where, "a function")
    try:
        return maker(function)
    except InputError as error:
        raise error.at(where) from None


def created(kind: Any, file: str | None) -> Any:
    """Create an object of a user-defined class by calling the class without arguments."""
    try:
        return kind()
    except (Exception, SystemExit) as error:
        problem = f"class {kind.__name__} cannot be created: {type(error).__name__}: {error}"
        raise InputError(problem, file, "a class without required arguments") from error


class UnfitAnswer(TypeError):
    """Error for an invalid value from a rule. ``place`` is the file and line of the rule."""

    def __init__(self, rule: Rule, answer: object, expected: str) -> None:
        super().__init__(f"the rule returned {answer!r:.60} (expected {expected})")
        self.place = place_of(rule)


def called(rule: Rule, *given: Any) -> Any:
    """Return the answer of a rule. A number or a truth value of numpy becomes one of Python."""
    answer = rule(*given)
    return answer.item() if isinstance(answer, np.generic) else answer


def numbers(rule: Rule, answer: Any) -> tuple[float, ...]:
    """Return the numbers that a rule returned, as a tuple; raise UnfitAnswer for other values."""
    values = answer if isinstance(answer, tuple) else (answer,)
    try:
        unfit = not values or any(math.isnan(value) for value in values)
    except TypeError:
        unfit = True
    if unfit:
        raise UnfitAnswer(rule, answer, "a number, or a tuple of numbers")
    return values
