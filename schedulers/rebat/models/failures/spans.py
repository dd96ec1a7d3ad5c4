# SPDX-License-Identifier: Apache-2.0
"""Outages of single nodes as records tell them: lines overlap, Batsim's events must alternate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """One node, down from one date (us) until another."""

    node: int
    down_us: int
    up_us: int


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The outages by node and date; those of a node that overlap, or touch, are one.

    >>> list(joined([Span(1, 5, 8), Span(1, 0, 5), Span(0, 1, 2)]))
    [Span(node=0, down_us=1, up_us=2), Span(node=1, down_us=0, up_us=8)]
    """
    last: Span | None = None
    for span in sorted(spans):
        if last and last.node == span.node and span.down_us <= last.up_us:
            last = last._replace(up_us=max(last.up_us, span.up_us))
            continue
        if last:
            yield last
        last = span
    if last:
        yield last
