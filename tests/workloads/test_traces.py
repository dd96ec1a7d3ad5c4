# SPDX-License-Identifier: Apache-2.0
"""SWF and ALCF importers: small files for each rule and error, then the real traces."""

import csv
import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.workloads.batsim_json import read_workload, write_workload
from rebat.workloads.load import load_workload
from tests.support.importing import read_alcf, read_swf
from tests.support.recordings import SHARED, needs

US = 1_000_000
needs_traces = needs("traces")
HEADER = "; UnixStartTime: 86400\n; MaxNodes: 8\n; MaxProcs: 16\n"


def row(number=1, submit=0, run=10, size=2, walltime=60, *, wait=5, used=-1, status=1):
    fields = [number, submit, wait, run, used, -1, -1, size, walltime, -1, status, *[-1] * 7]
    return " ".join(map(str, fields))


def swf(tmp_path, *rows, header=HEADER, name="t.swf"):
    path = tmp_path / name
    text = header + "".join(f"{line}\n" for line in rows)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def delays(workload):
    return [workload.profiles[job.profile]["delay"] for job in workload.jobs]


def walltimes(workload):
    return [job.walltime_us and job.walltime_us / US for job in workload.jobs]


@pytest.mark.parametrize("name", ["t.swf", "t.swf.gz"])
def test_a_trace_becomes_a_workload(tmp_path, name):
    path = swf(tmp_path, row(7, 30, size=4), row(3, 20, 25), "", row(9, 40, 10), name=name)
    workload = load_workload(path)
    assert (workload.name, workload.n_nodes, workload.notes) == ("t", 16, ())
    assert [job.id for job in workload.jobs] == ["3", "7", "9"]
    assert [job.submit_us for job in workload.jobs] == [0, 10 * US, 20 * US]
    assert [job.n_nodes for job in workload.jobs] == [2, 4, 2]
    assert [job.profile for job in workload.jobs] == ["delay25", "delay10", "delay10"]
    assert workload.profiles["delay10"] == {"type": "delay", "delay": 10}


def test_users_and_queues_stay_with_their_jobs(tmp_path):
    """They are fields 12 and 15; -1 is no user or queue, and has no field in the workload."""
    known = row(2).split()
    known[11], known[14] = "17", "3"
    workload = read_swf(swf(tmp_path, row(1), " ".join(known)))
    assert [job.extra for job in workload.jobs] == [{}, {"user": "17", "queue": "3"}]
    write_workload(workload, tmp_path / "w.json")
    assert read_workload(tmp_path / "w.json").jobs == workload.jobs


@needs_traces
def test_users_of_the_real_traces():
    """The expected users were read by hand: the first jobs of KTH's log, and a job of ALCF's."""
    kth = load_workload(SHARED / "traces/KTH-SP2-1996-2.1-cln.swf.gz", max_jobs=3)
    assert [job.extra for job in kth.jobs] == [{"user": "12"}, {"user": "13"}, {"user": "14"}]
    mira = load_workload(SHARED / "traces/ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz")
    of = {job.id: job.extra for job in mira.jobs}
    assert of["1992814"] == {"user": "55029654575059", "queue": "prod-capability"}


@pytest.mark.parametrize(
    ("rule", "runs", "limits", "note"),
    [
        ("raise-walltime", [10, 60, 90, 1], [60, 61, 91, 2], "3 jobs ran up to or over"),
        ("clamp", [10, 59, 59, 0.5], [60, 60, 60, 1], "the run time was shortened"),
        ("drop", [10], [60], "3 jobs dropped: ran up to"),
        ("keep", [10, 60, 90, 1], [60, 60, 60, 1], "Batsim will kill them"),
    ],
)
def test_overrun_rules(tmp_path, rule, runs, limits, note):
    path = swf(tmp_path, row(1), row(2, run=60), row(3, run=90), row(4, run=1, walltime=1))
    workload = read_swf(path, overrun=rule)
    assert (delays(workload), walltimes(workload)) == (runs, limits)
    assert len(workload.notes) == 1
    assert note in workload.notes[0]


