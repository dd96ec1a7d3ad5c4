# SPDX-License-Identifier: Apache-2.0
"""What changes the decisions of ``rebat run`` also reaches ``rebat serve``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.failures import generate
from rebat.cli.main import main
from rebat.cli.serve import _conversation, serve
from rebat.cli.workload import prepare
from rebat.core.errors import InputError
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.failures.events import read_events
from rebat.policies.options import COUNTS, configure
from rebat.results.files.batsim_csv import jobs_csv
from rebat.runs.scenario import MEASURED, OPTIONS
from rebat.wire.conversation import run_remote
from rebat.workloads.load import load_workload
from tests.support.pages import ROOT

GIVEN_TO_BATSIM = {
    "nodes": "the platform",
    "operations": "a second file of --events or --ee",
    "failures": "the file of --events or --ee",
    "begin": "an event file that begins later",
}
"""Options whose value Batsim receives in another form, as docs/how-to/batsim.md lists them."""


def parameters(command) -> set[str]:
    return {str(parameter.name) for parameter in command.params}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_of_a_scenario_has_a_way_to_a_real_batsim(name: str) -> None:
    """Options of measures change no decision. The others are options of the commands that write
    Batsim's inputs, or of serve; the page lists the rest."""
    inputs = parameters(generate) | parameters(prepare)
    if name in MEASURED or name in inputs or name in parameters(serve):
        return
    page = (ROOT / "docs/how-to/batsim.md").read_text()
    assert name in GIVEN_TO_BATSIM
    assert f"`--{name}`" in page


def test_options_of_sessions_are_options_of_serve() -> None:
    assert set(COUNTS) <= parameters(serve) & set(OPTIONS)


WORKLOAD = {
    "nb_res": 4,
    "machine": {"nodes": "n[1-4]", "partitions": {"a": "0-1", "b": "2-3"}},
    "profiles": {"d": {"type": "delay", "delay": 10}, "e": {"type": "delay", "delay": 4}},
    "jobs": [
        {"id": str(number), "subtime": number // 3, "res": 1 + number % 2, "walltime": 20,
         "profile": "de"[number % 3 == 0], "queue": "ab"[number % 5 < 2]}
        for number in range(12)
    ],
}  # fmt: skip

EVENTS = [
    {"type": "machine_unavailable", "resources": "0-1", "timestamp": 3},
    {"type": "machine_available", "resources": "0-1", "timestamp": 5},
    {"type": "machine_unavailable", "resources": "0 2", "timestamp": 9},
    {"type": "machine_available", "resources": "0 2", "timestamp": 14},
    {"type": "machine_unavailable", "resources": "1-3", "timestamp": 21},
    {"type": "machine_available", "resources": "1-3", "timestamp": 30},
]


def inputs(folder: Path) -> tuple[Path, Path]:
    files = folder / "w.json", folder / "f.events"
    files[0].write_text(json.dumps(WORKLOAD))
    files[1].write_text("\n".join(map(json.dumps, EVENTS)))
    return files


@pytest.mark.parametrize("policy", ["easy", "baseline", "greedy:order=shortest"])
@pytest.mark.parametrize("most", [1, 2, 10_000])
def test_a_served_run_has_the_attempts_and_partitions_of_a_run(policy, most, tmp_path) -> None:
    """Partitions come from the workload, which serve reads where Batsim says it is."""
    file, events = inputs(tmp_path)
    main(["run", str(file), "-p", policy, "--failures", str(events), "--out", str(tmp_path / "o"),
          "--max-attempts", str(most)])  # fmt: skip
    (expected,) = (tmp_path / "o").glob("*/jobs.csv")
    conversation = _conversation(policy, {"max_attempts": most}, 4, False)
    options = EngineOptions(acknowledge_dynamic_jobs=True, workload_path=str(file))
    engine = Engine(load_workload(file), events=read_events(events), options=options)
    run_remote(engine, conversation.answer)
    assert list(jobs_csv(engine.ended)) == expected.read_text().splitlines()
    assert conversation.session is not None
    assert conversation.session.options.max_attempts == most


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
def test_invalid_counts(key: str, value) -> None:
    with pytest.raises(InputError, match=f"option {key} is"):
        configure("easy", {key: value})


def test_a_true_run_time_that_needs_a_network_is_an_error_that_does_not_name_batsim(
    tmp_path: Path,
) -> None:
    """``serve`` already runs with Batsim: the user needs another prediction."""
    profile = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6}
    document = {
        "nb_res": 2, "profiles": {"p": profile},
        "jobs": [{"id": "1", "subtime": 0, "res": 1, "walltime": 9, "profile": "p"}],
    }  # fmt: skip
    message = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": {
        "nb_resources": 2, "config": {}, "workloads": {}, "profiles": {"w0": {"p": profile}},
    }}]}  # fmt: skip
    job = {**document["jobs"][0], "id": "w0!1"}
    submitted = {"now": 0.0, "events": [
        {"timestamp": 0.0, "type": "JOB_SUBMITTED", "data": {"job_id": "w0!1", "job": job}},
    ]}  # fmt: skip
    conversation = _conversation("easy:predict=actual", {}, 4, False)
    conversation.answer(json.dumps(message).encode())
    with pytest.raises(InputError) as error:
        conversation.answer(json.dumps(submitted).encode())
    assert "its true run time is unknown: profile 'p'" in str(error.value)
    assert "another prediction than predict=actual" in str(error.value)
    assert "with Batsim" not in str(error.value)
