# SPDX-License-Identifier: Apache-2.0
"""Batsim's workload JSON: writing, reading, irregular files that Batsim accepts, exact errors."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.workloads.batsim_json import read_workload, to_json, write_workload
from tests.support.recordings import beside

US = 1_000_000


def document(**changes):
    job = {"id": "a", "subtime": 1.5, "walltime": 10, "res": 2, "profile": "p"}
    job |= changes.pop("job", {})
    for field in changes.pop("without", ()):
        del job[field]
    profiles = {"p": {"type": "delay", "delay": 5} | changes.pop("profile", {})}
    return {"nb_res": 4, "jobs": [job], "profiles": profiles} | changes


def saved(tmp_path, content):
    path = tmp_path / "w.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


times = st.integers(0, 10**15)
texts = st.text("abc-_.0123456789é", min_size=1, max_size=8)


@st.composite
def workloads(draw):
    delays = draw(st.lists(st.integers(1, 10**15), min_size=1, max_size=4, unique=True))
    profiles = {f"p{n}": {"type": "delay", "delay": us / US} for n, us in enumerate(delays)}
    profiles["p0"]["ret"] = draw(st.integers(-3, 3))
    ids = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
    jobs = tuple(
        Job(
            job_id,
            draw(st.integers(1, 2**31 - 1)),
            draw(times),
            draw(st.none() | st.integers(1, 10**15)),
            draw(st.sampled_from(sorted(profiles))),
            draw(st.dictionaries(st.sampled_from(["priority", "user"]), st.integers() | texts)),
        )
        for job_id in ids
    )
    notes = tuple(draw(st.lists(texts, max_size=2)))
    return Workload("w", draw(st.integers(1, 2**31 - 1)), jobs, profiles, notes)


@given(workloads())
def test_what_is_written_is_read_back(tmp_path_factory, workload):
    for name in ("w.json", "w.json.gz"):
        path = tmp_path_factory.mktemp("w") / name
        write_workload(workload, path)
        assert read_workload(path) == workload
    assert json.loads(gzip.decompress(path.read_bytes())) == to_json(workload)


def test_times_are_written_in_seconds_integral_ones_as_ints(tmp_path):
    jobs = (Job("1", 2, 1_500_000, 3 * US, "p", {"z": 1}), Job("2", 1, 0, None, "p"))
    write_workload(
        Workload("w", 4, jobs, {"p": {"type": "delay", "delay": 2}}), tmp_path / "w.json"
    )
    assert (tmp_path / "w.json").read_text() == (
        '{"nb_res":4,\n"jobs":[\n'
        '{"id":"1","subtime":1.5,"walltime":3,"res":2,"profile":"p","z":1},\n'
        '{"id":"2","subtime":0,"res":1,"profile":"p"}\n],\n'
        '"profiles":{\n"p":{"type":"delay","delay":2}\n}}\n'
    )


@pytest.mark.parametrize(
    ("content", "field", "expected"),
    [
        (document(job={"id": 7}), "id", "7"),
        (document(job={"walltime": -1}), "walltime_us", None),
        (document(job={"walltime": -1.0}), "walltime_us", None),
        (document(without=["walltime"]), "walltime_us", None),
        (document(job={"res": 99}), "n_nodes", 99),  # the scheduler rejects it
        (document(job={"priority": 3, "user": "u"}), "extra", {"priority": 3, "user": "u"}),
        (document(description="x", notes=5), "submit_us", 1_500_000),
    ],
)
def test_what_batsim_takes_is_taken(tmp_path, content, field, expected):
    assert getattr(read_workload(saved(tmp_path, content)).jobs[0], field) == expected


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = saved(tmp_path, document())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_workload(path).jobs) == 1


def test_profiles_that_need_a_network_are_not_refused_at_reading(tmp_path):
    profiles = {"p": {"type": "parallel", "cpu": [1], "com": [0]}}
    assert read_workload(saved(tmp_path, document(profiles=profiles))).profiles == profiles


def bad(name, content, *words):
    return pytest.param(content, words, id=name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        bad("broken", '{"nb_res": 4,\n "jobs": [,]}', ":2:11", "broken JSON"),
        bad("cut off", '{"nb_res": 4', ":1:", "broken JSON"),
        bad("empty file", "", "broken JSON"),
        bad("NaN", '{"nb_res": NaN}', ":1:", "without NaN and Infinity"),
        bad("too deep", "[" * 100_000, "broken JSON"),
        bad("a list", "[]", "not a Batsim workload", "object with nb_res"),
        bad("no nb_res", {"jobs": [], "profiles": {}}, "nb_res: is missing"),
        bad("nb_res zero", document(nb_res=0), "nb_res: is 0", "whole number"),
        bad("nb_res text", document(nb_res="4"), "nb_res: is '4'"),
        bad("no jobs key", {"nb_res": 4, "profiles": {}}, "jobs: is missing"),
        bad("no profiles", {"nb_res": 4, "jobs": []}, "profiles: is missing"),
        bad("no job", document(jobs=[]), "contains no job"),
        bad("a job that is none", document(jobs=[3]), "job number 1", "is not a job"),
        bad("res zero", document(job={"res": 0}), "job a: res: is 0", "whole number"),
        bad("res negative", document(job={"res": -2}), "job a: res: is -2"),
        bad("res fraction", document(job={"res": 1.5}), "job a: res: is 1.5"),
        bad("res absurd", document(job={"res": 10**300}), "job a: res: is 1"),
        bad("res bool", document(job={"res": True}), "job a: res: is True"),
        bad("no res", document(without=["res"]), "job a: res: is missing"),
        bad("subtime negative", document(job={"subtime": -1}), "job a: subtime: is -1", "seconds"),
        bad("subtime absurd", document(job={"subtime": 1e300}), "job a: subtime: is 1e+300"),
        bad("subtime huge int", document(job={"subtime": 10**400}), "job a: subtime: is 1000"),
        bad("subtime text", document(job={"subtime": "0"}), "job a: subtime: is '0'"),
        bad("no subtime", document(without=["subtime"]), "job a: subtime: is missing"),
        bad("walltime zero", document(job={"walltime": 0}), "job a: walltime", "more than 0"),
        bad("walltime -2", document(job={"walltime": -2}), "job a: walltime: is -2"),
        bad("walltime null", document(job={"walltime": None}), "job a: walltime: is None"),
        bad("unknown profile", document(job={"profile": "q"}), "job a: profile", "unknown", "'q'"),
        bad("profile number", document(job={"profile": 1}), "job a: profile: is 1"),
        bad(
            "parenthesis",
            document(job={"id": "a(b"}),
            "job number 1",
            "'('",
            "an id without any of",
        ),
        bad("pipe", document(job={"id": "a|b"}), "'|'"),
        bad("newline", document(job={"id": "a\nb"}), "job number 1"),
        bad("prefix", document(job={"id": "w0!1"}), "'w0!1'", "the id without 'w0!'"),
        bad("empty id", document(job={"id": ""}), "job number 1", "invalid job id"),
        bad("no id", document(without=["id"]), "job number 1", "invalid job id"),
        bad("float id", document(job={"id": 1.0}), "invalid job id 1.0"),
        bad("delay negative", document(profile={"delay": -1}), "profile 'p': delay: is -1"),
        bad("delay zero", document(profile={"delay": 0}), "profile 'p': delay: is 0 (expected"),
        bad("delay below", document(profile={"delay": 4e-7}), "profile 'p': delay: is 4e-07"),
        bad("delay absurd", document(profile={"delay": 1e300}), "profile 'p': delay: is 1e+300"),
        bad("delay text", document(profile={"delay": "5"}), "profile 'p': delay: is '5'"),
        bad("ret text", document(profile={"ret": "1"}), "profile 'p': ret", "a whole number"),
        bad("profile no object", document(profiles={"p": 5}), "profile 'p'", "with a type"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, content, words):
    path = saved(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_workload(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_duplicate_ids_are_refused_also_as_int_and_string(tmp_path):
    raw = document()
    raw["jobs"] = [raw["jobs"][0] | {"id": 1}, raw["jobs"][0] | {"id": "1"}]
    with pytest.raises(InputError, match="job number 2 of the list: duplicate job id '1'"):
        read_workload(saved(tmp_path, raw))


@pytest.mark.parametrize("name", ["absent.json", "notgzip.json.gz", "binary.json"])
def test_an_unreadable_file_is_named(tmp_path, name):
    if name != "absent.json":
        (tmp_path / name).write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match=name):
        read_workload(tmp_path / name)


def test_golden_workload_is_read():
    workload = read_workload(beside("golden/node-stealing/mira-2018-11-ckpt.json.gz"))
    assert (workload.n_nodes, len(workload.jobs)) == (49152, 5321)
    assert workload.profiles["p10001"]["checkpoint_period"] == 14400.0
    assert workload.jobs[0] == Job("10001", 512, 0, 3900 * US, "p10001", {"priority": 0})


DEPENDENT = {"dependency": "afterok:1:2,afterany:x", "array": "1234%2", "account": "phys"}


def dependent(folder, *texts):
    """Return the path of a workload with jobs 1, 2, ... that have these dependencies."""
    jobs = [
        {"id": n, "subtime": 0, "res": 1, "profile": "p", "dependency": text}
        for n, text in enumerate(texts, 1)
    ]
    return saved(folder, document(jobs=jobs))


def test_dependencies_are_read_and_written(tmp_path):
    plain = document()["jobs"][0]
    rows = [plain | {"id": name} for name in (1, 2, "x")]
    path = saved(tmp_path, document(jobs=[*rows, plain | {"id": 3} | DEPENDENT]))
    workload = read_workload(path)
    assert workload.jobs[3].extra == DEPENDENT
    write_workload(workload, tmp_path / "again.json")
    assert read_workload(tmp_path / "again.json").jobs == workload.jobs


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (("afterok:2",), "job 1: dependency: names job '2', which is not in the workload"),
        (("after:3", "afterok:1", "afterany:2"), "dependency: is a cycle: "),
        (("afterok:1",), "job 1: dependency: is a cycle: 1 after 1"),
        (("singleton",), "job 1: dependency: is 'singleton' (expected KIND:ID"),
        (("afterok:2?afterok:3", "", ""), "is 'afterok:2?afterok:3' (expected KIND:ID"),
        (("afterok:",), "is 'afterok:'"),
        (("aftercorr:2", ""), "is 'aftercorr:2'"),
        ((12,), "job 1: dependency: is 12 (expected a text)"),
    ],
)
def test_an_invalid_dependency_names_the_job(tmp_path, texts, problem):
    with pytest.raises(InputError) as error:
        read_workload(dependent(tmp_path, *texts))
    assert problem in str(error.value)


@pytest.mark.parametrize("text", ["1234", "%2", "1234%0", "1234%-1", "1234%two"])
def test_an_invalid_array_names_the_job(tmp_path, text):
    with pytest.raises(InputError, match=f"job a: array: is {text!r}"):
        read_workload(saved(tmp_path, document(job={"array": text})))
