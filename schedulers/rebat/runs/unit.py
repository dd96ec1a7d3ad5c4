# SPDX-License-Identifier: Apache-2.0
"""A unit of work: one simulation, say, or one job set under all its failure scenarios.

Its key is the hash of all that determines its result, and of nothing else: names of grids and files
do not count.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of work.

    ``kind`` is a key of `campaign.kinds.KINDS`, ``grid`` the name of its grid; ``spec`` is what its
    kind works on, ``labels`` what the results table says it is about, ``about`` that for people;
    ``identity`` is what the key was made of, as plain JSON values; those of two kinds differ.
    """

    kind: str
    grid: str
    about: str
    spec: Any
    labels: dict[str, Any]
    identity: dict[str, Any]
    key: str


def key_of(identity: Any) -> str:
    """The key of a unit that is determined by these plain values."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON with one spelling per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
