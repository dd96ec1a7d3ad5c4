# SPDX-License-Identifier: Apache-2.0
"""The files of results: processes append to their own files, and no result is lost or repeated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.store import RESULTS, Store, UnitResult
from rebat.cli.campaign import campaign
from rebat.runs.unit import Unit
from tests.support.campaigns import (
    GRID,
    SIX_SEEDS,
    campaign_file,
    contents,
    keys_of_log,
    n_run,
    run_here,
    start_and_kill,
)


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    return open_campaign(campaign_file(tmp_path, jobs=5)).units[0]


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, Path]:
    """A campaign of 10 runs and its results, all in one file."""
    file = campaign_file(tmp_path, jobs=5)
    run_here(file, tmp_path / "r")
    return file, tmp_path / "r"


def lines_of(results: Path) -> list[bytes]:
    return (results / "runs" / RESULTS).read_bytes().splitlines()


def replace_line(results: Path, number: int, text: bytes) -> None:
    lines = lines_of(results)
    lines[number] = text
    (results / "runs" / RESULTS).write_bytes(b"\n".join(lines) + b"\n")


def test_many_results_are_in_one_file_in_the_order_of_their_keys(packed) -> None:
    file, results = packed
    assert [path.name for path in (results / "runs").iterdir()] == [RESULTS]
    keys = [json.loads(line)["key"] for line in lines_of(results)]
    assert keys == sorted(open_campaign(file).distinct)


def test_a_second_start_runs_nothing_and_changes_no_byte(packed) -> None:
    file, results = packed
    before = contents(results)
    _, progress = run_here(file, results)
    assert n_run(progress) == 0
    assert contents(results) == before


def split(results: Path, *parts: slice) -> None:
    """Distribute lines of the file of results to files of processes."""
    lines = lines_of(results)
    (results / "runs" / RESULTS).unlink()
    for number, part in enumerate(parts):
        (results / f"runs/{number}.jsonl").write_bytes(b"".join(b"%s\n" % s for s in lines[part]))


def test_files_of_processes_are_merged_at_the_next_start(packed) -> None:
    file, results = packed
    expected = contents(results)
    split(results, slice(0, 3), slice(2, 7), slice(7, 10))
    assert Store(results).status(open_campaign(file).units).ok == 10
    _, progress = run_here(file, results)
    assert n_run(progress) == 0
    assert contents(results) == expected


def test_an_incomplete_last_line_is_a_missing_run(packed, capsys) -> None:
    """A process was killed while it wrote a line."""
    file, results = packed
    expected = contents(results)
    split(results, slice(0, 4), slice(4, 10))
    path = results / "runs/1.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    _, progress = run_here(file, results)
    assert n_run(progress) == 1
    assert not capsys.readouterr().err
    assert contents(results) == expected


def test_after_a_full_disk_a_process_writes_to_another_file(tmp_path, unit, monkeypatch) -> None:
    held = Store(tmp_path / "r")
    broken = UnitResult(key=unit.key, status="ok", identity=unit.identity)
    held.write(broken)
    opened = Path.open

    def no_space(path: Path, mode: str = "r") -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", no_space)
    with pytest.raises(OSError, match="No space left"):
        held.write(broken)
    monkeypatch.setattr(Path, "open", opened)
    held.write(broken)
    assert len(list((tmp_path / "r/runs").iterdir())) == 2
    assert held.read(unit.key) == broken


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
    place = f"{results / 'runs' / RESULTS}, line 4: does not match its checksum"
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
    held.merge()
    assert Store(results).read(key) == newer
    assert Store(results).status(opened.units).failed == 1
    _, progress = run_here(file, results, retry_failed=True)
    assert n_run(progress) == 1
    assert contents(results) == expected


def test_a_copy_that_a_killed_campaign_left_is_removed(packed) -> None:
    """The campaign was killed after it wrote the merged file and before it removed the others."""
    file, results = packed
    expected = contents(results)
    lines = lines_of(results)
    (results / "runs/0.jsonl").write_bytes(b"".join(b"%s\n" % line for line in lines[2:6]))
    assert Store(results).status(open_campaign(file).units).ok == 10
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


def test_results_remain_readable_while_a_campaign_replaces_their_file(packed) -> None:
    file, results = packed
    keys = sorted(open_campaign(file).distinct)
    reader = Store(results)
    assert reader.read(keys[0])
    Store(results).merge(removed={keys[0]})
    assert reader.read(keys[-1]).key == keys[-1]


@pytest.mark.slow
def test_campaigns_killed_at_random_moments_end_as_an_unbroken_one(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, SIX_SEEDS, jobs=20)
    run_here(file, tmp_path / "unbroken")
    expected = contents(tmp_path / "unbroken")
    opened, n_killed = open_campaign(file), 0
    for seed in range(8):
        results = tmp_path / f"r{seed}"
        n_killed += start_and_kill(file, results, seed, lambda folder: len(keys_of_log(folder)))
        time.sleep(0.1)  # its workers end
        n_done = Store(results).status(opened.units).ok
        assert n_done >= len(keys_of_log(results))
        _, progress = run_here(file, results)
        assert n_run(progress) == 26 - n_done
        assert contents(results) == expected
    assert n_killed >= 2
