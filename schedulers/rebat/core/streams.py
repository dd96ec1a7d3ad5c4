# SPDX-License-Identifier: Apache-2.0
"""Named, seeded random streams: the same seed and name always produce the same numbers."""

from __future__ import annotations

import hashlib

import numpy as np

LARGEST_SEED = 2**63 - 1
"""Largest seed: the largest signed 64-bit number. Tables of results cannot contain larger ones."""


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of a named stream. Streams with different names are independent.

    >>> bool(stream(1, "sizes").random() == stream(1, "sizes").random())
    True
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest[:16], dtype=np.uint32).tolist()])
