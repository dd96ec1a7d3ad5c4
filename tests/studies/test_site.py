# SPDX-License-Identifier: Apache-2.0
"""The chain from records to a page, on a site whose truth is known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
import pytest

import rebat
from rebat.cli.main import main
from rebat.results.files.tables import Rows
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.calibration.design import POLICIES
from rebat.studies.calibration.distance import Unexplained
from rebat.studies.calibration.explained import losses_of, sentence_on_losses, sentence_on_rest
from rebat.studies.losses import recorded_losses
from rebat.studies.whatif.question import CONTROLS, started
from rebat.workloads.checkpoint_table import UsualCosts
from rebat.workloads.site import Site, read_site, write_site
from tests.support.amount import few
from tests.support.operator_site import (
    CHECKPOINTING,
    PARTITIONS,
    SiteTruth,
    made_failures,
    made_jobs,
    made_site,
    played,
)

PRICE = '\n[price]\nnode_hour = 0.5\ncurrency = "USD"\n'


def imported(folder: Path) -> None:
    """Follow the how-to pages up to the failures."""
    records = [str(folder / name) for name in ("jobs.txt", "events.txt", "partitions.txt")]
    jobs, past, events = (str(folder / name) for name in ("jobs.json.gz", "past", "site.events"))
    main(
        ["workload", "import", records[0], "--events", records[1], "--partitions", records[2],
         "-o", jobs, "--schedule", past]
    )  # fmt: skip
    main(["failures", "import", records[1], "--workload", jobs, "-o", events])


def calibrated(folder: Path) -> rebat.studies.calibration.calibrated.Calibration:
    return rebat.calibrate(
        folder / "jobs.json.gz", folder / "past", POLICIES, workers=1,
        failures=rebat.failures(file=folder / "site.events"),
        checkpoints=folder / "checkpoints.csv",
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SiteTruth]:
    """The folder of a site whose records are imported and calibrated."""
    folder = tmp_path_factory.mktemp("site")
    truth = made_site(7, folder, days=12, mtbf_days=20.0)
    imported(folder)
    calibrated(folder).write(folder / "calibration")
    text = (folder / "calibration/site.toml").read_text()
    (folder / "calibration/site.toml").write_text(text + PRICE)
    return folder, truth


def test_the_import_and_the_losses_are_right_to_the_last_record(site) -> None:
    folder, truth = site
    jobs = rebat.load_workload(folder / "jobs.json.gz")
    assert {job.id for job in jobs.jobs} == {str(job.name) for job in truth.jobs}
    stated = {name: row["nodes"] for name, row in jobs.machine["partitions"].items()}
    assert stated == {"short": "c[001-048]", "long": "c[049-120]", "gpu": "c[121-160]"}
    with_table = rebat.load_workload(folder / "calibration/site.toml")
    lost = recorded_losses(folder / "past", jobs, lambda n, until: [], with_table)
    by_queue = {group.name: group.lost_h for group in lost.groups if group.kind == "queue"}
    for partition in PARTITIONS:
        if truth.lost_h(partition):
            assert by_queue[partition] == pytest.approx(truth.lost_h(partition), rel=0.03)
    assert lost.lost_h == pytest.approx(truth.lost_h(), rel=0.03)


def test_the_site_states_the_truth(site) -> None:
    folder, _ = site
    described = read_site(folder / "calibration/site.toml")
    assert described.scheduler.policy == "easy" and described.partitions is None
    assert described.file("jobs") == folder / "jobs.json.gz"
    assert {row.owners["user"] for row in described.rows(UsualCosts())} == set(CHECKPOINTING)


@pytest.mark.slow
@pytest.mark.sampled
def test_the_truth_is_found(tmp_path: Path) -> None:
    """EASY in partitions is the nearest configuration, or not significantly farther."""
    for seed in range(few(20)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made_site(seed, folder, days=20, mtbf_days=20.0)
        imported(folder)
        rows = {row.title: row for row in calibrated(folder).verdict.configurations}
        truth = rows["easy in partitions"]
        assert truth.farther is None or truth.as_near, (seed, truth)


def test_other_commands_read_the_site(site, tmp_path: Path, capsys) -> None:
    folder, _ = site
    file = str(folder / "calibration/site.toml")
    main(["run", file, "--out", str(tmp_path / "run")])
    rows = Rows(tmp_path / "run/easy/rebat_attempts.csv", ("job_id", "nodes"))
    queues = {job.id: job.extra["queue"] for job in rebat.load_workload(file).jobs}
    for name, nodes in zip(rows.names("job_id"), rows.texts("nodes"), strict=True):
        first, end = PARTITIONS[queues[name]]
        numbers = [int(number) for number in re.findall(r"\d+", nodes)]
        assert all(first <= number < end for number in numbers)
    used = json.loads((tmp_path / "run/easy/summary.json").read_text())
    assert "site.events" in json.dumps(used) and used["metrics"]["platform"]["waste_failure"] > 0
    main(["sweep", file, "--over", "load=0.8,1", "--seeds", "2", "--out", str(tmp_path / "sweep")])
    assert "easy" in (tmp_path / "sweep/sweep.csv").read_text()
    capsys.readouterr()
    main(["site", "check", file])
    printed = capsys.readouterr().out
    assert re.search(r"partitions   gpu( \(max time 1d\))? 40 nodes, long", printed)
    assert f"next: rebat advise {file} --out advice" in printed
    assert "missing: time_zone" in printed and "missing: price" not in printed


@pytest.mark.slow
def test_the_page_for_decisions(site, tmp_path: Path, capsys) -> None:
    folder, truth = site
    file, out = str(folder / "calibration/site.toml"), tmp_path / "advice"
    command = ["advise", file, "--seeds", "5", "--minutes", "20", "--out", str(out), "--anonymous"]
    main([*command, "--workers", "1"])
    assert "summary.html" in capsys.readouterr().out
    page, numbers = (
        (out / "summary.html").read_text(),
        json.loads((out / "advice.json").read_text()),
    )
    recorded = numbers["recorded"]
    assert recorded["lost_h"] == pytest.approx(truth.lost_h(), rel=0.03)
    month = recorded["lost_h"] / recorded["span_h"] * 720
    assert f"{month:,.0f} node-hours of work per month ({month / 2:,.0f} USD)" in page
    assert "2023-11-14 to 2023-1" in page and "walltimes: exact" in page
    for name in ("repair time", "checkpoint cost", "load", "idle nodes", "policy"):
        assert f"{name}: " in page, name
    assert (out / "summary.pdf").read_bytes().startswith(b"%PDF")
    for text in (page, (out / "advice.html").read_text(), json.dumps(numbers)):
        assert not re.search(r"user\d\d", text)


@pytest.mark.slow
def test_what_is_promised_happens(tmp_path: Path) -> None:
    """Checkpoints of all jobs, and shortest jobs first, applied to the generator.

    The interval of the advice meets the mean over new failures, plus or minus two errors.
    """
    truth = made_site(3, tmp_path, days=20, mtbf_days=20.0)
    imported(tmp_path)
    advice = rebat.advise(
        tmp_path / "jobs.json.gz", past=tmp_path / "past", checkpoints=tmp_path / "checkpoints.csv",
        failures=rebat.failures(file=tmp_path / "site.events"), most_seeds=8, minutes=30,
        out=tmp_path / "advice", workers=2, checkpoint_cost="60s", recovery_cost="60s",
    )  # fmt: skip
    until = max(job.submit for job in truth.jobs)
    mtbf_s = until / len(truth.failures)
    everyone = tuple({job.user for job in truth.jobs})
    saved, flows = [], []
    for seed in range(8):
        failures = made_failures(1000 + seed, 160, until, 20.0)
        plain = played(made_jobs(3, 20), failures, checkpointing=())
        saving = played(made_jobs(3, 20), failures, checkpointing=everyone, mtbf_s=mtbf_s)
        today = played(made_jobs(3, 20), failures)
        shorter = played(made_jobs(3, 20), failures, shortest=True)
        saved.append(plain.lost_h() - saving.lost_h())
        flows.append(shorter.mean_flow / today.mean_flow)
    figures = {(f.name, f.metric): f for answer in advice.answers for f in answer.figures}
    promised = figures["saved", "platform_waste_failure"]
    assert meets(promised, saved), (promised, saved)
    promised = figures["EASY, shortest jobs first (easy:order=shortest)", "flow_mean_s"]
    assert meets(promised, flows), (promised, flows)


def meets(promised: Any, values: list[float]) -> bool:
    error = 2 * stdev(values) / len(values) ** 0.5
    return promised.low <= fmean(values) + error and promised.high >= fmean(values) - error


def test_what_if_does_not_change_the_nodes_of_a_machine_with_partitions(site) -> None:
    folder, _ = site
    options = ScenarioOptions(mtbf=7200.0, downtime=3600.0)
    jobs = rebat.load_workload(folder / "calibration/site.toml")
    offered = {}
    for workload in (jobs, rebat.load_workload("toy")):
        question = started(workload, "w", options, ("easy", "sfsj"))
        offered[workload.name] = [c.name for c in CONTROLS if len(c.offered(question)) > 1]
    assert "nodes" in offered["toy"] and "nodes" not in offered["jobs"]
    assert "load" in offered["jobs"]


# ---- the file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "missing required field `jobs`"),
        ("jobs = 3", "jobs: expected `str`, got `int`"),
        ('jobs = "jobs.json"\nnodes = 4', "unknown field `nodes`"),
        ('jobs = "jobs.json"\npartitions = "all"', "partitions: is 'all'"),
        ('jobs = "no.json"', "no.json"),
        ('jobs = "jobs.json"\n[scheduler]\npolicy = "esay"', "unknown policy 'esay'"),
        ('jobs = "jobs.json"\nfailures = "no.events"', "no.events"),
        ('jobs = "jobs.json"\n[partitions]\na = { nodes = "m[1-2]" }', "contains m1"),
        ('jobs = "jobs.json"\n[partitions]\na = { nodes = "n1", order = "late" }', "order 'late'"),
        ('jobs = "jobs.json"\n[[checkpoints]]\nuser = "a"\nperiod = "soon"', "period is 'soon'"),
        ('jobs = "jobs.json"\n[[checkpoints]]\nuserr = "a"\nperiod = "1h"', "the field 'userr'"),
        ('jobs = "jobs.json"\n[[checkpoints]]\nuser = "a"', "row 1: has no period"),
        ('jobs = ""', "jobs: is ''"),
        ('jobs = "a\\u0000b"', "jobs: is"),
        (
            'jobs = "jobs.json"\n[partitions]\na = { nodes = "n1", max_nodes = -1 }',
            "site.toml: partition 'a': max_nodes: is '-1'",
        ),
        ('jobs = "jobs.json"\n[partitions]\na = { nodes = "n1", order = "a+b:all" }', "order: is"),
        ("jobs = [", "is not TOML"),
    ],
)
def test_an_invalid_site_is_an_error_of_one_line(text, words, tmp_path: Path, capsys) -> None:
    write_small(tmp_path)
    (tmp_path / "site.toml").write_text(text)
    with pytest.raises(SystemExit) as exit_:
        main(["site", "check", str(tmp_path / "site.toml")])
    assert exit_.value.code == 2
    printed = capsys.readouterr().err
    assert words in printed and printed.count("\n") == 1, printed


def write_small(folder: Path) -> None:
    """Write a workload of three jobs on named nodes."""
    document = {
        "nb_res": 4,
        "machine": {"nodes": "n[1-4]"},
        "jobs": [
            {"id": str(i), "res": 1, "subtime": i, "walltime": 9, "profile": "d", "queue": "a"}
            for i in range(3)
        ],
        "profiles": {"d": {"type": "delay", "delay": 5}},
    }
    (folder / "jobs.json").write_text(json.dumps(document))


def test_a_written_site_is_read_again(tmp_path: Path) -> None:
    text = """title = "A \\"site\\""
