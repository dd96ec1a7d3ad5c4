# SPDX-License-Identifier: Apache-2.0
"""Files of operations are read, checked and written; `rebat operations`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.operations import (
    check_operations,
    coincident,
    operation_of,
    read_operations,
    rolling_maintenance,
    write_operations,
)
from rebat.workloads.batsim_json import write_workload

DRAIN = '{"timestamp": 10, "type": "drain", "nodes": "0-3"}'
UNDRAIN = '{"timestamp": 20, "type": "undrain", "nodes": "0-1"}'


def written(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "ops.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_file_is_read_in_order(tmp_path: Path) -> None:
    move = '{"timestamp": 20, "type": "migrate", "job": 7, "nodes": "5", "user": "ann"}'
    events = read_operations(written(tmp_path, DRAIN, "", UNDRAIN, move))
    assert [event.at_us for event in events] == [to_us(10), to_us(20), to_us(20)]
    drain, undrain, migrate = (operation_of(event.data) for event in events)
    assert (drain.nodes, undrain.nodes) == (NodeSet.parse("0-3"), NodeSet.parse("0-1"))
    assert (migrate.job, migrate.user, migrate.nodes) == ("7", "ann", NodeSet.parse("5"))
    assert drain.spanning


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ([DRAIN, DRAIN.replace("10", "5")], 2, "earlier than the previous operation"),
        ([DRAIN, DRAIN.replace("10", "11")], 2, "node 0 is already drained"),
        ([DRAIN, UNDRAIN, UNDRAIN], 3, "node 0 is not drained"),
        ([UNDRAIN], 1, "node 0 is not drained"),
        (["{"], 1, "broken JSON"),
        (["[]"], 1, "not an event"),
        (['{"timestamp": 1, "type": "reboot", "nodes": "1"}'], 1, "type is 'reboot'"),
        (['{"timestamp": 1, "type": "drain"}'], 1, "nodes is missing"),
        (['{"timestamp": 1, "type": "drain", "nodes": ""}'], 1, "nodes is empty"),
        (['{"timestamp": 1, "type": "drain", "nodes": 3}'], 1, "nodes is 3"),
        (['{"timestamp": 1, "type": "drain", "nodes": "3-1x"}'], 1, "not a set of nodes"),
        (['{"timestamp": 1, "type": "drain", "nodes": "0-999999999999999"}'], 1, "nodes up to"),
        (['{"timestamp": -1, "type": "drain", "nodes": "3"}'], 1, "timestamp is -1"),
        (['{"type": "drain", "nodes": "3"}'], 1, "timestamp is missing"),
        (['{"timestamp": 1, "type": "migrate"}'], 1, "job is missing"),
        (
            ['{"timestamp": 1, "type": "drain", "nodes": "3", "job": "4"}'],
            1,
            "the operation drain has the field job",
        ),
        (['{"timestamp": 1, "type": "drain", "nodes": "3", "spanning": 1}'], 1, "spanning is 1"),
        (['{"timestamp": 1, "type": "drain", "nodes": "3", "user": 1}'], 1, "user is 1"),
        (
            ['{"timestamp": 1, "type": "machine_unavailable", "resources": "3"}'],
            1,
            "is a machine event",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(lines, line, words, tmp_path: Path) -> None:
    file = written(tmp_path, *lines)
    with pytest.raises(InputError) as error:
        read_operations(file)
    assert f"{file}:{line}" in str(error.value)
    assert words in str(error.value)


def test_nodes_and_jobs_must_be_there(tmp_path: Path) -> None:
    events = read_operations(written(tmp_path, DRAIN))
    check_operations(events, 4)
    with pytest.raises(InputError, match=r"drain at 10 s: node 3 is not on the machine.*0 to 2"):
        check_operations(events, 3)
    events = read_operations(written(tmp_path, '{"timestamp": 1, "type": "migrate", "job": "9"}'))
    check_operations(events, 3, {"9"})
    with pytest.raises(InputError, match="there is no job '9'"):
        check_operations(events, 3, {"8"})


def test_rolling_maintenance_takes_every_node_once(tmp_path: Path) -> None:
    file = tmp_path / "rolling.jsonl"
    write_operations(rolling_maintenance(5, 3600.0, 2, 60.0), file)
    events = read_operations(file)
    told = [(e.data["type"], e.data["nodes"], e.at_us // to_us(1)) for e in events]
    assert told == [
        ("drain", "0-1", 60), ("undrain", "0-1", 3660), ("drain", "2-3", 3661),
        ("undrain", "2-3", 7261), ("drain", "4", 7262), ("undrain", "4", 10862),
    ]  # fmt: skip
    assert coincident(events) == []


def test_operations_at_the_same_time_are_warned_of(tmp_path: Path, capsys) -> None:
    """The real Batsim may report them in several messages."""
    file = tmp_path / "day.ops"
    lines = [(60, "drain", "0"), (90, "undrain", "0"), (90, "drain", "1"), (120, "undrain", "1")]
    write_operations(({"timestamp": t, "type": k, "nodes": n} for t, k, n in lines), file)
    asked = ["run", str(small(tmp_path)), "-p", "cluster", "--out", str(tmp_path / "out")]
    main([*asked, "--operations", str(file)])
    said = capsys.readouterr().err
    assert "several operations have the same time. This occurs at 1 time, first at 90 s." in said


def test_the_command_writes_such_a_file(tmp_path: Path, capsys) -> None:
    file = tmp_path / "rolling.jsonl"
    asked = ["operations", "--rolling-maintenance", "8h", "--nodes-at-once", "2", "--nodes", "8"]
    main([*asked, "-o", str(file)])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0] == {"timestamp": 0.0, "type": "drain", "nodes": "0-1"}
    assert lines[-1] == {"timestamp": 4 * 8 * 3600.0 + 3, "type": "undrain", "nodes": "6-7"}
    before = file.read_bytes()
    with pytest.raises(SystemExit) as left:
        main([*asked, "-o", str(file)])
    assert left.value.code == 2
    assert "exists (expected a new file" in capsys.readouterr().err
    assert file.read_bytes() == before
    with pytest.raises(SystemExit) as left:
        main([*asked[:4], "9", "--nodes", "8", "-o", str(tmp_path / "no.jsonl")])
    assert left.value.code == 2
    assert "9 nodes cannot be drained at the same time (expected 1 to 8)" in capsys.readouterr().err


def small(tmp_path: Path, extra: dict | None = None) -> Path:
    """Write a workload of one job on a machine of 8 cores."""
    job = Job("1", 3, 0, to_us(200), "a", extra or {})
    file = tmp_path / "small.json"
    write_workload(Workload("small", 8, (job,), {"a": {"type": "delay", "delay": 100}}), file)
    return file


def refused(capsys, *arguments: str) -> str:
    """Run a command that fails, and return its error, which is one line."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    told = capsys.readouterr().err
    assert left.value.code == 2
    assert told.count("\n") == 1, told
    return told


