# SPDX-License-Identifier: Apache-2.0
"""``rebat run``, from the command line to its files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rebat.cli.main import COMMANDS, GROUPS, main
from rebat.runs.single import RUN_FILES

ROOT = Path(__file__).parents[2]
ROW = (
    "job_id,size,submission_time,first_start,finish_time,waiting_time,flow,attempts,failures,"
    "stolen,wasted_node_seconds,final_state"
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("toy") / "out"
    main(
        ["run", str(ROOT / "workloads/toy.json"), "-p", "baseline", "-p", "sfsj",
         "--failures", str(ROOT / "failure_events/toy.events"), "--figures", "--out", str(out)]
    )  # fmt: skip
    return out


@pytest.mark.slow
def test_every_file_is_there(toy: Path) -> None:
    names = {str(p.relative_to(toy)) for p in toy.rglob("*") if p.is_file()}
    expected = {f"{policy}/{name}" for policy in ("baseline", "sfsj") for name in RUN_FILES}
    figures = {"flows.png", "gantt.png", "utilisation.png"}
    assert names == expected | figures | {"comparison.csv", "provenance.json", "SHA256SUMS"}


def test_job_rows_have_the_agreed_columns(toy: Path) -> None:
    lines = (toy / "sfsj/rebat_jobs.csv").read_text().splitlines()
    assert lines[0] == ROW
    assert lines[2] == "2,1,0.000000,0.000000,11.000000,5.000000,11.000000,2,0,1,1.000000,COMPLETED_SUCCESSFULLY"  # noqa: E501  # fmt: skip


def test_attempts_say_why_they_ended_and_who_took_their_nodes(toy: Path) -> None:
    attempts = list(csv.DictReader((toy / "sfsj/rebat_attempts.csv").open()))
    batsims = list(csv.DictReader((toy / "sfsj/jobs.csv").open()))
    assert [row["nodes"] for row in attempts] == [row["allocated_resources"] for row in batsims]
    causes = [(row["job_id"], row["attempt"], row["cause"], row["why"]) for row in attempts]
    assert causes[:2] == [("2", "0", "stolen", "for 3"), ("3", "0", "node failure", "")]
    assert {cause for _, _, cause, _ in causes[2:]} == {"completed"}


def test_lost_seconds_of_the_toy_example(toy: Path) -> None:
    """By hand: at 1 s, the failure costs job 3 and the steal costs job 2 one second each."""
    for policy, expected in (("baseline", {"3": 1.0}), ("sfsj", {"3": 1.0, "2": 1.0})):
        attempts = list(csv.DictReader((toy / policy / "rebat_attempts.csv").open()))
        lost = {
            row["job_id"]: float(row["lost_seconds"]) for row in attempts if row["attempt"] == "0"
        }
        assert {job: seconds for job, seconds in lost.items() if seconds} == expected
        assert {row["lost_later_seconds"] for row in attempts} == {"0.000000"}


@pytest.mark.parametrize("policy", ["sfsj", "dbes:react=replacement", "tiers:migration_cost=2"])
def test_lost_seconds_sum_to_the_lost_work_of_jobs(policy: str, tmp_path: Path) -> None:
    main(
        [
            "run", "synthetic-small", "-p", policy, "--mtbf", "10min", "--downtime", "5min",
            "--out", str(tmp_path / "out"),
        ]
    )  # fmt: skip
    (folder,) = (tmp_path / "out").glob("*/")
    lost: Counter[str] = Counter()
    for row in csv.DictReader((folder / "rebat_attempts.csv").open()):
        lost[row["job_id"]] += float(row["lost_seconds"]) * int(row["size"])
    jobs = list(csv.DictReader((folder / "rebat_jobs.csv").open()))
    assert sum(lost.values()) > 0
    for row in jobs:
        assert lost[row["job_id"]] == pytest.approx(float(row["wasted_node_seconds"]), abs=1e-3)


def test_batsims_columns_hold_a_row_per_attempt(toy: Path) -> None:
    rows = list(csv.DictReader((toy / "sfsj/jobs.csv").open()))
    assert [row["job_id"] for row in rows] == ["2", "3", "1", "5", "3#1", "2#1", "4"]
    assert rows[0]["final_state"] == "COMPLETED_KILLED"
    assert rows[4]["allocated_resources"] == "1 3-7"


def test_the_summary_says_what_it_came_from(toy: Path) -> None:
    summary = json.loads((toy / "sfsj/summary.json").read_text())
    assert summary["policy"] == "sfsj"
    assert len(summary["workload"]["sha256"]) == 64
    assert summary["options"]["seed"] == 0
    assert summary["metrics"]["steals"] == 1
    assert summary["metrics"]["flows"]["all"]["max_s"] == 21


def test_the_comparison_has_ratios(toy: Path) -> None:
    rows = csv.DictReader((toy / "comparison.csv").open())
    by = {(row["metric"], row["size_class"], row["policy"]): row for row in rows}
    assert float(by["flow_max_s", "all", "sfsj"]["ratio"]) == pytest.approx(21 / 25)


def test_a_run_again_replaces_the_result_with_the_same_bytes(toy: Path) -> None:
    before = {p: p.read_bytes() for p in toy.rglob("*") if p.is_file()}
    main(
        ["run", str(ROOT / "workloads/toy.json"), "-p", "baseline", "-p", "sfsj", "--force",
         "--figures", "--failures", str(ROOT / "failure_events/toy.events"), "--out", str(toy)]
    )  # fmt: skip
    assert {p: p.read_bytes() for p in toy.rglob("*") if p.is_file()} == before


def test_import_generate_describe(tmp_path: Path, capsys) -> None:
    made = tmp_path / "s.json"
    main(["workload", "generate", "synthetic", "--seed", "3", "-o", str(made)])
    main(["workload", "describe", str(made)])
    events = tmp_path / "f.events"
    arguments = ["--nodes", "128", "--mtbf", "30min", "--downtime", "10min", "--horizon", "2d"]
    main(["failures", "generate", *arguments, "-o", str(events)])
    main(["failures", "describe", str(events), "--nodes", "128"])
    main(["policies"])
    main(["policies", "sfsj"])
    told = capsys.readouterr().out
    assert "1,000 jobs for 128 nodes" in told
    assert "failures of single nodes, on" in told
    assert "steals a node" in told


def test_the_shipped_month_is_what_the_generator_makes(tmp_path: Path) -> None:
    shipped = ROOT / "workloads/mira-like-june-2017.json.gz"
    again = tmp_path / shipped.name
    main(["workload", "generate", "june-2017", "-o", str(again)])
    assert again.read_bytes() == shipped.read_bytes()


def test_help_is_light() -> None:
    """--help imports neither numba nor numpy nor any command."""
    code = (
        "import sys; from rebat.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'pandas', 'matplotlib', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys) -> None:
    main([name, "--help"])
    assert "Usage" in capsys.readouterr().out


def test_the_help_of_run_names_every_workload_of_the_package(capsys) -> None:
    from rebat.core.files import names

    main(["run", "--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in names("workloads", ".json"))


def test_rejected_jobs_are_told(tmp_path: Path, capsys) -> None:
    toy_file = str(ROOT / "workloads/toy.json")
    main(["run", toy_file, "-p", "baseline", "--nodes", "4", "--out", str(tmp_path / "out")])
    captured = capsys.readouterr()
    assert "rejected 2 jobs" in captured.err
    assert "jobs rejected" in captured.out


def outages(out: Path) -> list[float]:
    """Return the times of the failures of a run."""
    lines = (out / "baseline" / "node_events.csv").read_text().splitlines()[1:]
    return [float(line.split(",")[0]) for line in lines if ",failed," in line]


def test_failures_are_drawn_as_far_as_the_simulation_goes(tmp_path: Path) -> None:
    """No failure is drawn after the end: otherwise all eight nodes would be down at some time."""
    for name, *options in (("all", "1h"), ("many", "10s", "--downtime", "5s")):
        out = tmp_path / name
        main(["run", str(ROOT / "workloads/toy.json"), "-p", "baseline", "--mtbf", *options,
              "--out", str(out)])  # fmt: skip
        rows = (out / "baseline" / "jobs.csv").read_text().splitlines()[1:]
        ends = [float(row.split(",")[10]) for row in rows]
        assert all(date <= max(ends) for date in outages(out))
    assert outages(out)


def test_no_failure_after_the_horizon(tmp_path: Path) -> None:
    out = tmp_path / "out"
    main(["run", str(ROOT / "workloads/toy.json"), "-p", "baseline", "--mtbf", "10s",
          "--downtime", "1s", "--horizon", "5", "--out", str(out)])  # fmt: skip
    assert sum(date > 5 for date in outages(out)) <= 1  # one later failure may be included


def test_axes_are_listed(capsys) -> None:
    main(["policies", "--axes"])
    assert "least-lost-work" in capsys.readouterr().out


def test_help_lists_every_command_once_in_its_group(capsys) -> None:
    main(["--help"])
    text = capsys.readouterr().out
    for title, rows in GROUPS.items():
        section = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        shown = [line.split()[0] for line in section.splitlines() if line[2:3].strip()]
        assert shown == [*rows]
    assert len(COMMANDS) == sum(map(len, GROUPS.values()))
