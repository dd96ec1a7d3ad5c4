# SPDX-License-Identifier: Apache-2.0
"""``rebat whatif`` as a user has it: the command, its page in Chromium, and strangers."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browsing import browser

__all__ = ["browser"]
pytestmark = pytest.mark.slow

ASKED = ["toy", "--mtbf", "1min", "--downtime", "5s"]
VERDICT = "text=against baseline:"
LATEST_MS = 60_000

Started = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def started() -> Iterator[Started]:
    """Yield a function that starts the command and returns it with its address."""
    running = []

    def start(*options: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "rebat", "whatif", *ASKED, "--no-browser", *options]
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        running.append(server)
        assert server.stdout is not None
        return server, server.stdout.readline().strip()

    yield start
    for server in running:
        server.kill()
        server.communicate()


@pytest.fixture
def errors() -> Iterator[list[str]]:
    """Errors in the console of the browser; there must be none."""
    lines: list[str] = []
    yield lines
    assert lines == []


def opened(browser: Any, url: str, errors: list[str], width: int = 1280) -> Any:
    """Open the page, and wait for its first answer."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(url)
    tab.locator(VERDICT).first.wait_for(timeout=LATEST_MS)
    return tab


def settled(tab: Any, n_seeds: int = 12) -> None:
    """Wait for an answer with some seeds."""
    tab.wait_for_function(SEEDS, arg=n_seeds, timeout=LATEST_MS)


SEEDS = """n => {
  const numbers = Bokeh.documents[0].get_model_by_name('numbers').text;
  return Number(numbers.match(/data-seeds="(\\d+)"/)?.[1] ?? 0) >= n;
}"""


MAPPED = """() => {
  const plot = Bokeh.documents[0].get_model_by_name('mapped');
  return plot.renderers[0].data_source.data.x.length === 96;
}"""


def test_a_drag_gives_the_numbers_of_rebat_run(browser, started, errors, tmp_path: Path) -> None:
    _, url = started()
    tab = opened(browser, url, errors)
    slider = tab.get_by_role("slider").first
    before = slider.get_attribute("aria-valuetext")
    box = slider.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 45, box["y"] + box["height"] / 2, steps=6)
    tab.mouse.up()
    now = slider.get_attribute("aria-valuetext")
    assert now != before
    tab.locator("pre", has_text=f"--mtbf {now.replace(' ', '')} ").first.wait_for()
    settled(tab)
    tab.get_by_text("Copy as command").click()
    command = tab.evaluate("navigator.clipboard.readText()")
    tab.get_by_text("All main numbers").click()
    n_seeds, shown = tab.locator("table[data-seeds]").evaluate(
        "table => [table.dataset.seeds, [...table.querySelectorAll('tr[data-metric]')].map(r =>"
        " [r.dataset.metric, r.dataset.policy, r.children[2].title, r.children[3].title])]"
    )
    out = tmp_path / "out"
    command = re.sub(r"--seeds \d+", f"--seeds {n_seeds}", command)
    arguments = command.replace("out/whatif", str(out)).split()[1:]
    subprocess.run([sys.executable, "-m", "rebat", *arguments], check=True, capture_output=True)
    with (out / "comparison.csv").open() as file:
        table = {(r["metric"], r["policy"]): r for r in csv.DictReader(file)
                 if r["size_class"] in ("", "all")}  # fmt: skip
    assert len(shown) >= 10
    for name, policy, mean, ratio in shown:
        row = table[name, policy]
        assert f"{float(mean):.6g}" == row["mean"], (name, policy)
        assert (f"{float(ratio):.6g}" if ratio else "") == row["ratio"], (name, policy)


def test_a_cell_of_the_map_sets_both_sliders(browser, started, errors) -> None:
    _, url = started()
    tab = opened(browser, url, errors)
    tab.wait_for_function(MAPPED, timeout=LATEST_MS)
    settled(tab)  # the page above the map no longer changes its height
    place = tab.evaluate(
        """() => {
          const plot = Bokeh.documents[0].get_model_by_name('mapped');
          const view = Bokeh.index.find_one(plot), box = view.el.getBoundingClientRect();
          view.el.scrollIntoView({block: 'center'});
          const at = view.el.getBoundingClientRect();
          const x = plot.x_range.factors[1], y = plot.y_range.factors[2];
          return [at.x + view.frame.x_scale.compute(x), at.y + view.frame.y_scale.compute(y), x, y];
        }"""
    )
    tab.mouse.click(place[0], place[1])
    sliders = tab.get_by_role("slider")
    tab.wait_for_function(
        "text => Bokeh.documents[0].get_model_by_name('mtbf').value === text", arg=place[2]
    )
    assert sliders.nth(1).get_attribute("aria-valuetext") == place[3]
    settled(tab)
    assert f"--mtbf {place[2].replace(' ', '')}" in tab.locator("pre").first.inner_text()


