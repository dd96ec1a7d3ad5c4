# SPDX-License-Identifier: Apache-2.0
"""The file differences.csv, which lists the jobs that differ between two job tables, A and B."""

from __future__ import annotations

from rebat.core.formatting import name_field
from rebat.core.units import to_s
from rebat.results.compare.schedules import QUANTITIES, Comparison, Pair
from rebat.results.files.batsim_files import JobRecord

COLUMNS = (
    "job_id",
    "tables",
    *(f"{name}_{part}" for name in QUANTITIES for part in ("a", "b", "difference")),
    "state_a",
    "state_b",
    "same_nodes",
)


def differences_csv(comparison: Comparison) -> str:
    """Return a row per differing job, sorted by start in A. Differences are B - A, in seconds."""
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
    """Return the row of a job that is in one table only. The other table's columns are empty."""
    cells = dict.fromkeys(COLUMNS, "")
    side = table.lower()
    cells |= {"job_id": name_field(record.key), "tables": table, f"state_{side}": record.state}
    cells |= {f"start_{side}": _cell(record.start_us), f"finish_{side}": _cell(record.end_us)}
    return ",".join(cells.values())


def _cell(us: int | None) -> str:
    return "" if us is None else f"{to_s(us):.6f}"
