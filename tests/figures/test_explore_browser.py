# SPDX-License-Identifier: Apache-2.0
"""The explorer page in a headless Chromium: drawing, zoom, search, and tooltips."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rebat.figures.explore.page import explorer_page
from rebat.results.compare.parting import parting
from rebat.results.measures.timeline import Timeline, timeline_of
from tests.support.browsing import browser
from tests.support.scenarios import fails, machine, run

__all__ = ["browser"]
WIDTHS = [1280, 412]
EVIL = "<script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def timelines() -> list[Timeline]:
    """Run two policies: node 0 of eight fails at 3 s, and with SFSJ the job steals a node."""
    workload = machine(8, (6, 10), (1, 20), (2, 8), (1, 30))
    made = {name: run(name, workload, fails(0, 3, 9)) for name in ("baseline", "sfsj")}
    return [timeline_of(name, one.ledger, 8) for name, one in made.items()]


Opened = Callable[..., Any]


@pytest.fixture
def opened(browser, tmp_path: Path) -> Iterator[Opened]:
    """Yield a function that opens a page at a width; check for requests and console messages."""
    contexts, told = [], []

    def open_page(page: str, width: int = 1280) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page)
        context = browser.new_context(
            viewport={"width": width, "height": 800}, has_touch=width < 600, offline=True
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda m: told.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: told.append(str(error)))
        tab.on("request", lambda r: told.append(r.url) if r.url.startswith("http") else None)
        tab.goto(path.as_uri())
        tab.wait_for_selector("body[data-ready]")
        tab.wait_for_timeout(300)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert told == []


def spot(tab: Any, plot: str, time_s: float, y: float) -> tuple[float, float]:
    """Return the place on the screen of a time and a node (or value) of a plot."""
    return tuple(tab.evaluate(
        """([name, x, y]) => {
          const figure = Bokeh.documents[0].get_model_by_name(name);
          const view = Bokeh.index.find_one(figure), box = view.el.getBoundingClientRect();
          return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
        }""",
        [plot, 1000 * float(time_s), float(y)],
    ))  # fmt: skip


def words(tab: Any, plot: str, time_s: float, y: float) -> str:
    """Return the text of the tooltip at this place."""
    tab.mouse.move(5, 5)
    tab.mouse.move(*spot(tab, plot, time_s, y))
    tab.wait_for_timeout(80)
    tip = tab.locator("#tip")
    return tip.inner_text() if tip.is_visible() else ""


def drag(tab: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag slowly, as a user does."""
    tab.mouse.move(*start)
    tab.mouse.down()
    for k in range(1, 9):
        tab.wait_for_timeout(40)
        tab.mouse.move(*(a + (b - a) * k / 8 for a, b in zip(start, end, strict=True)))
    tab.wait_for_timeout(40)
    tab.mouse.up()


def seen(tab: Any) -> list[float]:
    view = tab.evaluate("explorer.view")
    return [view[name] for name in ("x0", "x1", "y0", "y1")]


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_pointing_tells_what_the_ledger_says(opened, timelines, width: int) -> None:
    tab = opened(explorer_page(timelines, "toy"), width)
    for k, timeline in enumerate(timelines):
        for owner, first, last in zip(*timeline.blocks, strict=True):
            middle_s = (timeline.start_us[owner] + timeline.end_us[owner]) / 2e6
            if (timeline.end_us[owner] - timeline.start_us[owner]) < 4e6:
                continue  # marks of events cover it
            text = words(tab, f"gantt{k}", middle_s, (first + last) // 2)
            job, number = timeline.job_id[owner], timeline.number[owner]
            assert text.startswith(f"Job {job}, attempt {number + 1} (")
            if timeline.why[owner]:
                assert timeline.why[owner] in text
    assert "down" in words(tab, "gantt0", 6, 0)
    assert words(tab, "gantt0", 3, 0).startswith("Node 0 failed")


@pytest.mark.slow
def test_who_took_a_victims_node_is_told(opened, timelines) -> None:
    tab = opened(explorer_page(timelines, "toy"))
    victims = [text for text in timelines[1].why if text.startswith("for ")]
    assert victims
    stolen = tab.evaluate(
        "explorer.runs[1].marks.filter(m => m.kind === 'stolen').map(m => [m.at / 1000, m.node])"
    )
    text = words(tab, "gantt1", *stolen[0])
    assert f"ended: stolen, its nodes taken {victims[0]}" in text


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_series_tell_their_values(opened, timelines, width: int) -> None:
    tab = opened(explorer_page(timelines, "toy"), width)
    text = words(tab, "queued", 5, 1)
    assert text.splitlines()[0] == "00:00:05"
    assert [line.partition(":")[0] for line in text.splitlines()[1:]] == ["baseline", "sfsj"]


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(opened, timelines, width: int) -> None:
    tab = opened(explorer_page(timelines, "toy"), width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for time_s in (0.2, 29.5):
        words(tab, "gantt0", time_s, 7)
        box = tab.locator("#tip").bounding_box()
        if box:
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


@pytest.mark.slow
def test_wheel_drag_and_buttons_move_both_policies(opened, timelines) -> None:
    tab = opened(explorer_page(timelines, "toy"))
    whole = seen(tab)
    tab.mouse.move(*spot(tab, "gantt0", 10, 3))
    tab.mouse.wheel(0, -300)
    tab.wait_for_timeout(300)
    near = seen(tab)
    assert whole[0] < near[0] < near[1] < whole[1]
    for plot in ("gantt0", "gantt1", "busy"):
        figure = f"Bokeh.documents[0].get_model_by_name('{plot}')"
        assert tab.evaluate(f"{figure}.x_range.start") == near[0]
    x, y = spot(tab, "gantt0", 10, 3)
    drag(tab, (x, y), (x - 120, y))
    tab.wait_for_function("before => explorer.view.x0 > before", arg=near[0], timeout=10_000)
    tab.wait_for_timeout(300)
    moved = seen(tab)
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0])
    tab.get_by_role("button", name="Whole run").click()
    assert seen(tab) == whole
    tab.get_by_role("button", name="Zoom in").click()
    assert seen(tab)[1] - seen(tab)[0] == pytest.approx((whole[1] - whole[0]) / 2)
    tab.get_by_role("button", name="Zoom out").click()
    assert seen(tab) == pytest.approx(whole)


