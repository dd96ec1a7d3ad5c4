# SPDX-License-Identifier: Apache-2.0
"""Failure laws of real machines by name: ``lanl-20`` is a law with fitted parameters.

`scripts/fit_failure_models.py` fits parameters to published records, and writes them to
``failure_events/models.toml``. ``failure_events/fleets.toml`` contains published parameters of
training clusters.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

import msgspec

from rebat.core.shipped import folder

FILE = "models.toml"
FLEETS = "fleets.toml"


class Prefab(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure law of a real machine.

    Parameters
    ----------
    title : str
        The machine, and the period of the record.
    source : str
        The record or the publication.
    nodes : int
        Number of nodes of the machine.
    failures : int, optional
        Number of failures of the machine in the record. Failures at the same time count once. None
        if only a rate is published.
    days : float, optional
        Length of the record.
    law : str
        Name of the law in `laws.LAWS`.
    parameters : dict of str to number or text
        Parameters of the law. Durations are in seconds.
    """

    title: str
    source: str
    nodes: int
    law: str
    parameters: dict[str, float | str]
    failures: int | None = None
    days: float | None = None


@cache
def prefabs() -> dict[str, Prefab]:
    """Return all failure laws of real machines, by name."""
    rows: dict[str, Any] = {}
    for file in (FILE, FLEETS):
        rows |= tomllib.loads((folder("failure_events") / file).read_text())
    return msgspec.convert(rows, dict[str, Prefab])
