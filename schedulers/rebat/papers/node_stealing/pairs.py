# SPDX-License-Identifier: Apache-2.0
"""Which Baseline a stealing policy is compared with, and what tells it from its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rebat.papers.node_stealing.evidence import PROGRAM


class Named(NamedTuple):
    """A policy as a campaign writes it: its end, its name there, and its axes."""

    end: str
    name: str
    axes: frozenset[str]

    @property
    def difference(self) -> str:
        """What it has that its end has not, for people.

        Where ``semantics`` is changed alone, the axes that would follow it are pinned.
        """
        if any(axis.startswith("semantics=") for axis in self.axes):
            return next(axis for axis in self.axes if axis.startswith("semantics="))
        return ", ".join(sorted(self.axes)) or "(none)"


def parsed(policy: str) -> Named:
    """
    >>> parsed("authors-h111:tie=order").name, parsed("h111").difference
    ('h111', '(none)')
    """
    name, _, text = policy.partition(":")
    end = PROGRAM if name.startswith(PROGRAM) else ""
    return Named(end, name.removeprefix(PROGRAM), frozenset(filter(None, text.split(","))))


def counterpart(policy: str, others: Iterable[str]) -> str | None:
    """The Baseline of the same end with the most of the same axes, and with no others.

    >>> counterpart("h111:margin=5", ["baseline", "baseline:margin=5", "authors-baseline"])
    'baseline:margin=5'
    >>> counterpart("h111:tie=id", ["baseline", "baseline:margin=5"])
    'baseline'
    """
    own = parsed(policy)
    found = [(len(parsed(name).axes), name) for name in others if _fits(parsed(name), own)]
    return max(found)[1] if found else None


def _fits(base: Named, own: Named) -> bool:
    return base.name == "baseline" and base.end == own.end and base.axes <= own.axes
