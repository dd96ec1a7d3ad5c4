# SPDX-License-Identifier: Apache-2.0
"""A number with its noun, in the singular for 1."""

from __future__ import annotations


def counted(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun. The plural is ``several``, by default the noun with an "s".

    >>> counted(1, "job"), counted(12, "job"), counted(0, "policy", "policies")
    ('1 job', '12 jobs', '0 policies')
    """
    return f"{count} {noun if count == 1 else several or noun + 's'}"
