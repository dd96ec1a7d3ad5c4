# SPDX-License-Identifier: Apache-2.0
"""``rebat makespan``, ``rebat bound``, and silent errors in ``rebat run``."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rebat.cli.run import run
from rebat.core.errors import InputError
from rebat.policies.makespans import PAPER_RULES
from rebat.shipped.campaigns.silent_errors.commands import (
    bound,
    failed_attempts,
    makespan,
    read_instance,
)
from tests.support.recordings import job_sets

ROOT = Path(__file__).parents[3]
TOY = str(ROOT / "workloads/toy.json")
SET = {
    "id": "two",
    "P": 4,
    "jobs": [{"p": 2, "t": 4}, {"p": 3, "t": 3}],
    "scenarios": [{"f": [0, 0]}, {"f": [0, 1]}],
}


def call(command, *arguments) -> str:
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def job_set(tmp_path) -> Path:
    path = tmp_path / "two.json"
    path.write_text(json.dumps(SET))
    return path


def test_makespans_are_a_csv_table(job_set) -> None:
    text = call(makespan, job_set, "--heuristic", "R-LIST-0", "--rule", "LPT")
    assert text == (
        "set,scenario,heuristic,rule,makespan,lower_bound\n"
        "two,0,R-LIST-0,LPT,7,4.25\n"
        "two,1,R-LIST-0,LPT,10,6.5\n"
    )


def test_makespans_go_to_a_file_with_all_heuristics_and_rules(job_set, tmp_path) -> None:
    out, packed = tmp_path / "m.csv", tmp_path / "m.csv.gz"
    call(makespan, job_set, "-o", out)
    call(makespan, job_set, "-o", packed)
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 2 * 5 * len(PAPER_RULES)
    assert gzip.decompress(packed.read_bytes()).decode() == out.read_text()


def test_a_file_of_makespans_comes_with_a_verdict(job_set, tmp_path) -> None:
    out = tmp_path / "m.csv"
    lines = call(makespan, job_set, "-o", out).splitlines()
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in csv.DictReader(out.open()):
        ratio = float(row["makespan"]) / float(row["lower_bound"])
        ratios.setdefault((row["heuristic"], row["rule"]), []).append(ratio)
    best = min(ratios, key=lambda pair: sum(ratios[pair]) / 2)
    assert lines == [
        f"lowest mean makespan: {best[0]} with {best[1]}, {sum(ratios[best]) / 2:.3f} times the "
        "lower bound (2 scenarios)",
        f"makespans in {out}",
    ]


def test_an_unknown_rule_is_refused(job_set) -> None:
    with pytest.raises(InputError, match="LPT"):
        call(makespan, job_set, "--rule", "FASTEST")


def test_a_job_sets_bounds(job_set) -> None:
    lines = call(bound, job_set).splitlines()
    assert lines[0] == "two: 2 jobs on 4 nodes; times in units"
    assert lines[3].split()[:5] == ["1", "1", "6.000000", "6.500000", "6.500000"]
    assert float(lines[3].split()[5]) == pytest.approx(6.5 * (2 - 1 / 4))
    assert float(lines[3].split()[6]) == pytest.approx(6.5 * (3 - 4 / 5))


def test_the_recorded_greedy_makespans_keep_the_printed_bounds() -> None:
    for path in job_sets()[:4]:
        scenarios = json.loads(path.read_text())["scenarios"]
        table = call(bound, path).splitlines()[2:]
        for scenario, line in zip(scenarios, table, strict=False):
            low, high = float(line.split()[4]), float(line.split()[5])
            for made in scenario["makespan_paper"]["R-LIST-0"].values():
                assert low - 1e-6 <= made <= high + 1e-6


def test_errors_drawn_for_a_run_can_be_taken_for_its_bound(tmp_path) -> None:
    out = tmp_path / "out"
    call(run, TOY, "-p", "r-list-0", "-p", "r-shelf-b", "--silent-error-probability", 0.5,
         "--seed", 3, "--out", out)  # fmt: skip
    jobs = {"1", "2", "3", "4", "5"}
    counts, n_killed = failed_attempts(out / "r-list-0", jobs)
    assert (counts, 0) == (failed_attempts(out / "r-shelf-b", jobs)[0], n_killed)
    assert sum(counts.values()) > 0
    rows = csv.DictReader((out / "r-list-0/rebat_jobs.csv").open())
    assert counts == {row["job_id"]: int(row["attempts"]) - 1 for row in rows}
    text = call(bound, TOY, "--failures-of", out / "r-list-0")
    low = float(text.splitlines()[2].split()[4])
    summary = json.loads((out / "r-list-0/summary.json").read_text())
    assert low <= summary["metrics"]["makespan_s"] <= low * (2 - 1 / 8)
    assert summary["options"]["silent_error_probability"] == 0.5


def test_failures_of_nodes_are_no_errors(tmp_path) -> None:
    out = tmp_path / "out"
    call(run, TOY, "-p", "sfsj", "--failures", "toy", "--out", out)
    lines = call(bound, TOY, "--failures-of", out / "sfsj").splitlines()
    assert lines[1].split()[:2] == ["scenario", "errors"]
    assert lines[2].split()[:2] == ["0", "0"]
    assert "errors: attempts that end with a silent error; node failures do not count." in lines
    assert "  attempts of the run that were killed (not counted as errors): 2" in lines


def test_a_job_with_the_id_of_a_resubmission_has_its_own_errors(tmp_path) -> None:
    rows = ["a#1", "a#1#1", "b"]
    header = "job_id,final_state,starting_time,finish_time,allocated_resources\n"
    ran = "".join(f"{name},COMPLETED_FAILED,0,1,0\n" for name in rows[:1])
    ran += "".join(f"{name},COMPLETED_SUCCESSFULLY,1,2,0\n" for name in rows[1:])
    (tmp_path / "jobs.csv").write_text(header + ran)
    assert failed_attempts(tmp_path, {"a#1", "b"}) == ({"a#1": 1, "b": 0}, 0)


def test_a_rate_and_a_probability_exclude_each_other(tmp_path) -> None:
    with pytest.raises(InputError, match="contradicts --silent-error-probability"):
        call(run, TOY, "-p", "r-list-0", "--silent-errors", 1e-3,
             "--silent-error-probability", 0.1, "--out", tmp_path / "out")  # fmt: skip


def test_a_job_killed_at_its_walltime_counts_as_far_as_it_runs(tmp_path) -> None:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({
        "nb_res": 2,
        "jobs": [{"id": "1", "subtime": 0, "walltime": 6, "res": 1, "profile": "p"}],
        "profiles": {"p": {"type": "delay", "delay": 10, "ret": 1}},
    }))  # fmt: skip
    instance = read_instance(path, None, None)
    assert instance.times.tolist() == [6_000_000]
    assert instance.failures.tolist() == [[0]]


def test_jobs_larger_than_the_machine_are_told(tmp_path) -> None:
    told = "left out: 2 of 5 jobs, because they are larger than the 2 nodes"
    result = CliRunner().invoke(bound, [TOY, "--nodes", "2"], catch_exceptions=False)
    assert result.stdout.splitlines()[1] == told
    assert result.stderr == f"rebat: warning: {told}\n"
    whole = CliRunner().invoke(bound, [TOY], catch_exceptions=False)
    assert "left out" not in whole.output


INTERRUPTED = """
import os, signal, threading
from rebat.models.resilient import makespans

def play(failures):
    makespans("R-LIST-0", [1], [1], [0], [failures], n_procs=1, threads=THREADS)

play(1)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    play(10**12)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_makespan_of_half_a_day_can_be_interrupted(threads: int) -> None:
    made = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.replace("THREADS", str(threads))],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (made.stdout, made.stderr) == ("interrupted\n", "")
