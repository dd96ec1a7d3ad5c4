# SPDX-License-Identifier: Apache-2.0
"""Dependencies and limits of arrays from records of Slurm and OpenPBS."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebat.core.jobs import Workload
from rebat.core.units import to_s
from rebat.policies.presets import preset
from rebat.records.dependencies import array_option, depend_attribute, dependency_option
from rebat.runs.single import simulate
from tests.accounting import test_recorded_eligible
from tests.accounting.test_recorded_eligible import POLICIES, calibrated, path_of, read
from tests.support.dependent import check_dependent
from tests.support.importing import import_accounting
from tests.support.pages import ROOT
from tests.support.recordings import beside


def fields(workload: Workload, *names: str) -> dict[str, tuple]:
    """Return these fields of the jobs that have one of them, by id."""
    rows = {job.id: tuple(job.extra.get(name, "") for name in names) for job in workload.jobs}
    return {job: values for job, values in rows.items() if any(values)}


@pytest.mark.parametrize(
    ("line", "dependency", "limit"),
    [
        ("sbatch --parsable -J chain-b -n 4 -d afterok:10", "afterok:10", ""),
        ("sbatch --dependency=afterany:1:2,after:3 a.sh", "afterany:1:2,after:3", ""),
        ("/usr/bin/sbatch --depend afterok:12_4 a.sh", "afterok:12_4", ""),
        ("sbatch -dafterok:12_* --array=1-6%2 a.sh", "afterok:12_*", "2"),
        ("sbatch -d singleton -J größe, x y", "singleton", ""),
        ("sbatch -d afterok:1 -d afterok:2?afterany:3", "afterok:2?afterany:3", ""),
        ("sbatch -d after:5+10 a", "after:5+10", ""),
        ("sbatch -a 0-9,12:3%4 a", "", "4"),
        ("sbatch --array=0-9:3 -p long", "", ""),
        ("sbatch -d 5 --deadline=now+1hour --comment don't", "", ""),
        ("echo -d afterok:1 --array=1-2%1", "", ""),
        ("", "", ""),
    ],
)
def test_options_in_a_command(line: str, dependency: str, limit: str) -> None:
    assert (dependency_option(line), array_option(line)) == (dependency, limit)


def test_the_attribute_of_openpbs() -> None:
    assert depend_attribute("afterok:7[].pbs.site@pbs.site:8.pbs,on:2") == "afterok:7[]:8,on:2"


def test_the_recorded_cluster() -> None:
    """Job 13 failed, so job 14 (afterok:13) never started, and is not in the workload."""
    workload = import_accounting("sacct", beside("golden/slurm/sacct-XD-ids-us.txt")).workload
    assert fields(workload, "dependency", "array") == {
        "11": ("afterok:10", ""),
        "12": ("afterok:11", ""),
        **{f"1_{task}": ("", "1%2") for task in range(1, 7)},
    }
    assert "2 jobs with dependencies on other jobs of the workload" in workload.notes
    assert "1 array with a limit of simultaneous tasks" in workload.notes


def with_commands(name: str, folder: Path) -> Path:
    """Return a record in which commands with dependencies and limits follow from the job names."""
    path = folder / "jobs.txt"
    with gzip.open(path_of(name), "rt", newline="") as file, path.open("w") as out:
        reader = csv.DictReader(file, delimiter="\x1f")
        names = [*(reader.fieldnames or ())]
        names.insert(len(names) - 1, "SubmitLine")
        writer = csv.DictWriter(out, names, delimiter="\x1f", quoting=csv.QUOTE_NONE)
        writer.writeheader()
        for row in reader:
            kind, *numbers = row["JobName"].split()
            options = {"array": f"--array=1-9%{':'.join(numbers)}",
                       "after": f"-d afterany:{':'.join(numbers)}"}.get(kind, "")  # fmt: skip
            writer.writerow({**row, "SubmitLine": f"sbatch {options} --wrap sleep 5"})
    return path


@pytest.mark.parametrize("name", ["multifactor", "basic"])
def test_dependencies_of_a_recorded_cluster_are_simulated(name: str, tmp_path: Path) -> None:
    """46 jobs depend on jobs or arrays, and 92 are tasks of arrays with limits."""
    path = with_commands(name, tmp_path)
    workload = import_accounting("sacct", path, submission="submitted").workload
    has = fields(workload, "dependency", "array")
    rows = read(name)
    assert sum(bool(dependency) for dependency, _ in has.values()) == 46
    assert {job for job, (_, array) in has.items() if array} == {job for job in rows if "_" in job}
    assert "11 arrays with a limit of simultaneous tasks" in workload.notes
    assert not [note for note in workload.notes if "left out" in note]
    result = simulate(workload, preset("easy"), n_nodes=16)
    check_dependent(result.ledger, workload)
    assert {row.job_id for row in result.rows} == rows.keys()


def lines_of(*rows: tuple[str, str, int, int, int, str, str]) -> Iterator[str]:
    yield "JobID|JobIDRaw|Submit|Start|End|State|NNodes|SubmitLine|Priority"
    for job, raw, submit, start, end, state, command in rows:
        yield f"{job}|{raw}|{submit}|{start}|{end}|{state}|1|{command}|1"


def test_what_the_record_contradicts_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    rows = (
        ("1_1", "1", 100, 100, 200, "COMPLETED", "sbatch -a 1-2%1 a"),
        ("1_2", "2", 100, 150, 300, "COMPLETED", "sbatch -a 1-2%1 a"),  # two at the same time
        ("3", "3", 110, 290, 400, "COMPLETED", "sbatch -d afterok:1 a"),  # 1_2 ends at 300
        ("4", "4", 110, 300, 410, "FAILED", "sbatch -d afterok:1_*:99 a"),
        ("5", "5", 120, 410, 500, "COMPLETED", "sbatch -d afternotok:4,after:3+5,singleton a"),
        ("6", "6", 130, 290, 600, "COMPLETED", "sbatch -d after:3 a"),
        ("7", "7", 140, 500, 600, "COMPLETED", "sbatch -d afterok:5?afterok:6 a"),
    )
    path.write_text("\n".join(lines_of(*rows)) + "\n")
    workload = import_accounting("sacct", path, n_nodes=8).workload
    assert fields(workload, "dependency", "array") == {
        "3": ("afterok:1_1", ""), "4": ("afterok:1_1:1_2", ""), "5": ("afterany:4", ""),
        "6": ("after:3", ""),
    }  # fmt: skip
    left_out = [note for note in workload.notes if "left out" in note or "imported as" in note]
    assert [note.split(":")[0] for note in left_out] == [
        "1 dependency of the kind afternotok", "3 dependencies left out",
        "1 dependency left out", "1 dependency left out", "1 limit of an array left out",
    ]  # fmt: skip


def test_the_last_use_of_an_id_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    rows = (
        ("1", "1", 100, 100, 200, "COMPLETED", "sbatch a"),
        ("1", "1", 100_000, 100_000, 100_200, "COMPLETED", "sbatch a"),
        ("2", "2", 100_100, 100_200, 100_300, "COMPLETED", "sbatch -d afterok:1 a"),
    )
    path.write_text("\n".join(lines_of(*rows)) + "\n")
    workload = import_accounting("sacct", path, n_nodes=8, all_jobs=True).workload
    assert [(job.id, job.extra.get("dependency")) for job in workload.jobs] == [
        ("1", None), ("1-2", None), ("2", "afterok:1-2"),
    ]  # fmt: skip


def test_openpbs(tmp_path: Path) -> None:
    """Only Q records have dependencies. That of an array holds for each of its jobs."""
    end = "{0};E;{1}.pbs;user=a project={2} queue=q ctime={3} etime={3} start={4} end={5} " \
        "exec_host=n1/0 Resource_List.walltime=01:00:00 Exit_status=0"  # fmt: skip
    stamp = "11/22/2026 09:00:00"
    queued = f"{stamp};Q;{{}}.pbs;user=a project=x queue=q ctime={{}} depend={{}}"
    path = tmp_path / "log"
    path.write_text("\n".join([
        end.format(stamp, "1", "_pbs_project_default", 1000, 1000, 1100),
        queued.format("2[]", 1000, "afterok:1.pbs@pbs"),
        end.format(stamp, "2[1]", "x", 1000, 1100, 1200),
        end.format(stamp, "2[2]", "x", 1000, 1100, 1300),
        queued.format("3", 1010, "afterany:2[].pbs@pbs:1.pbs@pbs,beforeok:9.pbs@pbs"),
        end.format(stamp, "3", "x", 1010, 1300, 1400),
    ]) + "\n")  # fmt: skip
    workload = import_accounting("pbs", path, n_nodes=8).workload
    assert fields(workload, "dependency", "account") == {
        "2[1]": ("afterok:1", "x"), "2[2]": ("afterok:1", "x"),
        "3": ("afterany:2[1]:2[2]:1", "x"),
    }  # fmt: skip
    starts = {r.attempt.job_id: to_s(r.start_us) for r in
              simulate(workload, preset("easy"), n_nodes=8).ledger.attempts}  # fmt: skip
    assert starts == {"w0!1": 0, "w0!2[1]": 100, "w0!2[2]": 100, "w0!3": 300}


@pytest.mark.parametrize("name", ["multifactor", "basic"])
def test_the_page_compares_the_distances(name: str, tmp_path: Path, monkeypatch) -> None:
    """The wait of a job begins when its dependency holds."""
    path = with_commands(name, tmp_path)
    without = calibrated(tmp_path, name, "eligible")
    monkeypatch.setattr(test_recorded_eligible, "path_of", lambda _: path)
    monkeypatch.setattr(test_recorded_eligible, "read", lambda _: {})
    (tmp_path / "more").mkdir()
    having = calibrated(tmp_path / "more", name, "eligible")
    page = (ROOT / "docs/how-to/calibrate.md").read_text()
    for policy, title in POLICIES.items():
        cells = [
            f"{row.distance_text}, {row.correlation:.2f}"
            for row in (result.compared[policy] for result in (without, having))
        ]
        assert f"| {title} | {cells[0]} | {cells[1]} |" in page
