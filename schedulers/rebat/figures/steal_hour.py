# SPDX-License-Identifier: Apache-2.0
"""An hour of the machine around a steal, as an SVG with tooltips for jobs and attempts."""

from __future__ import annotations

from html import escape

from rebat.core.attempts import Cause, job_name
from rebat.core.numbers import hundredths
from rebat.core.units import US_PER_S, to_s
from rebat.figures.canvas import COLOURS
from rebat.state.ledger import AttemptRecord, Ledger

WIDTH, HEIGHT = 900.0, 420.0
BEFORE_US, AFTER_US = 1200 * US_PER_S, 2400 * US_PER_S
_NAMED = {
    Cause.STOLEN: ("#cc3311", "interrupted for another job"),
    Cause.NODE_FAILURE: ("#000000", "hit by a failure"),
}


SECONDS = hundredths.in_unit("s")


def steal_hour(ledger: Ledger, n_nodes: int, steal_us: int) -> str:
    """Draw nodes from top to bottom and time from left to right. Outages are black lines."""
    first, last = steal_us - BEFORE_US, steal_us + AFTER_US
    parts = [
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT + 30:g}" role="img" class="gantt">',
        f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="#f4f4f4"/>',
    ]
    for record in ledger.attempts:
        if record.nodes is not None and record.end_us > first and record.start_us < last:
            parts += _rectangles(record, n_nodes, first, last)
    for node, down, up in ledger.node_events.outages(last).rows():
        if up > first and down < last:
            x, width = _span(down, up, first, last)
            outage = SECONDS.between(to_s(down), to_s(up))
            y = node / n_nodes * HEIGHT
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="1.5" fill="black">'
                f"<title>node {node} down from {outage}</title></rect>"
            )
    x, _ = _span(steal_us, last, first, last)
    parts.append(f'<path d="M{x:.1f} 0V{HEIGHT:g}" stroke="#cc3311" stroke-dasharray="4 3"/>')
    parts.append(
        f'<text x="{x:.1f}" y="{HEIGHT + 18:g}" font-size="13" text-anchor="middle">'
        f"steal at {SECONDS(to_s(steal_us))}</text></svg>"
    )
    return "".join(parts)


def _span(start_us: int, end_us: int, first: int, last: int) -> tuple[float, float]:
    scale = WIDTH / (last - first)
    left = (max(start_us, first) - first) * scale
    return left, (min(end_us, last) - first) * scale - left


def _rectangles(record: AttemptRecord, n_nodes: int, first: int, last: int) -> list[str]:
    attempt = record.attempt
    x, width = _span(record.start_us, record.end_us, first, last)
    colour = COLOURS[attempt.job_serial % len(COLOURS)]
    edge, end = _NAMED.get(record.cause, ("white", str(record.cause)))
    title = escape(
        f"job {job_name(attempt.job_id)}, attempt {attempt.number}, "
        f"{attempt.n_nodes} nodes, "
        f"{SECONDS.between(to_s(record.start_us), to_s(record.end_us))}, {end}"
    )
    assert record.nodes is not None
    return [
        f'<rect x="{x:.1f}" y="{low / n_nodes * HEIGHT:.2f}" width="{width:.1f}" '
        f'height="{(high - low + 1) / n_nodes * HEIGHT:.2f}" fill="{colour}" stroke="{edge}" '
        f'stroke-width="0.7"><title>{title}</title></rect>'
        for low, high in record.nodes.intervals.tolist()
    ]
