# SPDX-License-Identifier: Apache-2.0
"""Files of `rebat run` are read back unchanged; errors name file and line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.results.files.run_folder import read_timeline, run_folders
from rebat.results.measures.platform import free_steps
from rebat.results.measures.timeline import CAUSES, Timeline, series_of, timeline_of
from rebat.runs.single import simulate, write_run
from rebat.workloads.generate import synthetic
from tests.support.random_runs import random_run


def same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


@pytest.mark.parametrize("seed", range(25))
def test_what_is_written_is_read_back_as_it_was(seed: int, tmp_path: Path) -> None:
    written = random_run(seed, tmp_path)
    summary = written.result.summary
    made = timeline_of(summary_policy(tmp_path), written.result.ledger, summary.n_nodes)
    read = read_timeline(tmp_path)
    for name, one, other in zip(Timeline._fields, made, read, strict=True):
        assert same(one, other), name


def test_holds_are_read_back_as_they_were(tmp_path: Path) -> None:
    jobs = add_young_daly(synthetic(0, 100), n_nodes=128, mtbf_s=1800)
    events = generate_events(Authors(1800, 600), 128, horizon_s=1e6)
    result = simulate(jobs, preset("h311"), machine_events=events)
    write_run(tmp_path, result, {})
    made, read = timeline_of("h311", result.ledger, 128), read_timeline(tmp_path)
    assert made.held_for and same(made.held, read.held) and made.held_for == read.held_for
    free = free_steps(result.ledger, 128)
    until = np.searchsorted(free[0], made.makespan_us)
    series = series_of(read).free
    at = np.searchsorted(series[0], free[0][:until], "right") - 1
    assert np.array_equal(series[1][at], free[1][:until])


def summary_policy(folder: Path) -> str:
    return str(json.loads((folder / "summary.json").read_text())["policy"])


@pytest.mark.slow
def test_checkpoints_that_are_told_explain_what_failures_left(tmp_path: Path) -> None:
    """A failed attempt keeps its progress up to its last complete checkpoint."""
    hit = 0
    for seed in range(120):
        if random_run(seed, tmp_path / str(seed)).policy != "baseline":
            continue
        run = read_timeline(tmp_path / str(seed))
        pattern = run.pattern
        for i in np.flatnonzero(run.cause == CAUSES.index(Cause.NODE_FAILURE)):
            if pattern.first_us[i] < 0:
                continue
            ran, kept = run.end_us[i] - run.start_us[i], 0
            first = pattern.first_us[i] + pattern.cost_us[i]
            cycle = pattern.period_us[i] + pattern.cost_us[i]
            while pattern.recovery_us[i] + (kept + cycle if kept else first) < ran:
                kept += cycle if kept else first
            assert run.kept_us[i] == kept
            hit += 1
    assert hit > 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    random_run(1, folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def changed(path: Path, line: int, column: str, text: str) -> None:
    lines = path.read_text().splitlines()
    fields = lines[line - 1].split(",")
    fields[lines[0].split(",").index(column)] = text
    path.write_text("\n".join([*lines[: line - 1], ",".join(fields), *lines[line:]]) + "\n")


@pytest.mark.parametrize(
    ("column", "text", "told"),
    [
        ("start_time", "soon", "start_time is 'soon'"),
        ("start_time", "1e99", "start_time"),
        ("start_time", "99999", "finish_time is before start_time"),
        ("finish_time", "", "has a start_time but no finish_time"),
        ("queued_time", "-1", "queued_time"),
        ("submission_time", "nan", "submission_time"),
        ("attempt", "1.5", "attempt is not a whole number"),
        ("cause", "magic", "unknown cause"),
        ("nodes", "3-", "not a set of nodes"),
        ("nodes", "400000", "outside the machine"),
        ("kept_seconds", "x", "kept_seconds"),
    ],
)
def test_broken_rows_are_told_with_file_and_line(
    folder: Path, column: str, text: str, told: str
) -> None:
    changed(folder / "rebat_attempts.csv", 3, column, text)
    with pytest.raises(InputError, match=r"rebat_attempts\.csv:3: ") as error:
        read_timeline(folder)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no column time, event, nodes"),
        ("time,event,nodes\n1,failed\n", ":2: has 2 fields"),
        ("time,event,nodes\n1,exploded,2\n", ":2: unknown event"),
        (
            "time,event,nodes\n5,failed,2\n1,rejuvenated,2\n",
            ":3: is earlier than the previous event",
        ),
        ('time,event,nodes\n5,failed,"2\n', "invalid CSV"),
    ],
)
def test_broken_events_are_told(folder: Path, content: str, told: str) -> None:
    (folder / "node_events.csv").write_text(content)
    with pytest.raises(InputError) as error:
        read_timeline(folder)
    assert told in str(error.value)


@pytest.mark.parametrize("name", ["summary.json", "node_events.csv", "rebat_attempts.csv"])
def test_missing_files_are_told(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        read_timeline(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"policy": "x", "metrics": {"n_nodes": -1}}'])
def test_summaries_that_are_none_are_told(folder: Path, text: str) -> None:
    (folder / "summary.json").write_text(text)
    with pytest.raises(InputError, match=r"summary\.json"):
        read_timeline(folder)


def test_results_without_checkpoint_columns_are_read(folder: Path) -> None:
    path = folder / "rebat_attempts.csv"
    rows = [line.rsplit(",", 4)[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(rows) + "\n")
    assert (read_timeline(folder).pattern.period_us == -1).all()


def test_policies_are_found_in_their_order(whole: Path, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        shutil.copytree(whole, tmp_path / name)
        summary = json.loads((whole / "summary.json").read_text()) | {"policy": name}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "empty").mkdir()
    (tmp_path / "comparison.csv").write_text("metric,policy\nn_nodes,b\nn_nodes,c\nx,b\n")
    assert [path.name for path in run_folders(tmp_path)] == ["b", "c"]
    assert [path.name for path in run_folders(tmp_path, ["a", "b", "a"])] == ["a", "b"]
    assert run_folders(tmp_path / "c") == [tmp_path / "c"]
    with pytest.raises(InputError, match=r"unknown policy 'd'.*a, b, c"):
        run_folders(tmp_path, ["d"])
    with pytest.raises(InputError, match="is not a folder"):
        run_folders(tmp_path / "comparison.csv")
    with pytest.raises(InputError, match=r"contains no summary\.json"):
        run_folders(tmp_path / "empty")