jobs = "jobs.json"
[partitions]
"a b" = { nodes = "n[1-2]", tier = 2, max_time = "1h" }
[price]
node_hour = 0.25
"""
    (tmp_path / "site.toml").write_text(text)
    made = read_site(tmp_path / "site.toml")
    (tmp_path / "again.toml").write_text(write_site(made, {"title": "a name", "price": "# none"}))
    assert read_site(tmp_path / "again.toml") == made
    assert isinstance(made, Site) and made.price.currency == "EUR"


def test_a_changed_table_of_checkpoints_is_another_workload(tmp_path: Path) -> None:
    write_small(tmp_path)
    table = tmp_path / "c.csv"
    (tmp_path / "site.toml").write_text('jobs = "jobs.json"\ncheckpoints = "c.csv"\n')
    hashes = set()
    for period in ("1s", "2s"):
        table.write_text(f"queue,period,cost\na,{period},1s\n")
        loaded = rebat.load_workload(tmp_path / "site.toml")
        assert loaded.profiles[loaded.jobs[0].profile]["checkpoint_period"] == float(period[0])
        hashes.add(loaded.sha256)
    assert len(hashes) == 2


# ---- sentences


def test_losses_that_differ_are_stated() -> None:
    jobs = rebat.load_workload("synthetic-small")
    lost = {job.id: 10.0 for job in jobs.jobs}
    equal = losses_of(jobs, lost, lost)
    assert equal[0].recorded_h == equal[0].simulated_h == 10.0 * len(jobs.jobs)
    doubled = losses_of(jobs, lost, dict.fromkeys(lost, 20.0))
    (text,) = sentence_on_losses(doubled)
    assert "is significant: the simulated losses are too high" in text
    (text,) = sentence_on_losses(equal)
    assert "is small: simulated losses agree with the record" in text
    assert [*sentence_on_losses([])] == []


def test_the_parts_that_are_explained_least_are_named() -> None:
    rows = [
        Unexplained("partition", "gpu", 90, 3.0, 0.7, 2.0),
        Unexplained("partition", "cpu", 90, 1.1, 0.3, 1.0),
        Unexplained("hour", "08:00", 50, 4.0, 0.01, 0.5),
        Unexplained("hour", "09:00", 50, 2.0, 0.99, 0.5),
    ]
    assert [*sentence_on_rest(rows)] == [
        "These parts of the record are explained least: partition gpu (factor 3.0, recorded waits "
        "are longer), submissions from 09:00 (factor 2.0, recorded waits are shorter)."
    ]
    assert [*sentence_on_rest([])] == []
    assert msgspec.to_builtins(rows[0])["share"] == 0.7