@pytest.mark.parametrize(
    ("rule", "limits"), [("run", [60, 11]), ("none", [60, None]), ("drop", [60])]
)
def test_missing_walltimes(tmp_path, rule, limits):
    workload = read_swf(swf(tmp_path, row(1), row(2, walltime=-1)), missing_walltime=rule)
    assert walltimes(workload) == limits
    assert "1 job" in workload.notes[0]


def test_sizes_cap_and_what_is_dropped(tmp_path):
    rows = [row(1, size=16), row(2, size=-1, used=3), row(3, size=9, used=4), row(4, size=-1)]
    path = swf(tmp_path, *rows, row(5, run=0), row(6, run=-1), row(7, status=2), row(8, size=20))
    workload = read_swf(path, cap=15)
    assert [job.n_nodes for job in workload.jobs] == [15, 3, 9, 15]
    assert workload.notes == (
        "1 job dropped: records of partial executions (status 2, 3, 4)",
        "3 jobs dropped: no run time or no nodes",
        "2 jobs larger than 15 nodes: reduced to 15",
    )
    assert read_swf(path, size="allocated").jobs[2].n_nodes == 4
    assert "1 job larger than the machine of 16 nodes: kept" in read_swf(path).notes


def test_every_count_is_of_what_was_selected(tmp_path):
    """Jobs that are dropped or changed outside of the selection are not counted."""
    outside = [row(20, 900, run=0), row(21, 901, status=2), row(22, 902, run=99), row(23, 1, run=0)]
    inside = [row(1, 0), row(2, 10, run=99), row(3, 11, run=0), row(4, 12, status=3), row(5, 13)]
    path = swf(tmp_path, *outside, *inside)
    told = (
        "1 job dropped: records of partial executions (status 2, 3, 4)",
        "1 job dropped: no run time or no nodes",
        "1 job ran up to or over the walltime: the walltime was raised to the run time + 1 s",
    )
    window = read_swf(path, first_s=5, last_s=900)
    assert [job.id for job in window.jobs] == ["2", "5"]
    assert window.notes == (
        "4 of 9 records selected; counts of dropped and changed jobs refer to these",
        *told,
    )
    first = read_swf(path, max_jobs=3)
    assert [job.id for job in first.jobs] == ["1", "2", "5"]
    assert (
        first.notes[0]
        == "6 of 9 records selected; counts of dropped and changed jobs refer to these"
    )
    assert first.notes[2] == "2 jobs dropped: no run time or no nodes"
    assert "selected" not in "".join(read_swf(path).notes)


