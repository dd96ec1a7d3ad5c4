# SPDX-License-Identifier: Apache-2.0
"""Findings about a record, among the notes of a workload. `records.judge` makes most of them."""

from __future__ import annotations

MARK = "check: "
"""Begin of the note of a finding."""


def finding(text: str, advice: str) -> str:
    """Return a finding as a note: what is in the record, and what to do to change the import."""
    return f"{MARK}{text}; {advice}"


def is_finding(note: str) -> bool:
    """Return whether a note of a workload is a finding."""
    return note.startswith(MARK)
