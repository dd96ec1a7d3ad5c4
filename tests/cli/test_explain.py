# SPDX-License-Identifier: Apache-2.0
"""``rebat explain``: the history of a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.api.reproduce import repetition
from rebat.api.run import run
from rebat.cli.main import main
from rebat.results.explain.book import nearest
from rebat.results.explain.sentences import clock, span
from tests.oracles.explained import wrong_stories

TOY = ["run", "toy", "--failures", "toy", "-p", "baseline", "-p", "sfsj", "-p", "easy"]

WAITS = """
from rebat import Policy
from rebat.contract import Start

class Waits(Policy):
    def plan(self, view, changes):
        return [Start(name) for name in list(view.queue)[:1] if not view.running]

    def reasons(self, view):
        return {name: "it waits for better times." for name in view.queue}
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """Write a result with recorded plans."""
    out = tmp_path_factory.mktemp("explain") / "toy"
    main([*TOY, "--explain", "--out", str(out)])
    return out


def printed(capsys, *words: str) -> str:
    capsys.readouterr()
    main(["explain", *words])
    return capsys.readouterr().out


def error_of(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.slow
def test_the_story_begins_with_a_verdict(toy, capsys) -> None:
    lines = printed(capsys, str(toy / "baseline"), "3").splitlines()
    assert lines[0].startswith("Job 3 ")
    assert lines[1] == ""
    assert lines[2].startswith("00:00:0") and "The job is submitted" in lines[2]
    assert "It completes" in lines[-1]
    assert [line[:8] for line in lines[2:]] == sorted(line[:8] for line in lines[2:])


def test_a_victim_names_the_job_that_takes_its_nodes(toy, capsys) -> None:
    record = json.loads(printed(capsys, str(toy / "sfsj"), "2", "--json"))
    (stolen,) = [m for m in record["moments"] if m.get("cause") == "stolen"]
    assert (stolen["by"], stolen["lost_s"], record["lost_s"]) == ("3", 1.0, 1.0)
    assert "and job 3 takes its nodes" in stolen["sentence"]


def test_the_json_has_the_facts_of_the_sentences(toy, capsys) -> None:
    record = json.loads(printed(capsys, str(toy / "easy"), "3", "--json"))
    assert record["policy"] == "easy" and record["job"] == "3"
    text = printed(capsys, str(toy / "easy"), "3").splitlines()
    assert text[0] == record["verdict"]
    assert text[2:] == [moment["sentence"] for moment in record["moments"]]
    for moment in record["moments"]:
        assert moment["sentence"].startswith(clock(moment["at_s"]))


def test_a_job_may_have_the_name_of_its_workload(toy, capsys) -> None:
    for options in ([], ["--json"]):
        short, full = (printed(capsys, str(toy / "easy"), job, *options) for job in ("3", "w0!3"))
        assert short == full


def test_with_all_nothing_is_grouped(toy, capsys) -> None:
    for job in "12345":
        short = json.loads(printed(capsys, str(toy / "sfsj"), job, "--json"))["moments"]
        complete = json.loads(printed(capsys, str(toy / "sfsj"), job, "--all", "--json"))["moments"]
        assert sum(moment.get("times", 1) for moment in short) == len(complete)
        assert not any("times" in moment for moment in complete)


def test_an_unknown_job_is_an_error_with_near_ids(toy, capsys) -> None:
    error = error_of(capsys, "explain", str(toy / "easy"), "9")
    assert error.startswith("rebat: error: ")
    assert "unknown job '9' (expected a job like 5, 4, 3)" in error


def test_the_folder_of_several_policies_is_an_error(toy, capsys) -> None:
    error = error_of(capsys, "explain", str(toy), "1")
    assert f"{toy}: contains several policies (expected the folder of one policy" in error


def test_parquet_tables_make_the_same_story(toy, tmp_path, capsys) -> None:
    pytest.importorskip("pyarrow")
    main([*TOY, "--explain", "--format", "parquet", "--out", str(tmp_path / "toy")])
    story = printed(capsys, str(tmp_path / "toy" / "sfsj"), "2", "--json")
    assert story == printed(capsys, str(toy / "sfsj"), "2", "--json")


def test_a_record_is_no_finding_of_validate(toy, capsys) -> None:
    main(["validate", str(toy / "sfsj")])
    assert "valid" in capsys.readouterr().out


def test_a_run_without_a_record_is_an_error(tmp_path, capsys) -> None:
    main([*TOY, "--out", str(tmp_path / "plain")])
    capsys.readouterr()
    error = error_of(capsys, "explain", str(tmp_path / "plain" / "easy"), "1")
    assert "contains no rebat_plans.npz (expected a run that recorded its plans" in error
    assert "run again with --explain" in error


def test_a_broken_record_is_an_error(tmp_path, capsys) -> None:
    main([*TOY, "--explain", "--out", str(tmp_path / "toy")])
    capsys.readouterr()
    path = tmp_path / "toy" / "easy" / "rebat_plans.npz"
    for content in (b"", b"nonsense", path.read_bytes()[:-300]):
        path.write_bytes(content)
        assert "broken record of plans" in error_of(
            capsys, "explain", str(tmp_path / "toy" / "easy"), "1"
        )


def test_several_seeds_record_no_plans(tmp_path, capsys) -> None:
    words = ["run", "toy", "-p", "easy", "--mtbf", "1min", "--downtime", "5s", "--seeds", "2"]
    error = error_of(capsys, *words, "--explain", "--out", str(tmp_path / "many"))
    assert error == "rebat: error: --explain: has no effect (expected a single seed)\n"


@pytest.mark.slow
def test_reproduce_repeats_a_run_with_its_record(toy) -> None:
    with repetition(toy) as ready:
        repeated = ready.run(None)
    assert repeated.reproduced
    assert {row.file for row in repeated.files} >= {"easy/rebat_plans.npz"}


def test_python_records_plans_too(toy, tmp_path) -> None:
    from rebat.api.failures import failures

    result = run("toy", "easy", failures=failures(file="toy"), explain=True)
    result.write(tmp_path / "toy")
    written = (tmp_path / "toy" / "easy" / "rebat_plans.npz").read_bytes()
    assert written == (toy / "easy" / "rebat_plans.npz").read_bytes()


def test_a_custom_policy_states_its_reasons(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("waits.py").write_text(WAITS)
    main(["run", "toy", "-p", "waits.py:Waits", "--explain", "--out", "out"])
    text = printed(capsys, "out/Waits", "5")
    assert "The policy states: it waits for better times.\n" in text


@pytest.mark.slow
def test_the_explorer_contains_the_story_of_each_job(toy, tmp_path, capsys, monkeypatch) -> None:
    pages = []
    monkeypatch.setattr("rebat.figures.explore.page.packed", lambda data: pages.append(data) or "")
    main(["view", str(toy), "--html", str(tmp_path / "toy.html")])
    capsys.readouterr()
    for shown in pages[0]["runs"]:
        for job, sentences in zip(shown["jobs"], shown["stories"], strict=True):
            text = printed(capsys, str(toy / shown["name"]), job)
            assert sentences.splitlines() == [line for line in text.splitlines() if line]


@pytest.mark.parametrize(
    ("name", "names", "near"),
    [
        ("20", ["3", "17", "18", "25"], ["18", "17", "25"]),
        ("prod.8", ["prod.1", "test.1"], ["prod.1", "test.1"]),
        ("x", ["1", "2", "3", "4"], ["4", "3", "2"]),
    ],
)
def test_nearest_ids(name, names, near) -> None:
    assert sorted(nearest(name, names)) == sorted(near)


def test_times_and_durations_are_rounded_down() -> None:
    assert clock(86_399.9) == "23:59:59" and clock(2 * 86_400) == "2 d 00:00:00"
    assert span(3_599.9) == "59 min 59 s" and span(7_200) == "2 h" and span(86_460) == "1 d"


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with failures, steals and checkpoints, and their plans."""
    out = tmp_path_factory.mktemp("explained") / "out"
    policies = [word for name in ("baseline", "easy", "sfsj") for word in ("-p", name)]
    failures = ["--mtbf", "2h", "--downtime", "1h"]
    main(["run", "synthetic-small", *policies, *failures, "--explain", "--out", str(out)])
    return out


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["baseline", "easy", "sfsj"])
def test_every_fact_of_a_story_is_in_the_records(policy: str, month: Path) -> None:
    assert wrong_stories(month / policy, 25, seed=0) == []
    assert len(wrong_stories(month / policy, 25, seed=0, planted=True)) == 1
