# SPDX-License-Identifier: Apache-2.0
"""Small foreign files that were once read wrongly: each with the right values."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Workload, duration_us
from rebat.core.units import to_s
from rebat.models.failures.events import read_events
from rebat.models.failures.records.formats import ReaderOptions, read_record
from rebat.platforms.simgrid_read import read_platform
from rebat.records.hosts import check_list, expanded, folded, sorted_names
from rebat.workloads import batsim_json
from rebat.workloads.importing import import_jobs
from tests.support.outages import down_intervals

US = 1_000_000
ZERO = 1_704_067_200
HEADER = (
    "JobID|JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|State|NNodes|NCPUS|TimelimitRaw|"
    "NodeList\n"
)
EVENTS = "NodeName|TimeStart|TimeEnd|State|StateRaw|Reason\n"


def job(
    name: object, submit: int, start: object, end: object, nodes: str = "n1", **more: Any
) -> str:
    """Return a row of sacct."""
    run = more.get("run", 0 if isinstance(end, str) else int(end) - int(start))  # type: ignore[call-overload]
    state, user, limit = (
        more.get("state", "COMPLETED"),
        more.get("user", "u"),
        more.get("limit", 60),
    )
    size = len(expanded(nodes))
    return (
        f"{name}|{name}|{user}|std|{submit}|{start}|{end}|{run}|{state}|{size}|4|{limit}|{nodes}\n"
    )


def written(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text(header + "".join(rows))
    return path


def runs(path: Path, form: str = "auto", **options: Any) -> dict[str, tuple[int, float, float]]:
    """Return nodes, submission and run time (s) of each job."""
    workload = import_jobs(path, form, **options).workload
    return {
        j.id: (j.n_nodes, to_s(j.submit_us), float(workload.profiles[j.profile]["delay"]))
        for j in workload.jobs
    }


def findings(path: Path, form: str = "auto", **options: Any) -> list[str]:
    notes = import_jobs(path, form, **options).workload.notes
    return [note for note in notes if note.startswith("check: ")]


def outages(
    path: Path, form: str = "auto", **options: Any
) -> list[tuple[str, float, float | None]]:
    record = read_record(form, path, ReaderOptions(**options))
    names = record.names or [str(n) for n in range(1000)]
    return [
        (names[n], to_s(a), None if b is None else to_s(b))
        for n, a, b in down_intervals(record.events)
    ]


# ---- A: stragglers of an export


def export(stragglers: list[int], n: int = 300, run: int = 600) -> list[str]:
    """Return jobs every 600 s from 10,000,000 s on, and earlier ones that run ``run`` seconds."""
    early = [job(f"9{at}", at, 10_000_000, 10_000_000 + run) for at in stragglers]
    usual = range(10_000_000, 10_000_000 + 600 * n, 600)
    return early + [job(i, at, at + 10, at + 300) for i, at in enumerate(usual)]


@pytest.mark.parametrize("stragglers", [[8_000_000], [6_000_000, 7_000_000, 9_900_000], [1]])
def test_jobs_long_before_the_record_are_left_out(tmp_path: Path, stragglers: list[int]) -> None:
    path = written(tmp_path / "jobs.txt", *export(stragglers))
    jobs = runs(path)
    assert len(jobs) == 300
    assert min(submit for _, submit, _ in jobs.values()) == 0
    (note,) = findings(path)
    assert note.startswith(f"check: {len(stragglers)} of {300 + len(stragglers)} jobs w")
    assert f"9{stragglers[0]}" in note
    assert "import with --all to keep them" in note
    assert len(runs(path, all_jobs=True)) == 300 + len(stragglers)
    assert "kept" in findings(path, all_jobs=True)[0]
    assert len(runs(path, first_s=0.5)) == 300 + len(stragglers) - 1


def test_early_jobs_with_much_of_the_node_time_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", *export([6_000_000, 8_000_000], run=12_000))
    assert len(runs(path)) == 302
    (note,) = findings(path)
    assert "6.67 node-hours, 22 % of the node time): kept" in note
    assert "import with --first 4000000s to leave them out" in note
    assert len(runs(path, first_s=4e6)) == 300
    small = written(tmp_path / "small.txt", *export([6_000_000, 8_000_000]))
    assert "0.333 node-hours, 1.4 % of the node time): left out" in findings(small)[0]


@pytest.mark.parametrize("gap", [0, 600, 5_000])
def test_a_usual_begin_is_kept(tmp_path: Path, gap: int) -> None:
    path = written(tmp_path / "jobs.txt", *export([10_000_000 - gap]))
    assert len(runs(path)) == 301
    assert findings(path) == []


# ---- B, C, O: who is who


def test_recycled_ids_are_other_jobs(tmp_path: Path) -> None:
    rows = [
        job(12, 1_500_000_000, 1_500_000_100, 1_500_003_700, "n[1-2]", user="ann"),
        job(12, 1_600_000_000, 1_600_000_050, 1_600_000_250, "n4", user="cat"),
    ]
    jobs = runs(written(tmp_path / "jobs.txt", *rows))
    assert {name: (n, run) for name, (n, _, run) in jobs.items()} == {
        "12": (2, 3600),
        "12-2": (1, 200),
    }


@pytest.mark.parametrize(
    ("state", "pause", "n_jobs"),
    [("COMPLETED", 86_400, 2), ("NODE_FAIL", 1, 1), ("CANCELLED", 1, 1), ("FAILED", 5_000, 2)],
)
def test_a_requeue_is_the_same_job(tmp_path: Path, state: str, pause: int, n_jobs: int) -> None:
    rows = [
        job(7, 1_500_000_000, 1_500_000_100, 1_500_000_200, state=state),
        job(7, 1_500_000_200 + pause, 1_500_100_000, 1_500_100_700),
    ]
    jobs = runs(written(tmp_path / "jobs.txt", *rows))
    assert len(jobs) == n_jobs
    assert jobs["7"][2] == (700 if n_jobs == 1 else 100)


MULTI = [
    "north|" + job(500, 1_700_000_000, 1_700_000_100, 1_700_003_700, "n[1-2]", user="ann"),
    "south|" + job(500, 1_700_000_050, 1_700_000_060, 1_700_000_660, "s3", user="bob"),
    "north|" + job(501, 1_700_000_200, 1_700_000_300, 1_700_000_900, "n3", user="ann"),
]


def test_clusters_are_told_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", *MULTI, header="Cluster|" + HEADER)
    jobs = runs(path)
    assert sorted(run for _, _, run in jobs.values()) == [600, 600, 3600]
    assert "2 clusters (north, south)" in findings(path)[0]
    assert sorted(runs(path, cluster="north")) == ["500", "501"]
    with pytest.raises(InputError, match=r"no records of cluster 'east' .*one of: north, south"):
        runs(path, cluster="east")
    clash = [MULTI[0], MULTI[1].replace("s3", "n2")]
    written(path, *clash, header="Cluster|" + HEADER)
    with pytest.raises(InputError, match=r"node n2 is in the clusters .*--cluster"):
        runs(path)


def test_one_id_of_two_users_at_one_time_needs_the_column(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", *(row.split("|", 1)[1] for row in MULTI))
    with pytest.raises(InputError, match=r"several clusters .*the column Cluster"):
        runs(path)


def test_events_of_clusters(tmp_path: Path) -> None:
    rows = [
        "c1|cn01|100|200|DOWN|1|x\n",
        "c2|cn01|300|400|DOWN|1|x\n",
        "c1|cn02|150|170|DOWN|1|x\n",
    ]
    path = written(tmp_path / "events.txt", *rows, header="Cluster|" + EVENTS)
    with pytest.raises(InputError, match="node cn01 is in the clusters c1 and c2"):
        outages(path)
    assert sorted(outages(path, cluster="c1")) == [("cn01", 0, 100), ("cn02", 50, 70)]


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_latest_snapshot_of_an_attempt_is_used(tmp_path: Path, newest_first: bool) -> None:
    final = job(5, 1_700_000_000, 1_700_000_100, 1_700_000_700)
    running = job(5, 1_700_000_000, 1_700_000_100, "Unknown", run=50, state="RUNNING")
    rows = [final, HEADER, running] if newest_first else [running, HEADER, final]
    path = written(tmp_path / "jobs.txt", *rows)
    assert runs(path) == {"5": (1, 0, 600)}
    assert not any("dropped" in note for note in import_jobs(path).workload.notes)


def test_a_final_state_wins_over_an_equal_end(tmp_path: Path) -> None:
    final = job(5, 1_700_000_000, 1_700_000_100, 1_700_000_700)
    path = written(tmp_path / "jobs.txt", final, final.replace("COMPLETED", "RUNNING"))
    assert not any("still running" in note for note in import_jobs(path).workload.notes)


# ---- D: PBS

PBS = (
    "01/02/2024 10:00:00;{kind};{id};user={user} queue=workq ctime={c} qtime={c} etime={e} "
    "start={s} {more}Resource_List.ncpus=4 Resource_List.nodect=1 "
    "Resource_List.walltime=01:00:00 exec_host=n1/0*4 exec_vnode=(n1:ncpus=4) end={end} "
    "Exit_status=0\n"
)


def pbs(kind: str, name: str, c: int, s: int, end: int, **more: Any) -> str:
    fields = {"user": "ann", "e": c, "more": ""} | more
    return PBS.format(kind=kind, id=name, c=c, s=s, end=end, **fields)


@pytest.mark.parametrize("start", [0, 1_704_189_610])
def test_an_array_itself_is_no_job(tmp_path: Path, start: int) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        pbs("E", "7[1].srv", 1_704_189_600, 1_704_189_610, 1_704_190_210)
        + pbs("E", "7[2].srv", 1_704_189_600, 1_704_190_210, 1_704_190_810)
        + pbs("E", "7[].srv", 1_704_189_600, start, 1_704_190_810, more="array_indices=1-2 ")
    )
    jobs = runs(path)
    assert {name: run for name, (_, _, run) in jobs.items()} == {"7[1]": 600, "7[2]": 600}
    assert "1 record dropped: arrays, whose jobs have their own records" in (
        import_jobs(path).workload.notes
    )


def test_a_start_of_0_is_no_start_and_ids_of_pbs_are_recycled(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        pbs("E", "1.srv", 1_704_189_600, 0, 1_704_190_810)
        + pbs("E", "2.srv", 1_704_189_600, 1_704_189_700, 1_704_189_900)
        + pbs("E", "2.srv", 1_704_289_600, 1_704_289_700, 1_704_290_700)
    )
    jobs = runs(path)
    assert {name: run for name, (_, _, run) in jobs.items()} == {"2": 200, "2-2": 1000}


# ---- waiting begins when a job is eligible


def test_the_submission_is_the_eligible_time(tmp_path: Path) -> None:
    header = HEADER.replace("Submit|", "Submit|Eligible|")
    rows = [
        job(1, 1000, 1100, 1200).replace("|1000|", "|1000|1000|"),
        job(2, 1000, 2100, 2200).replace("|1000|", "|1000|2000|"),
        job(3, 1000, 1500, 1600).replace("|1000|", "|1000|Unknown|"),
        job(4, 1000, 1500, 1600).replace("|1000|", "|1000|1800|"),
    ]
    path = written(tmp_path / "jobs.txt", *rows, header=header)
    jobs = {job.id: job for job in import_jobs(path).workload.jobs}
    assert {name: job.submit_us // US for name, job in jobs.items()} == {
        "1": 0, "2": 1000, "3": 0, "4": 500,
    }  # fmt: skip
    assert jobs["2"].extra["submitted"] == 0
    assert "submitted" not in jobs["1"].extra
    assert "2 jobs became eligible after the submission" in findings(path)[0]
    assert {submit for _, submit, _ in runs(path, submission="submitted").values()} == {0}


def test_etime_of_pbs(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        pbs("E", "1.srv", 1_704_189_600, 1_704_189_610, 1_704_190_210)
        + pbs("E", "2.srv", 1_704_189_600, 1_704_199_000, 1_704_199_100, e=1_704_198_600)
    )
    assert {name: submit for name, (_, submit, _) in runs(path).items()} == {"1": 0, "2": 9000}
    waits = import_jobs(path).workload.machine["mean_wait_s"]  # type: ignore[index]
    assert waits == (10 + 400) / 2


# ---- E: node lists


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[001-1000]", [f"n{i:03}" for i in range(1, 1001)]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("r[0-1]n[098-101]", [f"r{r}n{n:03}" for r in (0, 1) for n in range(98, 102)]),
        ("a[1,03]b,c", ["a1b", "a03b", "c"]),
    ],
)
def test_lists_of_mixed_widths(text: str, names: list[str]) -> None:
    assert check_list(text) == len(names)
    assert expanded(text) == names
    assert set(sorted_names([text])) == set(names)
    assert set(expanded(folded(names))) == set(names)


def test_a_record_with_mixed_widths(tmp_path: Path) -> None:
    path = written(
        tmp_path / "j.txt", job(1, 100, 110, 120, "n[001-1000]"), job(2, 100, 110, 120, "n001")
    )
    assert import_jobs(path).workload.n_nodes == 1000
    rows = ["n[001-1000]|100|600|DOWN|1|x\n", "n001|1100|1600|DOWN|1|y\n"]
    assert len(outages(written(tmp_path / "e.txt", *rows, header=EVENTS))) == 1001


def test_a_node_list_in_a_table_is_that_many_nodes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('node,down,up\n"n[1-3]",10,20\nn5,30,40\n')
    assert outages(path) == [("n1", 10, 20), ("n2", 10, 20), ("n3", 10, 20), ("n5", 30, 40)]


# ---- G, H: records that never ended


@pytest.mark.parametrize(
    ("how", "expected"),
    [("next", 900.0), ("limit", 3600.0), ("drop", None), ("keep", 100_000_000.0)],
)
def test_a_runaway_job(tmp_path: Path, how: str, expected: float | None) -> None:
    rows = [
        job(1, 1_600_000_000, 1_600_000_100, "Unknown", run=100_000_000, state="RUNNING"),
        job(2, 1_600_000_000, 1_600_001_000, 1_600_002_000),
        job(3, 1_600_000_000, 1_600_001_000, "Unknown", "n2", run=5_000, state="RUNNING"),
    ]
    path = written(tmp_path / "jobs.txt", *rows)
    jobs = runs(path, runaway=how)
    assert (jobs["1"][2] if "1" in jobs else None) == expected
    assert jobs["3"][2] == 5_000
    (note,) = findings(path, runaway=how)
    assert "(job 1; it ran 1157 d with a limit of 1 h)" in note
    assert "import with --runaway" in note


@pytest.mark.parametrize(
    ("how", "end", "n_jobs"), [("next", 3_800, 3), ("drop", None, 3), ("keep", None, 1)]
)
def test_a_stale_event(tmp_path: Path, how: str, end: int | None, n_jobs: int) -> None:
    zero = 1_690_000_000
    rows = [
        job(2, zero, zero + 100, zero + 3_700, "n1"),
        job(4, zero, zero + 3_800, zero + 7_400, "n2"),
        job(5, zero + 9, zero + 10_000, zero + 17_000, "n[1-2]"),
    ]
    path = written(tmp_path / "jobs.txt", *rows)
    open_ = f"n2|{zero}|Unknown|DOWN*|1|Not responding\n"
    events = written(tmp_path / "ev.txt", open_, f"n9|{zero}|Unknown|DOWN|1|dead\n", header=EVENTS)
    assert len(runs(path, events=events, stale=how)) == n_jobs
    *down, note = findings(path, events=events, stale=how)
    assert len(down) == (how == "keep")  # the jobs on n2 started while it was down
    assert "1 node event without an end" in note
    assert "(n2)" in note
    attempts = outages(events, attempts=path, stale=how)
    down = {("n2", 0, None if how == "keep" else end), ("n9", 0, None)}
    assert set(attempts) == (down if how != "drop" else {("n9", 0, None)})


def test_the_next_event_ends_a_stale_event(tmp_path: Path) -> None:
    rows = ["n2|100|Unknown|DOWN|1|x\n", "n2|900|950|DOWN|1|again\n"]
    path = written(tmp_path / "ev.txt", *rows, header=EVENTS)
    assert outages(path) == [("n2", 0, 850)]
    assert outages(path, stale="keep") == [("n2", 0, None)]


# ---- W: renewed nodes


@pytest.mark.parametrize("both", [False, True])
def test_renewed_nodes_are_not_up_together(both: bool, tmp_path: Path, capsys) -> None:
    """The machine has four nodes, of which two are replaced after 40 jobs."""
    zero, rows = 1_700_000_000, []
    for i in range(80):
        nodes = "old[1-2],n[1-2]" if i < 40 else "new[1-2],n[1-2]"
        if both and i in (20, 60):
            nodes = "old[1-2],new[1-2]"
        at = zero + 1000 * i
        rows.append(job(i, at, at + 10, at + 900, nodes))
    path = written(tmp_path / "jobs.txt", *rows)
    out = tmp_path / "w.json"
    main(["workload", "import", str(path), "-o", str(out)])
    found = [note for note in findings(path) if "not in service" in note]
    assert len(found) == (0 if both else 1)
    events = written(tmp_path / "ev.txt", f"n1|{zero + 5}|{zero + 6}|DOWN|1|x\n", header=EVENTS)
    main(["failures", "import", str(events), "--workload", str(out), "-o", str(tmp_path / "f")])
    if both:
        return
    assert "old[1-2]" in found[0]
    assert "new[1-2]" in found[0]
    names = sorted_names([json.loads(out.read_text())["machine"]["nodes"]])
    down = {
        (names[n], a // US, b and b // US)
        for n, a, b in down_intervals(read_events(tmp_path / "f"))
    }
    assert down == {
        ("n1", 5, 6), ("new1", 0, 40_010), ("new2", 0, 40_010),
        ("old1", 39_900, None), ("old2", 39_900, None),
    }  # fmt: skip


# ---- L, P, Q: clocks


def test_epochs_and_local_times_need_a_zone(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", job(1, 1_700_000_000, 1_700_000_100, 1_700_000_200))
    local = "n1|2023-11-14T23:14:00|2023-11-14T23:20:00|DOWN|1|x\n"
    events = written(tmp_path / "ev.txt", local, header=EVENTS)
    with pytest.raises(InputError, match=r"ev\.txt: contains local times, but .*jobs\.txt.*--zone"):
        import_jobs(path, events=events)
    with pytest.raises(InputError, match="--zone Europe/Paris"):
        read_record("auto", events, ReaderOptions(attempts=path))
    assert import_jobs(path, events=events, tz="UTC").workload.n_nodes == 1


def test_failures_and_workload_have_one_clock(tmp_path: Path, capsys) -> None:
    local = job(1, 0, 0, 0).replace(
        "|0|0|0|", "|2023-11-14T22:00:00|2023-11-14T22:01:00|2023-11-14T22:09:00|"
    )
    path = written(tmp_path / "jobs.txt", local.replace("|0|COMP", "|480|COMP"))
    rows = "n1|2023-11-14T22:04:00|2023-11-14T22:05:00|DOWN|1|x\n"
    events = written(tmp_path / "ev.txt", rows, header=EVENTS)
    out = tmp_path / "w.json"
    main(["workload", "import", str(path), "--zone", "Asia/Tokyo", "-o", str(out)])
    main(["failures", "import", str(events), "--workload", str(out), "-o", str(tmp_path / "f")])
    (first, *_) = read_events(tmp_path / "f")
    assert first.at_us == 240 * US


def test_a_workload_of_an_earlier_version_needs_a_zone(tmp_path: Path, capsys) -> None:
    """Earlier versions wrote no time zone of local times."""
    at = "2023-11-14T22:"
    row = f"1|1|u|std|{at}00:00|{at}01:00|{at}09:00|480|COMPLETED|1|4|60|n1\n"
    jobs = written(tmp_path / "jobs.txt", row)
    out, to = tmp_path / "w.json", tmp_path / "f"
    main(["workload", "import", str(jobs), "--zone", "Asia/Tokyo", "-o", str(out)])
    content = json.loads(out.read_text())
    assert content["machine"].pop("time_zone") == "Asia/Tokyo"
    out.write_text(json.dumps(content))
    events = written(tmp_path / "ev.txt", f"n1|{at}04:00|{at}05:00|DOWN|1|x\n", header=EVENTS)
    command = ["failures", "import", str(events), "--workload", str(out), "-o", str(to)]
    with pytest.raises(SystemExit) as status:
        main(command)
    assert status.value.code == 2
    told = capsys.readouterr().err
    assert f"{events}: contains local times, but the workload contains times since 1970" in told
    assert "with --zone, for example --zone Europe/Paris" in told
    assert not to.exists()
    main([*command, "--zone", "Asia/Tokyo"])
    assert read_events(to)[0].at_us == 240 * US
    since_s = int(content["machine"]["origin_s"]) + 240
    written(events, f"n1|{since_s}|{since_s + 60}|DOWN|1|x\n", header=EVENTS)
    main([*command, "--force"])
    assert read_events(to)[0].at_us == 240 * US


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_a_table_of_unix_times_begins_at_midnight(tmp_path: Path, zone: str | None) -> None:
    path = tmp_path / "p.csv"
    path.write_text("node,down,up\n1,1704067200,1704070800\n2,1704067300,\n")
    shift = 3600 if zone else 0
    assert outages(path, zone=zone) == [("1", shift, shift + 3600), ("2", shift + 100, None)]


def test_a_table_of_seconds_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("node,down,up\n1,100,200\n")
    assert outages(path) == [("1", 100, 200)]


# ---- M, Q, R: SWF


def swf(path: Path, header: str, *rows: str) -> Path:
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def swf_row(number: int, submit: int, run: str = "100", size: str = "4") -> str:
    return f"{number} {submit} 5 {run} {size} -1 -1 {size} 200 -1 1 1 1 -1 1 -1 -1 -1"


@pytest.mark.parametrize("text", ["93,312", "93312", "93 312", "93'312"])
def test_groups_of_digits_are_one_number(tmp_path: Path, text: str) -> None:
    path = swf(tmp_path / "t.swf", f"; MaxProcs: {text}\n", swf_row(1, 0))
    assert import_jobs(path).workload.n_nodes == 93312


@pytest.mark.parametrize("text", ["16 8", "32-64", "about 100"])
def test_an_unclear_size_is_asked_for(tmp_path: Path, text: str) -> None:
    path = swf(tmp_path / "t.swf", f"; MaxNodes: 4\n; MaxProcs: {text}\n", swf_row(1, 0))
    with pytest.raises(InputError, match=rf"MaxProcs is '{text}'.*--nodes"):
        import_jobs(path)
    assert import_jobs(path, n_nodes=7).workload.n_nodes == 7


def test_absolute_times_and_a_start_are_not_added(tmp_path: Path) -> None:
    header = "; MaxProcs: 8\n; UnixStartTime: 1300000000\n"
    path = swf(tmp_path / "t.swf", header, swf_row(1, 1_300_000_000), swf_row(2, 1_300_000_900))
    assert len(import_jobs(path, months="2011-03").workload.jobs) == 2
    assert "is not added" in import_jobs(path).workload.notes[0]
    relative = swf(tmp_path / "r.swf", header, swf_row(1, 0), swf_row(2, 900))
    assert len(import_jobs(relative, months="2011-03").workload.jobs) == 2


def test_an_impossible_row_is_dropped_and_many_are_refused(tmp_path: Path) -> None:
    header = "; MaxProcs: 8\n"
    path = swf(tmp_path / "t.swf", header, swf_row(1, 0), swf_row(2, 10, "-7"), swf_row(3, 20))
    assert set(runs(path)) == {"1", "3"}
    (note,) = import_jobs(path).workload.notes
    assert note.startswith("1 line dropped (first: line 3): run time of job 2 is -7, expected 0 ")
    with pytest.raises(InputError, match=r"t\.swf:3: run time of job 2 is -7"):
        import_jobs(path, strict=True)
    swf(path, header, *(swf_row(i, i, "-7" if i % 5 == 0 else "9") for i in range(1, 21)))
    with pytest.raises(InputError, match=r":6: .*4 of 20 rows are invalid, more than a tenth"):
        import_jobs(path)


# ---- N, S: detection


SACCT_TABS = (
    "JobID\tUser\tSubmit\tStart\tEnd\tElapsedRaw\tState\tNNodes\tTimelimitRaw\tNodeList\tJobName\n"
    "1\ta\t1700000000\t1700000100\t1700000200\t100\tCOMPLETED\t1\t60\tn1\ta b\n"
    "2\ta\t1700000000\t1700000100\t1700000200\t100\tCOMPLETED\t1\t60\tn2\tx|y\n"
)


@pytest.mark.parametrize("delimiter", ["\t", "^|^", "|", ";", "||", "\x1f", ","])
def test_delimiters_of_slurm(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT_TABS.replace("x|y", "x y").replace("\t", delimiter))
    assert len(import_jobs(path).workload.jobs) == 2
    main(["workload", "import", str(path), "-o", str(tmp_path / "w.json")])
    events = tmp_path / "ev.txt"
    names = "Cluster\tNodeName\tTimeStart\tTimeEnd\tState\tReason\tUser\t\n"
    text = names + "c\tn1\t100\t200\tDOWN\ta\tb\t\n"
    events.write_text(text.replace("\t", delimiter))
    main(["failures", "import", str(events), "-o", str(tmp_path / "f.events")])
    assert len(read_events(tmp_path / "f.events")) == 2


def test_a_tab_in_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "ev.txt"
    path.write_text(
        "Cluster\tNodeName\tTimeStart\tTimeEnd\tState\tReason\tUser\t\n"
        "c1\tcn01\t2022-10-19T03:00:00\t2022-10-19T05:00:00\tDOWN\tNot responding\tslurm(970)\t\n"
        "c1\tcn02\t2022-10-19T03:00:00\t2022-10-19T05:00:00\tDRAIN$\ta\tb maint\troot(0)\t\n"
    )
    assert outages(path) == [("cn01", 0, 7200)]


FTA = "1\t1\t{node}\t1\thost{node}\t0\t1000000000\t1000000060\tNULL\n"
FTA_HEADER = (
    "event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\t"
    "event_stop_time\tevent_end_reason\n"
)


@pytest.mark.parametrize("header", [FTA_HEADER, "#" + FTA_HEADER, "", FTA_HEADER.upper()])
def test_headers_of_the_failure_trace_archive(tmp_path: Path, header: str) -> None:
    path = tmp_path / "event_trace.tab"
    path.write_text(header + FTA.format(node=3) + FTA.format(node=4))
    assert outages(path) == [("host3", 0, 60), ("host4", 0, 60)]


def test_a_pipe(tmp_path: Path, capsys) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(SACCT_TABS,))
    writer.start()
    main(["workload", "import", str(pipe), "-o", str(tmp_path / "w.json")])
    writer.join()
    assert len(json.loads((tmp_path / "w.json").read_text())["jobs"]) == 2


FOREIGN = {
    "OAR": "Job id : 12\nName : x\nUser : u\n",
    "SGE": "all.q:n1:users:ann:job:12:sge:0:1700000000:1700000100:1700000200:0:0:100:90\n",
    "LSF": '"JOB_FINISH" "10.1" 1700000200 12 1001 33816578 1 1700000000 0 0 1700000100 "ann"\n',
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("command", ["workload", "failures"])
def test_records_of_other_systems_are_refused(
    name: str, command: str, tmp_path: Path, capsys
) -> None:
    path = tmp_path / "record"
    path.write_text(FOREIGN[name])
    with pytest.raises(SystemExit) as status:
        main([command, "import", str(path), "-o", str(tmp_path / "out.json")])
    assert status.value.code == 2
    assert "its format is not recognised" in capsys.readouterr().err


# ---- I, J, K: platforms

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>
<host id="a" speed="100Mf"/><host id="b" speed="100Mf"/>
<host id="pfs" speed="1Gf"><prop id="role" value="{role}"/></host></zone></platform>
"""