def test_a_run_refuses_operations_on_nothing(tmp_path: Path, capsys) -> None:
    file, out = written(tmp_path, DRAIN), tmp_path / "out"
    asked = ["run", str(small(tmp_path)), "-p", "cluster", "--operations", str(file)]
    asked += ["--out", str(out)]
    told = refused(capsys, *asked, "--cores-per-node", "4")
    assert "ops.jsonl: drain at 10 s: node 3 is not on the machine (expected 0 to 1)" in told
    written(tmp_path, '{"timestamp": 1, "type": "migrate", "job": "x"}')
    assert "there is no job 'x'" in refused(capsys, *asked)
    assert not out.exists()


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"memory_mb": -1}, "small.json: job 1: memory_mb: is -1 (expected memory per task in MB"),
        ({"memory_mb": "much"}, "memory_mb: is 'much'"),
        ({"checkpointable": "no"}, "checkpointable: is 'no' (expected true or false)"),
        ({"partition": [1]}, "partition: is [1]"),
        ({"eternal": 1}, "eternal: is 1 (expected true or false)"),
    ],
)
def test_what_a_job_says_is_checked(extra, words, tmp_path: Path, capsys) -> None:
    told = refused(capsys, "run", str(small(tmp_path, extra)), "-p", "cluster", "--out", "no")
    assert words in told


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("cluster:partitions=a:0-1:order=late", "order 'late'"),
        ("easy:partitions=a:0:max_time=soon", "not a duration"),
        ("cluster:partitions=a:0+a:1", "a name is a duplicate"),
        ("cluster:partitions=a", "expected NAME:NODES"),
        ("cluster:partitions=a:0:high", "expected NAME:NODES"),
        ("cluster:partitions=a:9", "partition a has node 9"),
        ("cluster:partitions=a:x", "not a set of nodes"),
        ("cluster:partitions=a:all:1:reversed,placement=any", "reversed partitions"),
        ("priorities:partitions=a:all", "two or more partitions for react=priorities"),
        ("cluster:partitions=a:0:2+b:0", "partition: is 'x' (expected a, b)"),
        ("cluster:migration_cost=cheap", "migration_cost: invalid cost 'cheap'"),
        ("cluster:migration_cost=bandwidth", "migration_cost: invalid cost 'bandwidth'"),
        ("cluster:purge=-1", "purge is -1.0"),
        ("compaction:period=0", "period is 0.0"),
        ("compaction:targets=all", "targets 'all'"),
        ("cluster:fit=worst", "fit 'worst'"),
        ("cluster:drain=now", "drain 'now'"),
        ("cluster:react=sleep,power=3/2/1", "power '3/2/1'"),
        ("baseline:react=foresee,foresight=youngest", "has no probabilities"),
        ("cluster:placement=torus-first,torus=2x4", "fifo is not possible with placement"),
    ],
)
def test_choices_that_cannot_be_are_one_line(policy, words, tmp_path: Path, capsys) -> None:
    file = small(tmp_path, {"partition": "x"} if "'x'" in words else {})
    cores = ["--cores-per-node", "4"]
    assert words in refused(capsys, "run", str(file), "-p", policy, *cores, "--out", "no")
