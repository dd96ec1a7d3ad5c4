# SPDX-License-Identifier: Apache-2.0
"""The rules, and policies that are asked, produce the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rebat.api import remarks
from rebat.cli.main import main
from rebat.drive import simulate
from rebat.drive.eligible import why_not_policy, why_not_workload
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.state import codes, rooms
from rebat.workloads.generate import synthetic
from tests.support.asked import asked
from tests.support.both_ways import Case, play

FAILING = ["--mtbf", "30min", "--downtime", "10min"]


def agreement(module: str, *arguments: str) -> str:
    """Run a comparison with the loop as plain Python; return its last line."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_runs_have_equal_records() -> None:
    """As plain Python. ``python -m tests.support.both_ways`` makes more runs, compiled."""
    compared = agreement("tests.support.both_ways", "250", "100000")
    assert "250 cases agree" in compared
    assert "'steals'" in compared and "'holds'" in compared
    assert "'dependencies'" in compared and "'dependencies that never hold'" in compared


def test_random_runs_with_node_replacement_have_equal_records() -> None:
    """Also with small tables, which grow."""
    compared = agreement("tests.support.both_ways", "150", "200000", "replacing")
    assert "'replacement'" in compared and "'spares'" in compared
    assert "60 cases agree" in agreement("tests.support.both_ways", "60", "0", "replacing", "tiny")


def test_random_runs_with_tiers_of_checkpoints_have_equal_records() -> None:
    """Also with node replacement, and with small tables, which grow."""
    compared = agreement("tests.support.both_ways", "100", "400000", "tiers")
    assert "'tiers'" in compared and "'tiers, lost work'" in compared
    module = "tests.support.both_ways"
    assert "40 cases agree" in agreement(module, "40", "410000", "tiers", "replacing", "tiny")


def test_random_runs_with_stages_of_recovery_have_equal_records() -> None:
    """Also with tiers of checkpoints, and with small tables, which grow."""
    compared = agreement("tests.support.both_ways", "100", "500000", "stages")
    assert "'stages that hang'" in compared and "'stages that hang held'" in compared
    module = "tests.support.both_ways"
    assert "60 cases agree" in agreement(module, "60", "510000", "stages", "tiers", "tiny")


def test_random_runs_with_preemption_have_equal_records() -> None:
    """Also with small tables, which grow."""
    module = "tests.support.both_ways"
    compared = agreement(module, "120", "520000", "preempting")
    assert "'excluded'" in compared and "'excluded and preempted'" in compared
    assert "60 cases agree" in agreement(module, "60", "530000", "preempting", "tiny")


def test_random_runs_with_operations_have_equal_records() -> None:
    """Also with tiers of checkpoints and stages of recovery, and with small tables, which grow."""
    module = "tests.support.both_ways"
    compared = agreement(module, "120", "540000", "operating")
    assert "'drain and refused'" in compared and "'migrate and refused'" in compared
    assert "60 cases agree" in agreement(module, "60", "550000", "operating", "tiny")
    more = agreement(module, "60", "560000", "operating", "tiers", "stages")
    assert "60 cases agree" in more


def test_random_runs_with_indexed_queues_have_equal_records() -> None:
    """Also with small tables, which grow. Policies that are asked scan the queue."""
    module = "tests.support.both_ways"
    assert "250 cases agree" in agreement(module, "250", "300000", "deep")
    assert "100 cases agree" in agreement(module, "100", "310000", "deep", "tiny")


def test_random_runs_on_partitions_have_equal_records() -> None:
    """Also equal to those of separate machines. ``python -m tests.support.parted`` makes more."""
    compared = agreement("tests.support.parted", "60", "100000")
    assert "60 cases agree" in compared
    assert "'engines: steals'" in compared and "'engines: holds'" in compared


