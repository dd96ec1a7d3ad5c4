# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies: queue orders, plannings, placements, reactions, and their presets.

A call of the package, ``rebat.policies()``, returns a table of the presets.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame


def table() -> DataFrame:
    """Return the presets: ``name``, ``also`` (an alias), ``what`` (a summary), ``source``."""
    import pandas as pd

    from rebat.policies.presets import ALIASES, PRESETS

    also = {name: alias for alias, name in ALIASES.items()}
    rows = [(row.name, also.get(row.name, ""), row.summary, row.source) for row in PRESETS.values()]
    return pd.DataFrame(rows, columns=["name", "also", "what", "source"])


class _Listing(ModuleType):
    """A package that returns the table of its presets when called."""

    def __call__(self) -> DataFrame:
        return table()

    def _repr_html_(self) -> str:
        return table().to_html(index=False)


sys.modules[__name__].__class__ = _Listing