FOCUSED = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  const style = getComputedStyle(e), label = e.labels?.[0]?.textContent;
  const name = e.getAttribute('aria-label') ?? (label || e.textContent);
  return [e.getAttribute('role') ?? e.tagName.toLowerCase(), name,
          style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2];
}"""


def stops(tab: Any) -> list[tuple[str, str, bool]]:
    """Return role, name and visibility of everything that Tab reaches, in order."""
    walk: list[tuple[str, str, bool]] = []
    for _ in range(40):
        tab.keyboard.press("Tab")
        role, name, seen = tab.evaluate(FOCUSED)
        if role == "body":
            return walk
        walk.append((role, name, seen))
    raise AssertionError("Tab never reaches the end of the page")


def test_the_keyboard_reaches_and_changes_every_control(browser, started, errors) -> None:
    _, url = started()
    tab = opened(browser, url, errors)
    walk = stops(tab)
    assert [(role, name) for role, name, seen in walk if not seen] == []
    models = "() => Bokeh.documents[0]._roots.map(r => r.select({type: '%s'}).map(m => m.title))"
    sliders = [title for of in tab.evaluate(models % "CategoricalSlider") for title in of]
    assert len(sliders) >= 5
    assert [name for role, name, _ in walk if role == "slider"] == sliders
    for name in ("Checkpoints", "Horizontal axis", "Vertical axis", "Metric of the map"):
        assert name in [each for role, each, _ in walk if role == "select"]
    assert [name for role, name, _ in walk if role == "textbox"] == ["Add a policy"]
    for name in ("All main numbers", "Copy as command", "Copy as Python", "Save page",
                 "Save as campaign"):  # fmt: skip
        assert name in [each for _, each, _ in walk]
    assert all(name.strip() for _, name, _ in walk)
    for at, (role, name, _) in enumerate(walk):  # as many steps as before, from the top
        tab.keyboard.press("Tab")
        assert tab.evaluate(FOCUSED)[:2] == [role, name], at
        if role == "slider":
            slider = tab.get_by_role("slider", name=name, exact=True)
            before = slider.get_attribute("aria-valuetext")
            tab.keyboard.press("ArrowRight")
            disabled = slider.get_attribute("aria-disabled") == "true"
            assert (slider.get_attribute("aria-valuetext") == before) is disabled, name
    tab.locator("pre", has_text="--mtbf ").first.wait_for()
    settled(tab)


def test_the_keyboard_alone_chooses_a_policy(browser, started, errors) -> None:
    _, url = started()
    tab = opened(browser, url, errors)
    while tab.evaluate(FOCUSED)[1] != "Add a policy":
        tab.keyboard.press("Tab")
    tab.keyboard.type("greedy")
    tab.keyboard.press("Enter")
    tab.locator("text=greedy against baseline:").wait_for(timeout=LATEST_MS)
    tab.keyboard.press("Tab")
    assert tab.evaluate(FOCUSED)[0] == "slider"


@pytest.mark.parametrize("width", [1280, 412])
def test_nothing_moves_while_numbers_arrive(browser, started, errors, width: int) -> None:
    _, url = started()
    tab = opened(browser, url, errors, width)
    boxes = "() => [...document.querySelectorAll('figure, h2')].map(e => e.offsetTop)"
    before = tab.evaluate(boxes)
    settled(tab)
    assert tab.evaluate(boxes) == before
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_what_is_saved_needs_no_server(browser, started, errors, tmp_path: Path) -> None:
    server, url = started()
    tab = opened(browser, url, errors)
    tab.wait_for_function(MAPPED, timeout=LATEST_MS)
    for text, name in (("Save page", "whatif.html"), ("Save as campaign", "whatif.toml")):
        with tab.expect_download() as download:
            tab.get_by_text(text, exact=True).click()
        download.value.save_as(tmp_path / name)
    tab.close()
    server.send_signal(signal.SIGINT)
    assert server.wait(30) in (130, -signal.SIGINT)
    page = browser.new_context(offline=True).new_page()
    page.goto((tmp_path / "whatif.html").as_uri())
    text = page.locator("body").inner_text()
    assert (
        "against baseline: useful utilisation" in text
        and "sha256" in text
        and "rebat run toy" in text
    )
    assert page.locator("svg").count() == 2
    done = subprocess.run(
        [sys.executable, "-m", "rebat", "campaign", "run", str(tmp_path / "whatif.toml"),
         "--results", str(tmp_path / "r"), "--limit", "4"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "4 of " in done.stdout + done.stderr


def test_a_second_tab_replaces_the_first(browser, started, errors) -> None:
    _, url = started()
    first = opened(browser, url, errors)
    second = opened(browser, url, errors)
    first.locator("text=opened a second time").wait_for(timeout=LATEST_MS)
    settled(second)
    first.reload()
    first.locator(VERDICT).first.wait_for(timeout=LATEST_MS)


def test_a_killed_server_is_told_and_a_new_one_answers(browser, started) -> None:
    server, url = started()
    tab = opened(browser, url, [])
    server.kill()
    tab.locator("#lost").wait_for(timeout=LATEST_MS)
    assert "Start 'rebat whatif' again" in tab.locator("#lost").inner_text()
    _, again = started()
    assert again != url
    tab.goto(again)
    tab.locator(VERDICT).first.wait_for(timeout=LATEST_MS)


def test_policies_can_be_chosen(browser, started, errors) -> None:
    _, url = started()
    tab = opened(browser, url, errors)
    tab.evaluate(
        "() => { Bokeh.documents[0].get_model_by_name('policies').value ="
        " ['baseline', 'easy', 'greedy'] }"
    )
    tab.locator("text=greedy against baseline:").wait_for(timeout=LATEST_MS)
    assert "-p easy" in tab.locator("pre").first.inner_text()


def status(url: str, **headers: str) -> int:
    """Return the status of a request."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_strangers_are_refused(started) -> None:
    _, url = started()
    root, _, token = url.rstrip("/").rpartition("/")
    assert status(url) == 200
    assert len(token) >= 20 and root.startswith("http://127.0.0.1:")
    for path in ("", "/", "/ws", "/static/js/bokeh.min.js", "/saved?page=x", f"/x{token}/",
                 f"/{token[:-1]}/"):  # fmt: skip
        assert status(root + path) == 403, path
    assert status(url, Host="evil.example") == 403
    assert status(url, Host="evil.example:80") == 403
    assert status(f"{url}saved?page=unknown") == 404
