# SPDX-License-Identifier: Apache-2.0
"""Conversion of inputs between the forms of Batsim 4 and 5, and ``rebat wire check``."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import read_event_file
from rebat.results.files.batsim_files import read_jobs
from rebat.wire.recording import Frame, Recorder, read_frames
from rebat.workloads.batsim5_json import to_five
from rebat.workloads.batsim_json import read_workload, workload_of, write_workload
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load
from rebat.workloads.generate import synthetic
from tests.support.recordings import cases5, folder_of

OTHER = {
    "two": {"type": "parallel", "cpu": [1e9, 2e9], "com": [0, 0, 0, 0]},
    "each": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0, "ret": 3},
    "spread": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 5.0},
    "d": {"type": "delay", "delay": 1.5, "note": {"of": "the user"}},
    "flow0": {"type": "composed", "repeat": 2, "seq": ["d", "d"], "extra_data": "text"},
    "unused": {"type": "delay", "delay": 9},
    "fails": {"type": "delay", "delay": 10, "ret": 1, "note": 3},
    "brief": {"type": "delay", "delay": 0.000001, "ret": 2},
}
JOBS = (
    Job("1", 2, 0, None, "two"),
    Job("w0.5", 1, 5, 1_000_000, "each", {"extra_data": "any text"}),
    Job("c", 1, 5, 1_000_000, "spread", {"user": "u1", "extra_data": [1]}),
    Job("d", 1, 5, None, "flow0", {"extra_data": [1, 2]}),
    Job("e", 1, 5, None, "fails"),
    Job("f", 1, 5, None, "brief"),
)
WORKLOADS = [
    Workload("w", 4, JOBS, OTHER, ("a note",), {"nodes": "n[1-4]"}),
    add_young_daly(synthetic(1, n_jobs=30), n_nodes=128, mtbf_s=1800),
    flexible_load(3, FlexibleLoad(jobs=30)),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_workload_comes_back_from_batsim_5s_form(workload: Workload) -> None:
    document = to_five(workload)
    document["jobs"] = list(document["jobs"])
    text = msgspec.json.encode(document)
    again = workload_of(workload.name, msgspec.json.decode(text))
    used = set(workload.profiles) - {"unused"}
    expected = {name: profile for name, profile in workload.profiles.items() if name in used}
    assert again == msgspec.structs.replace(workload, profiles=expected)


def test_what_batsim_5_takes_for_a_complete_id_is_complete() -> None:
    document = to_five(WORKLOADS[0])
    jobs = {job["id"]: job for job in document["jobs"]}
    assert set(jobs) == {"1", "w0!w0.5", "c", "d", "e", "f"}
    assert jobs["d"]["profile"] == "w0!flow0" and "flow0" in document["profiles"]
    assert jobs["1"].keys() == {"id", "subtime", "res", "profile"}
    assert document["profiles"]["each"]["ret"] == 3
    assert document["profiles"]["d"]["extra_data"] == {"note": {"of": "the user"}}
    assert {job["id"] for job in to_five(WORKLOADS[0], "w1")["jobs"]} == {
        "1",
        "w0.5",
        "c",
        "d",
        "e",
        "f",
    }


def test_the_last_part_of_a_delay_that_fails_is_a_profile() -> None:
    profiles = to_five(WORKLOADS[0])["profiles"]
    assert profiles["fails"]["seq"] == ["fails.work", "fails.ends"]
    assert profiles["fails.work"] == {"type": "DelayProfile", "delay": 9.999999}
    limited = Workload("w", 4, (Job("e", 1, 5, 10_000_000, "fails"),), OTHER)
    work = to_five(limited)["profiles"]["fails.work"]
    assert work == {"type": "DelayProfile", "delay": 9.99999900000001}
    assert profiles["fails.ends"] == {"type": "DelayProfile", "delay": 0.000001, "ret": 1}
    assert profiles["brief"]["seq"] == ["brief.ends"]
    taken = WORKLOADS[0].profiles | {"fails.ends": {"type": "delay", "delay": 1}}
    with pytest.raises(InputError, match=r"profile 'fails.ends': has the name of a part"):
        to_five(msgspec.structs.replace(WORKLOADS[0], profiles=taken))


def test_a_profile_without_counterpart_is_refused() -> None:
    smpi = Workload("w", 4, (Job("1", 1, 0, None, "p"),), {"p": {"type": "smpi", "trace": "x"}})
    with pytest.raises(InputError, match="profile 'p': type is 'smpi'"):
        to_five(smpi)
    mixed = {"a": {"type": "DelayProfile", "delay": 1}, "b": {"type": "delay", "delay": 1}}
    with pytest.raises(InputError, match="profile 'b': type: is 'delay'"):
        workload_of("w", {"nb_res": 4, "jobs": [{}], "profiles": mixed})


def test_files_come_back_from_batsim_5s_form(tmp_path: Path) -> None:
    write_workload(WORKLOADS[1], tmp_path / "w.json")
    main(
        [
            "failures",
            "generate",
            "--nodes",
            "128",
            "--mtbf",
            "1h",
            "--horizon",
            "2d",
            "-o",
            str(tmp_path / "f.events"),
        ]
    )
    main(["operations", "--rolling-maintenance", "1h", "--nodes", "4", "-o", str(tmp_path / "o")])
    for group, name in (("workload", "w.json"), ("failures", "f.events"), ("failures", "o")):
        source, five, four = tmp_path / name, tmp_path / f"5{name}", tmp_path / f"4{name}"
        main([group, "export", str(source), "--format", "batsim5", "-o", str(five)])
        main([group, "export", str(five), "--format", "batsim4", "-o", str(four)])
        if group == "workload":
            assert four.read_bytes() == source.read_bytes() != five.read_bytes()
            assert read_workload(five).jobs == WORKLOADS[1].jobs
        else:
            assert all(json.loads(line)["type"] == "generic" for line in five.open())
            assert read_event_file(five) == read_event_file(four) == read_event_file(source)


def test_recorded_inputs_and_outputs_of_batsim_5_are_read() -> None:
    for case in cases5():
        if not case.name.startswith(("failures", "two_", "mixed_", "resubmit_own")):
            continue
        for path in case.glob("workload*.json"):
            assert read_workload(path).jobs
        for path in case.glob("events*.txt"):
            assert read_event_file(path).machine_events
        rows = read_jobs(case / "jobs.csv").records
        assert rows and not any("!" in row.profile for row in rows)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--format", "swf", "--name", "w1"], "--name: is w1"),
        (["--format", "batsim5", "--name", "a b"], "--name: is a b"),
    ],
)
def test_a_name_that_has_no_effect_is_refused(arguments, why, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["workload", "export", "toy", "-o", "/dev/null", *arguments])
    assert why in capsys.readouterr().err


# ---- rebat wire check


def checked(path: Path, capsys, *more: str) -> tuple[int, str]:
    status = 0
    try:
        main(["wire", "check", str(path), *more])
    except SystemExit as end:
        status = int(end.code or 0)
    return status, capsys.readouterr().out


@pytest.mark.slow
def test_recorded_conversations_of_batsim_5(capsys) -> None:
    for case in cases5():
        path = case / "conversation.jsonl"
        if not path.read_bytes():
            continue
        status, printed = checked(path, capsys)
        if case.name in ("failures", "mixed_1", "accept_number_as_text"):
            assert status == 0 and "messages with the same meaning" in printed
        if case.name in ("refuse_order", "refuse_no_events", "hello_no_commit"):
            assert status == 1 and "1 of " in printed


def test_a_recorded_conversation_of_batsim_4(capsys) -> None:
    path = folder_of("dyn_full") / "dyn_full.jsonl"
    status, printed = checked(path, capsys, "--json")
    rows = json.loads(printed)["messages"]
    assert status == 0 and all(row["understood"] and row["repeated"] for row in rows)
    status, printed = checked(path, capsys, "--protocol", "5")
    assert status == 1 and "not the first frame of Batsim 5" in printed


def test_unknown_events_are_not_understood(tmp_path: Path, capsys) -> None:
    text = '{"now":0,"events":[{"timestamp":0,"event_type":"EclipseEvent","event":{}}]}'
    lines = [
        {"from": "batsim", "raw": "\0\0\0\0"},
        {"from": "batsim", "raw": text},
        {"from": "batsim", "message": {"now": 1, "events": []}},
    ]
    (tmp_path / "talk").write_text("\n".join(map(json.dumps, lines)))
    status, printed = checked(tmp_path / "talk", capsys)
    assert status == 1 and "line 2, simulator: unknown types: EclipseEvent" in printed


@pytest.mark.parametrize(
    "text", ["", "x\n", '{"from": "me"}\n', '{"seq": 1, "dir": "", "raw": ""}\n']
)
def test_another_file_is_refused(text: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "talk").write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["wire", "check", str(tmp_path / "talk")])
    assert end.value.code == 2
    assert "recorded" in capsys.readouterr().err


def test_a_recording_keeps_bytes_that_are_no_text(tmp_path: Path) -> None:
    frames = [b"\x80\0\0\0" + b"x" * 128, b'{"now": 0}', "ü".encode()]
    with Recorder(tmp_path / "talk") as record:
        for frame in frames:
            record("batsim->sched", frame)
    lines = list(read_frames(tmp_path / "talk"))
    assert [line.data for line in lines] == frames
    assert lines[1] == Frame(2, True, b'{"now": 0}')
    text = '{"seq":1,"dir":"batsim->sched","raw":"{\\"now\\": 0}"}'
    assert (tmp_path / "talk").read_text().splitlines()[1] == text


@pytest.mark.parametrize("form", ["batsim4", "batsim5"])
def test_names_with_the_name_of_the_workload_are_written_as_complete_ids(
    form: str, tmp_path: Path, capsys
) -> None:
    """Both versions of Batsim take ``flow0`` for a complete id, and abort before they connect."""
    jobs = (Job("flow0", 1, 0, None, "d"), Job("w0", 1, 0, None, "d"), Job("7", 1, 0, None, "d"))
    workload = Workload("names", 4, jobs, {"d": {"type": "delay", "delay": 5}})
    (tmp_path / "raw.json").write_text(json.dumps({
        "nb_res": 4, "profiles": workload.profiles,
        "jobs": [{"id": job.id, "subtime": 0, "res": 1, "profile": "d"} for job in jobs],
    }))  # fmt: skip
    out = tmp_path / "names.json"
    main(["workload", "export", str(tmp_path / "raw.json"), "--format", form, "-o", str(out)])
    assert "2 jobs of the file have complete ids (first: w0!flow0)" in capsys.readouterr().err
    ids = [job["id"] for job in json.loads(out.read_text())["jobs"]]
    assert ids == ["w0!flow0", "w0!w0", "7"]
    assert [job.id for job in read_workload(out).jobs] == ["flow0", "w0", "7"]


def test_other_ids_with_a_mark_are_refused(tmp_path: Path) -> None:
    for name in ("w0!1", "w0!", "w0!w0!1", "w1!w0"):
        document = {
            "nb_res": 4, "profiles": {"d": {"type": "delay", "delay": 5}},
            "jobs": [{"id": name, "subtime": 0, "res": 1, "profile": "d"}],
        }  # fmt: skip
        (tmp_path / "w.json").write_text(json.dumps(document))
        with pytest.raises(InputError, match="contains '!'"):
            read_workload(tmp_path / "w.json")
