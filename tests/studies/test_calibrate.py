# SPDX-License-Identifier: Apache-2.0
"""Calibration finds the configuration behind a record, and its distances are exact."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr, wasserstein_distance

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError, PolicyError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import write_events
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Poisson
from rebat.studies.calibration.design import _fewer
from rebat.studies.calibration.distance import (
    N_PARTS,
    RecordedWaits,
    distribution_distance,
    logarithm,
    nearness,
    rank_correlation,
    same_order,
)
from rebat.workloads.machine import StatedPartition

POLICIES = ("baseline", "easy", "easy:order=shortest")
WAITS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=40
)


def waits_of(rows) -> tuple[RecordedWaits, np.ndarray]:
    """Return recorded and simulated waits from rows of (submission, wait, simulated wait)."""
    submit, wait, simulated = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    n = len(rows)
    names = np.array([str(i) for i in range(n)], dtype=object)
    queue = np.array(["q"] * n, dtype=object)
    return RecordedWaits(names, submit, wait, np.ones(n, dtype=np.int64), queue, queue), simulated


@given(rows=WAITS)
def test_distances_equal_those_of_scipy(rows) -> None:
    recorded, simulated = waits_of(rows)
    expected = wasserstein_distance(logarithm(recorded.wait_s), logarithm(simulated))
    assert distribution_distance(recorded.wait_s, simulated) == pytest.approx(expected, abs=1e-9)
    assert distribution_distance(simulated, simulated[::-1]) == 0
    if len(set(recorded.wait_s)) > 1 and len(set(simulated)) > 1:
        rho = spearmanr(recorded.wait_s, simulated)[0]
        assert rank_correlation(recorded.wait_s, simulated) == pytest.approx(rho)
    else:
        assert math.isnan(rank_correlation(recorded.wait_s, simulated))


@given(rows=WAITS)
def test_the_order_of_starts_equals_a_slow_count(rows) -> None:
    recorded, simulated = waits_of(rows)
    columns = zip(recorded.submit_s, recorded.wait_s, simulated, strict=True)
    jobs = sorted(columns, key=lambda job: job[0])
    same = pairs = 0
    for i, (submit, wait, mine) in enumerate(jobs):
        for gap in (1, 2, 4, 8, 16, 32):
            if i + gap >= len(jobs):
                continue
            later, its_wait, its = jobs[i + gap]
            theirs = (later + its_wait) - (submit + wait)
            if later < submit + wait and its_wait > 0 and theirs:
                pairs += 1
                same += np.sign((later + its) - (submit + mine)) == np.sign(theirs)
    expected = same / pairs if pairs else math.nan
    assert same_order(recorded, simulated) == pytest.approx(expected, nan_ok=True)


def test_a_factor_of_two_is_two() -> None:
    """Recorded waits are 1 min, simulated ones 3 min; with a minute added they are 2 and 4 min."""
    rows = [(second, 60, 180) for second in range(200)]
    near = nearness(*waits_of(rows))
    assert set(near.distance.values()) == {1.0} and len(near.distance) == N_PARTS
    assert near.factor_of_job == 2.0


# ---- the configuration that made a record


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from rebat.workloads.batsim_json import write_workload
    from rebat.workloads.generate import synthetic

    file = tmp_path_factory.mktemp("calibrate") / "jobs.json"
    write_workload(synthetic(1, 400), file)
    return file


def record(workload: Path, folder: Path, policy: str, nodes: int | None = None) -> Path:
    """Write the run of a policy as a record of the past."""
    rebat.run(workload, policy, nodes=nodes).write(folder)
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_of_the_past_is_recognised(policy: str, workload: Path, tmp_path: Path) -> None:
    past = record(workload, tmp_path / "past", policy)
    nearest = rebat.calibrate(workload, past, POLICIES, workers=1).verdict.nearest
    assert (nearest.policy, nearest.nodes) == (policy, 128)
    assert (nearest.distance, nearest.factor_of_job, nearest.same_order) == (1.0, 1.0, 1.0)
    assert nearest.correlation == pytest.approx(1.0)


def test_missing_nodes_of_the_past_are_recognised(workload: Path, tmp_path: Path) -> None:
    """The past had 115 of 128 nodes, which is 90 % rounded down."""
    past = record(workload, tmp_path / "past", "easy", 115)
    result = rebat.calibrate(workload, past, POLICIES, workers=2)
    assert result.verdict.nearest.title == "easy on 90% of the nodes"
    assert result.verdict.nearest.distance == 1.0
    assert "easy on 90% of the nodes is nearest" in result.text
    second = result.verdict.configurations[1]
    assert second.farther > 1 and second.distance > 1
    again = rebat.calibrate(workload, past, POLICIES, workers=1)
    assert again.json == result.json


def test_the_command_writes_a_page_and_numbers(workload: Path, tmp_path: Path, capsys) -> None:
    past = record(workload, tmp_path / "past", "easy")
    out = tmp_path / "out"
    main(["calibrate", str(workload), str(past), "-p", "easy", "-p", "baseline", "--out", str(out)])
    assert capsys.readouterr().out.startswith("easy is nearest")
    numbers = json.loads((out / "calibration.json").read_text())
    assert numbers["verdict"]["configurations"][0]["title"] == "easy"
    html = (out / "calibration.html").read_text()
    assert "easy is nearest" in html and "<svg" in html and "Not modelled" in html
    with pytest.raises(SystemExit) as exit_:
        main(["calibrate", str(workload), str(past), "-p", "easy", "--out", str(out)])
    assert exit_.value.code == 2
    capsys.readouterr()
    main(["calibrate", str(workload), str(past), "-p", "easy", "--json"])
    assert json.loads(capsys.readouterr().out)["verdict"]["groups"][0]["group"] == "all"


def test_a_smaller_machine_leaves_out_failures_and_large_jobs(workload, tmp_path) -> None:
    """Node 127 and jobs of more than 102 nodes are not on the smallest machine."""
    document = json.loads(workload.read_text())
    document["jobs"][200]["res"] = 128
    jobs, events = tmp_path / "jobs.json", tmp_path / "f.events"
    jobs.write_text(json.dumps(document))
    kinds = (("machine_unavailable", 7_200.0), ("machine_available", 2_000_000.0))
    rows = [{"type": kind, "resources": "0 126-127", "timestamp": at} for kind, at in kinds]
    events.write_text("\n".join(map(json.dumps, rows)))
    failures = rebat.failures(file=events)
    rebat.run(jobs, "easy", failures=failures).write(tmp_path / "past")
    past = tmp_path / "past" / "easy"
    result = rebat.calibrate(jobs, past, "easy", failures=failures, workers=1)
    verdict = result.verdict
    fewer = [item for item in verdict.configurations if item.nodes < 128]
    assert len(fewer) == 4 and not verdict.failed
    assert verdict.nearest.jobs == verdict.recorded_jobs == fewer[0].jobs + 1
    assert f"leaves out 1 of {verdict.recorded_jobs} recorded jobs" in result.text
    assert verdict.nearest.utilisation == pytest.approx(verdict.utilisation)
    small = rebat.calibrate(jobs, past, "easy", workers=1, nodes=64)
    assert f"need more than {small.verdict.nearest.nodes} nodes" in small.text
    assert small.verdict.nearest.utilisation < 0.5


def test_sizes_are_multiples_of_the_cores_per_node(workload: Path, tmp_path: Path) -> None:
    past = record(workload, tmp_path / "past", "easy")
    result = rebat.calibrate(workload, past, "easy", workers=1, cores_per_node=16)
    assert {item.nodes for item in result.verdict.configurations} == {128, 112, 96}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: None, "has no recorded schedule"),
        (lambda text: text.replace("first_start", "begin"), "no column first_start"),
        (lambda text: "\n".join(text.splitlines()[:50]), "has 49 jobs"),
        (lambda text: text.replace("\n", "\nx", 390), "has 10 jobs"),
        (
            lambda text: text.replace("\n", "\na,1,0,zero,0,0,0,1,0,0,0,x\n", 1),
            "a number is invalid",
        ),
    ],
)
def test_an_invalid_record_is_an_error_of_one_line(damage, message, workload, tmp_path) -> None:
    past = record(workload, tmp_path / "past", "easy")
    file = past / "rebat_jobs.csv"
    changed = damage(file.read_text())
    if changed is None:
        file.unlink()
    else:
        file.write_text(changed)
    with pytest.raises(InputError, match=message) as error:
        rebat.calibrate(workload, past, "easy", workers=1)
    assert "\n" not in str(error.value)


def test_policies_that_fail_are_named(workload: Path, tmp_path: Path) -> None:
    past = record(workload, tmp_path / "past", "easy")
    lines = ("import rebat", "class Bad(rebat.Policy):", "    def plan(self, view, changes):")
    (tmp_path / "bad.py").write_text("\n".join((*lines, "        1 / 0\n")))
    bad = f"{tmp_path}/bad.py:Bad"
    result = rebat.calibrate(workload, past, ["easy", bad], workers=1)
    assert len(result.verdict.failed) == 1 and "failed: " in result.text
    with pytest.raises(PolicyError, match="no configuration can be compared"):
        rebat.calibrate(workload, past, bad, workers=1)


# ---- partitions


PARTITIONS = {"a": "n[1-64]", "b": "n[65-128]", "b-short": "n[65-96]"}


def partitioned(workload: Path, folder: Path, partitions: dict[str, str]) -> Path:
    """Write the workload on a machine with partitions; jobs name them one after another."""
    document = json.loads(workload.read_text())
    names = list(PARTITIONS)
    for number, job in enumerate(document["jobs"]):
        job["queue"] = names[number % 3]
        job["res"] = min(job["res"], 32)
    document["machine"] = {"nodes": "n[1-128]", "partitions": partitions}
    path = folder / "partitioned.json"
    path.write_text(json.dumps(document))
    return path


def past_of_parts(workload: Path, folder: Path) -> Path:
    """Write the past of two machines of 64 nodes, one per group of partitions."""
    import pandas as pd

    loaded = rebat.load_workload(workload)
    frame, rows = loaded.frame, []
    for queues in (["a"], ["b", "b-short"]):
        part = rebat.load_workload(frame[frame["queue"].isin(queues)], n_nodes=64, name=queues[0])
        rows.append(rebat.run(part, "easy").jobs)
    folder.mkdir()
    jobs = pd.concat(rows)
    jobs["job_id"] = jobs["job_id"].str.removeprefix("w0!")
    jobs.to_csv(folder / "rebat_jobs.csv", index=False)
    return folder


def test_separate_partitions_are_recognised(workload: Path, tmp_path: Path) -> None:
    jobs = partitioned(workload, tmp_path, PARTITIONS)
    past = past_of_parts(jobs, tmp_path / "past")
    result = rebat.calibrate(jobs, past, POLICIES, workers=1)
    assert result.verdict.nearest.title == "easy in partitions"
    assert (result.verdict.nearest.distance, result.verdict.nearest.same_order) == (1.0, 1.0)


@pytest.mark.parametrize(
    "partitions",
    [
        {},
        {"a": "n[1-128]", "b": "n[65-128]", "b-short": "n[65-96]"},  # partitions share nodes
        {"a": "n[1-64]", "b": "n[65-128]"},  # jobs of b-short have no partition
        {"a": "n[1-8]", "b": "n[65-128]", "b-short": "n[65-96]"},  # a is too small for its jobs
    ],
)
def test_other_partitions_are_one_machine(partitions, workload: Path, tmp_path: Path) -> None:
    from rebat.workloads.machine import partitions_in_use

    assert partitions_in_use(rebat.load_workload(partitioned(workload, tmp_path, partitions))) == []


def test_partitions_failures_and_missing_nodes_are_recognised_together(workload, tmp_path) -> None:
    """The past lacked a tenth of the nodes of each partition, and nodes failed."""
    jobs = partitioned(workload, tmp_path, PARTITIONS)
    kept = "a:0-56+b:64-120+b-short:64-120"
    events = generate_events(Poisson(20_000.0, 40_000.0), 128, horizon_s=1e7, seed=3)
    write_events(events, tmp_path / "f.events")
    failures = rebat.failures(file=tmp_path / "f.events")
    rebat.run(jobs, f"easy:partitions={kept}", failures=failures).write(tmp_path / "past")
    past = next(path for path in (tmp_path / "past").iterdir() if path.is_dir())
    result = rebat.calibrate(jobs, past, POLICIES, failures=failures, workers=1)
    assert result.verdict.nearest.title == "easy in partitions, on 89% of the nodes"
    assert result.verdict.nearest.distance == 1.0


def test_fewer_nodes_leave_each_partition_some() -> None:
    rows = [
        StatedPartition("a", "", NodeSet.parse("8-9"), {}, True),
        StatedPartition("b", "", NodeSet.parse("0-9"), {"tier": 2}, True),
    ]
    assert _fewer(rows, 0.8) == ("a:8+b:0-5 8:2", 7)