def test_months_windows_and_origins(tmp_path):
    day = 86400  # the header's start is 2 January 1970, so day 30 is 1 February, 0 h UTC
    path = swf(
        tmp_path, row(1, 0), row(2, 30 * day - 1), row(3, 30 * day, wait=9), row(4, 31 * day)
    )

    def ids(**options):
        return [job.id for job in read_swf(path, **options).jobs]

    assert ids(months="1970-02") == ["3", "4"]
    assert ids(months="1970-02", tz="Europe/Paris") == ["2", "3", "4"]
    assert ids(months="1970-02", by="start") == ["2", "3", "4"]
    assert ids(months=["1970-01", "1970-02"]) == ["1", "2", "3", "4"]
    assert ids(first_s=1, last_s=31 * day) == ["2", "3"]
    assert ids(months="1970-02", first_s=1) == ["4"]
    assert ids(max_jobs=2) == ["1", "2"]
    from_month = read_swf(path, months="1970-01", origin="month")
    assert [job.submit_us // US for job in from_month.jobs] == [day, 31 * day - 1]


def test_a_number_that_comes_again_is_renamed(tmp_path):
    workload = read_swf(swf(tmp_path, row(7), row(7, 1), row(8, 2), row(7, 3)))
    assert [job.id for job in workload.jobs] == ["7", "7-2", "8", "7-3"]
    assert "2 jobs with a repeated id: renamed, for example to 7-2" in workload.notes[0]


def test_dates_from_the_epoch_need_no_header_but_relative_ones_do(tmp_path):
    header = "; MaxNodes: 8\n"
    late = swf(tmp_path, row(1, 1_541_030_656), header=header)
    assert len(read_swf(late, months="2018-11").jobs) == 1
    early = swf(tmp_path, row(1, 100), header=header)
    for options in ({"months": "2018-11"}, {"origin": "month"}):
        with pytest.raises(InputError, match=r"t\.swf: cannot .* dates"):
            read_swf(early, **options)


def bad(name, lines, words, **options):
    return pytest.param(lines, words, options, id=name)


@pytest.mark.parametrize(
    ("lines", "words", "options"),
    [
        bad("text", [row(), row().replace("60", "6x")], [":5", "field 9 is '6x'"]),
        bad("nan", [row(), row(run="nan")], [":5", "field 4 is 'nan'", "a number"]),
        bad("inf", [row(submit="1e999")], [":4", "field 2"]),
        bad("short line", [row(), row(), "1 2 3"], [":6", "3 fields", "18 fields"]),
        bad("no jobs", [], ["contains no job"]),
        bad("absurd run", [row(run=1e300)], [":4", "run time of job 1 is 1e+300"]),
        bad("absurd walltime", [row(walltime=1e15)], [":4", "walltime of job 1"]),
        bad("negative submit", [row(), row(submit=-5)], [":5", "submission time is -5"]),
        bad("absurd submit", [row(submit=1e300)], [":4", "submission time of job 1"]),
        bad("negative run", [row(run=-7)], [":4", "run time of job 1 is -7"]),
        bad("half a node", [row(size=1.5)], [":4", "number of nodes of job 1 is 1.5"]),
        bad("absurd size", [row(size=1e12)], [":4", "number of nodes of job 1 is 1e+12"]),
        bad("job number", [row("1.5")], [":4", "job number is 1.5"]),
        bad("all dropped", [row(run=0)], ["no job is left", "1 job dropped"]),
        bad("empty month", [row()], ["no job in 2001-01"], months="2001-01"),
        bad("bad month", [row()], ["invalid month '2001-13'", "YYYY-MM"], months="2001-13"),
        bad("window", [row()], ["no job is left"], first_s=99),
        bad("bad zone", [row()], ["unknown time zone 'Mars/Base'"], tz="Mars/Base"),
        bad("no start", [row(wait=-1)], ["a job has no start"], months="1970-01", by="start"),
        bad("bad rule", [row()], ["overrun", "clamp, drop, keep, raise"], overrun="x"),
        bad(
            "bad option", [row()], ["unknown trace option 'capp'", "cap, cluster, first_s"], capp=3
        ),
        bad("absurd machine", [row()], ["the machine has 1000000000000"], n_nodes=10**12),
        bad("bad cap", [row()], ["option cap: is 0", "at least 1"], cap=0),
    ],
)
def test_a_bad_swf_is_refused_with_its_place(tmp_path, lines, words, options):
    path = swf(tmp_path, *lines)
    with pytest.raises(InputError) as caught:
        read_swf(path, strict=True, **options)
    place = [str(path)] if words[0].startswith(":") else []
    for word in (*place, *words):
        assert word in str(caught.value)


def test_a_machine_of_unknown_size_has_to_be_given(tmp_path):
    path = swf(tmp_path, row(), header="")
    with pytest.raises(InputError, match="expected n_nodes"):
        read_swf(path)
    assert read_swf(path, n_nodes=4).n_nodes == 4


@pytest.mark.parametrize("size", ["0", "1000000000000000", "12345678901234567890", "99999999"])
def test_an_absurd_machine_is_refused(tmp_path, size):
    path = swf(tmp_path, row(), header=f"; MaxProcs: {size}\n")
    with pytest.raises(InputError, match=rf"t\.swf: the machine has {size} nodes \(expected 1 to"):
        read_swf(path)
    assert read_swf(path, n_nodes=4).n_nodes == 4


def test_an_unknown_size_leaves_the_other_one(tmp_path):
    path = swf(tmp_path, row(), header="; MaxProcs: -1\n; MaxNodes: 8\n")
    assert read_swf(path).n_nodes == 8


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_comments_of_any_age_are_passed_over(tmp_path, encoding):
    path = tmp_path / "t.swf"
    text = f"; Acknowledge: L\u00e4rs Malinowsky\n{HEADER}{row()}\n"
    path.write_bytes(text.encode(encoding))
    assert read_swf(path).n_nodes == 16
    path.write_bytes(f"; MaxProcs: 7\n{row()}\n".encode("utf-8-sig"))
    assert read_swf(path).n_nodes == 7  # a byte order mark before the first comment


def test_what_is_no_text_is_no_trace(tmp_path):
    path = tmp_path / "t.swf"
    for data in (b"\xff\xfe;\x00 \x00", bytes(range(256))):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"t\.swf: is not a text file"):
            read_swf(path)
    path.write_bytes(f"{HEADER}{row()} \u00e4\n{row(2)[:-1]}\u00e4\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"t\.swf:5: field 18"):
        read_swf(path, strict=True)


@given(st.lists(st.tuples(*[st.integers(1, 10**6)] * 4), min_size=1, max_size=20))
def test_every_job_is_there_and_survives_a_round_trip(tmp_path_factory, jobs):
    tmp_path = tmp_path_factory.mktemp("t")
    workload = read_swf(swf(tmp_path, *(row(n, *job) for n, job in enumerate(jobs))), n_nodes=9)
    assert sorted(int(job.id) for job in workload.jobs) == list(range(len(jobs)))
    assert all(j.walltime_us > d * US for j, d in zip(workload.jobs, delays(workload), strict=True))
    assert workload.jobs[0].submit_us == 0
    write_workload(workload, tmp_path / "t.json.gz")
    assert read_workload(tmp_path / "t.json.gz") == workload


ALCF = {
    "COBALT_JOBID": "12",
    "MACHINE_NAME": "mira",
    "QUEUED_TIMESTAMP": "2019-12-30 22:08:48",
    "START_TIMESTAMP": "2020-01-01 00:09:48",
    "WALLTIME_SECONDS": "7200.0000",
    "RUNTIME_SECONDS": "1239.0000",
    "NODES_REQUESTED": "512.00",
    "NODES_USED": "1024.00",
}


def alcf(tmp_path, *changes, without=()):
    path = tmp_path / "log.csv"
    names = [name for name in ALCF if name not in without]
    with path.open("w", newline="") as text:
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        writer.writerow(names)
        writer.writerows([(ALCF | change)[name] for name in names] for change in changes)
    return path


def test_an_alcf_log_becomes_a_workload(tmp_path):
    later = {"COBALT_JOBID": "13", "QUEUED_TIMESTAMP": "2020-01-01 00:00:00"}
    path = alcf(tmp_path, later, {})
    workload = load_workload(path)
    assert [(job.id, job.n_nodes, job.submit_us // US) for job in workload.jobs] == [
        ("12", 512, 0),
        ("13", 512, 86400 + 6672),
    ]
    assert (workload.n_nodes, workload.jobs[0].walltime_us) == (49152, 7200 * US)
    assert delays(workload) == [1239, 1239]
    assert [j.id for j in read_alcf(path, months="2020-01").jobs] == ["13"]
    assert len(read_alcf(path, months="2020-01", by="start").jobs) == 2
    assert read_alcf(path, size="allocated").jobs[0].n_nodes == 1024


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"QUEUED_TIMESTAMP": "yesterday"}, [":3", "QUEUED_TIMESTAMP is 'yesterday'", "YYYY"]),
        ({"RUNTIME_SECONDS": "x"}, [":3", "RUNTIME_SECONDS is 'x'", "a number"]),
        ({"WALLTIME_SECONDS": "1e300"}, [":3", "walltime of job 12 is 1e+300"]),
        ({"NODES_REQUESTED": "0.5"}, [":3", "number of nodes of job 12 is 0.5"]),
        ({"COBALT_JOBID": ""}, [":3", "COBALT_JOBID is ''"]),
        ({"COBALT_JOBID": "w0!1"}, [":3", "COBALT_JOBID is 'w0!1'"]),
    ],
)
def test_a_bad_alcf_line_is_refused_with_its_place(tmp_path, change, words):
    path = alcf(tmp_path, {}, change)
    dropped = read_alcf(path)
    assert len(dropped.jobs) == 1
    assert dropped.notes[0].startswith("1 line dropped (first: line 3): ")
    with pytest.raises(InputError) as caught:
        read_alcf(path, strict=True)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_column(tmp_path):
    path = alcf(tmp_path, {})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_alcf(path).jobs) == 1