@pytest.mark.parametrize(
    ("role", "hosts"),
    [("storage", 2), ("energy", 2), ("compute_node", 3), ("compute_node,storage", 3)],
)
@pytest.mark.parametrize("begin", ["", "\n", " \n\n"])
def test_roles_and_blank_lines(role: str, hosts: int, begin: str, tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text(begin + PLATFORM.format(role=role))
    facts = read_platform(path)
    assert (facts.n_hosts, facts.n_other) == (hosts, 3 - hosts)
    assert facts.speed_flops == (1e8 if hosts == 2 else None)


def test_the_speed_of_a_platform_is_used(tmp_path: Path) -> None:
    from rebat.cli.simulate import _speed_flops

    path = tmp_path / "p.xml"
    computing = workload_of({"type": "parallel_homogeneous", "cpu": 1e9, "com": 0})
    path.write_text(PLATFORM.format(role="storage"))
    assert _speed_flops(read_platform(path), [computing], str(path)) == 1e8
    assert _speed_flops(None, [computing], "") == 1e9
    path.write_text(PLATFORM.format(role="compute_node"))
    with pytest.raises(InputError, match=r"different speeds, but profile 'a' computes"):
        _speed_flops(read_platform(path), [computing], str(path))
    assert (
        _speed_flops(read_platform(path), [workload_of({"type": "delay", "delay": 5})], str(path))
        == 1e9
    )


def test_the_assumed_speed_is_noted(tmp_path: Path, capsys) -> None:
    path, note = tmp_path / "w.json", "1 profile computes (the first is 'a'): their run times"
    computing = {"type": "ptask_homogeneous", "cpu": 3e9, "com": 0}
    for profile, noted in ((computing, 1), ({"type": "delay", "delay": 5}, 0)):
        batsim_json.write_workload(workload_of(profile), path)
        main(["run", str(path), "-p", "easy", "--out", str(tmp_path / f"run{noted}")])
        assert capsys.readouterr().err.count(note) == noted


def workload_of(profile: dict[str, Any]) -> Workload:
    jobs = [{"id": "1", "subtime": 0, "walltime": 100, "res": 1, "profile": "a"}]
    return batsim_json.workload_of("w", {"nb_res": 2, "jobs": jobs, "profiles": {"a": profile}})


@pytest.mark.parametrize("kind", ["parallel_homogeneous", "ptask_homogeneous"])
def test_computing_profiles_of_both_versions(kind: str) -> None:
    profiles = {"a": {"type": kind, "cpu": 1e9, "com": 0}}
    assert duration_us(profiles, "a") == US
    assert duration_us(profiles, "a", speed_flops=1e8) == 10 * US
    with pytest.raises(InputError, match="network model"):
        duration_us({"a": {"type": kind, "cpu": 1e9, "com": 5}}, "a")


# ---- starts before submissions


def test_starts_before_submissions_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.txt", job(1, 1000, 900, 1100), job(2, 1000, 1100, 1200))
    (note,) = findings(path)
    assert "1 job started up to 1.67 min before the submission (job 1)" in note
    table = swf(tmp_path / "t.swf", "; MaxProcs: 8\n", swf_row(1, 0))
    assert findings(table) == []


# ---- drains, planned reboots and failures of nodes


def test_planned_reboots_and_the_state_fail_are_no_failures(tmp_path: Path) -> None:
    rows = [
        "n1|1700000000|1700000600|DRAIN|66050|Reboot ASAP\n",
        "n1|1700000600|1700001200|DOWN|1048577|Reboot ASAP : reboot issued\n",
        "n2|1700000600|1700001200|FAIL|8194|ECC\n",
        "n2|1700002000|1700002600|DOWN|8193|ECC, then dead\n",
        "n3|1700003000|1700003600|DOWN*|1|dead\n",
        "n3|1700003600|1700004000|DOWN|1048577|repaired by a reboot\n",
        "n4|1700005000|1700005600|DOWN|65537|a reboot is requested, not issued\n",
        "n5|1700005000|1700005600|IDLE|4294967294|no value\n",
    ]
    for header, cut in ((EVENTS, None), (EVENTS.replace("|StateRaw", ""), 4)):
        text = [
            "|".join(cell for at, cell in enumerate(row.split("|")) if at != cut) for row in rows
        ]
        if cut:
            text = [
                row.replace("DOWN|Reboot", "BOOT^|Reboot").replace(
                    "DOWN|repaired", "DOWN^|repaired"
                )
                for row in text
            ]
        path = written(tmp_path / "ev.txt", *text, header=header)
        downs = {name: b - a for name, a, b in outages(path) if b is not None}
        assert downs == {"n2": 600, "n3": 1000, "n4": 600}
        dropped = read_record("auto", path, ReaderOptions()).dropped
        assert dropped["a planned reboot, which kills no job"] == 1
        assert dropped["a drain, which kills no job"] == 2
    only = written(tmp_path / "only.txt", *rows[:2], header=EVENTS)
    with pytest.raises(InputError, match=r"no failures.*1 a planned reboot, which kills no job"):
        read_record("auto", only, ReaderOptions())


# ---- suspended jobs of PBS


def test_suspended_time_of_pbs_is_not_run_time(tmp_path: Path) -> None:
    def line(at: str, kind: str, name: int, start: int = 0, end: int = 0) -> str:
        text = f"user=a queue=q ctime={ZERO} qtime={ZERO} etime={ZERO} start={start} end={end}"
        text += f" exec_vnode=(n{name}:ncpus=1) Resource_List.walltime=01:00:00"
        more = text if kind in "SER" else "requestor=Scheduler@srv"
        return f"01/01/2024 {at};{kind};{name}.srv;{more}\n"

    rows = [
        line("00:00:00", "S", 1, ZERO), line("00:01:00", "z", 1), line("00:02:00", "r", 1),
        line("00:03:00", "z", 1), line("00:03:30", "r", 1),
        line("00:10:00", "E", 1, ZERO, ZERO + 600),
        # suspended until its end; suspended twice without a resumption
        line("00:04:00", "z", 2), line("00:05:00", "z", 2),
        line("00:10:00", "E", 2, ZERO, ZERO + 600),
        # a suspension of an earlier attempt does not count
        line("00:00:00", "S", 3, ZERO), line("00:01:00", "z", 3),
        line("00:02:00", "R", 3, ZERO, ZERO + 120), line("00:05:00", "S", 3, ZERO + 300),
        line("00:10:00", "E", 3, ZERO + 300, ZERO + 600),
        # still running, and still suspended
        line("00:00:00", "S", 4, ZERO), line("00:06:00", "z", 4), line("00:10:00", "r", 5),
    ]  # fmt: skip
    path = written(tmp_path / "a.log", *rows, header="")
    assert {name: run for name, (_, _, run) in runs(path, "pbs").items()} == {
        "1": 510, "2": 240, "3": 300, "4": 360
    }  # fmt: skip
    notes = import_jobs(path, "pbs").workload.notes
    assert not any("type" in note for note in notes)
    assert {name: run for name, (_, _, run) in runs(path, "pbs", tz="Asia/Tokyo").items()}[
        "1"
    ] == 510


# ---- numbers that mean "no limit" or "no value"

NO_VALUES = (
    "4294967295", "4294967294", "18446744073709551615", "18446744073709551614", "0xfffffffe",
    "4294967295.0", "UNLIMITED", "INFINITE",
)  # fmt: skip


def usual(n: int = 40) -> list[str]:
    return [job(at, ZERO + at, ZERO + at, ZERO + at + 100) for at in range(100, 100 + n)]


@pytest.mark.parametrize("value", NO_VALUES)
def test_no_values_of_slurm(tmp_path: Path, value: str) -> None:
    """No limit, the nodes of the node list, the time from start to end, and no submission."""
    for column, at in (("TimelimitRaw", 11), ("NNodes", 9), ("ElapsedRaw", 7)):
        cells = job(1, ZERO, ZERO, ZERO + 500, "n[1-3]").split("|")
        cells[at] = value
        path = written(tmp_path / f"{column}.txt", *usual(), "|".join(cells))
        made = import_jobs(path, missing_walltime="none").workload
        assert runs(path)["1"] == (3, 0, 500), column
        walltimes = {j.id: j.walltime_us for j in made.jobs}
        assert walltimes["1"] == (None if column == "TimelimitRaw" else 3600 * US)
        assert not any("dropped" in note for note in made.notes)


@pytest.mark.parametrize("value", NO_VALUES)
def test_no_values_of_other_formats(tmp_path: Path, value: str) -> None:
    rows = [f"{at},{ZERO + at},100,2,3600" for at in range(40)] + [f"99,{ZERO},100,2,{value}"]
    table = written(tmp_path / "t.csv", "\n".join(rows), header="id,at,run,n,limit\n")
    rules = tmp_path / "m.toml"
    rules.write_text(
        'title = "t"\n[machine]\nnodes = 8\n[columns]\nid = "id"\n'
        'submit = {column = "at", unit = "s"}\nrun = "run"\nrequested = "n"\n'
        'walltime = {column = "limit", unit = "min"}\n'
    )
    made = import_jobs(table, mapping=rules, missing_walltime="none").workload
    assert {j.id: j.walltime_us for j in made.jobs}["99"] is None
    assert len(made.jobs) == 41
    if value.isdecimal():
        lines = [f"{at} {at} 0 100 2 -1 -1 2 3600{' -1' * 9}\n" for at in range(1, 41)]
        lines.append(f"99 5 0 100 2 -1 -1 2 {value}{' -1' * 9}\n")
        swf = written(tmp_path / "t.swf", *lines, header="; MaxNodes: 8\n")
        made = import_jobs(swf, missing_walltime="none").workload
        assert {j.id: j.walltime_us for j in made.jobs}["99"] is None
        number = {"set": True, "infinite": False, "number": int(value)}
        times: dict[str, Any] = {
            "submission": ZERO,
            "start": ZERO,
            "end": ZERO + 9,
            "elapsed": number,
        }
        times["limit"] = number
        record = {"job_id": 1, "time": times, "state": {"current": "COMPLETED"},
                  "nodes": "n[1-2]", "allocation_nodes": number}  # fmt: skip
        path = tmp_path / "j.json"
        path.write_text(json.dumps({"jobs": [record]}))
        (only,) = import_jobs(path, "sacct", missing_walltime="none").workload.jobs
        assert (only.n_nodes, only.walltime_us) == (2, None)


def test_an_endless_walltime_of_pbs_is_no_limit(tmp_path: Path) -> None:
    text = (
        f"01/01/2024 00:10:00;E;1.srv;user=a queue=q ctime={ZERO} qtime={ZERO} etime={ZERO} "
        f"start={ZERO} end={ZERO + 600} exec_vnode=(n1:ncpus=1) "
        "Resource_List.walltime=99999999:00:00\n"
    )
    path = written(tmp_path / "a.log", text, header="")
    (only,) = import_jobs(path, "pbs", missing_walltime="none").workload.jobs
    assert only.walltime_us is None
    partitions = tmp_path / "p.txt"
    partitions.write_text(
        "PartitionName=main Nodes=n[1-2] MaxTime=99999999:00:00 MaxNodes=4294967295 "
        "PriorityTier=65534 PriorityJobFactor=65535 DefaultTime=INFINITE\n"
    )
    made = import_jobs(written(tmp_path / "j.txt", *usual()), partitions=partitions).workload
    assert made.machine is not None
    assert made.machine["partitions"]["main"] == {"nodes": "n[1-2]"}


def test_impossible_jobs_are_counted_with_their_node_time(tmp_path: Path) -> None:
    rows = [
        job(1, ZERO, ZERO, ZERO + 720, "n1", run=2 * 10**11),
        job(2, ZERO, ZERO, ZERO + 720, "n1", limit=10**12),
        job(3, ZERO, ZERO, ZERO + 720, "n1").replace("|1|4|", "|3000000000|4|"),
        job(4, ZERO, ZERO, ZERO + 720, "n1").replace("|720|", "|x|"),
        job(5, ZERO, ZERO, ZERO + 720, "n1", limit="x"),
    ]
    path = written(tmp_path / "jobs.txt", *usual(60), *rows)
    made = import_jobs(path).workload
    assert len(made.jobs) == 60
    dropped = [note for note in made.notes if "dropped" in note]
    assert len(dropped) == 5 and all(note.startswith("1 line dropped (first: ") for note in dropped)
    assert any(note.endswith("or -1 if unknown (0.2 node-hours)") for note in dropped)


# ---- files that are no records


@pytest.mark.parametrize("command", [("workload", "json"), ("failures", "events")])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("JobId=1 JobName=x TRES=cpu=4,cpu=5 NumNodes=1\n", "is the output of 'scontrol show job'"),
        ("NodeName=n1 CPUTot=4 CfgTRES=cpu=4\n", "is the output of 'scontrol show node'"),
        ("  JOBID PARTITION     NAME\n", "is the output of squeue"),
        ("PARTITION AVAIL  TIMELIMIT\n", "is the output of sinfo"),
        ("PartitionName=main Nodes=n1\n", "states partitions of Slurm"),
        ("Configuration data as of today\n", "is the configuration of Slurm"),
        ('{"jobs": [{"job_id": 1, "job_state": ["RUNNING"]}]}', "is the output of squeue --json"),
        ('{"meta": {},\n "events": [{"node": "n1"}]}', "is JSON of node events"),
        ('{"nodes": [{"name": "n1"}]}', "is JSON of nodes"),
        ('[{"node": "n1", "start": 5, "end": 9}]', "is JSON of node events"),
    ],
)
def test_foreign_files_are_named(
    tmp_path: Path, text: str, problem: str, command: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path, out = written(tmp_path / "file", text, header=""), tmp_path / f"out.{command[1]}"
    with pytest.raises(SystemExit) as status:
        main([command[0], "import", str(path), "-o", str(out)])
    assert status.value.code == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("names", ["node,down,up", "Node,DOWN,Up"])
def test_tables_of_failures_have_any_separator(tmp_path: Path, separator: str, names: str) -> None:
    rows = [names, "n1,10,20", "n2,15,15", "n2,30,"]
    text = "\n".join(row.replace(",", separator) for row in rows)
    path = written(tmp_path / "down.csv", text, header="")
    assert outages(path) == [("n1", 10, 20), ("n2", 30, None)]


def test_tables_of_jobs_with_other_separators_or_capitals(tmp_path: Path) -> None:
    head = "job_id,submit_time,start_time,end_time,node_num,user,vc,gpu_num,cpu_num,duration"
    row = "\n1,2023-03-01 00:00:00,2023-03-01 00:00:00,2023-03-01 00:01:00,1,a,v,1,1,60"
    assert len(runs(written(tmp_path / "a.csv", head + row, header=""), n_nodes=4)) == 1
    for text, problem, mapped in (
        ((head + row).replace(",", ";"), "separated by ';'", "single column, whose parts"),
        (head.replace("user", "User") + row, "column User is called user", "has columns User, but"),
    ):
        path = written(tmp_path / "b.csv", text, header="")
        with pytest.raises(InputError, match=problem):
            import_jobs(path)
        with pytest.raises(InputError, match=mapped):
            import_jobs(path, mapping="helios", n_nodes=4)


def test_outages_of_length_zero_are_named(tmp_path: Path) -> None:
    events = tmp_path / "x.events"
    lines = [("unavailable", 5), ("available", 5), ("unavailable", 7)]
    texts = [
        f'{{"type": "machine_{kind}", "resources": "0", "timestamp": {at}}}' for kind, at in lines
    ]
    events.write_text("\n".join(texts))
    with pytest.raises(InputError, match="node 0 fails and becomes available at the same time"):
        read_events(events)
    rows = ["1,5.0000001,5.0000002\n", "1,7,9\n", "2,7,7.0000001\n"]
    path = written(tmp_path / "sub.csv", *rows, header="node,down,up\n")
    assert outages(path) == [("1", 7, 9)]
    with pytest.raises(InputError, match=r"no failures \(dropped: 1 zero duration\)"):
        outages(written(tmp_path / "zero.csv", "1,7,7\n", header="node,down,up\n"))


def test_rows_are_counted_by_column(tmp_path: Path) -> None:
    header = "node,down,up\n"
    rows = [f"1,{at},{at + 1}\n" for at in range(10, 90, 2)]
    bad = ["1,1e12,\n", "1,100,1e12\n", "1,x,3\n", "1\n", "1,2,3,4\n"]
    path = written(tmp_path / "down.csv", *rows, *bad[:4], header=header)
    reasons = read_record("auto", path, ReaderOptions()).dropped
    assert len(reasons) == 4 and set(reasons.values()) == {1}
    few = written(tmp_path / "few.csv", *rows[:5], *bad, header=header)
    with pytest.raises(InputError, match="5 of 10 rows are invalid, more than a tenth; 4 of them"):
        read_record("auto", few, ReaderOptions())


def test_a_table_of_failures_has_the_names_and_time_0_of_a_workload(tmp_path: Path) -> None:
    names = ("node01", "node02", "node03")
    origin = 1_767_261_600.0
    rows = ["node03,1767269600,1767270200\n", "other,1767269600,1767270200\n",
            "node[01-02],1767261000,1767261700\n", "node01,1767260000,1767261600\n"]  # fmt: skip
    rows[2] = '"node[01-02]",1767261000,1767261700\n'
    path = written(tmp_path / "down.csv", *rows, header="node,down,up\n")
    on: dict[str, Any] = {"workload": (names, origin)}
    expected = [("node01", 0, 100), ("node02", 0, 100), ("node03", 8000, 8600)]
    assert sorted(outages(path, "csv", **on)) == expected
    dropped = read_record("csv", path, ReaderOptions(**on)).dropped
    assert dropped["of nodes that the workload does not have"] == 1
    assert dropped["zero duration, or before time 0"] == 1
    # Seconds from time 0, and numbers of nodes.
    plain = written(tmp_path / "plain.csv", "2,8000,8600\n", header="node,down,up\n")
    assert outages(plain, "csv", **on) == [("node03", 8000, 8600)]
    dates = written(
        tmp_path / "dates.csv", "node03,2026-01-01T13:13:20,\n", header="node,down,up\n"
    )
    assert outages(dates, "csv", zone="Europe/Paris", **on) == [("node03", 8000, None)]
    with pytest.raises(InputError, match="contains local times"):
        outages(dates, "csv", **on)
