# SPDX-License-Identifier: Apache-2.0
"""What a comparison of two job tables leaves behind: differences.csv and its figure."""

from __future__ import annotations

from pathlib import Path

from rebat.core.csv_text import name_field
from rebat.core.files import write_text
from rebat.core.units import to_s
from rebat.figures.compare import draw_comparison
from rebat.report.batsim_files import JobRecord
from rebat.report.compare import QUANTITIES, Comparison, Pair

COLUMNS = (
    "job_id", "tables",
    *(f"{name}_{part}" for name in QUANTITIES for part in ("a", "b", "difference")),
    "state_a", "state_b", "same_nodes",
)  # fmt: skip


def write_comparison(comparison: Comparison, folder: Path, labels: tuple[str, str]) -> None:
    """Write differences.csv and differences.png into a folder."""
    write_text(folder / "differences.csv", differences_csv(comparison))
    moved = [
        (to_s(pair.a.start), to_s(gap))
        for pair in comparison.pairs
        if pair.a.start is not None and (gap := pair.difference_us("start")) is not None
    ]
    rows = [(pair.a.waiting, pair.b.waiting) for pair in comparison.pairs]
    waits = [(to_s(a), to_s(b)) for a, b in rows if a is not None and b is not None]
    draw_comparison(moved, waits, labels, folder / "differences.png")


def differences_csv(comparison: Comparison) -> str:
    """A row per job that differs, by start in A; times in seconds, differences B minus A."""
    pairs = sorted(comparison.differing, key=lambda p: (p.a.start or 0, p.key))
    lines = [",".join(COLUMNS), *(_pair_line(pair) for pair in pairs)]
    lines += [_single_line(record, "A") for record in comparison.only_a]
    lines += [_single_line(record, "B") for record in comparison.only_b]
    return "\n".join(lines) + "\n"


def _pair_line(pair: Pair) -> str:
    cells = [name_field(pair.key), "both"]
    for name in QUANTITIES:
        values = getattr(pair.a, name), getattr(pair.b, name), pair.difference_us(name)
        cells += [_cell(value) for value in values]
    return ",".join([*cells, pair.a.state, pair.b.state, str(int(pair.same_nodes))])


def _single_line(record: JobRecord, table: str) -> str:
    """A job of one table only: its dates in that table's columns."""
    cells = dict.fromkeys(COLUMNS, "")
    side = table.lower()
    cells |= {"job_id": name_field(record.key), "tables": table, f"state_{side}": record.state}
    cells |= {f"start_{side}": _cell(record.start_us), f"finish_{side}": _cell(record.end_us)}
    return ",".join(cells.values())


def _cell(us: int | None) -> str:
    return "" if us is None else f"{to_s(us):.6f}"
