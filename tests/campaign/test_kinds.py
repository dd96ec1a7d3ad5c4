# SPDX-License-Identifier: Apache-2.0
"""Kinds of units: their grids, several kinds in one file, and the code of a new kind."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import run_campaign
from rebat.campaign.store import Store
from rebat.cli.campaign import campaign
from rebat.cli.run import run
from rebat.core.errors import InputError
from tests.support.campaigns import GRID, WORKLOADS, campaign_file, contents, n_run, run_here

SETS = """
[synthetic.drawn]
sets = 2
jobs = 6
"""
PLAYED = """
[[grid]]
name = "played"
sets = ["drawn"]
failure_probability = [0.3]
rules = ["LPT"]
scenarios = 2
"""
"""A grid of 2 units."""


def mixed(folder: Path, text: str = WORKLOADS + SETS + PLAYED + GRID) -> Path:
    """Write a campaign with 2 silent-error units and 10 simulations."""
    file = campaign_file(folder)
    file.write_text('units = "silent_errors/units.py"\n' + text)
    return file


def table(results: Path) -> list[dict]:
    return pq.read_table(results / "results.parquet").to_pylist()


def test_one_file_may_have_units_of_several_kinds(tmp_path: Path) -> None:
    file, results = mixed(tmp_path), tmp_path / "r"
    status, told = run_here(file, results, limit=3)
    assert (n_run(told), status.ok, status.missing) == (3, 3, 9)
    status, _ = run_here(file, results)
    assert (status.ok, status.total) == (12, 12)
    rows = table(results)
    assert {(row["kind"], row["grid"]) for row in rows} == {
        ("silent-errors", "played"),
        ("simulation", "small"),
    }
    foreign = {"silent-errors": ("workload", "mtbf_s"), "simulation": ("set", "heuristic", "q")}
    assert all(row[name] is None for row in rows for name in foreign[row["kind"]])
    assert all(row["value"] is not None and row["key"] for row in rows)


@pytest.mark.usefixtures("undrawn")
def test_each_kind_has_its_report(tmp_path: Path) -> None:
    file, results = mixed(tmp_path), tmp_path / "r"
    run_here(file, results)
    opened = open_campaign(file)
    assert [path.name for path in write_report(opened, results, tmp_path / "out")] == [
        "report-silent-errors.html", "report-silent-errors.md",
        "report-simulation.html", "report-simulation.md",
    ]  # fmt: skip
    assert "R-LIST-Q" in (tmp_path / "out/report-silent-errors.md").read_text()
    assert "useful utilisation" in (tmp_path / "out/report-simulation.md").read_text()
    held = Store(results)
    held.merge({key for key in held.lines if "heuristics" in held.read(key).identity})
    names = [path.name for path in write_report(opened, results, tmp_path / "half")]
    assert names == ["report.html", "report.md"]


def test_a_key_does_not_depend_on_what_else_is_in_the_file(tmp_path: Path) -> None:
    alone = {unit.key for unit in open_campaign(campaign_file(tmp_path)).units}
    both = {unit.key for unit in open_campaign(mixed(tmp_path)).units}
    assert alone < both
    assert len(both) == 12


def test_a_grid_may_name_its_kind(tmp_path: Path) -> None:
    named = PLAYED.replace('name = "played"', 'name = "played"\nkind = "silent-errors"')
    before, after = (
        open_campaign(mixed(tmp_path, WORKLOADS + SETS + text + GRID)) for text in (PLAYED, named)
    )
    assert list(after.distinct) == list(before.distinct)


BAD = {
    "unknown kind": (
        WORKLOADS + GRID.replace('"small"', '"small"\nkind = "simulations"'),
        "grid[0]: unknown kind 'simulations'; did you mean simulation?",
    ),
    "kind and keys differ": (
        SETS + WORKLOADS + GRID.replace('"small"', '"small"\nkind = "silent-errors"'),
        "grid[0]: unknown key 'workloads'",
    ),
    "tables of no grid": (SETS + WORKLOADS + GRID, "synthetic: has no effect"),
    "a seed of no grid": ("seed = 3\n" + WORKLOADS + GRID, "seed: has no effect"),
    "no kind": ('[[grid]]\nname = "a"\n', "grid[0]: has no runs"),
    "sets without tables": (PLAYED, "synthetic or days: is missing"),
    "a grid twice": (
        WORKLOADS + SETS + PLAYED.replace('"played"', '"small"') + GRID,
        "grid: name: lists 'small' twice",
    ),
    "a source twice": (SETS + "[days.drawn]\n" + PLAYED, "'drawn' is a duplicate"),
    "seed of another type": ("seed = true\n" + SETS + PLAYED, "seed: is True"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_kinds_are_refused_with_their_place(case: str, tmp_path: Path) -> None:
    text, said = BAD[case]
    with pytest.raises(InputError) as error:
        open_campaign(mixed(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'small.toml'}: ")
    assert said in str(error.value)


# ---- a new kind ----------------------------------------------------------------------------------


SQUARES = """
from typing import Any

