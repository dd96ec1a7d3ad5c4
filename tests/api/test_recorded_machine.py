# SPDX-License-Identifier: Apache-2.0
"""Notes on what a simulation lacks, compared with the recorded machine."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import rebat
from rebat.api.remarks import of_partitions, of_waits
from rebat.api.workloads import load_workload
from rebat.cli.main import main
from rebat.studies.losses import recorded_losses
from tests.support.slurm_site import Truth, write_site

POOLED = "2 partitions with different nodes (wide: 28 nodes, narrow: 4 nodes)"
FAR = "the recorded mean wait of the jobs is"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("site")
    return folder / "jobs.json", imported(folder, write_site(folder, per_lane=20))


def imported(folder: Path, truth: Truth) -> Truth:
    main(["workload", "import", str(truth.jobs), "--events", str(truth.events),
          "-o", str(folder / "jobs.json"), "--schedule", str(folder / "past")])  # fmt: skip
    return truth


def test_the_workload_has_the_recorded_mean_wait(site: tuple[Path, Truth]) -> None:
    jobs, truth = site
    workload = load_workload(jobs)
    assert workload.machine["mean_wait_s"] == pytest.approx(truth.wait_s, abs=1e-3)
    past = recorded_losses(jobs.parent / "past", workload, lambda *_: [])
    assert past.wait_s == pytest.approx(truth.wait_s)


@pytest.mark.slow
def test_run_notes_pooled_partitions_and_waits_far_from_the_record(
    site: tuple[Path, Truth], tmp_path: Path, capsys
) -> None:
    jobs, truth = site
    arguments = ["run", str(jobs), "-p", "easy", "-p", "baseline"]
    main([*arguments, "--out", str(tmp_path / "one")])
    first = capsys.readouterr().err
    main([*arguments, "--mtbf", "3000d", "--seeds", "2", "--out", str(tmp_path / "two")])
    for printed in (first, capsys.readouterr().err):
        assert POOLED in printed and "rebat calibrate" in printed
        assert f"{FAR} {rebat.core.numbers.duration(truth.wait_s)}" in printed
        assert "under easy" in printed and "under baseline" in printed
    rebat.run(load_workload(jobs), "easy")
    printed = capsys.readouterr().err
    assert POOLED in printed and FAR in printed


@pytest.mark.slow
def test_advise_notes_both(site: tuple[Path, Truth], tmp_path: Path, capsys) -> None:
    jobs, _ = site
    main(["advise", str(jobs), "--mtbf", "10d", "--seeds", "1", "--out", str(tmp_path / "out")])
    printed, page = capsys.readouterr().err, (tmp_path / "out/advice.md").read_text()
    for text in (POOLED, FAR):
        assert text in printed and text in page


def test_no_note_if_the_machine_is_as_recorded(tmp_path: Path, capsys) -> None:
    """All jobs have the same nodes, and no job waits."""
    imported(tmp_path, write_site(tmp_path, per_lane=10, fails=0.0, lanes=(4,), wait_s=0))
    main(["run", str(tmp_path / "jobs.json"), "-p", "easy", "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().err
    assert "partitions" not in printed and FAR not in printed


def test_partitions_on_the_same_nodes_are_one_machine() -> None:
    workload = load_workload("toy")
    for partitions, notes in (
        ({"all": "n[1-8]", "debug": "n[1-8]"}, 0),
        ({"all": "n[1-8]", "debug": "n[1-2]"}, 1),
        ({f"p{n}": f"n{n}" for n in range(1, 9)}, 1),
    ):
        machine = {"nodes": "n[1-8]", "partitions": partitions}
        changed = msgspec.structs.replace(workload, machine=machine)
        assert len(found := list(of_partitions(changed))) == notes
        assert ("and 3 more" in "".join(text for _, text in found)) == (len(partitions) == 8)
    assert list(of_partitions(workload)) == []
    (note,) = of_partitions(changed, 4)
    assert "a single pool of nodes, because it has 4 nodes instead of 8" in note.text


def test_a_note_only_if_all_policies_are_far_from_the_record() -> None:
    hour = 3600.0
    assert next(iter(of_waits(5.1 * hour, {"easy": hour}))).text.startswith(f"{FAR} 5.1 h")
    assert len(list(of_waits(hour, {"easy": 5 * hour}))) == 1
    assert list(of_waits(hour, {"easy": 5 * hour, "baseline": hour})) == []
    assert list(of_waits(20.0, {"easy": 0.0})) == []  # a few seconds do not matter
    assert list(of_waits(None, {"easy": hour})) == list(of_waits(hour, {"easy": None})) == []