@pytest.mark.slow
def test_moving_shows_what_is_drawn_already_and_stillness_draws_the_rest(opened, timelines) -> None:
    tab = opened(explorer_page(timelines, "toy", (6_000_000, 10_000_000)))
    before = tab.evaluate("explorer.frames")
    tab.evaluate("explorer.x.setv({ start: 6500, end: 10500 })")
    assert tab.evaluate("explorer.frames") == before
    assert tab.evaluate("explorer.drawn.x0 < 6500 && explorer.drawn.x1 > 10500")
    tab.wait_for_function("before => explorer.frames > before", arg=before)
    middle = tab.evaluate("(explorer.drawn.x0 + explorer.drawn.x1) / 2")
    assert middle == pytest.approx(8500)
    tab.evaluate("explorer.x.setv({ start: 6500, end: 7500 })")  # a new scale is drawn immediately
    tab.wait_for_function("explorer.drawn.dx === 1000", timeout=150)


@pytest.mark.slow
def test_a_box_is_zoomed_to(opened, timelines) -> None:
    tab = opened(explorer_page(timelines, "toy"))
    tab.get_by_role("button", name="Zoom to a box").click()
    drag(tab, spot(tab, "gantt1", 4, 1), spot(tab, "gantt1", 12, 5))
    tab.wait_for_function("explorer.view.x0 > 3000", timeout=10_000)
    tab.wait_for_timeout(300)
    assert seen(tab) == pytest.approx([4000, 12000, 1, 5], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_a_job_is_found_by_keyboard_alone(opened, timelines, width: int) -> None:
    tab = opened(explorer_page(timelines, "toy"), width)
    tab.keyboard.press("Tab")
    tab.keyboard.type("1")
    tab.keyboard.press("Enter")
    tab.wait_for_timeout(300)
    told = tab.locator("#status").inner_text()
    for timeline in timelines:
        count = timeline.job_id.count("1")
        assert f"{timeline.name}: {count} attempt" in told
    ends = [timeline.end_us[i] for timeline in timelines
            for i, name in enumerate(timeline.job_id) if name == "1"]  # fmt: skip
    assert seen(tab)[1] >= max(ends) / 1e3 or seen(tab)[1] == timelines[0].makespan_us / 1e3
    chosen = tab.evaluate("explorer.runs.map(run => run.jobs[run.chosen])")
    assert chosen == ["1", "1"]
    tab.locator("#job").fill("no such job")
    tab.keyboard.press("Enter")
    assert tab.locator("#status").inner_text() == "There is no job no such job."


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_a_tap_on_a_job_shows_its_stories(opened, timelines, width: int) -> None:
    """Only the first policy has a story, as only its run recorded plans."""
    texts = {job: f"Job {job} waited.\n00:00:01  It starts." for job in timelines[0].job_id}
    tab = opened(explorer_page(timelines, "toy", stories=[texts, None]), width)
    x, y = spot(tab, "gantt0", 1, 2)
    tab.touchscreen.tap(x, y) if width < 600 else tab.mouse.click(x, y)
    tab.wait_for_function("document.getElementById('status').textContent !== ''", timeout=10_000)
    job = tab.evaluate("explorer.runs[0].jobs[explorer.runs[0].chosen]")
    shown = tab.locator("#status").inner_text().splitlines()
    assert shown[0].startswith(f"Job {job} ")
    assert f"baseline: Job {job} waited." in shown
    assert not any(line.startswith("sfsj: Job") for line in shown)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_difference_of_two_policies_is_shown(opened, timelines, width: int) -> None:
    """The failed job waits under the first policy, and steals a node under the second."""
    tab = opened(explorer_page(timelines, "toy"), width)
    tab.locator("#difference").click()
    tab.wait_for_timeout(300)
    parted = parting(*timelines)
    assert parted is not None
    lines = tab.locator("#status").inner_text().splitlines()
    assert lines[0].startswith(f"baseline and sfsj differ at {parted.at_us / 1e6:g} s")
    assert [line.split(": ")[0] for line in lines[1:3]] == ["baseline", "sfsj"]
    assert lines[3].startswith("State before, in both runs: ")
    x0, x1, *_ = seen(tab)
    assert x0 < parted.at_us / 1e3 < x1 <= x0 + 0.11 * max(t.makespan_us for t in timelines) / 1e3
    lines_at = "explorer.runs.map(r => r.figure.center.find(c => c.name === 'parting'))"
    assert (
        tab.evaluate(f"{lines_at}.map(line => [line.location, line.visible])")
        == [[parted.at_us / 1e3, True]] * 2
    )


@pytest.mark.slow
def test_a_run_alone_or_the_same_run_twice_has_no_difference(opened, timelines) -> None:
    assert 'id="difference"' not in explorer_page(timelines[:1], "toy")
    again = timelines[0]._replace(name="again")
    tab = opened(explorer_page([timelines[0], again], "toy"))
    tab.locator("#difference").click()
    assert "make the same decisions" in tab.locator("#status").inner_text()


@pytest.mark.slow
def test_the_picture_has_the_colours_of_what_was(opened, timelines) -> None:
    """The test reads pixels within attempts, outages and free nodes."""
    tab = opened(explorer_page(timelines, "toy"))
    names = tab.evaluate("explorer.data.causes.map(cause => cause.rgb)")

    def colour(plot: int, time_s: float, node: float) -> list[int]:
        return tab.evaluate(
            """([k, x, y]) => { const { canvas } = explorer.runs[k];
              const { x0, x1, y0, y1 } = explorer.drawn;
              const i = Math.floor((1000 * x - x0) / (x1 - x0) * canvas.width);
              const j = Math.floor((y - y0) / (y1 - y0) * canvas.height);
              const pixel = canvas.pixels[j * canvas.width + i];
              return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255, pixel >>> 24]; }""",
            [plot, float(time_s), float(node)],
        )  # fmt: skip

    for k, timeline in enumerate(timelines):
        for owner, first, _ in zip(*timeline.blocks, strict=True):
            if timeline.lost_us[owner] or timeline.cause[owner]:
                continue  # hatched in full or in part
            start_s = timeline.start_us[owner] / 1e6
            assert colour(k, start_s + 0.9, first + 0.3) == [*names[0], 255]
        assert colour(k, 6, 0) == [0, 0, 0, 255]
        assert colour(k, timeline.makespan_us / 1e6 - 0.5, 7.3)[3] in (0, 255)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_foreign_names_do_not_run(opened, timelines, width: int) -> None:
    n = len(timelines[0].job_id)
    evil = timelines[0]._replace(name=EVIL, job_id=[EVIL] * n, why=[EVIL] * n)
    tab = opened(explorer_page([evil], EVIL), width)
    assert tab.title() == EVIL
    owner, first, _ = (column[0] for column in evil.blocks)
    middle_s = (evil.start_us[owner] + evil.end_us[owner]) / 2e6
    assert EVIL in words(tab, "gantt0", middle_s, first)
    tab.locator("#job").fill(EVIL)
    tab.keyboard.press("Enter")
    assert tab.locator("#status").inner_text().startswith(f"Job {EVIL}")
    assert tab.title() == EVIL


@pytest.mark.slow
def test_a_tap_tells_on_a_phone(opened, timelines) -> None:
    tab = opened(explorer_page(timelines, "toy"), 412)
    x, y = spot(tab, "gantt0", 15, 3)
    tab.touchscreen.tap(x, y)
    tab.wait_for_timeout(300)
    assert tab.locator("#tip").is_visible()
