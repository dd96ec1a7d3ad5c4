# SPDX-License-Identifier: Apache-2.0
"""A unit of work, for example a simulation, or a job set with all its failure scenarios.

The key of a unit is the hash of all data that determines its result. The names of grids and files
are not included.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of work."""

    kind: str
    """Key of `campaign.kinds.KINDS`."""
    grid: str
    """Name of the grid."""
    about: str
    """Readable description."""
    spec: Any
    """Specification, of a type that depends on the kind."""
    labels: dict[str, Any]
    """Columns that identify the unit in the results table."""
    identity: dict[str, Any]
    """Data from which the key is computed, as plain JSON values.

    Its structure depends on the kind of unit.
    """
    key: str


def key_of(identity: Any) -> str:
    """Return the key of a unit with this identity."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return canonical JSON. Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