@pytest.mark.slow
def test_arrays_that_are_too_small_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation goes on with larger arrays, or starts again, with the same records."""
    workload, policies = synthetic(0, 100), ("baseline", "easy-sfsj", "h113", "batsched-easy")
    outcomes = set()
    plain = simulate.run

    def watched(*arguments: Any) -> int:
        outcomes.add(outcome := plain(*arguments))
        return outcome

    monkeypatch.setattr(simulate, "run", watched)
    for policy in policies:
        results = []
        for spare, points in ((rooms.SPARE, rooms.POINTS), (0, 1)):
            monkeypatch.setattr(rooms, "SPARE", spare)
            monkeypatch.setattr(rooms, "POINTS", points)
            events = Authors(600, 600).events(128, 0, None, 1)
            results.append(
                simulate.simulate(
                    workload, preset(policy).point, simulate.Events(events), n_nodes=128,
                    max_attempts=1000, compiled=False,
                )
            )  # fmt: skip
        assert results[0].ledger.attempts == results[1].ledger.attempts
        assert len(results[0].ledger.attempts) > 100
    assert outcomes >= {codes.DONE, codes.MORE_EVENTS, codes.LARGER_ROOM}


@pytest.mark.slow
@pytest.mark.parametrize("begin", [[], ["--begin", "2h"]])
def test_all_files_of_a_run_have_the_same_bytes(begin: list[str], tmp_path: Path) -> None:
    """Compiled. The first of these runs compiles the loop."""
    policies = ["-p", "baseline", "-p", "sfsj", "-p", "easy", "-p", "greedy:order=shortest"]
    policies += ["-p", "batsched-fcfs"]
    command = ["run", "synthetic-small", *policies, *FAILING, *begin, "--figures", "--out"]
    main([*command, str(tmp_path / "compiled"), "--engine", "compiled"])
    with asked():
        main([*command, str(tmp_path / "asked")])
    files = [p.relative_to(tmp_path / "compiled") for p in (tmp_path / "compiled").rglob("*.*")]
    assert len(files) > 20
    for file in files:
        if file.name != "provenance.json":  # it contains the command line
            ours, expected = (tmp_path / how / file for how in ("compiled", "asked"))
            assert ours.read_bytes() == expected.read_bytes(), file
    assert "REBAT_ENGINE" not in os.environ


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-p", "torus-first"], "placement=torus-first"),
        (["-p", "easy:placement=cluster"], "placement=cluster"),
        (["-p", "cluster:partitions=a:all:2+b:all:1"], "planning=fifo with partitions of several"),
        (["-p", "easy:order=random"], "a queue order in Python"),
        (["-p", "dbes"], "planning=flexible"),
        (["-p", "easy:detect=uniform:1s:9s"], "stages of recovery with random durations"),
        (["-p", "h311:detect=5s"], "stages of recovery with timing=next"),
        (["-p", "easy:react=replacement,init=5s"], "stages of recovery with react=replacement"),
        (["-p", "easy:react=preempt+exclude"], "react=preempt+exclude"),
        (["-p", "easy:react=exclude,hits=101"], "hits=101"),
        (["-p", "easy:react=preempt,order=random"], "an order in Python with react=preempt"),
        (["-p", "easy:react=exclude+stealing"], "react=exclude+stealing"),
        (["-p", "easy:react=replacement,wait=hold"], "wait=hold"),
        (["-p", "dbes:react=replacement"], "planning=flexible"),
        (["-p", "batsched-fcfs:react=replacement"], "planning=fifo with react=replacement"),
        (["-p", "easy", "--explain"], "--explain"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(options, reason, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "run",
                "synthetic-small",
                *options,
                "--engine",
                "compiled",
                "--out",
                str(tmp_path / "o"),
            ]
        )
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "--engine compiled: does not cover this run: " in told and reason in told
    assert "(expected --engine auto)" in told


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("h311", "checkpoints in several tiers with timing=next"),
        ("authors-h111", "checkpoints in several tiers with digits=six"),
    ],
)
def test_tiers_of_checkpoints_that_are_not_covered(policy, reason, tmp_path, capsys) -> None:
    command = ["run", "toy", "-p", policy, "--checkpoint", "tiers:auto", *FAILING]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--engine", "interpreted", "--out", str(tmp_path / "interpreted")])
    assert ended.value.code == 2 and reason in capsys.readouterr().err
    main([*command, "--out", str(tmp_path / "auto")])  # a policy is asked


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("easy:partitions=a:0-63+b:64-127", "operations with partitions"),
        ("easy:react=replacement", "operations with react=replacement"),
        ("authors-h111", "operations with digits=six"),
    ],
)
def test_operations_that_are_not_covered(policy, reason, tmp_path, capsys) -> None:
    file = tmp_path / "operations.jsonl"
    drain = '{"timestamp": 60, "type": "drain", "nodes": "0"}\n'
    file.write_text(drain + drain.replace("60", "90").replace("drain", "undrain"))
    command = ["run", "synthetic-small", "-p", policy, "--operations", str(file)]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--engine", "interpreted", "--out", str(tmp_path / "interpreted")])
    assert ended.value.code == 2 and reason in capsys.readouterr().err
    main([*command, "--out", str(tmp_path / "auto")])  # a policy is asked


def test_a_workload_that_is_not_covered() -> None:
    case = Case(0)
    assert why_not_policy(preset(case.policy).point) == ""
    workload = synthetic(0, 10)
    assert why_not_workload(workload) == ""
    composed = {"c": {"type": "composed", "seq": ["a"]}, "a": {"type": "delay", "delay": 1}}
    job = workload.jobs[0]
    other = type(workload)("w", 4, (type(job)("1", 1, 0, None, "c"),), composed)
    assert why_not_workload(other) == "profiles other than delays"


def test_the_random_test_can_fail(monkeypatch) -> None:
    """Without the end of the failed attempts, the records differ."""
    import rebat.drive.outcome as module

    monkeypatch.setattr(module, "CAUSES", (module.CAUSES[2], *module.CAUSES[1:]))
    with pytest.raises(AssertionError):
        for seed in range(5):
            play(seed)


def test_a_note_names_the_command_that_compiles_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only after a slow command, for policies that the loop covers and is not compiled for."""
    monkeypatch.setattr(remarks, "ready", lambda point: point == preset("easy").point)
    policies = [preset(name) for name in ("baseline", "easy", "torus-first", "h211")]
    workload = synthetic(0, 10)
    notes = [text for _, text in remarks.of_engine(workload, policies, remarks.SLOW_S)]
    assert len(notes) == 1 and notes[0].startswith("'rebat warmup baseline h211' ")
    assert not [*remarks.of_engine(workload, policies, remarks.SLOW_S / 2)]
    monkeypatch.setenv("REBAT_ENGINE", "interpreted")
    assert not [*remarks.of_engine(workload, policies, remarks.SLOW_S)]
