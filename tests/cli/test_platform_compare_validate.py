# SPDX-License-Identifier: Apache-2.0
"""The commands platform, compare and validate: results, exit status, one-line errors."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from rebat.cli.main import COMMANDS, main
from rebat.engine.engine import EngineOptions
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import read_events, write_events
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.runs.single import simulate, write_run
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic
from tests.support.scenarios import fails, machine
from tests.support.tables import TOY, TOY_EVENTS, edited, toy_csv, without

ROOT = Path(__file__).parents[2]
TABLE = {
    "platform": "rebat.cli.platform:platform",
    "compare": "rebat.cli.compare:compare",
    "validate": "rebat.cli.results:validate",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Register the commands under test, and run them in a folder with one job table."""
    for name, where in TABLE.items():
        monkeypatch.setitem(COMMANDS, name, (where, ""))
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(toy_csv())
    return tmp_path


def status(*arguments: str) -> int:
    """Run a command and return its exit status."""
    try:
        main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def refused(capsys, told: str, *arguments: str) -> None:
    assert status(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert "Traceback" not in captured.err


# platform


def test_a_platform_is_generated_and_described(capsys) -> None:
    assert status("platform", "generate", "mira", "--zero-latency", "-o", "m.xml") == 0
    assert status("platform", "describe", "m.xml") == 0
    told = capsys.readouterr().out
    assert "49,152 nodes" in told
    assert "8x12x16x16x2, diameter 27 hops" in told
    assert "0 s: exact times" in told
    assert "follows the order" in told


def test_the_hardware_is_written(capsys) -> None:
    options = ["--speed", "10.24Gf", "--bandwidth", "1GBps", "--latency", "5us"]
    assert status("platform", "generate", "flat:4", *options, "-o", "p.xml") == 0
    assert 'speed="10.24Gf" bw="1GBps" lat="5us"' in Path("p.xml").read_text()
    assert status("platform", "describe", "p.xml") == 0
    assert "speed             10.24 Gf" in capsys.readouterr().out


PLATFORMS = {
    "unknown machine": (["generate", "sequoia", "-o", "p.xml"], "mira, intrepid"),
    "bad dimensions": (["generate", "torus:8,1", "-o", "p.xml"], "torus:8,1"),
    "no nodes": (["generate", "flat:0", "-o", "p.xml"], "flat:0"),
    "bad speed": (["generate", "mira", "--speed", "fast", "-o", "p.xml"], "fast"),
    "latency and none": (
        ["generate", "mira", "--zero-latency", "--latency", "1us", "-o", "p.xml"], "--latency",
    ),
    "no output": (["generate", "mira"], "--out"),
    "no file": (["describe", "absent.xml"], "absent.xml"),
    "not a platform": (["describe", "a.csv"], "broken XML"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLATFORMS)
def test_bad_platforms(name: str, capsys) -> None:
    arguments, told = PLATFORMS[name]
    refused(capsys, told, "platform", *arguments)
    assert not Path("p.xml").exists()


# compare


def test_equal_tables_give_status_0(capsys) -> None:
    Path("run").mkdir()
    Path("run/jobs.csv").write_text(toy_csv())
    assert status("compare", "a.csv", "run", "--allocations") == 0
    told = capsys.readouterr().out
    assert "7 jobs in both runs, 0 only in A, 0 only in B" in told
    assert "makespan" in told
    assert "first difference" not in told


def test_different_tables_give_status_1_and_say_where(capsys) -> None:
    late = edited(toy_csv(), "4", starting_time="18", finish_time="28")
    Path("b.csv").write_text(without(late, "1"))
    assert status("compare", "a.csv", "b.csv", "--out", "out") == 1
    told = capsys.readouterr().out
    assert "6 jobs in both runs, 1 only in A" in told
    assert "first difference at 0.000000 s" in told
    assert "it is missing" in told
    names = {"differences.csv", "differences.png", "SHA256SUMS"}
    assert {p.name for p in Path("out").iterdir()} == names


def test_tolerance_and_allocations_decide(capsys) -> None:
    Path("b.csv").write_text(edited(toy_csv(), "1", allocated_resources="5"))
    assert status("compare", "a.csv", "b.csv") == 0
    assert status("compare", "a.csv", "b.csv", "--allocations") == 1
    assert "different nodes: 1" in capsys.readouterr().out
    Path("b.csv").write_text(edited(toy_csv(), "4", starting_time="11.5"))
    assert status("compare", "a.csv", "b.csv") == 1
    assert status("compare", "a.csv", "b.csv", "--tolerance", "0.5") == 0


def test_an_earlier_comparison_is_replaced_by_force_other_folders_never(capsys) -> None:
    assert status("compare", "a.csv", "a.csv", "--out", "out") == 0
    assert status("compare", "a.csv", "a.csv", "--out", "out") == 2
    assert status("compare", "a.csv", "a.csv", "--out", "out", "--force") == 0
    capsys.readouterr()
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    assert status("compare", "a.csv", "a.csv", "--out", "mine", "--force") == 2
    assert [p.name for p in Path("mine").iterdir()] == ["thesis.txt"]


def test_bad_comparisons(capsys) -> None:
    Path("b.csv").write_text("hello\n")
    Path("twice.csv").write_text(toy_csv() + toy_csv().splitlines()[-1] + "\n")
    refused(capsys, "b.csv:1", "compare", "a.csv", "b.csv")
    refused(capsys, "absent.csv", "compare", "absent.csv", "a.csv")
    refused(capsys, "several rows", "compare", "a.csv", "twice.csv")
    for tolerance in ("-1", "nan", "inf", "1e999"):
        refused(capsys, "--tolerance", "compare", "a.csv", "a.csv", "--tolerance", tolerance)
    refused(capsys, "contains no table of jobs", "compare", "a.csv", ".")


# validate


def test_a_clean_table_gives_status_0(capsys) -> None:
    arguments = ["--workload", str(TOY), "--events", str(TOY_EVENTS)]
    assert status("validate", "a.csv", *arguments) == 0
    assert capsys.readouterr().out == "a.csv: valid: 7 rows, 0 findings\n"


@pytest.mark.parametrize(("latency_us", "slack"), [(60, "0.00006s"), (600, "0.0006s")])
def test_network_latency_is_recognised(latency_us: int, slack: str, capsys) -> None:
    """Every kill takes effect with a delay, as on a platform with network latency."""
    options = EngineOptions(latency_us=latency_us)
    workload, events = machine(3, (2, 50), (1, 30), (2, 20, 1)), [*fails(0, 4, 6), *fails(2, 9, 30)]
    result = simulate(workload, preset("sfsj"), machine_events=events, engine_options=options)
    write_run(Path("late"), result, {})
    write_events(events, Path("late.events"))
    assert status("validate", "late", "--events", "late.events") == 1
    out = capsys.readouterr().out
    assert f"hint: jobs end up to {slack[:-1]} s after the failure of a node" in out
    assert f"With --slack {slack}: 0 findings." in out
    assert status("validate", "late", "--events", "late.events", "--slack", slack) == 0
    assert "hint" not in capsys.readouterr().out


def test_a_job_that_stays_on_a_failed_node_is_no_latency(capsys) -> None:
    Path("c.csv").write_text(edited(toy_csv(), "3", finish_time="9", execution_time="9"))
    assert status("validate", "c.csv", "--events", str(TOY_EVENTS)) == 1
    out = capsys.readouterr().out
    assert "a job on a node that is down: 1" in out
    assert "hint" not in out


def test_the_first_line_is_the_verdict(capsys) -> None:
    Path("b.csv").write_text(edited(toy_csv(), "4", execution_time="99"))
    assert status("validate", "b.csv") == 1
    first, *findings = capsys.readouterr().out.splitlines()
    assert first == "b.csv: not valid: 7 rows, 1 finding"
    assert findings[0] == "columns that contradict each other: 1"


def test_findings_give_status_1_a_few_of_each_kind(capsys) -> None:
    text = toy_csv()
    for job in ("1", "2", "3", "4", "5", "2#1", "3#1"):
        text = edited(text, job, execution_time="99")
    Path("b.csv").write_text(edited(text, "4", allocated_resources="3-7"))
    assert status("validate", "b.csv", "--show", "3") == 1
    told = capsys.readouterr().out.splitlines()
    assert "not the requested number of nodes: 1" in told
    assert "columns that contradict each other: 7" in told
    assert "  ... and 4 more" in told
    assert told[0] == "b.csv: not valid: 7 rows, 8 findings"


def test_the_machine_comes_from_option_or_workload(capsys) -> None:
    assert status("validate", "a.csv", "--nodes", "7") == 1
    assert status("validate", "a.csv", "--nodes", "7", "--workload", str(TOY)) == 1
    assert status("validate", "a.csv", "--workload", str(TOY)) == 0
    assert "a node outside the machine: 2" in capsys.readouterr().out


def test_a_kill_is_an_end_where_the_scheduler_gives_jobs_up(capsys) -> None:
    """Without resubmissions and failures in the table, only the folder or the user can decide."""
    killed = {"final_state": "COMPLETED_KILLED", "success": "0"}
    text = edited(without(toy_csv(), "2", "3", "2#1", "3#1"), "4", **killed)
    Path("b.csv").write_text(text)
    assert status("validate", "b.csv") == 0
    assert status("validate", "b.csv", "--resubmits") == 1
    assert "line 4: job w0!4 was killed, but not resubmitted" in capsys.readouterr().out
    Path("run").mkdir()
    Path("run/jobs.csv").write_text(text)
    Path("run/rebat_jobs.csv").write_text("job_id,failures\n")
    assert status("validate", "run") == 1
    assert status("validate", "run", "--gives-up") == 0


def test_bad_validations(capsys) -> None:
    Path("f.events").write_text('{"type": "machine_unav')
    refused(capsys, "absent.csv", "validate", "absent.csv")
    refused(capsys, "f.events:1", "validate", "a.csv", "--events", "f.events")
    refused(capsys, "absent.json", "validate", "a.csv", "--workload", "absent.json")
    refused(capsys, "--nodes", "validate", "a.csv", "--nodes", "0")
    refused(capsys, "--slack", "validate", "a.csv", "--slack", "soon")


# the small campaign that docker-compose.yml runs (test_docker.py)


def test_the_small_workload_is_what_its_readme_makes(tmp_path: Path) -> None:
    made = add_young_daly(synthetic(seed=0, n_jobs=100), n_nodes=128, mtbf_s=1800, rounding="ceil")
    write_workload(made, tmp_path / "synthetic-small.json")
    shipped = ROOT / "workloads/synthetic-small.json"
    assert (tmp_path / "synthetic-small.json").read_bytes() == shipped.read_bytes()
    events = generate_events(Authors(1800, 600), 128, horizon_s=43_200)
    assert read_events(ROOT / "failure_events/synthetic-small.events") == events


def test_a_job_that_was_given_up_is_no_error(capsys) -> None:
    """With one failure allowed, some jobs end killed. A killed job with no failure is an error."""
    law = ("--mtbf", "1h", "--downtime", "10min", "--max-attempts", "1", "--out", "out")
    assert status("run", "mira-like-june-2017", "-p", "greedy", *law) == 0
    assert '"given_up": 0' not in Path("out/greedy/summary.json").read_text()
    assert status("validate", "out/greedy") == 0
    table = Path("out/greedy/rebat_jobs.csv")
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *(line.replace(",1,1,", ",1,0,") for line in lines[1:])]))
    assert status("validate", "out/greedy") == 1
    assert "was killed, but not resubmitted" in capsys.readouterr().out


