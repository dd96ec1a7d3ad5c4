# SPDX-License-Identifier: Apache-2.0
"""The ids that are most similar to an unknown id."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST = 3


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Return the most similar ids. Compare values if the id is a number, otherwise spellings.

    >>> nearest("20", ["3", "17", "18", "25"])
    ['18', '17', '25']
    """
    numbers = [text for text in names if text.isdecimal()]
    if name.isdecimal() and numbers:
        value = int(name)
        return sorted(numbers, key=lambda text: (abs(int(text) - value), -int(text)))[:MOST]
    return difflib.get_close_matches(name, names, MOST, 0) or list(names[:MOST])
