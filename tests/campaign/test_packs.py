# SPDX-License-Identifier: Apache-2.0
"""Packs, the results of many runs in one file: no result is lost or repeated."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from rebat.campaign import run, store
from rebat.campaign.opening import open_campaign
from rebat.campaign.store import PACK, Packs, Store, UnitResult
from rebat.cli.campaign import campaign
from tests.campaign.builders import (
    GRID,
    SIX_SEEDS,
    campaign_file,
    contents,
    n_run,
    run_here,
    start_and_kill,
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pack results when there are 4 or more."""
    for module in (run, store):
        monkeypatch.setattr(module, "MANY", 4)
    return 4


@pytest.fixture
def packed(tmp_path: Path, few: int) -> tuple[Path, Path]:
    """A campaign of 10 runs and its results, all in one file."""
    file = campaign_file(tmp_path, jobs=5)
    run_here(file, tmp_path / "r")
    return file, tmp_path / "r"


def lines_of(results: Path) -> list[bytes]:
    return (results / "runs" / PACK).read_bytes().splitlines()


def replace_line(results: Path, number: int, text: bytes) -> None:
    lines = lines_of(results)
    lines[number] = text
    (results / "runs" / PACK).write_bytes(b"\n".join(lines) + b"\n")


def test_many_results_are_in_one_file_in_the_order_of_their_keys(packed) -> None:
    file, results = packed
    assert [path.name for path in (results / "runs").iterdir()] == [PACK]
    keys = [json.loads(line)["key"] for line in lines_of(results)]
    assert keys == sorted(open_campaign(file).distinct)


def test_a_packed_result_is_the_result_of_its_own_file(packed, tmp_path: Path, monkeypatch) -> None:
    file, results = packed
    monkeypatch.setattr(store, "MANY", 1000)
    monkeypatch.setattr(run, "MANY", 1000)
    run_here(file, tmp_path / "single")
    for key in open_campaign(file).distinct:
        assert Store(results).read(key) == Store(tmp_path / "single").read(key)
    tables = ("results.parquet", "campaign.json")
    for name in tables:
        assert (results / name).read_bytes() == (tmp_path / "single" / name).read_bytes()


def test_a_second_start_runs_nothing_and_changes_no_byte(packed) -> None:
    file, results = packed
    before = contents(results)
    _, progress = run_here(file, results)
    assert n_run(progress) == 0
    assert contents(results) == before


def test_results_of_earlier_versions_are_packed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = campaign_file(tmp_path, jobs=5)
    run_here(file, tmp_path / "r")
    assert len(list((tmp_path / "r/runs").glob("*.json"))) == 10
    monkeypatch.setattr(store, "MANY", 4)
    _, progress = run_here(file, tmp_path / "r")
    assert n_run(progress) == 0
    assert [path.name for path in (tmp_path / "r/runs").iterdir()] == [PACK]


def changed_digit(line: bytes) -> bytes:
    found = json.loads(line)
    found["metrics"]["makespan_s"] += 1
    return json.dumps(found, separators=(",", ":")).encode()


def without_checksum(line: bytes) -> bytes:
    found = json.loads(line)
    del found["sha256"]
    return json.dumps(found, separators=(",", ":")).encode()


DAMAGES = {
    "digit": changed_digit,
    "no checksum": without_checksum,
    "cut off": lambda line: line[:-20],
    "nested": lambda line: b"[" * 50_000,
    "empty": lambda line: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_line_is_named_and_its_run_repeated(damage, packed, capsys) -> None:
    file, results = packed
    expected = contents(results)
    replace_line(results, 3, damage(lines_of(results)[3]))
    campaign.main(["status", str(file), "--results", str(results)], standalone_mode=False)
    captured = capsys.readouterr()
    assert "9 of 10 runs done, 0 failed, 1 left" in captured.out
    place = f"{results / 'runs' / PACK}, line 4: does not match its checksum"
    assert place in captured.err
    _, progress = run_here(file, results)
    assert n_run(progress) == 1
    assert place in capsys.readouterr().err
    assert contents(results) == expected


def test_a_newer_result_replaces_a_packed_one(packed) -> None:
    file, results = packed
    opened = open_campaign(file)
    key = min(opened.distinct)
    unit = opened.distinct[key]
    newer = UnitResult(key=key, status="failed", identity=unit.identity, error="for a test")
    expected = contents(results)
    held = Store(results)
    held.write(newer)
    assert held.status(opened.units).failed == 1
    held.pack([key])
    assert Store(results).read(key) == newer
    assert Store(results).status(opened.units).failed == 1
    _, progress = run_here(file, results, retry_failed=True)
    assert n_run(progress) == 1
    assert contents(results) == expected


def test_a_copy_that_a_killed_campaign_left_is_removed(packed) -> None:
    """The campaign was killed after it wrote a pack and before it removed the other copies."""
    file, results = packed
    expected = contents(results)
    opened = open_campaign(file)
    held = Store(results)
    keys = sorted(opened.distinct)
    for key in keys[:3]:
        held.write(held.read(key))
    held.packs.add({key: held.packs.lines[key].text for key in keys[2:6]})
    assert Store(results).status(opened.units).ok == 10
    _, progress = run_here(file, results)
    assert n_run(progress) == 0
    assert contents(results) == expected


def test_clean_removes_packed_results_of_other_runs(packed, tmp_path: Path) -> None:
    _, results = packed
    grid = GRID.replace("seeds = [0, 1]", "seeds = [1]")
    smaller = open_campaign(campaign_file(tmp_path, grid, jobs=5))
    held = Store(results)
    assert held.status(smaller.units).stale == 4
    assert held.clean(smaller.units) == 4
    assert {json.loads(line)["key"] for line in lines_of(results)} == {*smaller.distinct}
    assert held.status(smaller.units).ok == 6


def test_packs_remain_readable_while_a_campaign_replaces_them(packed) -> None:
    file, results = packed
    keys = sorted(open_campaign(file).distinct)
    reader = Packs(results / "runs")
    Packs(results / "runs").merge({}, removed={keys[0]})
    assert json.loads(reader.lines[keys[-1]].text)["key"] == keys[-1]


def logged(results: Path) -> int:
    log = results / "timings.csv"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_campaigns_killed_at_random_moments_end_as_an_unbroken_one(tmp_path: Path, few) -> None:
    file = campaign_file(tmp_path, SIX_SEEDS, jobs=20)
    run_here(file, tmp_path / "unbroken")
    expected = contents(tmp_path / "unbroken")
    opened, n_killed = open_campaign(file), 0
    for seed in range(8):
        results = tmp_path / f"r{seed}"
        n_killed += start_and_kill(file, results, seed, logged, many=few)
        time.sleep(0.1)  # its workers end
        n_done = Store(results).status(opened.units).ok
        assert n_done >= logged(results)
        _, progress = run_here(file, results)
        assert n_run(progress) == 26 - n_done
        assert contents(results) == expected
    assert n_killed >= 2
