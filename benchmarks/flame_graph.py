# SPDX-License-Identifier: Apache-2.0
"""Flame graphs of commands, one above another, with the same time scale.

Run: ``py-spy record --rate 500 --format raw --output a.raw -- python -m rebat run ...``, then
``python -m benchmarks.flame_graph OUT.png 500 before=a.raw after=b.raw``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MACHINERY = ("importlib", "<frozen", "click/", "runpy", "__main__")
"""Files whose frames are omitted, because they only call the measured code."""
DEEPEST = 11
"""Maximum number of frames in a stack."""

Tree = dict[str, tuple[float, Any]]
"""For each label of a frame: its seconds, and the frames that it calls."""


def tree_of(path: Path, rate_hz: float) -> Tree:
    """Return the stacks of a raw file of py-spy as a tree."""
    root: Tree = {}
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        level = root
        for label in list(labels(stack))[:DEEPEST]:
            spent, below = level.get(label, (0.0, {}))
            level[label] = (spent + int(count) / rate_hz, below)
            level = below
    return root


def labels(stack: str) -> Iterator[str]:
    """Yield the frames of a stack as "function (module)". Omit consecutive duplicates."""
    last = ""
    for frame in stack.split(";"):
        name, _, place = frame.partition(" (")
        if any(part in place for part in MACHINERY):
            continue
        label = f"{name} ({Path(place.partition(':')[0]).stem})"
        if label != last:
            yield label
        last = label


def draw(axes: Any, level: Tree, left_s: float, depth: int, full_s: float) -> None:
    """Draw the frames of a level next to each other, and the frames that each calls below it."""
    for label, (spent, below) in sorted(level.items()):
        colour = f"C{sum(map(ord, label)) % 10}"
        axes.barh(-depth, spent, 0.95, left_s, color=colour, alpha=0.55, edgecolor="w", lw=0.4)
        letters = int(spent / full_s * 165)
        if letters > 4:
            text = label if len(label) <= letters else label[: letters - 1] + "…"
            axes.text(left_s + full_s * 0.002, -depth, text, va="center", fontsize=6, clip_on=True)
        draw(axes, below, left_s, depth + 1, full_s)
        left_s += spent


def main(arguments: list[str]) -> None:
    """Draw the flame graphs of several raw files."""
    from matplotlib.figure import Figure

    out, rate_hz, *named = arguments
    trees = {}
    for text in named:
        title, _, file = text.partition("=")
        trees[title] = tree_of(Path(file), float(rate_hz))
    totals = {title: sum(spent for spent, _ in tree.values()) for title, tree in trees.items()}
    full_s = max(totals.values())
    figure = Figure(figsize=(12, 3.2 * len(trees)), layout="constrained")
    rows = figure.subplots(len(trees), squeeze=False)[:, 0]
    for axes, (title, tree) in zip(rows, trees.items(), strict=True):
        draw(axes, tree, 0.0, 0, full_s)
        text = f"{title}: {totals[title]:.2f} s"
        axes.set(xlim=(0, full_s), yticks=[], xlabel="seconds", title=text)
        axes.spines[["top", "left", "right"]].set_visible(False)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
