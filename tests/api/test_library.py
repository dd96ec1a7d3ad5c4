# SPDX-License-Identifier: Apache-2.0
"""The functions of ``import rebat``: their results, their errors, and the cost of the import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import rebat
from rebat.cli.main import main
from rebat.contract import Policy, Start
from rebat.policies.choosing import changed
from rebat.policies.presets import preset
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic

POLICIES = ["baseline", "sfsj"]
EVENTS = Path(__file__).parents[2] / "failure_events/synthetic-small.events"
FAILURES = rebat.failures(mtbf="30min", downtime="10min", seed=3)


@pytest.fixture(scope="module")
def toy() -> rebat.Result:
    return rebat.run("toy", POLICIES, failures=rebat.failures(file="toy"))


@pytest.fixture(scope="module")
def seeded() -> rebat.Result:
    return rebat.run("synthetic-small", POLICIES, failures=FAILURES, seeds=3, workers=1)


DATA = '<script type="text/plain" id="data">[^<]*'
"""The pattern of the packed data in a page of the explorer."""

MINE = """
from rebat import Policy
from rebat.contract import Start

class Mine(Policy):
    def plan(self, view, changes):
        free = view.n_free
        for attempt in view.queue.values():
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield Start(attempt.id)
"""


class SmallestFirst(Policy):
    def plan(self, view, changes):
        free = view.n_free
        for attempt in sorted(view.queue.values(), key=lambda a: (a.n_nodes, a.serial)):
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield Start(attempt.id)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_same(by_command: Path, by_library: Path) -> None:
    """Check that all files have the same bytes, except for the command in the provenance."""
    found = [files(by_command), files(by_library)]
    records = [json.loads(each.pop("provenance.json")) for each in found]
    sums = [each.pop("SHA256SUMS").splitlines() for each in found]
    assert found[0] == found[1]
    assert {line for line in sums[0] if b"provenance.json" not in line} < set(sums[1])
    assert [record.pop("command")[:1] for record in records] == [["run"], []]
    hashes = [[row["sha256"] for row in record.pop("inputs")] for record in records]
    assert records[0] == records[1] and hashes[0] == hashes[1]


# ---- the same as the command line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "given"),
    [
        ([], {}),
        (["--checkpoint", "young-daly", "--checkpoint-cost", "2min"],
         {"checkpoint": "young-daly", "checkpoint_cost": "2min"}),
        (["--seeds", "2", "--workers", "1"], {"seeds": 2, "workers": 1}),
        (["--nodes", "200", "--window", "0:5h", "--select", "all", "--silent-errors", "1e-9"],
         {"nodes": 200, "window": "0:5h", "select": "all", "silent_errors": 1e-9}),
    ],
)  # fmt: skip
def test_the_command_line_and_the_library_write_the_same_bytes(
    tmp_path: Path, options: list[str], given: dict
) -> None:
    name = "toy" if "checkpoint" in given else "synthetic-small"  # this one has checkpoints
    law = ["--mtbf", "30min", "--downtime", "10min", "--seed", "3"]
    main(["run", name, "-p", "baseline", "-p", "sfsj", *law, *options, "--figures",
          "--out", str(tmp_path / "cli")])  # fmt: skip
    result = rebat.run(name, POLICIES, failures=FAILURES, **given)
    result.write(tmp_path / "library", figures=True)
    assert_same(tmp_path / "cli", tmp_path / "library")


@pytest.mark.slow
def test_failures_that_come_together_are_those_of_the_command_line(tmp_path: Path) -> None:
    together = ["--failure-group", "32", "--cascade", "0.3", "--cascade-window", "20min"]
    out = ["--out", str(tmp_path / "cli")]
    main(["run", "synthetic-small", "-p", "easy", "--mtbf", "30min", *together, *out])
    failing = rebat.failures(mtbf="30min", failure_group=32, cascade=0.3, cascade_window="20min")
    rebat.run("synthetic-small", "easy", failures=failing).write(tmp_path / "library")
    assert_same(tmp_path / "cli", tmp_path / "library")
    assert failing.outages(128, most=1).shape[0] == 32


def test_a_workload_read_before_is_the_same_as_its_file(tmp_path: Path) -> None:
    small = rebat.load_workload("synthetic-small")
    rebat.run(small, "easy").write(tmp_path / "loaded")
    rebat.run("synthetic-small", "easy").write(tmp_path / "named")
    assert files(tmp_path / "loaded") == files(tmp_path / "named")


@pytest.mark.slow
def test_a_workload_made_in_python_runs_also_under_many_seeds() -> None:
    made = synthetic(1, 40)
    one = rebat.run(made, "easy", failures=FAILURES)
    many = rebat.run(made, "easy", failures=FAILURES, seeds=2, workers=2)
    of_first = many.metrics.query("seed == 3").value.tolist()
    assert of_first == one.metrics.value.tolist()


def test_a_changed_copy_is_not_taken_for_its_file() -> None:
    small = rebat.load_workload("synthetic-small")
    half = msgspec.structs.replace(small, jobs=small.jobs[:50])
    assert len(rebat.run(half, "easy").jobs) == 50
    many = rebat.run(half, "easy", failures=FAILURES, seeds=2, workers=1)
    assert many.compare("jobs").loc["easy", "jobs"] == 50


def test_a_workload_changed_in_place_is_run_as_it_is_also_under_seeds() -> None:
    toy = rebat.load_workload("toy")
    for profile in toy.profiles.values():
        profile.update(delay=1.0)
    failing = rebat.failures(mtbf="20s", downtime="2s")
    one = rebat.run(toy, "baseline", failures=failing)
    many = rebat.run(toy, "baseline", failures=failing, seeds=2, workers=1)
    assert many.metrics.query("seed == 0").value.tolist() == one.metrics.value.tolist()
    assert one.provenance["workload"]["sha256"] != toy.sha256


def test_a_file_that_has_changed_since_is_not_what_runs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    write_workload(synthetic(0, 20), path)
    loaded = rebat.load_workload(path)
    write_workload(synthetic(1, 20), path)
    ours = rebat.run(loaded, "easy", failures=FAILURES, seeds=2, workers=1)
    assert ours.compare("flow_mean_s:all").equals(
        rebat.run(synthetic(0, 20), "easy", failures=FAILURES, seeds=2, workers=1).compare(
            "flow_mean_s:all"
        )
    )


def test_a_folder_of_that_name_hides_no_shipped_input(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(["run", "toy", "-p", "easy", "--failures", "toy", "--out", "toy"])
    main(["run", "toy", "-p", "easy", "--failures", "toy", "--out", "toy", "--force"])
    assert rebat.load_workload("toy").n_nodes == 8


# ---- tables


def test_tables_of_a_run(toy: rebat.Result) -> None:
    assert toy.jobs.groupby("policy").flow.max().to_dict() == {"baseline": 25.0, "sfsj": 21.0}
    stolen = toy.attempts.query("cause == 'stolen'")
    assert stolen[["policy", "job_id", "why"]].to_numpy().tolist() == [["sfsj", "2", "for 3"]]
    assert toy.nodes.query("policy == 'sfsj'").node.tolist() == [2]
    assert set(toy.metrics.seed) == {0}


def test_the_comparison_by_policy_has_what_was_asked_for(toy: rebat.Result) -> None:
    table = toy.compare("useful_utilisation", "flow_max_s:all")
    assert table.index.tolist() == POLICIES
    assert table["flow_max_s:all"].tolist() == [25.0, 21.0]


def test_three_seeds_have_means_but_neither_intervals_nor_jobs(seeded: rebat.Result) -> None:
    rows = seeded.compare().query("metric == 'useful_utilisation' and policy == 'sfsj'")
    row = rows.iloc[0]
    assert row.seeds == 3
    assert row["mean"] > 0 and row.ratio > 0
    assert row[["low", "high", "ratio_low", "ratio_high"]].isna().all()
    with pytest.raises(rebat.InputError, match=r"jobs: not available: .* several seeds .* seed=3"):
        _ = seeded.jobs


def test_the_jobs_of_a_workload_are_a_table() -> None:
    frame = rebat.load_workload("toy").frame
    assert frame["size"].tolist() == [1, 1, 6, 6, 1]
    assert frame.run_time.notna().all()


def test_users_and_queues_are_tables_of_their_own(tmp_path: Path) -> None:
    toy = rebat.load_workload("toy")
    jobs = [
        msgspec.structs.replace(job, extra={"user": "ann" if job.n_nodes > 1 else "bob"})
        for job in toy.jobs
    ]
    owned = msgspec.structs.replace(toy, jobs=tuple(jobs))
    result = rebat.run(owned, ["baseline", "sfsj"], failures=rebat.failures(file="toy"))
    table = result.users.set_index(["policy", "user"])
    assert table.loc[("sfsj", "bob"), ["jobs", "stolen"]].tolist() == [3, 1]
    assert result.queues.empty
    result.write(tmp_path / "out")
    assert (tmp_path / "out/sfsj/rebat_users.csv").is_file()
    assert not (tmp_path / "out/sfsj/rebat_queues.csv").exists()


def test_many_policies_have_a_row_each_the_best_first(capsys, tmp_path: Path) -> None:
    names = ["baseline", "sfsj", "easy", "greedy", "r-list-0"]
    arguments = [part for name in names for part in ("-p", name)]
    failing = ["--failures", "toy", "--out", str(tmp_path / "out")]
    main(["run", "toy", *arguments, *failing, "--columns", "flow_max_s,useful_utilisation"])
    _, _, table = capsys.readouterr().out.partition("──")
    rows = [
        words[0] for line in table.splitlines() if (words := line.split()) and words[0] in names
    ]
    assert set(rows) == set(names)
    flows = rebat.run("toy", names, failures=rebat.failures(file="toy")).compare("flow_max_s:all")
    best_first = flows.sort_values("flow_max_s:all", kind="stable").index.tolist()
    assert rows == best_first


def test_an_unknown_column_lists_what_there_is(toy: rebat.Result) -> None:
    with pytest.raises(rebat.InputError, match="did you mean flow_max_s:all"):
        toy.compare("flow_maxs:all")


def test_outages_are_those_of_the_run(tmp_path: Path) -> None:
    result = rebat.run("synthetic-small", "easy", failures=FAILURES)
    drawn = FAILURES.outages(128, most=20)
    assert result.nodes[["node", "down", "up"]].head(20).equals(drawn)


def test_every_scheduler_is_listed() -> None:
    table = rebat.policies()
    assert {"baseline", "sfsj", "faps", "dbes"} <= set(table.name)
    assert "<table" in rebat.policies._repr_html_()


# ---- user-defined policies


def test_a_class_runs_beside_names(tmp_path: Path) -> None:
    result = rebat.run("toy", [SmallestFirst, "easy"])
    assert result.policies == ["SmallestFirst", "easy"]
    result.write(tmp_path / "out")
    assert (tmp_path / "out/SmallestFirst/jobs.csv").is_file()


@pytest.mark.slow
def test_a_plain_script_with_seeds_runs_once(tmp_path: Path) -> None:
    """Workers do not import the script, which has no guard for its main code."""
    script = tmp_path / "study.py"
    script.write_text(
        "import rebat\nprint('begun')\n"
        "failures = rebat.failures(mtbf='30min')\n"
        "result = rebat.run('toy', ['easy', 'sfsj'], failures=failures, seeds=3, workers=2)\n"
        "print(len(result.seeds.seeds), __file__)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["begun", f"3 {script}"]


def test_a_policy_that_fails_is_told() -> None:
    class Idle(Policy):
        def plan(self, view, changes):
            return []

    with pytest.warns(UserWarning, match="failed: policy Idle"):
        result = rebat.run("toy", ["baseline", Idle])
    assert result.policies == ["baseline"]
    assert "failed: policy Idle" in " ".join(repr(result).split())
    assert list(result.failed) == ["Idle"]
    why = re.escape(f"policy Idle: {result.failed['Idle']}")
    for access in (result.run_of, lambda name: result.explore(None, name)):
        with pytest.raises(rebat.PolicyError, match=f"^{why}$"):
            access("Idle")
    table = result.compare("flow_max_s:all")
    assert list(table.index) == ["baseline", "Idle"]
    assert table["flow_max_s:all"].isna().tolist() == [False, True]
    assert result.run_of("baseline").summary.n_nodes == 8
    with pytest.raises(rebat.InputError, match="unknown policy 'idle'"):
        result.run_of("idle")


def test_when_the_first_policy_fails_it_is_said_to_what_ratios_are() -> None:
    class Idle(Policy):
        def plan(self, view, changes):
            return []

    with pytest.warns(UserWarning, match="failed: policy Idle: .*; ratios are to baseline"):
        result = rebat.run("toy", [Idle, "baseline", "sfsj"])
    assert result.policies == ["baseline", "sfsj"]
    with pytest.raises(rebat.PolicyError, match="policy Idle: "):
        rebat.run("toy", Idle)


def test_writing_to_a_file_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(rebat.InputError, match="file: is a file"):
        rebat.run("toy", "baseline").write(tmp_path / "file", force=True)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_a_class_in_a_file_goes_by_its_name_also_under_many_seeds(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    spec = f"{tmp_path}/mine.py:Mine"
    one = rebat.run("toy", ["easy", spec], failures=FAILURES)
    many = rebat.run("toy", ["easy", spec], failures=FAILURES, seeds=2, workers=2)
    assert one.policies == many.policies == ["easy", "Mine"]


def test_a_preset_with_other_axes_cannot_go_to_workers() -> None:
    base = preset("baseline")
    other = msgspec.structs.replace(base, point=changed(base.point, {"depth": "easy"}))
    assert rebat.run("toy", other).policies == ["baseline"]
    assert rebat.run("toy", base, failures=FAILURES, seeds=2, workers=1).policies == ["baseline"]
    with pytest.raises(
        rebat.InputError, match="baseline differs from the preset with the same name"
    ):
        rebat.run("toy", other, failures=FAILURES, seeds=2)


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(rebat.InputError, match="class int has no method plan, react"):
        rebat.run("toy", int)


# ---- invalid arguments


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"checkpoint_cost": "1min"}, "checkpoint_cost: has no effect .*checkpoint young-daly"),
        ({"checkpoint": "young"}, "checkpoint: Invalid .*none, young-daly, perfect or tiers:auto"),
        ({"checkpoints": "none"}, "option of run 'checkpoints'; did you mean checkpoint"),
        ({"mtbf": "1h", "failures": FAILURES}, "mtbf: has no effect .*only one of mtbf and fail"),
        ({"failures": 3}, r"failures: is 3 .*rebat\.failures"),
        ({"mtbf": ["1h", "2h"]}, "mtbf: has 2 values .*sweep"),
        ({"workers": 2}, "workers: has no effect"),
        ({"seeds": 1}, "seeds: is 1"),
        ({"seeds": 2}, "seeds: has no effect: nothing is random"),
        ({"silent_errors": -1.0}, "silent_errors"),
        ({"nodes": 0}, "nodes: is 0 .expected a whole number, at least 1"),
        ({"seeds": 2, "workers": 0}, "workers: is 0 .expected a whole number, at least 1"),
        ({"until_width": -1}, "until_width: is -1 .expected a number, above 0"),
        ({"window": 3}, "window: is 3 .expected a text"),
        ({"failures": rebat.failures(f"record:file={EVENTS}"), "seeds": 2}, "turn=true in the law"),
        (
            {"failures": rebat.failures(file=EVENTS.with_name("toy.events")), "seeds": 2},
            "record:file=.*,turn=true",
        ),
        ({"window": "3d"}, "window: '3d' is not a window"),
        ({"failures": FAILURES, "seed": 3}, "seed: has no effect"),
        ({"failures": rebat.failures(failure_group=4)}, "failure_group: has no effect"),
        ({"failures": rebat.failures(downtime="5s")}, "downtime: has no effect"),
    ],
)
def test_options_without_effect_are_refused_as_python_spells_them(given, message) -> None:
    with pytest.raises(rebat.InputError, match=message) as error:
        rebat.run("toy", "easy", **given)
    assert "--" not in str(error.value)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    failing = rebat.failures(mtbf=np.float64(1800), seed=np.int64(3))
    rebat.run("toy", "easy", failures=failing, nodes=np.int64(9)).write(tmp_path / "out")
    with pytest.raises(rebat.InputError, match=r"seed: is 1\.5 .expected a whole number"):
        rebat.failures(mtbf="1h", seed=1.5)


def test_an_unknown_name_lists_what_is_shipped() -> None:
    with pytest.raises(rebat.InputError, match=r"did you mean toy\?.*mira-like-june-2017"):
        rebat.run("toi", "easy")


def test_a_warning_says_what_failures_will_not_let_finish() -> None:
    with (
        pytest.warns(UserWarning, match="are unlikely to complete"),
        pytest.raises(rebat.RebatError),
    ):
        rebat.run(
            "synthetic-small", "easy", failures=rebat.failures(mtbf="1s", horizon="10s"), nodes=1
        )


# ---- display


@pytest.mark.slow
def test_notebooks_show_tables_and_pictures(toy: rebat.Result, seeded: rebat.Result) -> None:
    assert toy._repr_html_().startswith("<p>sfsj against baseline: useful utilisation +19.6 %")
    assert "<table>" in toy._repr_html_()
    assert "changes against baseline" in " ".join(repr(toy).split())
    for plot in (toy.plot_flows(), toy.plot_gantt("0:10s"), toy.plot_utilisation()):
        assert plot._repr_png_().startswith(b"\x89PNG")
    assert seeded.plot_ratios()._repr_png_().startswith(b"\x89PNG")
    assert "<workload toy: 5 jobs" in repr(rebat.load_workload("toy"))
    assert "[" in seeded._repr_html_()


@pytest.mark.slow
def test_the_page_needs_no_other_file(toy: rebat.Result, tmp_path: Path) -> None:
    text = toy.to_html(tmp_path / "toy.html")
    assert (tmp_path / "toy.html").read_text() == text
    assert "http" not in text
    assert "<script" not in text
    assert "data:image/png;base64," in text


@pytest.mark.slow
def test_runs_can_be_explored_from_a_notebook(toy: rebat.Result, tmp_path: Path) -> None:
    """The page equals that of 'rebat view' for the same result."""
    toy.write(tmp_path / "toy.json")
    main(["view", str(tmp_path / "toy.json"), "--html", str(tmp_path / "view.html")])
    assert toy.explore(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
    ours, theirs = ((tmp_path / name).read_text() for name in ("page.html", "view.html"))
    assert re.findall(DATA, ours) == re.findall(DATA, theirs)
    assert toy.explore() == ours  # the same if called again
    with pytest.raises(rebat.InputError, match="unknown policy 'nobody'"):
        toy.explore(None, "nobody")


@pytest.mark.slow
def test_names_are_text_in_pages(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    evil = msgspec.structs.replace(rebat.load_workload("toy"), name=name, notes=(name,))
    assert name not in rebat.run(evil, "easy").to_html()
    assert name not in evil._repr_html_()


def test_importing_is_light() -> None:
    heavy = ("numpy", "pandas", "numba", "matplotlib", "scipy", "click")
    code = f"import sys, rebat; dir(rebat); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_values_are_those_of_pandas(toy: rebat.Result) -> None:
    for frame in (toy.jobs, toy.attempts, toy.nodes, toy.metrics, toy.compare()):
        assert isinstance(frame, pd.DataFrame)
        assert "policy" in frame.columns
