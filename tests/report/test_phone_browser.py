# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser 360 pixels wide: nothing overflows the page, and figures are readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rebat
from rebat.api.result import PHONE_PX
from rebat.figures import charts
from rebat.report.parts import Key, Picture, Report, html
from rebat.report.table import Table
from tests.support.browsing import browser

__all__ = ["browser"]

PHONE, SCREEN = 360, 1100


def opened(browser: Any, text: str, folder: Path, width: int) -> Any:
    file = folder / "page.html"
    file.write_text(text)
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file.as_uri())
    return page


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.fixture(scope="module")
def report() -> str:
    bars = {f"policy {k}": {"idle": 0.1, "wasted by failures": 0.2} for k in range(9)}
    key = [Key("from the best to the worst of all the other rules of the paper", "#dddddd", "band")]
    panels = [("largest flow", {"easy": {"all": [1.0, 2.0]}}, dict[str, float]())] * 2
    pictures = [
        Picture("", "two panels", charts.boxes(panels), key=key),
        Picture("", "small", charts.stacks({"easy": {"idle": 0.4}}, "share")),
        Picture("", "wide", charts.stacks(bars, "share")),
    ]
    table = Table("", "wide", [f"column {k}" for k in range(9)], [["x" * 12] * 9])
    return html(Report("Title", "Lead.", [], [table], pictures, ["rebat"], claims=False))


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_a_report_does_not_overflow(browser: Any, report: str, width: int, tmp_path: Path) -> None:
    page = opened(browser, report, tmp_path, width)
    assert overflow(page) == 0
    assert page.title() == "Title - rebat"


def test_small_figures_of_a_report_fit_a_phone(browser: Any, report: str, tmp_path: Path) -> None:
    page = opened(browser, report, tmp_path, PHONE)
    hidden = [
        box.evaluate("e => e.scrollWidth > e.clientWidth")
        for box in page.query_selector_all(".figure")
    ]
    assert hidden == [True, False, True], "wide figures scroll within their box"


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_the_page_of_a_run_has_narrow_figures_on_a_phone(
    browser: Any, width: int, tmp_path: Path
) -> None:
    result = rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy"))
    page = opened(browser, result.to_html(), tmp_path, width)
    assert overflow(page) == 0
    assert page.title() == "baseline, sfsj on toy.json - rebat"
    sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.clientWidth])")
    expected = 1050 if width <= PHONE_PX else 990
    assert len(sizes) == 3 and max(natural for natural, _ in sizes) in (expected, 1100)
    assert all(0 < shown <= width for _, shown in sizes)
    assert (sizes[0][0] == 1050) == (width == PHONE)
