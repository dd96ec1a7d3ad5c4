# SPDX-License-Identifier: Apache-2.0
"""Take new pictures for docs/images (README and site) from real runs.

The script needs the package playwright and the program chromium. Run it from a checkout::

    python scripts/take_pictures.py
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rebat

IMAGES = Path(__file__).parents[1] / "docs/images"
FAILURES = {"mtbf": "1h", "downtime": "1h", "seed": 0}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def month() -> rebat.Result:
    """Run the generated June of Mira with failures, under the policies Baseline and SFSJ."""
    failures = rebat.failures(**FAILURES)
    policies = ["baseline", "sfsj"]
    return rebat.run("mira-like-june-2017", policies, failures=failures, checkpoint="young-daly")


def photograph(page: Path, image: str, act: Callable[[Any], None], height: int) -> None:
    """Open a page in a browser, call ``act`` on it, and save the visible part as a picture."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": height})
        tab.goto(page.as_uri())
        tab.wait_for_timeout(2000)
        act(tab)
        tab.screenshot(path=IMAGES / image, clip=area(tab))
        browser.close()


def area(tab: Any) -> dict[str, int]:
    """Return the area of the page with the charts of both policies and their axis."""
    panels = [panel.bounding_box() for panel in tab.locator("section.gantt").all()]
    top = int(panels[0]["y"])
    bottom = int(panels[-1]["y"] + panels[-1]["height"])
    return {"x": 0, "y": top, "width": 1280, "height": bottom - top}


def zoom(tab: Any) -> None:
    """Zoom in on two days."""
    tab.mouse.move(640, 160)
    for _ in range(4):
        tab.mouse.wheel(0, -300)
        tab.wait_for_timeout(150)
    tab.wait_for_timeout(1000)


def photograph_whatif(image: str) -> None:
    """Start `rebat whatif`, wait for its map, and save the upper part of the page as a picture."""
    from playwright.sync_api import sync_playwright

    command = ["rebat", "whatif", "mira-like-june-2017", "--mtbf", "1h", "--downtime", "1h",
               "--checkpoint", "young-daly", "--no-browser"]  # fmt: skip
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as driver,
    ):
        assert server.stdout is not None
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": 1310})
        tab.goto(server.stdout.readline().strip())
        tab.locator("text=complete;").wait_for(timeout=600_000)
        tab.screenshot(path=IMAGES / image)
        browser.close()
        server.terminate()


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        june = month()
        page = folder / "june.html"
        june.explore(page)
        photograph(page, "explorer-month.png", lambda tab: None, 850)
        photograph(page, "explorer-days.png", zoom, 850)
        june.plot_flows().save(IMAGES / "june-flows.png")
        failures = rebat.failures(mtbf="30min", downtime="10min")
        policies = ["baseline", "sfsj", "easy", "easy-sfsj"]
        seeded = rebat.run("synthetic-small", policies, failures=failures, seeds=20)
        seeded.plot_ratios().save(IMAGES / "ratios.png")
        toy = rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy"))
        toy.plot_gantt().save(IMAGES / "toy-gantt.png")


if __name__ == "__main__":
    main()
