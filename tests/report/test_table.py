# SPDX-License-Identifier: Apache-2.0
"""Tables as text and as HTML."""

from __future__ import annotations

import msgspec

from rebat.core.numbers import MINUS
from rebat.report.table import Table


def test_names_are_printed_unchanged() -> None:
    """Names of emojis and of styles are not replaced."""
    sheet = Table("", "the job :bug:", ["name", "count"], [[":warning:", "1"], ["[red]", "2"]])
    text = sheet.text()
    assert all(name in text for name in ("the job :bug:", ":warning:", "[red]"))


TABLE = Table(
    "Table 1",
    "losses",
    ["policy", "mean", "change"],
    [["a|b", "1,234", f"{MINUS}3.5 %"], ["=1", "5", ""]],
    "means over 5 seeds; *: significant",
)


def test_signs_are_ascii_in_csv_only() -> None:
    assert TABLE.csv() == "policy,mean,change\na|b,\"1,234\",'-3.5 %\n'=1,5,\n"
    assert MINUS in TABLE.text() and MINUS in TABLE.html() and MINUS in TABLE.markdown()
    assert "$-$3.5" in TABLE.latex()
    assert TABLE.frame()["change"].tolist() == [f"{MINUS}3.5 %", ""]


def test_words_are_left_and_numbers_right() -> None:
    assert r"\begin{tabular}{lrr}" in TABLE.latex()
    row = TABLE.grid().splitlines()[1]
    assert row.count("text-align:left") == 1 and row.count("text-align:right") == 2
    assert "<caption>losses" in TABLE.html() and "losses" not in TABLE.grid()


def test_a_stored_table_has_the_fields_of_earlier_versions() -> None:
    """Files of reports contain tables as JSON."""
    stored = {"paper": "", "title": "t", "columns": ["a"], "rows": [["1"]], "note": ""}
    table = Table("", "t", ["a"], [["1"]])
    assert msgspec.json.decode(msgspec.json.encode(table)) == stored
    assert msgspec.convert(stored, Table) == table
