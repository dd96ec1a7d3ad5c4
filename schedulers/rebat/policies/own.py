# SPDX-License-Identifier: Apache-2.0
"""Code of one's own, from a Python file: a policy, ``FILE.py:CLASS``, or a rule of one axis.

A file is read anew whenever it is asked for: what one run leaves in its module is not seen by the
next, and its hash says what ran.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.options import SessionOptions
from rebat.policies.base import Policy
from rebat.policies.composition import Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.reactions.operations import Operations

MARK = ".py:"
"""What tells such a specification from a name."""


class OwnCode(msgspec.Struct, frozen=True):
    """Where something of one's own comes from: ``file`` is the file's name without its folder."""

    file: str
    name: str
    sha256: str


class OwnPolicy(msgspec.Struct, frozen=True):
    """A class with ``plan`` and ``react`` (derive from ``Policy`` for that).

    ``name`` is what results call it, ``place`` the file with the class; ``orders``: whether
    operations are carried out for it.
    """

    name: str
    kind: Any
    place: str
    session: SessionOptions = SessionOptions()
    orders: bool = False

    @staticmethod
    def of_class(kind: Any, place: str = "") -> OwnPolicy:
        """A policy of a class.

        Raises
        ------
        InputError
            When it is none, or lacks a method of a policy.
        """
        name = getattr(kind, "__name__", str(kind))
        lacking = [m for m in ("plan", "react") if not callable(getattr(kind, m, None))]
        if not isinstance(kind, type) or lacking:
            what = f"class {name} lacks {', '.join(lacking)}" if lacking else f"{name} is no class"
            expected = "a class with plan(view, changes) that derives from Policy"
            raise InputError(what, file_of(place) or None, expected)
        return OwnPolicy(name, kind, place)

    def carrying_out(self) -> OwnPolicy:
        """The same, with operations carried out before it is asked to react."""
        return msgspec.structs.replace(self, orders=True)

    def make(self) -> Policy:
        """A fresh policy: the class called without arguments, every answer of it checked.

        Raises
        ------
        InputError
            When that fails.
        """
        try:
            policy = self.kind()
        except (Exception, SystemExit) as error:
            what = f"class {self.kind.__name__} cannot be made: {type(error).__name__}: {error}"
            where = file_of(self.place) or None
            raise InputError(what, where, "a class made without arguments") from error
        file = file_of(self.place) or _defined_in(self.kind)
        guarded = Guarded(policy, self.kind.__name__, [file])
        return Scheduler(guarded, [guarded], [Operations()]) if self.orders else guarded

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """The file, for the records; of a class in a notebook there is none."""
        return (source_of(self.place),) if self.place else ()


def own_policy(spec: str, folder: Path | None = None) -> OwnPolicy:
    """Load the class; a relative file is looked for from ``folder`` on, or from here.

    Raises
    ------
    InputError
        When the file cannot be imported, or holds no such class with the methods of a policy.
    """
    place = placed(spec, folder)
    return msgspec.structs.replace(OwnPolicy.of_class(load(place), place), name=name_of(place))


def _defined_in(kind: Any) -> str:
    """Where a class's code is, as tracebacks call it: of a notebook, its cell."""
    code = getattr(kind.plan, "__code__", None)
    return str(code.co_filename) if code else ""


def is_own(text: object) -> bool:
    """Whether a choice names something in a file."""
    return isinstance(text, str) and MARK in text


def placed(spec: str, folder: Path | None = None) -> str:
    """The same specification wherever it is read: with the file's whole path."""
    file, _, name = spec.strip().rpartition(":")
    return f"{(folder or Path()).absolute() / file}:{name}"


def file_of(place: str) -> str:
    """The file of a specification."""
    return place.rpartition(":")[0]


def name_of(place: str) -> str:
    """The class or function of a specification."""
    return place.rpartition(":")[2]


def source_of(place: str) -> OwnCode:
    """What the records say of a specification's file."""
    path = Path(file_of(place))
    return OwnCode(path.name, name_of(place), hashlib.sha256(_bytes(path)).hexdigest())


def load(place: str) -> Any:
    """The class or function that a specification names, from a fresh module.

    Raises
    ------
    InputError
        When there is no such file or name, or the file cannot be imported.
    """
    file, name = file_of(place), name_of(place)
    _bytes(Path(file))
    loader = _Fresh(f"own code {file}", file)
    module_spec = spec_from_loader(loader.name, loader)
    assert module_spec is not None
    module = module_from_spec(module_spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot be imported: {type(error).__name__}: {error}", file) from error
    if not hasattr(module, name):
        raise InputError(f"has no {name!r}", file, "FILE.py:NAME")
    return getattr(module, name)


class _Fresh(SourceFileLoader):
    """Compiles the file as it is now, and leaves no cache beside it."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(str(reason), str(path), "FILE.py:NAME") from None
