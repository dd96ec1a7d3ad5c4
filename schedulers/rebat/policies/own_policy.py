# SPDX-License-Identifier: Apache-2.0
"""A user-defined policy: a class in a file, ``FILE.py:CLASS``, or in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.contract import Policy
from rebat.core.errors import InputError, short
from rebat.core.options import SessionOptions
from rebat.policies.composition import Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.own import (
    OwnCode,
    created,
    file_of,
    load,
    load_module,
    name_of,
    placed,
    source_of,
)
from rebat.policies.reactions.operations import Operations


class OwnPolicy(msgspec.Struct, frozen=True):
    """A class with ``plan`` and ``react``, usually derived from ``Policy``."""

    name: str
    """Name in results."""
    kind: Any
    """The class."""
    place: str
    """File and class, FILE.py:CLASS. For a class in a notebook, this text is empty."""
    session: SessionOptions = SessionOptions()
    orders: bool = False
    """Whether rebat carries out operations on behalf of the policy."""

    @staticmethod
    def of_class(kind: Any, place: str = "") -> OwnPolicy:
        """Return the policy that a class defines."""
        if not isinstance(kind, type):
            error = f"{name_of(place) or short(kind)} is not a class"
        elif missing := _missing(kind):
            error = f"class {kind.__name__} has no method {', '.join(missing)}"
        else:
            return OwnPolicy(kind.__name__, kind, place)
        expected = "a class with plan(view, changes) that derives from Policy"
        raise InputError(error, file_of(place) or None, expected)

    def carrying_out(self) -> OwnPolicy:
        """Return a policy that carries out operations before this policy reacts."""
        return msgspec.structs.replace(self, orders=True)

    def make(self) -> Policy:
        """Create the policy by calling the class without arguments. Its proposals are checked."""
        policy = created(self.kind, file_of(self.place) or None)
        file = file_of(self.place) or _defined_in(self.kind)
        guarded = Guarded(policy, self.kind.__name__, [file])
        return Scheduler(guarded, [guarded], [Operations()]) if self.orders else guarded

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """Name and hash of the file, to record with the results.

        The tuple is empty for a class in a notebook.
        """
        return (source_of(self.place),) if self.place else ()


def own_policy(spec: str, folder: Path | None = None) -> OwnPolicy:
    """Load a policy class. Relative paths start from ``folder`` (default: working directory)."""
    place = placed(spec, folder)
    return msgspec.structs.replace(OwnPolicy.of_class(load(place), place), name=name_of(place))


def without_class(file: str, folder: Path | None = None) -> InputError:
    """Return the error for a file without a class. The error names the policies in the file."""
    module = load_module(str((folder or Path()).absolute() / file))
    names = [
        name
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and not _missing(kind)
    ]
    examples = " or ".join(f"{file}:{name}" for name in names)
    return InputError("the class is missing", file, examples or "FILE.py:CLASS")


def _missing(kind: type) -> list[str]:
    """Return the methods of a policy that a class lacks. It must override `Policy.plan`."""
    methods = {name: getattr(kind, name, None) for name in ("plan", "react")}
    return [n for n, of in methods.items() if not callable(of) or of is Policy.plan]


def _defined_in(kind: Any) -> str:
    """Return the name that tracebacks use for the file or the notebook cell of a class."""
    code = getattr(kind.plan, "__code__", None)
    return str(code.co_filename) if code else ""
