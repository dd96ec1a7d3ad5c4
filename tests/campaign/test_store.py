# SPDX-License-Identifier: Apache-2.0
"""Keys, result files and tables: the inputs on which they depend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from rebat.campaign.opening import Campaign
from rebat.campaign.store import RESULTS, Owner, Store, UnitResult
from rebat.campaign.tables import write_tables
from rebat.core.errors import InputError
from rebat.models.failures.renewal import Authors, Poisson
from rebat.results.metric import flat_metrics
from rebat.runs import unit
from rebat.runs.scenario import CheckpointModel, FailureScenario, Scenario, SilentErrors
from rebat.runs.simulating import units
from rebat.runs.unit import RunSpec, Source, Unit
from tests.support.campaigns import campaign_file

OWNER = Owner("mine", "a.toml")


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    campaign_file(tmp_path, jobs=5)
    return RunSpec(
        grid="g",
        workload="one",
        policy="sfsj",
        source=Source(file=str(tmp_path / "one.json")),
        scenario=Scenario(
            failures=FailureScenario(Authors(1800.0, 600.0), 0, 1e5),
            checkpoint=CheckpointModel(1800.0, 300.0, 300.0, "ceil"),
        ),
    )


def changed(spec: RunSpec, **changes: Any) -> RunSpec:
    """Return the same run with other values of its own fields or of its scenario's fields."""
    fields = {name: changes.pop(name) for name in set(changes) & {*Scenario.__struct_fields__}}
    scenario = msgspec.structs.replace(spec.scenario, **fields)
    return msgspec.structs.replace(spec, scenario=scenario, **changes)


def key(spec: RunSpec, **changes: Any) -> str:
    return units([changed(spec, **changes)])[0].key


DETERMINES: dict[str, dict[str, Any]] = {
    "policy": {"policy": "baseline"},
    "axis": {"policy": "sfsj:depth=easy"},
    "nodes": {"nodes": 200},
    "window": {"window": "0:1d"},
    "selection": {"select": "all"},
    "no failures": {"failures": None},
    "MTBF": {"failures": FailureScenario(Authors(1801.0, 600.0), 0, 1e5)},
    "downtime": {"failures": FailureScenario(Authors(1800.0, 601.0), 0, 1e5)},
    "seed": {"failures": FailureScenario(Authors(1800.0, 600.0), 1, 1e5)},
    "horizon": {"failures": FailureScenario(Authors(1800.0, 600.0), 0, 2e5)},
    "model": {"failures": FailureScenario(Poisson(1800.0, 600.0), 0, 1e5)},
    "silent errors": {"silent_errors": SilentErrors(rate=1e-9)},
    "rate of silent errors": {"silent_errors": SilentErrors(rate=2e-9)},
    "probability of silent errors": {"silent_errors": SilentErrors(probability=0.1)},
    "seed of silent errors": {"silent_errors": SilentErrors(rate=1e-9, seed=1)},
    "no checkpoints": {"checkpoint": None},
    "checkpoint cost": {"checkpoint": CheckpointModel(1800.0, 301.0, 300.0, "ceil")},
    "recovery cost": {"checkpoint": CheckpointModel(1800.0, 300.0, 301.0, "ceil")},
    "rounding": {"checkpoint": CheckpointModel(1800.0, 300.0, 300.0, "floor")},
    "generator": {"source": Source(generator="synthetic")},
    "generator's seed": {"source": Source(generator="synthetic", seed=1)},
}


def test_a_key_changes_with_everything_that_determines_a_run(spec: RunSpec) -> None:
    found = [key(spec), *(key(spec, **changes) for changes in DETERMINES.values())]
    assert len(set(found)) == len(found)


def test_a_key_changes_with_the_content_of_the_input(spec: RunSpec) -> None:
    before = key(spec)
    path = Path(spec.source.file or "")
    path.write_text(path.read_text().replace('"subtime":', '"subtime": ', 1))
    assert key(spec) != before


