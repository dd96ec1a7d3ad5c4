# SPDX-License-Identifier: Apache-2.0
"""Names of the ways to simulate a run, and the default way."""

from __future__ import annotations

import os
from typing import Literal, cast, get_args

from rebat.core.errors import InputError

How = Literal["auto", "compiled", "reference"]
"""Ways to simulate a run: compiled (an error if it is not covered), reference, or auto."""

VARIABLE = "REBAT_ENGINE"
"""Environment variable with the default way."""


def how_of(how: str | None = None) -> How:
    """Return the way to simulate. The default is the value of `VARIABLE`, otherwise auto."""
    value = how or os.environ.get(VARIABLE) or "auto"
    if value not in get_args(How):
        where = "--engine" if how else VARIABLE
        raise InputError(f"is {value!r}", where, ", ".join(get_args(How)))
    return cast(How, value)
