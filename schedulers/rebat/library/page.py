# SPDX-License-Identifier: Apache-2.0
"""A result as a self-contained HTML page without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from rebat.console.tables import Sheet
from rebat.core.errors import InputError
from rebat.core.formatting import PAGE_STYLE
from rebat.library.node_names import names_in
from rebat.library.plots import Plot
from rebat.session.ledger import Ledger

_STYLE = f"""{PAGE_STYLE}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.15rem }} img {{ max-width: 100%; height: auto }}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0 }}
td, th {{ padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: left }}
pre {{ background: #f6f6f6; padding: .8rem; overflow-x: auto }}"""


class Page(str):
    """A self-contained HTML page as text, which notebooks display."""

    __slots__ = ()
    HEIGHT = 640
    """Height in a notebook, in pixels."""

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.HEIGHT}px; border: 1px solid #ddd"
        return f'<iframe srcdoc="{escape(self)}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<page of {len(self)} characters>"


def page(
    title: str, verdict: str, sheet: Sheet, plots: Sequence[Plot], provenance: Mapping[str, Any]
) -> Page:
    """Return a page with the verdict, figures, comparison and provenance."""
    pictures = "\n".join(f"<p>{plot.html()}</p>" for plot in plots)
    sentences = "\n".join(f"<p>{escape(line)}</p>" for line in verdict.splitlines())
    record = msgspec.json.format(msgspec.json.encode(provenance), indent=2).decode()
    return Page(f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>{escape(title)}</title><style>
{_STYLE}
</style></head><body>
<h1>{escape(title)}</h1>
{sentences}
{pictures}
<div class="wide">{sheet.html()}</div>
<h2>Provenance</h2>
<pre>{escape(record)}</pre>
</body></html>
""")


def explorer(ledgers: Mapping[str, Ledger], n_nodes: int, source: Mapping[str, Any]) -> Page:
    """Return the page of ``rebat view`` for several runs. ``source`` describes their workload."""
    from rebat.figures.explore.page import MOST_TOGETHER, explorer_page
    from rebat.figures.runs import timelines_of

    if len(ledgers) > MOST_TOGETHER:
        raise InputError(f"names {len(ledgers)} policies", "explore", f"at most {MOST_TOGETHER}")
    timelines, names = timelines_of(ledgers, n_nodes), names_in(source.get("nodes"))
    return Page(explorer_page(timelines, f"rebat: {source['file']}", node_names=names))
