# SPDX-License-Identifier: Apache-2.0
"""``rebat run --seeds``: runs of many seeds have the results of each seed, and intervals."""

from __future__ import annotations

import csv
import io
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.drive import choose
from rebat.results.comparison import Runs, intervals_csv, rows, seeds_csv
from rebat.results.intervals import interval, relative_width
from rebat.results.metric import name_of
from rebat.runs import seeds
from rebat.runs.case import PYTHON, case_of
from rebat.runs.seeds import Narrow, SeedRuns, run_seeds
from rebat.runs.unit import Source
from rebat.workloads.batsim_json import write_workload
from tests.support.scenarios import machine


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.json"
    write_workload(machine(6, *((1 + k % 4, 10 + k, 3 * k) for k in range(12))), path)
    return path


def asked(
    workload: Path,
    n_seeds: int = 4,
    workers: int = 1,
    narrow: Narrow | None = None,
    names: tuple[str, ...] = ("baseline", "sfsj"),
) -> SeedRuns:
    given = {"mtbf": 40.0, "downtime": 5.0, "seed": range(3, 3 + n_seeds)}
    sources = {"workload": Source(file=str(workload))}
    case = case_of(given, names, PYTHON, workloads=sources)
    return SeedRuns(case, names, {}, 6, workers, narrow)


def test_each_seed_is_the_run_of_that_seed(workload: Path, tmp_path: Path) -> None:
    seeds = run_seeds(asked(workload))
    assert seeds.seeds == [3, 4, 5, 6]
    for seed in (3, 5):
        out = tmp_path / f"seed-{seed}"
        arguments = ["run", str(workload), "-p", "baseline", "-p", "sfsj", "--mtbf", "40s",
                     "--downtime", "5s", "--seed", str(seed), "--out", str(out)]  # fmt: skip
        main(arguments)
        text = (out / "comparison.csv").read_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        alone = {(row["metric"], row["size_class"], row["policy"]): row for row in rows}
        for policy in ("baseline", "sfsj"):
            value = seeds.of(policy, ("flow_mean_s", "all"))[seed]
            row = alone["flow_mean_s", "all", policy]
            assert float(row["mean"]) == pytest.approx(value, rel=1e-5)
            assert row["seeds"] == "1"
            assert row["low"] == row["ratio_low"] == row["differs"] == ""


def test_a_ratio_is_that_of_the_means_beside_it(workload: Path) -> None:
    seeds = run_seeds(asked(workload, 6))
    means = {}
    for row in rows(seeds):
        means[row.metric, row.policy] = row.value.mean
        if row.ratio is not None:
            base = means[row.metric, "baseline"]
            assert row.ratio.mean == pytest.approx(row.value.mean / base)
    assert len(means) > 50


@pytest.mark.parametrize("pays", [0, 200_000])
def test_workers_change_nothing(pays: int, workload: Path, monkeypatch) -> None:
    monkeypatch.setattr(choose, "PAYS", pays)
    alone, together = run_seeds(asked(workload, 2)), run_seeds(asked(workload, 2, workers=2))
    assert seeds_csv(alone) == seeds_csv(together)
    assert intervals_csv(rows(alone)) == intervals_csv(rows(together))


def test_seeds_are_added_until_the_interval_is_narrow(workload: Path) -> None:
    """The interval is that of the only policy. The number of seeds grows by half each time."""
    metric = name_of("flow_mean_s:all")
    alone = asked(workload, 8, names=("baseline",))
    (few,) = rows(run_seeds(alone), [metric])
    aim = 0.8 * (relative_width(few.value) or 0)
    more = run_seeds(msgspec.structs.replace(alone, narrow=Narrow(aim, metric)))
    assert len(more.seeds) in (12, 18, 27, 40, 60, 90)
    (row,) = rows(more, [metric])
    assert 0 < (relative_width(row.value) or 0) <= aim
    wide = run_seeds(msgspec.structs.replace(alone, narrow=Narrow(10.0, metric)))
    assert len(wide.seeds) == 8


def test_unknown_metrics_are_told(workload: Path) -> None:
    with pytest.raises(InputError, match=r"unknown metric 'speed'.*useful_utilisation"):
        run_seeds(asked(workload, 2, narrow=Narrow(0.1, name_of("speed"))))


def test_on_the_command_line(workload: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    arguments = ["run", str(workload), "-p", "baseline", "-p", "sfsj", "--mtbf", "40s",
                 "--downtime", "5s", "--seeds", "5", "--workers", "1", "--figures",
                 "--out", str(out)]  # fmt: skip
    main(arguments)
    assert "5 seeds, 2 policies" in capsys.readouterr().out
    files = {"seeds.csv", "comparison.csv", "ratios.png", "run.json", "provenance.json"}
    assert {path.name for path in out.iterdir()} == files | {"SHA256SUMS"}
    table = list(csv.DictReader((out / "comparison.csv").open()))
    flow = {
        r["policy"]: r
        for r in table
        if r["metric"] == "flow_mean_s" and not r["size_class"][1:2].isdigit()
    }
    assert flow["baseline"]["ratio"] == "" and flow["sfsj"]["differs"] in ("yes", "no")
    tidy = list(csv.DictReader((out / "seeds.csv").open()))
    assert {row["seed"] for row in tidy} == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "3"], "nothing is random"),
        (["--workers", "2", "--mtbf", "40s"], "--workers"),
        (["--until-metric", "x", "--seeds", "2", "--mtbf", "40s"], "--until-width"),
        (["--seeds", "1", "--mtbf", "40s"], "--seeds"),
    ],
)
def test_what_has_no_effect_is_refused(workload, tmp_path, capsys, options, message) -> None:
    arguments = ["run", str(workload), "-p", "baseline", *options, "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and not (tmp_path / "out").exists()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "batches"),
    [(1, [1, 2, 2, 2, 3, 2]), (3, [3, 2, 2, 3, 2]), (11, [11, 1]), (12, [12]), (13, [13])],
)
def test_seeds_are_added_up_to_the_maximum(monkeypatch, first: int, batches: list[int]) -> None:
    monkeypatch.setattr(seeds, "MOST_SEEDS", 12)
    monkeypatch.setattr(seeds, "_too_wide", lambda runs, narrow: True)
    requested = asked(Path("none"), first, narrow=Narrow(0.1))
    found = [*islice(seeds._batches(requested, Runs([])), 9)]
    assert [len(batch) for batch in found] == batches
    assert [seed for batch in found for seed in batch] == [*range(3, 3 + sum(batches))]


def test_an_interval_of_the_target_width_is_narrow_enough() -> None:
    runs = Runs(["baseline"])
    for seed in range(6):
        runs.add(seed, "baseline", [("flow_mean_s", None, 10.0 + seed)])
    width = relative_width(interval(list(runs.of("baseline", ("flow_mean_s", None)).values())))
    assert width is not None
    for target, wide in ((width, False), (width * 1.001, False), (width * 0.999, True)):
        assert seeds._too_wide(runs, Narrow(target, ("flow_mean_s", None))) == wide
