# SPDX-License-Identifier: Apache-2.0
"""The page of a report: its first statements."""

from __future__ import annotations

from rebat.report.claims import (
    CONTRADICTED,
    HOLDS,
    INSIDE,
    NEAR,
    OUTSIDE,
    TOO_FEW,
    UNDECIDED,
    Judgement,
    place_of,
    summary_of,
)
from rebat.report.parts import Report, html, markdown
from rebat.results.intervals import Interval, interval

ESTIMATE = Interval(0.5, 0.25, 0.75, 9)


def claim(name: str, direction: str, why: str = "", own: bool = False) -> Judgement:
    return Judgement("here", name, "above 1", ESTIMATE, direction, "section 9", why, [NEAR], own)


def report(*judgements: Judgement, unfinished: str = "") -> Report:
    return Report(
        "Title", "Lead.", judgements, [], [], ["lines"], ["A remark."], unfinished=unfinished
    )


MIXED = report(
    claim("first", HOLDS), claim("second", CONTRADICTED, "Because <b>."), claim("third", UNDECIDED)
)


def test_contradictions_come_first_with_their_numbers_and_reason() -> None:
    text = markdown(MIXED)
    summary = text[text.index("Lead.") : text.index("A remark.")]
    counts = "Claims of the paper: 1 of 3 hold, 1 is contradicted, 1 is undecided."
    assert f"**{counts}**" in summary
    assert "**Published values: 3 near.**" in summary
    assert (
        "- here: second: **0.50 [0.25, 0.75]** (rule: above 1; paper: section 9). "
        "Because &lt;b>.\n" in summary
    )
    assert "first" not in summary and "third" not in summary
    page = html(MIXED)
    assert page.index(counts) < page.index("A remark.")
    assert "Because &lt;b&gt;." in page


def test_nothing_is_listed_if_all_hold_or_nothing_was_judged() -> None:
    assert "**Claims of the paper: 1 of 1 holds.**\n" in markdown(report(claim("one", HOLDS)))
    assert "No claim could be judged." in markdown(report())
    assert "<ul><li>lines" in html(report(claim("one", HOLDS)))


def test_own_statements_are_counted_and_listed_apart() -> None:
    mixed = report(claim("paper's", HOLDS), claim("rebat's", UNDECIDED, own=True))
    assert mixed.verdict[0] == "Claims of the paper: 1 of 1 holds."
    assert mixed.verdict[2] == "Statements of rebat: 0 of 1 holds, 1 is undecided."
    text = markdown(mixed)
    assert text.index("| here | paper's") < text.index("## Statements of rebat")
    assert text.index("## Statements of rebat") < text.index("| here | rebat's")


def test_claims_with_too_few_seeds_are_counted_separately() -> None:
    """They do not count as claims that do not hold."""
    few = [claim("a", TOO_FEW), claim("b", TOO_FEW)]
    assert report(claim("c", HOLDS), claim("d", UNDECIDED), *few).verdict[0] == (
        "Claims of the paper: 1 of 2 hold, 1 is undecided; 2 more have too few seeds."
    )
    only = report(*few)
    assert only.verdict[0] == "Claims of the paper: 2 have too few seeds."
    assert "the interval of a mean needs 5 seeds, the interval of a median 6." in markdown(only)
    assert "needs 5 seeds" not in markdown(MIXED)
    sizes = Judgement("here", "Table 1", "3", None, "", "Table 1", sizes=[INSIDE, TOO_FEW])
    assert summary_of([sizes]) == ["Published values: 1 inside; 1 more has too few seeds."]


def test_a_group_of_published_values_has_no_direction() -> None:
    group = Judgement("here", "Table 1", "3", None, "", "Table 1", sizes=[INSIDE, OUTSIDE, NEAR])
    assert summary_of([group]) == ["Published values: 1 inside, 1 near, 1 outside."]
    assert (group.ours, group.size) == ("", "1 inside, 1 near, 1 outside")


def test_the_place_of_a_published_value() -> None:
    """For 1 to 5 with t(0.975; 4) = 2.776 the mean is 3 ± 1.963, a single value 3 ± 4.809."""
    ours = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert ours is not None
    assert [place_of(ours, x) for x in (4.9, 5.0, 7.8, 7.9)] == [INSIDE, NEAR, NEAR, OUTSIDE]
    assert place_of(ours, (4.9, 9.0)) == INSIDE
    few = interval([1.0, 2.0, 3.0, 4.0])
    assert few is not None and place_of(few, 2.5) == TOO_FEW


def test_what_is_not_done_yet_is_said_at_the_top() -> None:
    for page in (markdown, html):
        text = page(report(claim("one", HOLDS), unfinished="partial: 1 of 2 runs done"))
        assert text.index("partial: 1 of 2") < text.index("Claims of the paper")
        assert "partial" not in page(MIXED)
