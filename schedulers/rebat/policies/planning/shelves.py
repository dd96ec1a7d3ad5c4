# SPDX-License-Identifier: Apache-2.0
"""Options of R-SHELF, which starts shelves of jobs together (`rebat.rules.shelves`)."""

from __future__ import annotations

from typing import ClassVar

from rebat.policies.planning.batsched import TimedOptions


class ShelfOptions(TimedOptions, frozen=True, tag="shelf"):
    """Shelves of jobs that start together, with backfilling (RR-9296, b = 1)."""

    backfill: ClassVar[bool] = True
    """The parameter b: whether a shelf is filled with later attempts if an attempt does not fit."""


class PlainShelfOptions(ShelfOptions, frozen=True, tag="shelf-nb"):
    """Shelves without backfilling (RR-9296, b = 0)."""

    backfill: ClassVar[bool] = False
