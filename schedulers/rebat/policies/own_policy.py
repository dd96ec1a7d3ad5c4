# SPDX-License-Identifier: Apache-2.0
"""A policy of the user's own: a class in a file, ``FILE.py:CLASS``, or one in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.contract import Policy
from rebat.core.errors import InputError
from rebat.core.options import SessionOptions
from rebat.policies.composition import Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.own import OwnCode, file_of, load, name_of, placed, source_of
from rebat.policies.reactions.operations import Operations


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
