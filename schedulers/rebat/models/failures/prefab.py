# SPDX-License-Identifier: Apache-2.0
"""Failure laws of real machines by name: ``lanl-20`` is a law with fitted parameters.

``failure_events/models.toml`` contains the parameters. `scripts/fit_failure_models.py` fits the
parameters to published records and writes this file.
"""

from __future__ import annotations

import tomllib
from functools import cache

import msgspec

from rebat.core.shipped import folder

FILE = "models.toml"


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
    failures : int
        Number of failures of the machine in the record; failures at the same time count once.
    days : float
        Length of the record.
    law : str
        Name of the law in `laws.LAWS`.
    parameters : dict of str to number or text
        Parameters of the law; durations are in seconds.
    """

    title: str
    source: str
    nodes: int
    failures: int
    days: float
    law: str
    parameters: dict[str, float | str]


@cache
def prefabs() -> dict[str, Prefab]:
    """Return all failure laws of real machines, by name."""
    text = (folder("failure_events") / FILE).read_text()
    return msgspec.convert(tomllib.loads(text), dict[str, Prefab])
