# SPDX-License-Identifier: Apache-2.0
"""The page of a report: what it says first."""

from __future__ import annotations

from rebat.papers.common.page import html, markdown
from rebat.papers.common.parts import Judgement, Report
from rebat.results.intervals import Interval

FOUND = Interval(0.5, 0.25, 0.75, 9, 0.25)


def claim(name: str, holds: bool, why: str = "") -> Judgement:
    return Judgement("here", name, "above 1", FOUND, holds, "section 9", why)


def report(*judgements: Judgement, unfinished: str = "") -> Report:
    return Report(
        "Title", "Lead.", judgements, [], [], ["lines"], ["A remark."], unfinished=unfinished
    )


MIXED = report(claim("one", True), claim("two", False, "Because <b>."), claim("three", False))


def test_what_does_not_hold_comes_first_with_its_numbers_and_reason() -> None:
    text = markdown(MIXED)
    summary = text[text.index("Lead.") : text.index("A remark.")]
    assert "1 of 3 claims hold" in summary
    assert (
        "- here: two: **0.5000 ± 0.2500** (rule: above 1; paper: section 9). Because &lt;b>.\n"
        in summary
    )
    assert "- here: three: **0.5000 ± 0.2500** (rule: above 1; paper: section 9)\n" in summary
    assert "one" not in summary
    page = html(MIXED)
    assert page.index("1 of 3 claims hold") < page.index("A remark.")
    assert "Because &lt;b&gt;." in page


def test_nothing_is_listed_where_all_holds_or_nothing_was_judged() -> None:
    assert "**1 of 1 claims hold**\n" in markdown(report(claim("one", True)))
    assert "no claim could be judged" in markdown(report())
    assert "<ul><li>lines" in html(report(claim("one", True)))


def test_what_is_not_done_yet_is_said_at_the_top() -> None:
    for page in (markdown, html):
        text = page(report(claim("one", True), unfinished="partial: 1 of 2 runs done"))
        assert text.index("partial: 1 of 2") < text.index("claims hold")
        assert "partial" not in page(MIXED)
