# SPDX-License-Identifier: Apache-2.0
"""How much is tested: ``make test`` runs a part of the suite, ``make test-all`` runs everything."""

from __future__ import annotations

import os

AMOUNT = os.environ.get("REBAT_TESTS", "fast")
"""``fast``: no slow tests, and a tenth of all random cases. ``all``: everything. ``rest``: the slow
tests and all random cases."""


def few(cases: int) -> int:
    """Return the number of random cases of a test that has ``cases`` in the whole suite.

    Tests that are not of Hypothesis need the mark ``sampled``.
    """
    return max(3, cases // 10) if AMOUNT == "fast" else cases
