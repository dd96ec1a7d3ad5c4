# SPDX-License-Identifier: Apache-2.0
"""The commands of `rebat workload`."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.jobs import Job, Workload
from rebat.workloads.batsim_json import read_workload, write_workload
from rebat.workloads.generate import synthetic

ROOT = Path(__file__).parents[2]
SMALL = str(ROOT / "workloads/synthetic-small.json")
EVENTS = str(ROOT / "failure_events/synthetic-small.events")

PREPARATIONS = {
    "checkpoints": (
        ["--checkpoint", "young-daly", "--mtbf", "20min", "--checkpoint-cost", "70s",
         "--recovery-cost", "11s"], ["baseline", "sfsj", "h213"],
    ),
    "fewer checkpoints on a larger machine": (
        ["--checkpoint", "young-daly", "--mtbf", "1h", "--checkpoint-rounding", "floor",
         "--nodes", "200"], ["easy-sfsj"],
    ),
    "errors": (["--silent-errors", "1e-5", "--seed", "3"], ["r-list-q", "baseline"]),
    "both": (
        ["--checkpoint", "young-daly", "--mtbf", "30min", "--silent-error-probability", "0.2"],
        ["r-shelf-b", "sfsj:silent_errors=retry"],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments: str) -> str:
    """Run a command that fails, and return its error output with exactly one error line."""
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    told = capsys.readouterr().err
    assert exit_.value.code == 2
    assert sum(line.lower().find("error:") >= 0 for line in told.splitlines()) == 1, told
    return told


@pytest.mark.parametrize("kind", ["perfect", "young-daly", "tiers:auto"])
@pytest.mark.parametrize(
    "profile",
    [
        {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
        {"type": "composed", "seq": ["d", "d"]},
    ],
)
def test_every_kind_of_checkpoints_needs_delay_profiles(kind: str, profile: dict, capsys) -> None:
    """Otherwise, some jobs would silently restart from the beginning."""
    profiles = {"d": {"type": "delay", "delay": 5}, "p": profile}
    jobs = (Job("1", 1, 0, None, "d"), Job("2", 1, 0, None, "p"))
    write_workload(Workload("w", 2, jobs, profiles), Path("plain.json"))
    mtbf = [] if kind == "perfect" else ["--mtbf", "1h"]
    mtbf += ["--tiers", "remote=1s/2s"] if kind == "tiers:auto" else []
    error = refused(
        capsys, "workload", "prepare", "plain.json", "--checkpoint", kind, *mtbf, "-o", "out.json"
    )
    kind_of = f"the profile type is '{profile['type']}', which allows no checkpoints"
    assert f"job 2: {kind_of} (expected a delay profile)" in error
    assert not Path("out.json").exists()


@pytest.mark.parametrize("name", PREPARATIONS)
def test_a_run_of_what_is_prepared_is_the_same_run(name: str) -> None:
    options, policies = PREPARATIONS[name]
    write_workload(synthetic(0, 100), Path("plain.json"))
    main(["workload", "prepare", "plain.json", *options, "-o", "prepared.json.gz"])
    chosen = [argument for policy in policies for argument in ("-p", policy)]
    main(["run", "plain.json", *options, *chosen, "--failures", EVENTS, "--out", "one"])
    main(["run", "prepared.json.gz", *chosen, "--failures", EVENTS, "--out", "other"])
    tables = sorted(Path("one").glob("*/jobs.csv"))
    assert len(tables) == len(policies)
    for table in tables:
        again = Path("other") / table.relative_to("one")
        assert again.read_bytes() == table.read_bytes()
        main(["validate", str(table), "--workload", "prepared.json.gz", "--events", EVENTS])
        with pytest.raises(SystemExit) as exit_:  # jobs have other lengths, or must not fail
            main(["validate", str(table), "--workload", "plain.json", "--events", EVENTS])
        assert exit_.value.code == 1


def test_what_is_prepared_says_how(folder: Path) -> None:
    options, _ = PREPARATIONS["fewer checkpoints on a larger machine"]
    write_workload(synthetic(0, 100), Path("plain.json"))
    main(["workload", "prepare", "plain.json", *options, "-o", "prepared.json"])
    document = json.loads(Path("prepared.json").read_text())
    assert document["nb_res"] == 200
    assert document["notes"][-1] == (
        "prepared for 200 nodes: young-daly checkpoints, MTBF 3600 s, checkpoint 300 s, "
        "recovery 300 s, floor"
    )


def test_checkpoints_are_not_added_twice(capsys) -> None:
    options = ["--checkpoint", "young-daly", "--mtbf", "9h"]
    for command in (["workload", "prepare", SMALL, "-o", "again.json"],
                    ["run", SMALL, "-p", "baseline", "--out", "again"]):  # fmt: skip
        told = refused(capsys, *command, *options)
        assert "workload synthetic-small: profile delay2819.963296@1 already has chec" in told
    told = refused(capsys, "advise", SMALL, "--mtbf", "9h", "--out", "again")
    assert "already has checkpoints (expected a workload without checkpoints: " in told
    assert "--checkpoint:" not in told  # advise has no such option
    assert "'rebat workload prepare WORKLOAD --drop-checkpoints -o FILE'" in told
    assert not list(Path().iterdir())


def test_checkpoints_can_be_dropped_and_replaced(folder: Path, capsys) -> None:
    plain = synthetic(0, 100)
    write_workload(plain, Path("plain.json"))
    options = ["--checkpoint", "young-daly", "--mtbf", "20min", "--nodes", "128"]
    main(["workload", "prepare", "plain.json", *options, "-o", "often.json"])
    main(["workload", "prepare", "often.json", "--drop-checkpoints", "-o", "dropped.json"])
    dropped = read_workload(Path("dropped.json"))
    assert times(dropped) == times(plain) != times(read_workload(Path("often.json")))
    other = ["--checkpoint", "young-daly", "--mtbf", "5h", "--nodes", "128"]
    main(["workload", "prepare", "often.json", "--drop-checkpoints", *other, "-o", "again.json"])
    main(["workload", "prepare", "plain.json", *other, "-o", "once.json"])
    assert times(read_workload(Path("again.json"))) == times(read_workload(Path("once.json")))
    told = refused(
        capsys, "workload", "prepare", "plain.json", "--drop-checkpoints", "-o", "x.json"
    )
    assert "--drop-checkpoints: has no effect: the workload has no checkpoints" in told


def times(workload: Workload) -> list[tuple[str, int | None, float]]:
    """Return id, walltime and run time of each job."""
    return [
        (job.id, job.walltime_us, workload.profiles[job.profile]["delay"]) for job in workload.jobs
    ]


BAD_PREPARATIONS = {
    "nothing asked for": ([], "no preparation is requested"),
    "no period": (["--checkpoint", "young-daly"], "needs an MTBF"),
    "no checkpoints": (["--mtbf", "1h", "--silent-errors", "1e-6"], "--mtbf: has no effect"),
    "no cost": (["--checkpoint", "perfect", "--checkpoint-cost", "5min"], "cost: has no effect"),
    "no cost of tiers": (
        ["--checkpoint", "tiers:auto", "--mtbf", "9h", "--checkpoint-cost", "5min"],
        "--checkpoint-cost: has no effect",
    ),
    "no tiers": (
        ["--checkpoint", "young-daly", "--mtbf", "9h", "--tiers", "peer=1s/30s"],
        "--tiers: has no effect",
    ),
    "no seed": (["--checkpoint", "perfect", "--seed", "4"], "--seed: has no effect"),
    "no rate": (["--silent-errors", "nan"], "finite"),
    "an infinite rate": (["--silent-errors", "inf"], "finite"),
    "two kinds of errors": (
        ["--silent-errors", "1e-6", "--silent-error-probability", "0.1"], "contradicts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PREPARATIONS)
def test_bad_preparations(name: str, capsys) -> None:
    options, told = BAD_PREPARATIONS[name]
    assert told in refused(capsys, "workload", "prepare", SMALL, *options, "-o", "p.json")
    assert not Path("p.json").exists()


def test_describe_rejects_a_checkpoint_cost_without_an_mtbf(capsys) -> None:
    told = refused(capsys, "workload", "describe", SMALL, "--checkpoint-cost", "3min")
    assert "--checkpoint-cost: has no effect (expected --mtbf as well)" in told


RECORDS = "; MaxProcs: 8\n" + "".join(
    f"{number} {submit} 0 10 {used} -1 -1 {size} 60 -1 1 {'-1 ' * 7}\n"
    for number, submit, used, size in ((1, 0, 4, 2), (2, 100, 4, 2), (3, 200, 5, 3), (4, 300, 1, 1))
)


def imported(*options: str) -> list[tuple[str, int]]:
    """Import a small trace; return ids and sizes of its jobs."""
    Path("t.swf").write_text(RECORDS)
    main(["workload", "import", "t.swf", *options, "--force", "-o", "t.json"])
    jobs = json.loads(Path("t.json").read_text())["jobs"]
    return [(job["id"], job["res"]) for job in jobs]


def test_import_has_the_selections_of_campaigns(capsys) -> None:
    assert imported("--first", "100s", "--last", "5min") == [("2", 2), ("3", 3)]
    assert (
        "  2 of 4 records selected; counts of dropped and changed jobs refer to these"
        in capsys.readouterr().out
    )
    assert imported("--size", "allocated", "--max-jobs", "1") == [("1", 4)]


def test_the_last_submission_must_be_after_the_first(capsys) -> None:
    Path("t.swf").write_text(RECORDS)
    told = refused(
        capsys, "workload", "import", "t.swf", "--first", "3d", "--last", "2d", "-o", "t.json"
    )
    assert "option last: is 2 d, which is not after option first (expected more than 3 d)" in told


@pytest.mark.parametrize("name", ["k.txt", "k", "k.swf", "k.json.bz2", "k.gz"])
def test_a_workload_is_written_under_a_name_that_is_read(name: str, capsys) -> None:
    Path("t.swf").write_text(RECORDS)
    for verb in (["import", "t.swf"], ["generate", "synthetic"], ["prepare", SMALL]):
        assert "must end in .json, .json.gz or .parquet" in refused(
            capsys, "workload", *verb, "-o", name
        )
    assert not Path(name).exists()


def test_a_pipe_has_any_name() -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    main(["workload", "generate", "synthetic", "-o", "pipe"])
    reader.join()
    assert json.loads(read[0])["nb_res"] == 128


TWICE = {
    "--seed": ["workload", "generate", "synthetic", "--seed", "1", "--seed", "1", "-o", "w.json"],
    "--out": ["workload", "generate", "synthetic", "-o", "a.json", "--out", "b.json"],
    "--mtbf": ["run", SMALL, "-p", "easy", "--mtbf", "1h", "--mtbf=2h", "--out", "out"],
    "--tolerance": ["compare", "a", "b", "--tolerance", "1", "--allocations", "--tolerance", "2"],
    "--resubmits": ["validate", "--resubmits", "a", "--gives-up"],
    "--nodes": ["failures", "generate", "--nodes", "4", "--nodes", "5", "--mtbf", "1h"],
}


@pytest.mark.parametrize("option", TWICE)
def test_an_option_with_one_value_is_given_once(option: str, capsys) -> None:
    assert refused(capsys, *TWICE[option]) == (
        f"rebat: error: {option}: is given 2 times (expected once)\n"
    )
    assert not list(Path().iterdir())


def test_options_with_several_values_are_given_often() -> None:
    Path("t.swf").write_text("; UnixStartTime: 1541030656\n" + RECORDS)
    months = ["--month", "2018-11", "--month", "2018-12"]
    main(["workload", "import", "t.swf", *months, "-o", "t.json"])
    assert Path("t.json").exists()


FLEXIBLE = {
    "nb_res": 8,
    "jobs": [
        {"id": 1, "subtime": 0, "res": 4, "profile": "d"},
        {"id": 2, "subtime": 0, "res": 4, "profile": "s",
         "shape": {"kind": "moldable", "sizes": [2, 8]}},
        {"id": 3, "subtime": 9, "res": 4, "profile": "s",
         "shape": {"kind": "malleable", "min": 3, "max": 5}},
    ],
    "profiles": {
        "d": {"type": "delay", "delay": 5},
        "s": {"type": "delay", "delay": 5,
              "speedup": {"model": "table", "sizes": [1, 2, 4], "speeds": [1, 1.9, 3.5]}},
    },
}  # fmt: skip


def test_flexible_jobs_are_read_written_and_described(capsys) -> None:
    Path("f.json").write_text(json.dumps(FLEXIBLE))
    main(["workload", "describe", "f.json"])
    told = capsys.readouterr().out
    for line in (
        "rigid jobs                    1, on 4 to 4 nodes",
        "moldable jobs                 1, on 2 to 8 nodes",
        "malleable jobs                1, on 3 to 5 nodes",
        "speedups table                2 jobs",
    ):
        assert line in told
    main(["workload", "describe", "f.json", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["shapes"]["malleable"] == {"jobs": 1, "min": 3, "max": 5}
    write_workload(read_workload(Path("f.json")), Path("again.json"))
    again = json.loads(Path("again.json").read_text())
    assert again["profiles"] == FLEXIBLE["profiles"]
    assert [job.get("shape") for job in again["jobs"]] == [
        job.get("shape") for job in FLEXIBLE["jobs"]
    ]
