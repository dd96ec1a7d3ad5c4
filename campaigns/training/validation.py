# SPDX-License-Identifier: Apache-2.0
"""Write a table with numbers of training clusters: published, by a formula, and simulated.

``python campaigns/training/validation.py docs/findings/training/validation.md``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from rebat.core.numbers import number, share, spread
from rebat.models.ettr import (
    TrainingJob,
    TwoTiers,
    ettr,
    failure_rate,
    rsc_ettr,
    spare_nodes,
    two_tier_ettr,
    young_interval_s,
)
from rebat.results.intervals import Interval
from rebat.studies.training.case import SimulatedJob, TrainingCase, failures_of, simulated
from rebat.studies.training.goodput import ETTR

MINUTE, HOUR = 60.0, 3600.0
SIX = number.with_decimals(6)
MINUTES = number.in_unit("min", MINUTE)


class Row(NamedTuple):
    """A published number and its case. Times are in minutes. Default interval: Young's optimum."""

    number: str
    title: str
    printed: str
    nodes: int
    rate: float
    detect: float
    load: float
    interval: float | None
    write: float
    form: str = "exact"


ROWS = (
    Row("2", "RSC, 16,384 GPUs, checkpoint every hour", "about 0.7", 2048, 6.5, 0, 5, 60, 0, "rsc"),
    Row("2", "RSC, 16,384 GPUs, every 5 min", "0.93", 2048, 6.5, 0, 5, 5, 0, "rsc"),
    Row("3", "RSC, 12,000 GPUs, write 5 min, rate 1", "0.9", 1500, 1, 0, 5, None, 5, "rsc"),
    Row("3", "the same at RSC-1's rate", "", 1500, 6.5, 0, 5, None, 5, "rsc"),
    Row("4", "RSC, 12,000 GPUs, write 10 s", "0.9", 1500, 6.5, 0, 5, None, 1 / 6, "rsc"),
    Row("5", "RSC-2's rate, 100,000 GPUs, every 2 min", "0.9", 12500, 2.34, 0, 2, 2, 0, "rsc"),
    Row("6", "RSC, 2,048 GPUs, every hour", "> 0.9", 256, 6.5, 0, 5, 60, 0, "rsc"),
    Row("6", "RSC, 4,096 GPUs, every hour", "> 0.9", 512, 6.5, 0, 5, 60, 0, "rsc"),
    Row(
        "7", "Llama 3, 466 interruptions in 54 days", "> 0.90", 2048, 466 / 54 / 2.048, 2, 6, 15, 0
    ),
    Row("A", "1,024 GPUs", "0.974290", 128, 6.5, 5, 10, 60, 0),
    Row("B", "16,384 GPUs", "0.791934", 2048, 6.5, 5, 5, 30, 0),
    Row("C", "Llama 3, MTBF 3.093079 h", "0.850627", 2048, 3.788702, 2, 8, 15, 1),
    Row("D", "131,072 GPUs", "0.732041", 16384, 6.5, 1, 2, 2, 2 / 60),
)


def main(out: Path) -> None:
    """Simulate all rows and write the tables."""
    lines = [
        "| row | case | printed | RSC formula | exact | simulated, 95 % interval |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(row) for row in ROWS] + [_two_tiers()]
    lines += ["", "| row | quantity | printed | computed |", "|---|---|---|---|", *_others()]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n")


def _line(row: Row) -> str:
    mtbf_s = 1 / failure_rate(row.nodes, row.rate)
    interval_s = (row.interval or 0) * MINUTE or young_interval_s(mtbf_s, row.write * MINUTE)
    case = TrainingCase(
        nodes=row.nodes, law=failures_of(row.rate, None, None), interval_s=interval_s,
        write_s=row.write * MINUTE, load_s=row.load * MINUTE,
        stages={"detect": f"{row.detect}min"} if row.detect else {},
    )  # fmt: skip
    formula = ETTR(rsc_ettr(case.job())) if row.form == "rsc" else ""
    return _cells(row.number, row.title, row.printed, formula, ettr(case.job()), simulated(case))


def _cells(
    name: str, title: str, printed: str, formula: str, exact: float, simulation: SimulatedJob
) -> str:
    interval = spread(Interval(simulation.ettr, simulation.low, simulation.high), ETTR)
    return f"| {name} | {title} | {printed} | {formula} | {SIX(exact)} | {interval} |"


def _two_tiers() -> str:
    case = TrainingCase(
        nodes=2048,
        law=failures_of(None, "fleet:rate=3.788702,causes=light=80+deep=20,software=light", None),
        tiers="memory=1s/3min@2.6min+remote=30s/10min@31.2min",
    )
    return _cells(
        "11", "two tiers, failures possible during loads", "", "", case.closed_ettr, simulated(case)
    )


def _others() -> list[str]:
    def mtbf_h(nodes: int, rate: float) -> str:
        return number.in_unit("h", HOUR)(1 / failure_rate(nodes, rate))

    llama = TrainingJob(mtbf_s=54 * 24 * HOUR / 466, interval_s=1.0)
    in_repair = 2048 * 3.79 / 1000
    return [
        f"| 1 | MTBF of 16,384 GPUs, rate 6.5 | 1.8 h | {mtbf_h(2048, 6.5)} |",
        f"| 1 | MTBF of 131,072 GPUs, rate 6.5 | 0.23 h | {mtbf_h(16384, 6.5)} |",
        f"| 7 | Llama 3: loss per interruption for an ETTR of 0.9 | | "
        f"{MINUTES(0.1 * llama.mtbf_s)} |",
        f"| 8 | ByteRobust, 9,600 GPUs, rate 3.79: loss per failure for 0.97 | | "
        f"{MINUTES(0.03 / failure_rate(1200, 3.79))} |",
        f"| 9 | FT-HSDP, MTBF 18 min, stall 10 min | 44 % | {share(1 - 10 / 18)} |",
        f"| 9 | FT-HSDP, MTBF 18 min, stall 3 min | 80 % | {share(1 - 3 / 18)} |",
        f"| 10 | MTBF of 1,024 GPUs, rate 23.7 | 7.9 h | {mtbf_h(128, 23.7)} |",
        f"| 11 | two tiers, no failures during loads | 0.933604 | {SIX(_safe())} |",
        "| | spare nodes that cover the failures of 2,048 nodes 99 % of the time, rate 3.79, "
        f"repair 4 h | 5 | {spare_nodes(in_repair / 6)} |",
        f"| | the same, repair 1 d | 15 | {spare_nodes(in_repair)} |",
    ]


def _safe() -> float:
    tiers = TwoTiers(
        mtbf_s=3.093079 * HOUR, light_share=0.8, interval_s=2.6 * MINUTE, per_pattern=12,
        writes_s=(1, 30), loads_s=(3 * MINUTE, 10 * MINUTE),
    )  # fmt: skip
    return two_tier_ettr(tiers, safe_loads=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