def test_bad_alcf_files(tmp_path):
    with pytest.raises(InputError, match=r"log\.csv:1: has no column RUNTIME_SECONDS"):
        read_alcf(alcf(tmp_path, {}, without=["RUNTIME_SECONDS"]))
    with pytest.raises(InputError, match=r"log\.csv: the log contains no job"):
        read_alcf(alcf(tmp_path))
    with pytest.raises(InputError, match="expected n_nodes"):
        read_alcf(alcf(tmp_path, {"MACHINE_NAME": "elsewhere"}))
    path = alcf(tmp_path, {})
    path.write_text(path.read_text() + '"1","2"\n')
    with pytest.raises(InputError, match=r"log\.csv:3: has 2 fields"):
        read_alcf(path, strict=True)


def test_the_reader_is_chosen_by_name(tmp_path):
    with pytest.raises(InputError, match=r"jobs\.txt: unknown kind .*\.json, \.swf or \.csv"):
        load_workload(tmp_path / "jobs.txt")
    with pytest.raises(InputError, match="option cap has no effect"):
        load_workload(tmp_path / "w.json", cap=3)
    with pytest.raises(InputError, match=r"absent\.swf: cannot read the file"):
        load_workload(tmp_path / "absent.swf")


@needs_traces
def test_mira_november_2018_is_the_authors_workload():
    """All 5,321 jobs equal those of the golden map, whose months are in UTC."""
    trace = SHARED / "traces/mira-2018-09_2018-12.swf.gz"
    golden = SHARED / "golden/node-stealing/mira-2018-11-ckpt.map.csv.gz"
    workload = read_swf(trace, months="2018-11", cap=49000, overrun="raise-walltime")
    with gzip.open(golden, "rt") as text:
        rows = list(csv.DictReader(text))
    first = int(rows[0]["swf_submit"])
    expected = [
        (
            row["swf_id"],
            int(row["res"]),
            (int(row["swf_submit"]) - first) * US,
            int(row["walltime"]) * US,
            int(row["run"]),
        )
        for row in rows
    ]
    found = [
        (job.id, job.n_nodes, job.submit_us, job.walltime_us, run)
        for job, run in zip(workload.jobs, delays(workload), strict=True)
    ]
    assert len(found) == 5321
    assert found == expected