def test_a_key_changes_with_import_options(spec: RunSpec, tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text("1 0 0 10 1 -1 -1 1 20\n")
    keys_ = {
        key(spec, source=Source(file=str(trace), options=options))
        for options in ({}, {"cap": 4}, {"cap": 5}, {"overrun": "drop"})
    }
    assert len(keys_) == 4


def test_a_key_changes_with_the_format(spec: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(spec)
    monkeypatch.setattr(unit, "RESULTS_FORMAT", unit.RESULTS_FORMAT + 1)
    assert key(spec) != before


def test_names_do_not_count(spec: RunSpec, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy.json"
    copy.parent.mkdir()
    copy.write_bytes(Path(spec.source.file or "").read_bytes())
    same = [
        {"grid": "other"},
        {"workload": "other"},
        {"policy": "H111"},
        {"policy": "baseline:react=stealing"},
        {"source": Source(file=str(copy))},
    ]
    assert {key(spec, **changes) for changes in same} == {key(spec)}


def result(run: Unit, **fields: Any) -> UnitResult:
    return UnitResult(key=run.key, status="ok", identity=run.identity, **fields)


def test_a_result_is_read_as_it_was_written(spec: RunSpec, tmp_path: Path) -> None:
    store, run = Store(tmp_path / "r"), units([spec])[0]
    assert store.read(run.key) is None
    store.write(result(run, metrics={"jobs": 3}))
    assert store.read(run.key) == result(run, metrics={"jobs": 3})


@pytest.mark.parametrize("text", ["", "{", "{}", '{"key": "x", "status": "ok", "identity": {}}'])
@pytest.mark.parametrize("end", ["", "\n"])
def test_what_is_no_whole_result_counts_as_missing(
    text: str, end: str, spec: RunSpec, tmp_path: Path
) -> None:
    store, run = Store(tmp_path / "r"), units([spec])[0]
    (tmp_path / "r/runs").mkdir(parents=True)
    (tmp_path / "r/runs/a.jsonl").write_text(text + end)
    assert store.status([run]).missing == 1


def test_clean_removes_what_belongs_to_no_run(spec: RunSpec, tmp_path: Path) -> None:
    store = Store(tmp_path / "r")
    kept, gone = units([spec, changed(spec, nodes=200)])
    for run in (kept, gone):
        store.write(result(run, metrics={}))
        store.run_folder(run.key).mkdir(parents=True)
        (store.run_folder(run.key) / "jobs.csv").touch()
    half = store.folder / "runs" / ".results.jsonl.x"
    half.write_text("{")
    assert store.status([kept]).stale == 1
    assert store.clean([kept]) == 1
    assert store.stale([kept]) == []
    assert store.read(kept.key)
    assert store.run_folder(kept.key).is_dir()
    assert not store.run_folder(gone.key).exists()
    assert not half.exists()


def test_a_folder_takes_one_campaign_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "r")
    with (
        store.locked(OWNER),
        pytest.raises(InputError, match="another campaign"),
        store.locked(OWNER),
    ):
        pass
    with store.locked(OWNER):
        pass


@pytest.mark.parametrize("other", [Owner("other", "a.toml"), Owner("mine", "b.toml")])
def test_a_folder_belongs_to_one_campaign(other: Owner, tmp_path: Path) -> None:
    store = Store(tmp_path / "r")
    with store.locked(OWNER):
        write_tables(store, Campaign(OWNER, []))
    with (
        pytest.raises(InputError, match=r"results of campaign 'mine' of a\.toml, not"),
        store.locked(other),
    ):
        pass
    with store.locked(OWNER):
        pass


def test_a_folder_belongs_to_its_campaign_from_the_start(tmp_path: Path) -> None:
    store = Store(tmp_path / "r")
    with pytest.raises(KeyboardInterrupt), store.locked(OWNER):
        raise KeyboardInterrupt
    with pytest.raises(InputError, match="not of 'other'"):
        store.check_owner(Owner("other", "a.toml"))


def test_clean_leaves_what_no_campaign_made(spec: RunSpec, tmp_path: Path) -> None:
    """Clean keeps other files, other folders, and results whose key is not the hash of their
    content."""
    store, run = Store(tmp_path / "r"), units([spec])[0]
    folder = store.run_folder(run.key)
    folder.mkdir(parents=True)
    (folder / "jobs.csv").touch()
    (folder / "notes.txt").touch()
    store.write(result(run, metrics={}))
    others = [
        store.folder / name
        for name in (
            "runs/notes.json", f"runs/{'0' * 64}.txt", "runs/.hidden", "folders/mine/jobs.csv",
            f"folders/{'1' * 64}/thesis.txt", ".profile",
        )
    ]  # fmt: skip
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    forged = UnitResult(key="2" * 64, status="ok", identity={"a": 1})
    store.write(forged)
    assert store.clean([]) == 1
    assert list(store.lines) == [forged.key]
    kept = {path for path in store.folder.rglob("*") if path.is_file()}
    assert kept == {*others, folder / "notes.txt", store.folder / "runs" / RESULTS}


def test_metrics_become_rows_of_name_class_and_value() -> None:
    metrics = {
        "jobs": 3,
        "window_s": [0.0, 9.0],
        "platform": {"idle": 0.5},
        "flows": {"[1, 128)": {"max_s": 2.0}, "[128, 512)": None},
        "note": "a text",
    }
    assert list(flat_metrics(metrics)) == [
        ("jobs", None, 3.0),
        ("window_first_s", None, 0.0),
        ("window_last_s", None, 9.0),
        ("platform_idle", None, 0.5),
        ("flow_max_s", "[1, 128)", 2.0),
    ]


def test_the_table_has_a_row_per_grid_run_and_metric(spec: RunSpec, tmp_path: Path) -> None:
    store = Store(tmp_path / "r")
    free = changed(spec, failures=None, checkpoint=None)
    runs = units([spec, free, changed(spec, grid="h")])
    store.write(result(runs[0], metrics={"jobs": 3, "attempts": 4}))
    store.write(result(runs[1], metrics={"jobs": 3}))
    write_tables(store, Campaign(OWNER, runs))
    rows = pq.read_table(store.folder / "results.parquet").to_pylist()
    assert [(r["grid"], r["seed"], r["mtbf_s"], r["metric"], r["value"]) for r in rows] == [
        ("g", 0, 1800.0, "jobs", 3.0),
        ("g", 0, 1800.0, "attempts", 4.0),
        ("g", None, None, "jobs", 3.0),
        ("h", 0, 1800.0, "jobs", 3.0),
        ("h", 0, 1800.0, "attempts", 4.0),
    ]


def _written(folder: Path, name: str, *rows: tuple[str, str]) -> None:
    """Write a file of results: status and error of results with the same key."""
    written = Store(folder / name)
    for status, error in rows:
        written.write(UnitResult(key="3" * 64, status=status, identity={}, error=error))
    (path,) = (folder / name / "runs").iterdir()
    (folder / "runs").mkdir(exist_ok=True)
    path.rename(folder / "runs" / name)


@pytest.mark.parametrize(
    ("merged", "own", "other", "expected"),
    [
        # a file of a process is newer than results.jsonl
        ("ok", ["failed"], [], "own 0"),
        ("ok", ["ok"], [], "own 0"),
        ("failed", ["failed"], [], "own 0"),
        ("failed", ["ok"], [], "own 0"),
        # of several lines of processes, the first result counts, and the last error
        ("ok", ["failed", "ok"], [], "own 1"),
        ("ok", ["ok", "failed"], [], "own 0"),
        ("ok", ["failed", "failed"], [], "own 1"),
        ("failed", ["failed"], ["ok"], "other 0"),
        ("failed", ["ok"], ["failed"], "own 0"),
        ("ok", ["ok"], ["ok"], "own 0"),
    ],
)
def test_which_of_two_results_counts(tmp_path: Path, merged, own, other, expected: str) -> None:
    store = Store(tmp_path)
    _written(tmp_path, RESULTS, (merged, "merged"))
    _written(tmp_path, "s.jsonl", *((status, f"own {n}") for n, status in enumerate(own)))
    if other:
        _written(tmp_path, "zz.jsonl", *((status, f"other {n}") for n, status in enumerate(other)))
    result = store.read("3" * 64)
    assert result is not None
    assert result.error == expected
    store.merge()
    assert Store(tmp_path).read("3" * 64) == result
