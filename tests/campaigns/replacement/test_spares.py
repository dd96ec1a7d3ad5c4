# SPDX-License-Identifier: Apache-2.0
"""Figure 1: spare nodes of each job compared with a pool, on values computed by hand."""

from __future__ import annotations

import pytest

from rebat.report.runs_index import RunIndex, Setting
from rebat.runs.labels import ScenarioLabel
from rebat.shipped.campaigns.replacement.beyond import spare_judgements as judgements
from rebat.shipped.campaigns.replacement.beyond import spare_nodes
from rebat.shipped.campaigns.replacement.beyond import spare_tables as tables
from rebat.shipped.campaigns.replacement.runs import DERIVED, case_of

POOL = "sa:react=replacement,steps=idle+wait"
STATIC = "sa:malleable=fixed,react=replacement,steps=local+wait"
RUNS = {
    # workload, policy: makespan (s), useful node time (s), hit jobs that continue and that wait
    ("rigid", "sa"): (1000, 50_000, 0, 100),
    ("rigid", POOL): (1000, 50_000, 60, 40),
    ("rigid", f"{POOL},spares=2"): (1010, 50_000, 70, 30),
    ("rigid", f"{POOL},spares=4"): (1050, 50_000, 90, 10),
    ("own-spares-1", STATIC): (1100, 61_000, 20, 80),
    ("own-spares-4", STATIC): (1250, 100_000, 75, 25),
}
N_SEEDS = 8


def index_of(runs=RUNS):
    rows = []
    for (workload, policy), (makespan, useful, continued, waited) in runs.items():
        setting = Setting("g", workload, ScenarioLabel("renewal"))
        source = "resizes_by_local" if workload != "rigid" else "resizes_by_idle"
        metrics = {
            "makespan_s": makespan, "platform_useful": useful, "resizes_by_local": 0,
            "resizes_by_idle": 0, "resizes_by_remote": 0, "resizes_by_restart": 0,
            "resizes_requeued": waited, source: continued,
        }  # fmt: skip
        for draw in range(N_SEEDS):
            rows += [(setting, case_of(policy), name, "", (draw, 0), value * (1 + draw))
                     for name, value in metrics.items()]  # fmt: skip
    return RunIndex(rows, DERIVED)


def test_the_reserved_processors_of_jobs_are_their_additional_node_time() -> None:
    spares = spare_nodes(index_of())
    assert set(spares.reserved(spares.own[1]).values()) == {10.0}
    assert set(spares.reserved(spares.own[4]).values()) == {40.0}
    assert spares.sufficient == 4  # 30 % wait with a pool of 2, 25 % with 4 spares per job


def test_the_table_has_a_row_per_kind_of_spare_nodes() -> None:
    (table,) = tables(index_of())
    assert [row[0] for row in table.rows] == [
        "no replacement", "idle processors", "pool of 2", "pool of 4", "1 of each job",
        "4 of each job",
    ]  # fmt: skip
    last = table.rows[-1]
    assert last[1].startswith("40.0") and last[3].startswith("+25.0 %")
    assert last[4].startswith("75.0 %") and last[5].startswith("25.0 %")


@pytest.mark.parametrize(("useful", "verdict"), [(100_000, "contradicted"), (250_000, "holds")])
def test_an_order_of_magnitude_is_a_ratio_above_ten(useful: int, verdict: str) -> None:
    """40 reserved processors are ten times the pool of 4, 160 are forty times."""
    runs = RUNS | {("own-spares-4", STATIC): (1250, useful, 75, 25)}
    longer, fewer = judgements(index_of(runs))
    assert (longer.direction, fewer.direction) == ("holds", verdict)


def test_without_a_pool_there_is_nothing_to_compare() -> None:
    runs = {key: value for key, value in RUNS.items() if key[0] != "rigid"}
    assert spare_nodes(index_of(runs)) is None
    assert not list(tables(index_of(runs))) and not list(judgements(index_of(runs)))


def test_no_pool_is_sufficient_if_more_jobs_wait_under_each() -> None:
    runs = RUNS | {("own-spares-4", STATIC): (1250, 100_000, 99, 1)}
    assert spare_nodes(index_of(runs)).sufficient is None
    assert len(list(judgements(index_of(runs)))) == 1