@pytest.mark.slow
@needs_traces
@pytest.mark.parametrize(
    ("name", "options", "n_nodes", "n_jobs"),
    [
        ("mira-2018-09_2018-12.swf.gz", {}, 49152, 22508),
        ("mira-2018-09_2018-12.swf.gz", {"months": "2018-09"}, 49152, 5795),
        ("mira-2018-09_2018-12.swf.gz", {"months": "2018-10"}, 49152, 7288),
        ("mira-2018-09_2018-12.swf.gz", {"months": "2018-12"}, 49152, 3471),
        ("KTH-SP2-1996-2.1-cln.swf.gz", {}, 100, 28476 - 9),
        ("HPC2N-2002-2.1-cln.swf.gz", {}, 240, 202876),
        ("CEA-Curie-2011-2.1-cln.swf.gz", {}, 93312, 312826 - 17286),
        ("ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz", {}, 49152, 6833 - 2),
        ("ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz", {"all_jobs": True}, 49152, 6833),
        (
            "ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz",
            {"months": ["2020-01", "2020-02", "2020-03"], "by": "start"},
            49152,
            6833,
        ),
    ],
)
def test_real_traces_are_read_whole_and_fast(name, options, n_nodes, n_jobs):
    began = time.perf_counter()
    workload = load_workload(SHARED / "traces" / name, **options)
    assert time.perf_counter() - began < 20  # about 2 s for the largest
    assert (workload.n_nodes, len(workload.jobs)) == (n_nodes, n_jobs)
    assert all(job.walltime_us is not None for job in workload.jobs)
