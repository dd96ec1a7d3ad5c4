# SPDX-License-Identifier: Apache-2.0
"""What to do: queue orders, planning, placement, recovery, and their named combinations.

Called, ``rebat.policies()``, the package lists the schedulers that have names.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame


def table() -> DataFrame:
    """The schedulers by name: ``name``, ``also`` (its other name), ``what``, ``source``."""
    import pandas as pd

    from rebat.policies.preset_table import ALIASES, PRESETS

    also = {name: alias for alias, name in ALIASES.items()}
    rows = [(one.name, also.get(one.name, ""), one.summary, one.source) for one in PRESETS.values()]
    return pd.DataFrame(rows, columns=["name", "also", "what", "source"])


class _Listing(ModuleType):
    """A package that can be asked what is in it."""

    def __call__(self) -> DataFrame:
        return table()

    def _repr_html_(self) -> str:
        return table().to_html(index=False)


sys.modules[__name__].__class__ = _Listing