def moved(text: str, job: str, seconds: float = 0.00001) -> str:
    """Return the table with a row moved in time, and all its columns computed again."""
    row = next(row for row in csv.DictReader(io.StringIO(text)) if row["job_id"] == job)
    submit, start, end = (
        float(row[name]) for name in ("submission_time", "starting_time", "finish_time")
    )
    start, end = start + seconds, end + seconds
    times = {
        "starting_time": start, "finish_time": end, "waiting_time": start - submit,
        "turnaround_time": end - submit, "stretch": (end - submit) / (end - start),
    }  # fmt: skip
    return edited(text, job, **{name: f"{value:.6f}" for name, value in times.items()})


@pytest.mark.parametrize("job", ["1", "2", "3", "4", "2#1", "3#1"])
def test_a_row_that_is_10_us_late_is_found(job: str, capsys) -> None:
    """Batsim delays a call by at least 10 us; then a job starts late."""
    Path("b.csv").write_text(moved(toy_csv(), job))
    assert status("compare", "b.csv", "a.csv") == 1
    assert status("compare", "b.csv", "a.csv", "--tolerance", "0.00002") == 0
    inputs = ("--workload", str(TOY), "--events", str(TOY_EVENTS), "--by-rebat")
    assert status("validate", "a.csv", *inputs) == 0
    assert status("validate", "b.csv", *inputs) == 1
    assert "10 us after the event that allowed it" in capsys.readouterr().out


def test_a_row_of_a_run_has_the_times_of_the_attempt(capsys) -> None:
    assert status("run", str(TOY), "-p", "sfsj", "--failures", str(TOY_EVENTS), "--out", "o") == 0
    assert status("validate", "o") == 0
    table = Path("o/sfsj/jobs.csv")
    table.write_text(moved(table.read_text(), "3#1", 0.5))
    assert status("validate", "o") == 1
    assert "in rebat_attempts" in capsys.readouterr().out


def test_the_number_of_attempts_can_be_stated(capsys) -> None:
    """Batsim's output does not contain ``rebat serve --max-attempts``."""
    law = ("--mtbf", "1h", "--downtime", "10min", "--max-attempts", "1", "--out", "out")
    assert status("run", "mira-like-june-2017", "-p", "greedy", *law) == 0
    table = Path("out/greedy/jobs.csv").rename("alone.csv")
    assert status("validate", str(table), "--by-rebat", "--resubmits") == 1
    assert status("validate", str(table), "--by-rebat", "--resubmits", "--max-attempts", "1") == 0
    assert status("validate", str(table), "--by-rebat", "--resubmits", "--max-attempts", "2") == 1
