# SPDX-License-Identifier: Apache-2.0
"""Tables as text and as HTML."""

from __future__ import annotations

from rebat.console.output import Sheet


def test_names_are_printed_unchanged() -> None:
    """Names of emojis and of styles are not replaced."""
    sheet = Sheet("the job :bug:", "", ["name", "count"], [[":warning:", "1"], ["[red]", "2"]])
    text = sheet.text()
    assert all(name in text for name in ("the job :bug:", ":warning:", "[red]"))