from rebat.report.kind import Expansion, Kind
from rebat.runs.unit import Unit, key_of

from .powers import power


def squares(document):
    return Expansion(
        [
            Unit(
                kind="square", grid=grid["name"], about=f"the square of {n}", spec=n,
                labels={"n": n}, identity={"n": n}, key=key_of({"n": n}),
            )
            for _, grid in document.grids
            for n in grid["squares"]
        ]
    )


def square(unit, folder):
    if unit.spec == 3:
        raise ValueError("no threes")
    return {"square": power(unit.spec)}


def rows(unit, metrics):
    return [{"metric": "square", "value": float(metrics["square"])}]


KIND = Kind(
    name="square",
    mark="squares",
    tables=(),
    columns={"n": int},
    details={},
    expand=squares,
    perform=square,
    rows=rows,
    extras=type(None),
    gather=lambda units: None,
    report=lambda table, beside, provenance: None,
)
"""


def squares_file(folder: Path, numbers: str) -> Path:
    (folder / "units.py").write_text(SQUARES)
    (folder / "powers.py").write_text("def power(n):\n    return n**2\n")
    file = folder / "squares.toml"
    file.write_text(f'units = "units.py"\n[[grid]]\nname = "g"\nsquares = {numbers}\n')
    return file


def test_a_new_kind_is_a_file_next_to_the_campaign(tmp_path: Path, capsys) -> None:
    """Units of a new kind run, resume, fail, are reported and are cleaned without other changes."""
    file, results = squares_file(tmp_path, "[2, 3, 4]"), tmp_path / "r"
    assert run_here(file, results, limit=1)[0].ok == 1
    status, told = run_here(file, results)
    assert (status.ok, status.failed, n_run(told)) == (2, 1, 2)
    assert [(row["n"], row["value"]) for row in table(results)] == [(2, 4.0), (4, 16.0)]
    where = [str(file), "--results", str(results)]
    campaign.main(["status", *where], standalone_mode=False)
    assert "failed: g, the square of 3: ValueError: no threes" in capsys.readouterr().err
    squares_file(tmp_path, "[2, 3]")
    campaign.main(["clean", *where], standalone_mode=False)
    assert [(row["n"], row["value"]) for row in table(results)] == [(2, 4.0)]


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_worker_processes_import_the_file_of_a_new_kind(executor: str, tmp_path: Path) -> None:
    if executor == "dask":
        pytest.importorskip("distributed")
    file = squares_file(tmp_path, "[2, 4]")
    options = {"workers": 2, "executor": executor}
    assert run_campaign(open_campaign(file), tmp_path / "r", **options).ok == 2
    assert [row["value"] for row in table(tmp_path / "r")] == [4.0, 16.0]


def test_a_changed_file_of_a_new_kind_is_imported_again(tmp_path: Path) -> None:
    file = squares_file(tmp_path, "[2]")
    run_here(file, tmp_path / "r")
    (tmp_path / "powers.py").write_text("def power(n):\n    return n**3\n")
    run_here(file, tmp_path / "again")
    assert [table(tmp_path / name)[0]["value"] for name in ("r", "again")] == [4.0, 8.0]


# ---- silent errors in simulations ----------------------------------------------------------------

STRUCK = """
[[grid]]
name = "struck"
workloads = ["one"]
policies = ["baseline:silent_errors=retry", "easy"]
failure_free = ["easy"]
nodes = 300
window = "0:1h"
select = "all"
[grid.failures]
mtbf = "30min"
downtime = "10min"
seeds = [4]
horizon = "10d"
[grid.checkpoint]
cost = "1min"
rounding = "floor"
[grid.silent_errors]
"""
OPTIONS = [
    "-p", "baseline:silent_errors=retry", "-p", "easy", "--nodes", "300", "--window", "0:1h",
    "--select", "all", "--mtbf", "30min", "--downtime", "10min", "--seed", "4", "--horizon", "10d",
    "--checkpoint", "young-daly", "--checkpoint-cost", "1min", "--checkpoint-rounding", "floor",
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "option"),
    [("rate = 1e-05", ["--silent-errors", "1e-5"]),
     ("probability = 0.2", ["--silent-error-probability", "0.2"])],
)  # fmt: skip
def test_a_campaign_runs_what_the_command_runs(tmp_path: Path, key: str, option: list[str]) -> None:
    """`rebat run` is a grid of one row. Its files are the same bytes, also with silent errors."""
    file = campaign_file(tmp_path, STRUCK + key)
    run_here(file, tmp_path / "r", keep_runs=True)
    run.main(
        [str(tmp_path / "one.json"), *OPTIONS, *option, "--out", str(tmp_path / "out")],
        standalone_mode=False,
    )
    store, units = Store(tmp_path / "r"), open_campaign(file).units
    struck = [unit for unit in units if unit.labels["silent_errors"]]
    assert [unit.labels["silent_errors"] for unit in struck] == [key.replace(" = ", " ")] * 2
    for unit in struck:
        theirs = tmp_path / "out" / unit.spec.policy.replace(":", "+")
        for name in ("jobs.csv", "schedule.csv", "rebat_jobs.csv", "node_events.csv"):
            ours = (store.run_folder(unit.key) / name).read_bytes()
            assert ours == (theirs / name).read_bytes(), name
        metrics = json.loads((theirs / "summary.json").read_text())["metrics"]
        assert store.read(unit.key).metrics == metrics
    ends = (tmp_path / "out/easy/jobs.csv").read_text()
    assert "COMPLETED_FAILED" in ends  # silent errors did strike


def test_silent_errors_have_the_seeds_of_the_failures_or_their_own(tmp_path: Path) -> None:
    struck = STRUCK + "rate = [1e-7, 2e-7]"
    drawn = open_campaign(campaign_file(tmp_path, struck)).units
    assert {unit.spec.scenario.silent_errors.seed for unit in drawn[1:]} == {4}
    assert len({unit.key for unit in drawn}) == len(drawn) == 1 + 2 * 2
    failures = struck[struck.index("[grid.failures]") : struck.index("[grid.checkpoint]")]
    checkpoint = struck[struck.index("[grid.checkpoint]") : struck.index("[grid.silent_errors]")]
    alone = struck.replace(failures, "").replace(checkpoint, "") + "\nseeds = [7, 8]"
    units = open_campaign(campaign_file(tmp_path, alone)).units
    assert [unit.labels["seed"] for unit in units] == [None, *[7] * 4, *[8] * 4]


WRONG = {
    "rate = 1e-7\nprobability = 0.1": "one of the two",
    "": "one of the two",
    "rate = -1e-7": "silent_errors.rate: is -1e-07",
    "rate = inf": "silent_errors.rate: is inf",
    "rate = []": "silent_errors.rate: is empty",
    "probability = 1.0": "silent_errors.probability: is 1.0",
    "probability = [0.1, 0.1]": "lists 0.1 twice",
    "rate = 1e-7\nseeds = [1]": "silent_errors.seeds: is a duplicate",
    "rat = 1e-7": "needs either rate or probability",
    'rate = "high"': "grid[0].silent_errors",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_silent_errors_are_refused_with_their_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        open_campaign(campaign_file(tmp_path, STRUCK + text))
    assert "grid[0].silent_errors" in str(error.value)
    assert WRONG[text] in str(error.value)


@pytest.mark.slow
def test_a_mixed_campaign_is_the_same_on_processes_and_dask(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file = mixed(tmp_path)
    run_here(file, tmp_path / "r")
    expected = contents(tmp_path / "r")
    for executor in ("processes", "dask"):
        run_campaign(open_campaign(file), tmp_path / executor, workers=2, executor=executor)
        assert contents(tmp_path / executor) == expected
