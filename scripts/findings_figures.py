# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of each findings page again, from stored results.

Run it from a checkout::

    python scripts/findings_figures.py [FOLDER ...]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rebat.campaign.kinds import kinds_of
from rebat.campaign.tables import decoded, read_data
from rebat.report.parts import Picture

FINDINGS = Path(__file__).parents[1] / "docs/findings"
# For each folder with stored results: beginnings of the titles of the pictures on its page.
FIGURES: dict[str, tuple[str, ...]] = {
    "node-stealing": ("june-2017: h111 / baseline",),
    "silent-errors": ("synthetic: percentages above R-LIST-0, P = 10,000",),
    "torus": ("completion times, scale 5800 h, jobs of 256 nodes",),
    "replacement": ("mixed: makespan",),
    "migration": ("share of node time in mixed nodes",),
    "training": (
        "spare nodes: ETTR of rsc-1 over spares",
        "checkpoint interval: ETTR of rsc-1 over",
        "job flagship of rsc-1#0",
    ),
}


def pictures(results: Path) -> list[Picture]:
    """Return the pictures in the report of stored results."""
    data = read_data(results)
    kinds = kinds_of(data.code, None)
    return [
        picture
        for kind, extras in data.kinds.items()
        for picture in kinds[kind]
        .report(results, decoded(extras, kinds[kind].extras, results), data.provenance)
        .pictures
    ]


def panels(folder: str) -> list[str]:
    """Return the panels of the pictures on the page of a folder, each as an SVG document."""
    drawn, svgs = pictures(FINDINGS / folder / "results.parquet"), []
    for title in FIGURES[folder]:
        shown = [picture for picture in drawn if picture.title.startswith(title)]
        if not shown:
            raise SystemExit(f"{folder}: no picture begins with {title!r}")
        svgs += re.findall(r"<svg.*?</svg>\n?", shown[0].svg, re.DOTALL)
    return svgs


def main() -> None:
    """Write docs/findings/FOLDER/figure-N.svg, one for each panel."""
    for folder in sys.argv[1:] or FIGURES:
        for number, svg in enumerate(panels(folder), start=1):
            path = FINDINGS / folder / f"figure-{number}.svg"
            path.write_text(svg, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
