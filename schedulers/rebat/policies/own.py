"""A policy of one's own, from a Python file: ``path/to/file.py:ClassName``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.options import SessionOptions
from rebat.policies.base import Policy

MARK = ".py:"
"""What tells such a specification from a name."""


class OwnPolicy(msgspec.Struct, frozen=True):
    """A class with ``plan`` and ``recover`` and ``review`` (mix in ``Requeue`` for those two)."""

    name: str
    kind: Any
    session: SessionOptions = SessionOptions()

    def make(self) -> Policy:
        """A fresh policy: the class called without arguments."""
        policy: Policy = self.kind()
        return policy


def own_policy(spec: str) -> OwnPolicy:
    """Load the class.

    Raises
    ------
    InputError
        When the file cannot be imported, or holds no such class with the methods of a policy.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InputError("no such file", file, "FILE.py:CLASS")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"cannot be imported: {type(error).__name__}: {error}", file) from error
    kind = getattr(module, name, None)
    lacking = [m for m in ("plan", "recover", "review") if not callable(getattr(kind, m, None))]
    if not isinstance(kind, type) or lacking:
        what = f"class {name} lacks {', '.join(lacking)}" if kind else f"has no class {name}"
        raise InputError(what, file, "a class with plan(view, changes) that mixes in Requeue")
    return OwnPolicy(name, kind)
