#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fit the failure models of `rebat failures models` to published records.

    python scripts/fit_failure_models.py LANL_RECORD MIRA_RECORD MIRA_MAINTENANCE

This command writes failure_events/models.toml. Obtain the records from their publishers: Los
Alamos' LA-UR-05-7318 and LogAider's filtered fatal events of Mira with its maintenance periods.

The MTBF and the mean repair time are those of the record. The shape of the gaps and the sigma of
the repairs are the most likely values, given these means.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from rebat.core.files import folder
from rebat.models.failures.events import machine_mtbf_s
from rebat.models.failures.laws import FILE
from rebat.models.failures.per_node import Floats, LogNormalNodes, NodeLaws, WeibullNodes
from rebat.models.failures.records.formats import ReaderOptions, read_record
from rebat.models.failures.records.record import Record
from rebat.models.failures.statistics import samples

SYSTEMS = (3, 4, 5, 8, 9, 12, 18, 19, 20)
"""Systems with at least 128 nodes and 250 failures.

System 11 is omitted, because its record has an invalid node.
"""

SMALLEST_SHARE = 0.01
"""Minimum share of the failures that groups of a size must have. Other sizes are omitted."""

LANL = "Los Alamos National Laboratory, LA-UR-05-7318 (Schroeder and Gibson 2006)"
MIRA = (
    "Fatal RAS events of Mira, filtered by LogAider (Di et al. 2017), Argonne National Laboratory"
)
DAY_US = 86_400_000_000


def main(lanl: Path, mira: Path, maintenance: Path) -> None:
    """Fit all models and write them."""
    entries = [entry_of_lanl(system, lanl) for system in SYSTEMS]
    of_mira = read_record("mira-ras", mira, ReaderOptions(maintenance=maintenance))
    title = "Mira, Blue Gene/Q, assumed repair times"
    entries.append(_entry("mira", title, MIRA, of_mira))
    text = (
        "# SPDX-License-Identifier: Apache-2.0\n# Written by scripts/fit_failure_models.py.\n\n"
        + "\n".join(entries)
    )
    (folder("failure_events") / FILE).write_text(text)
    print(text)


def entry_of_lanl(system: int, path: Path) -> str:
    """Return the TOML table of a system of Los Alamos."""
    record = read_record("lanl", path, ReaderOptions(system=system))
    return _entry(f"lanl-{system}", f"Los Alamos, system {system}", LANL, record)


def _entry(name: str, title: str, source: str, record: Record) -> str:
    """Return the TOML table of one machine."""
    n_nodes, events = record.n_nodes or 0, record.events
    gaps, _, repairs = samples(events, n_nodes)
    mtbf_s, repair_s = machine_mtbf_s(events) or 0.0, float(repairs.times.failed_s.mean())
    failures = [event for event in events if not event.available]
    rows = {
        "node_mtbf": mtbf_s * n_nodes,
        "repair": repair_s,
        "shape": _likeliest(lambda shape: _weibull(mtbf_s, shape), gaps.times.failed_s),
        "sigma": _likeliest(lambda sigma: _lognormal(repair_s, sigma), repairs.times.failed_s),
        "groups": _groups([len(event.nodes) for event in failures]),
    }
    parameters = "\n".join(f"{key} = {_text(value)}" for key, value in rows.items())
    return (
        f'[{name}]\ntitle = "{title}, {_years(record)}"\nsource = "{source}"\nnodes = {n_nodes}\n'
        f'failures = {len(failures)}\ndays = {_days(record):.1f}\nlaw = "scaled"\n\n'
        f"[{name}.parameters]\n{parameters}\n"
    )


def _days(record: Record) -> float:
    return record.events[-1].at_us / DAY_US


def _years(record: Record) -> str:
    assert record.origin is not None
    return f"{record.origin:%Y} to {record.origin + timedelta(days=_days(record)):%Y}"


def _weibull(mean_s: float, shape: float) -> NodeLaws:
    return WeibullNodes(np.array([mean_s / math.gamma(1 + 1 / shape)]), np.array([shape]))


def _lognormal(mean_s: float, sigma: float) -> NodeLaws:
    return LogNormalNodes(np.array([mean_s * math.exp(-(sigma**2) / 2)]), np.array([sigma]))


def _likeliest(law: Callable[[float], NodeLaws], times_s: Floats) -> float:
    """Return the second parameter of the most likely law whose mean is that of ``times_s``."""
    fit = minimize_scalar(
        lambda value: -law(value).log_density(times_s).sum(), bounds=(0.1, 5), method="bounded"
    )
    return float(fit.x)


def _groups(sizes: list[int]) -> str:
    """Return the sizes of groups, as powers of two, with the number of their failures."""
    counts = Counter(2 ** math.ceil(math.log2(size)) for size in sizes)
    return "+".join(
        f"{size}:{count}"
        for size, count in sorted(counts.items())
        if count >= SMALLEST_SHARE * len(sizes)
    )


def _text(value: float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.5g}"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
