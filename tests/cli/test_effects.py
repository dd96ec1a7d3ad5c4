# SPDX-License-Identifier: Apache-2.0
"""Options and inputs without effect are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.console import progress
from rebat.models import overload
from tests.support.messages import messages

ROOT = Path(__file__).parents[2]
TOY = str(ROOT / "workloads/toy.json")
EVENTS = ["--failures", str(ROOT / "failure_events/toy.events")]
SWF = "{} 0 0 {} 1 -1 -1 1 20 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
DOWN = '{"type": "machine_unavailable", "resources": "2", "timestamp": 1}\n'

WITHOUT_EFFECT = {
    "all metrics": (["--columns", "steals", "--all-metrics"], "--all-metrics: has no effect"),
    "downtime": (["--downtime", "5s"], "--downtime: has no effect (expected --mtbf"),
    "model": (["--failure-model", "poisson"], "--failure-model: has no effect"),
    "horizon": (["--horizon", "5d"], "--horizon: has no effect"),
    "downtime of a file": ([*EVENTS, "--downtime", "5s"], "--downtime: has no effect"),
    "MTBF of a file": ([*EVENTS, "--mtbf", "1h"], "--mtbf: has no effect"),
    "cost": (["--checkpoint-cost", "5s"], "--checkpoint-cost: has no effect"),
    "recovery": (["--mtbf", "1h", "--recovery-cost", "5s"], "--recovery-cost: has no effect"),
    "rounding": (["--checkpoint-rounding", "floor"], "--checkpoint-rounding: has no effect"),
}
AS_SPELT = {
    "MTBF": (["--mtbf", "1e-9"], "--mtbf: is 1e-09 s"),
    "downtime": (["--mtbf", "1h", "--downtime", "1e-9"], "--downtime: is 1e-09 s"),
    "window": (["--window", "3d"], "--window: '3d' is not a window"),
    "selection": (["--select", "half"], "--select: invalid job selection 'half'"),
    "policy": (["-p", "magic"], "--policy: unknown policy 'magic'"),
    "policy twice": (["-p", "h111"], "--policy: h111 is a duplicate of sfsj (expected each"),
    "column": (["--columns", "steals,nosuch"], "--columns: unknown metric 'nosuch' (expected att"),
    "axis twice": (["-p", "sfsj:depth=easy,depth=greedy"], "two values for depth"),
    "model": (["--mtbf", "1h", "--failure-model", "x"], "--failure-model: unknown failure law"),
}


@pytest.mark.parametrize("case", [*WITHOUT_EFFECT, *AS_SPELT])
def test_options_without_effect_or_sense_are_refused_as_they_are_spelt(
    case: str, tmp_path: Path, capsys
) -> None:
    for cases in (WITHOUT_EFFECT, AS_SPELT):
        if case in cases:
            options, told = cases[case]
            with pytest.raises(SystemExit) as left:
                main(["run", TOY, "-p", "sfsj", *options, "--out", str(tmp_path / "out")])
            error = capsys.readouterr().err
            assert left.value.code == 2
            assert error.count("\n") == 1
            assert told in error
    assert list(tmp_path.iterdir()) == []


def told(capsys, out: Path, *options: str, workload: str = TOY) -> list[str]:
    """Return the lines that a run prints on standard error."""
    main(["run", workload, "-p", "baseline", *options, "--out", str(out)])
    return messages(capsys.readouterr().err)


def test_options_with_an_effect_pass_in_silence(tmp_path: Path, capsys) -> None:
    assert told(capsys, tmp_path / "a", *EVENTS) == []
    drawn = ["--mtbf", "1h", "--downtime", "1h", "--seed", "3", "--horizon", "1d"]
    assert told(capsys, tmp_path / "b", *drawn) == []
    kept = ["--checkpoint", "young-daly", "--checkpoint-cost", "1s", "--mtbf", "1h"]
    (note,) = told(capsys, tmp_path / "c", *EVENTS, *kept)
    assert note.endswith(
        "5 of 5 jobs (100.0 %) are shorter than one checkpoint period and write no checkpoint"
    )
    assert told(capsys, tmp_path / "d", "--seed", "3") == []


def test_a_workload_of_one_job_is_in_the_singular(tmp_path: Path, capsys) -> None:
    one = tmp_path / "one.swf"
    one.write_text("; MaxNodes: 4\n" + SWF.format(1, 10))
    kept = ["--checkpoint", "young-daly", "--mtbf", "1h", *EVENTS]
    main(["run", str(one), "-p", "baseline", *kept, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr()
    assert "1 of 1 job (100.0 %) is shorter than one checkpoint period and writes no" in printed.err
    assert "flow of 1 job;" in " ".join(printed.out.split())


def test_a_window_after_the_end_is_told(tmp_path: Path, capsys) -> None:
    (line,) = told(capsys, tmp_path / "out", "--window", "1h:2h")
    assert "begins at 1 h, but the last job ended at 20 s" in line
    assert told(capsys, tmp_path / "other", "--window", "10:30") == []


def test_the_mtbf_of_an_event_file_sets_the_checkpoint_period(tmp_path: Path, capsys) -> None:
    """By hand: one failure, and the last event is at 6 s."""
    options = ["--failures", "toy", "--checkpoint", "young-daly", "--checkpoint-cost", "1s"]
    lines = told(capsys, tmp_path / "out", *options)
    assert (
        "checkpoint periods use the MTBF of toy.events: 6 s (6 s); --mtbf overrides it" in lines[0]
    )
    main(["run", "toy", "-p", "baseline", *options, "--mtbf", "6s", "--out", str(tmp_path / "b")])
    runs = [(tmp_path / name / "baseline/jobs.csv").read_bytes() for name in ("out", "b")]
    assert runs[0] == runs[1]


def test_an_event_file_without_failures_has_no_mtbf(tmp_path: Path, capsys) -> None:
    (tmp_path / "f.events").write_text("")
    command = ["run", "toy", "-p", "baseline", "--failures", str(tmp_path / "f.events")]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--checkpoint", "young-daly", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "contains no failure after time 0, so its MTBF is unknown" in capsys.readouterr().err


def test_a_selection_of_no_job_is_told(tmp_path: Path, capsys) -> None:
    (line,) = told(capsys, tmp_path / "out", "--select", "0.01:0.05")
    assert "--select matches no job of" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["contains no failure"]),
        (
            DOWN + DOWN.replace("machine_un", "machine_Un"),
            ["rebat ignores 1 event of type 'machine_Unavailable'; did you mean machine_unav"],
        ),
        (
            '{"type": "meteor", "timestamp": 3}\n' * 2,
            ["contains no failure", "rebat ignores 2 events of type 'meteor'"],
        ),
        (
            DOWN + '{"type": "drain", "timestamp": 3, "nodes": "0"}\n' * 2,
            ["rebat ignores 2 operations: write operations into a separate file"],
        ),
    ],
)
def test_event_files_that_do_little_are_told(
    text: str, expected: list[str], tmp_path: Path, capsys
) -> None:
    (tmp_path / "f.events").write_text(text)
    lines = told(capsys, tmp_path / "out", "--failures", str(tmp_path / "f.events"))
    assert len(lines) == len(expected)
    assert all(part in line for part, line in zip(expected, lines, strict=True))


def test_the_importers_notes_are_told_and_kept(tmp_path: Path, capsys) -> None:
    trace = tmp_path / "trace.swf"
    trace.write_text("; MaxNodes: 4\n" + SWF.format(1, 10) + SWF.format(2, 0))
    lines = told(capsys, tmp_path / "out", workload=str(trace))
    summary = json.loads((tmp_path / "out/baseline/summary.json").read_text())
    notes = summary["workload"]["notes"]
    assert any("no run time" in note for note in notes)
    assert lines == [f"rebat: note: {note}" for note in notes]


def test_overload_is_told_before_anything_runs(tmp_path: Path, capsys) -> None:
    hard = ["--mtbf", "1s", "--downtime", "100ms", "--horizon", "1min"]
    line = told(capsys, tmp_path / "out", *hard)[0]
    assert "2 of 5 jobs are unlikely to complete" in line
    assert "The worst is job 3: about 1,808 attempts on 6 nodes" in line


@pytest.mark.slow
def test_a_job_that_cannot_survive_to_its_end_is_ended_and_named(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(overload, "MANY_ATTEMPTS", 20)
    hard = ["--mtbf", "5s", "--downtime", "100ms", "--max-attempts", "60"]
    lines = told(
        capsys, tmp_path / "out", *hard, workload=str(ROOT / "workloads/synthetic-small.json")
    )
    stuck = [line for line in lines if "It ends as failed after 60 attempts" in line]
    given_up = [line for line in lines if "baseline gave up" in line]
    assert len(stuck) == len(given_up) == 1
    assert all("--checkpoint" in line for line in stuck + given_up)
    metrics = json.loads((tmp_path / "out/baseline/summary.json").read_text())["metrics"]
    assert f"gave up {metrics['given_up']} jobs" in given_up[0]
    assert metrics["given_up"] + metrics["succeeded"] == metrics["jobs"]


def test_progress_is_told_where_there_is_no_terminal(tmp_path: Path, capsys, monkeypatch) -> None:
    synthetic = str(ROOT / "workloads/synthetic-small.json")
    assert told(capsys, tmp_path / "quick", workload=synthetic)[1:] == []
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    hard = ["--mtbf", "5min", "--downtime", "1min", "--horizon", "1d"]
    lines = told(capsys, tmp_path / "slow", *hard, workload=synthetic)
    shown = [line for line in lines if "attempts ended, simulated" in line]
    assert shown
    assert all(line.startswith("rebat: baseline: ") for line in shown)
