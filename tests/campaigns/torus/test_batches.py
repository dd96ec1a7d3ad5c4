# SPDX-License-Identifier: Apache-2.0
"""Campaigns of batches on a torus: units, results, errors, and their report."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_pages, write_report
from rebat.core.errors import InputError
from rebat.core.numbers import share
from rebat.models.batch import Batch, run_batch
from rebat.models.failures.per_node_laws import Weibull, system_mttf_s
from rebat.report.claims import extreme
from rebat.results.intervals import Interval, interval
from rebat.shipped.campaigns.torus import report
from rebat.shipped.campaigns.torus.batches import GAINS, TABLE_1, Batches, Trace, batches
from rebat.shipped.campaigns.torus.claims import judgements
from rebat.shipped.campaigns.torus.units import COLUMNS, KIND, FailureHorizon, densities
from tests.support.campaigns import contents, n_run, run_here

CAMPAIGNS = Path(__file__).parents[3] / "campaigns" / "torus"

SMALL = """
name = "small"
units = "torus/units.py"

[law.short]
law = "weibull"
scale = "50h"
shape = 4
scale_sigma = "2h"

[law.paper]
law = "weibull"
scale = "5800h"
shape = 8

[[grid]]
name = "batches"
torus = "4x4x2"
size = 8
jobs = 20
durations = ["30min", "2h"]
laws = ["short"]
policies = ["slurm-linear", "rps", "faps"]
lists = ["16", "all"]
seeds = [0, 1, 2]

[[grid]]
name = "traces"
torus = "4x4x2"
laws = ["short", "paper"]
horizon = "20000h"
seeds = [0, 1]
"""
"""2 durations x 5 cases x 3 seeds + 2 laws x 2 seeds = 34 units."""


def small(folder: Path, text: str = SMALL) -> Path:
    file = folder / "small.toml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Run a campaign; return its file and its results."""
    folder = tmp_path_factory.mktemp("batch")
    file = small(folder)
    run_here(file, folder / "r")
    return file, folder / "r"


def test_every_result_is_that_of_its_batch(ran: tuple[Path, Path]) -> None:
    file, results = ran
    rows = pq.read_table(results / "results.parquet").to_pylist()
    value = {(row["key"], row["metric"]): row["value"] for row in rows}
    units = open_campaign(file).units
    assert len(units) == len({unit.key for unit in units}) == 34
    for unit in units:
        spec = unit.spec
        if isinstance(spec, Batch):
            expected = run_batch(spec)
            assert value[unit.key, "completion_s"] == expected.completion_s
            assert value[unit.key, "aborts"] == expected.aborts
        else:
            assert isinstance(spec, FailureHorizon)
            mttf_s = system_mttf_s(spec.law, 32, spec.seed, spec.horizon_s)
            assert value[unit.key, "system_mttf_s"] == mttf_s
            mean_s = spec.law.nodes(32, spec.seed).mean_s().mean()
            assert value[unit.key, "node_mttf_s"] == mean_s


def test_the_columns_say_what_it_was(ran: tuple[Path, Path]) -> None:
    rows = pq.read_table(ran[1] / "results.parquet").to_pylist()
    names = ("trace", "torus", "size", "jobs", "duration_s", "policy", "list", "horizon_s", "seed")
    found = {tuple(row[name] for name in names) for row in rows if row["grid"] == "batches"}
    cases = [("slurm-linear", None), *((p, w) for p in ("rps", "faps") for w in ("16", "all"))]
    assert found == {
        ("short", "4x4x2", 8, 20, duration_s, *case, None, seed)
        for duration_s in (1800.0, 7200.0)
        for case in cases
        for seed in range(3)
    }
    found = {tuple(row[name] for name in names) for row in rows if row["grid"] == "traces"}
    blank = (None,) * 5
    assert found == {
        (trace, "4x4x2", *blank, 72e6, seed) for trace in ("short", "paper") for seed in (0, 1)
    }


def test_results_do_not_depend_on_how_often_it_was_stopped(ran, tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    assert n_run(run_here(file, results, limit=7)[1]) == 7
    assert n_run(run_here(file, results)[1]) == 27
    assert n_run(run_here(file, results)[1]) == 0
    assert contents(results) == contents(ran[1])


CHANGES = {
    "the name of a law": ('"short"', '"brief"', 0),
    "the repair": ("shape = 4\n", 'shape = 4\ndowntime = "1h"\n', 30),
    "a law": ("shape = 8", "shape = 9", 2),
    "the size": ("size = 8", "size = 16", 30),
    "the jobs": ("jobs = 20", "jobs = 21", 30),
    "the horizon": ("20000h", "20001h", 4),
    "a list": ('"16", "all"', '"16", "aligned"', 12),
}


@pytest.mark.parametrize("case", CHANGES)
def test_only_what_determines_a_result_makes_its_key(case: str, tmp_path: Path) -> None:
    """Repairs do not delay failures: failure records do not depend on the time to repair."""
    old, new, n_new = CHANGES[case]
    text = SMALL.replace(old, new).replace(
        "[law.short]", "[law.brief]" if n_new == 0 else "[law.short]"
    )
    before = {unit.key for unit in open_campaign(small(tmp_path)).units}
    after = {unit.key for unit in open_campaign(small(tmp_path, text)).units}
    assert len(after - before) == n_new


BAD = {
    "size beyond the torus": ("size = 8", "size = 33", "grid[0]: no box of 33 nodes"),
    "extent of zero": ("4x4x2", "4x0x2", "grid[0].torus: invalid torus"),
    "no size": ("size = 8\n", "", "grid[0].size: is missing (expected a whole number"),
    "unknown key": ("jobs = 20", "job = 20", "grid[0]: unknown key 'job'"),
    "unknown policy": ('"rps"', '"rsp"', "grid[0]: unknown policy of a batch 'rsp'"),
    "unknown list": ('"16", "all"', '"16", "some"', "grid[0]: unknown list of boxes 'some'"),
    "no list": ('lists = ["16", "all"]\n', "", "grid[0].lists: is missing"),
    "unknown trace": ('laws = ["short"]', 'laws = ["long"]', "grid[0].laws: unknown law 'long'"),
    "unknown law": ('law = "weibull"', 'law = "wei"', "law.short: unknown failure law 'wei'"),
    "law of the machine": (
        'law = "weibull"\nscale = "50h"\nshape = 4\nscale_sigma = "2h"',
        'law = "poisson"\nmtbf = "1h"', "law.short: the law has no parameters per node",
    ),
    "no law": ('law = "weibull"\n', "", "law.short.law: is missing"),
    "no duration": ('["30min", "2h"]', "[]", "grid[0].durations: is empty"),
    "duration twice": (
        '["30min", "2h"]', '["30min", 1800]', "grid[0].durations: lists 1800.0 twice",
    ),
    "duration of zero": ('"30min"', "0", "grid[0].durations: is 0"),
    "horizon no duration": ("20000h", "long", "grid[1].horizon: 'long' is not a duration"),
    "seed below zero": ("[0, 1, 2]", "[-1]", "grid[0].seeds: is -1"),
    "seed twice": ("[0, 1, 2]", "[1, 1]", "grid[0].seeds: lists 1 twice"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    old, new, said = BAD[case]
    assert old in SMALL
    with pytest.raises(InputError) as error:
        open_campaign(small(tmp_path, SMALL.replace(old, new, 1)))
    assert f"small.toml: {said}" in str(error.value)


# ---- the shipped files


def test_the_full_file_is_the_papers_evaluation() -> None:
    batches = [u.spec for u in open_campaign(CAMPAIGNS / "full.toml").units if u.grid != "table 1"]
    assert {(b.size, b.n_jobs, str(b.torus), b.law.downtime_s) for b in batches} == {
        (256, 1000, "8x8x8x8", 540.0), (512, 1000, "8x8x8x8", 540.0),
    }  # fmt: skip
    drawn = [b for b in batches if b.size == 256 and b.policy != "ceiling"]
    assert len(drawn) == 700
    assert {b.duration_s / 3600 for b in drawn} == {4, 8, 24, 48, 72}
    assert {law_of(b) for b in drawn} == {(5800, 8), (5800, 32), (22000, 8), (22000, 32)}
    assert {law_of(b) for b in batches if b.size == 512} == {(16000, 8), (16000, 32)}


@pytest.mark.parametrize("name", ["quick", "full"])
def test_table_1_has_the_papers_traces(name: str) -> None:
    units = [u for u in open_campaign(CAMPAIGNS / f"{name}.toml").units if u.grid == "table 1"]
    assert all(unit.spec.horizon_s == 10 * 8760 * 3600 for unit in units)
    found = {unit.labels["trace"]: law_of(unit.spec) for unit in units}
    assert found == {f"trace{row.number}": trace for trace, row in TABLE_1.items()}


def law_of(spec: Batch | FailureHorizon) -> tuple[float, float]:
    assert isinstance(spec.law, Weibull)
    return spec.law.scale_s / 3600, spec.law.shape


# ---- the report


@pytest.mark.slow
def test_the_report(tmp_path: Path) -> None:
    """The report has every part, and is written with the same bytes again.

    The runs are of a small torus, with the name of the paper's torus.
    """
    text = (CAMPAIGNS / "full.toml").read_text().replace("8x8x8x8", "4x4x4x8")
    text = text.replace("jobs = 1000", "jobs = 2").replace("87600h", "20000h")
    file = small(tmp_path, text)
    run_here(file, tmp_path / "r")
    table = pd.read_parquet(tmp_path / "r" / "results.parquet")
    table.assign(torus="8x8x8x8", jobs=1000).to_parquet(tmp_path / "r" / "results.parquet")
    opened = open_campaign(file)
    page, words = (p.read_text() for p in write_report(opened, tmp_path / "r", tmp_path / "a"))
    again = write_report(opened, tmp_path / "r", tmp_path / "b")
    assert [path.read_text() for path in again] == [page, words]
    kept = write_pages(tmp_path / "a" / "results.parquet", tmp_path / "c")
    assert [path.read_text() for path in kept] == [page, words]
    assert page.count("<svg") == 4
    for said in ("Table 1", "Figure 3", "Figure 4", "The paper contains contradictions", "46.8 %"):
        assert said in words
    for said in ("Figure 2", "Figure 3", "Figure 4"):
        assert f'<span class="paper">{said}' in page
    judged = [ln for ln in words.splitlines() if ln.startswith("|") and "| with FAPS jobs" in ln]
    assert len(judged) == 3 * sum(map(len, GAINS.values()))  # for each list
    cells = [line.split(" | ") for line in judged]
    assert {row[3] for row in cells} <= {"holds", "contradicted", "undecided"}
    assert {row[4] for row in cells} <= {"inside", "near", "outside"}


@pytest.mark.parametrize(
    "other",
    [
        ("8x8x8x8", "8x8x64"),
        ("jobs = 1000", "jobs = 999"),
        ("shape = ", 'downtime = "1h"\nshape = '),
    ],
)
def test_the_papers_claims_are_about_its_torus_jobs_and_repair(other, tmp_path: Path) -> None:
    """Results with another torus, number of jobs or repair are no evidence about the claims."""
    text = (CAMPAIGNS / "full.toml").read_text()
    assert other[0] in text
    units = open_campaign(small(tmp_path, text.replace(*other))).units
    batches = [
        u for u in units if u.labels["trace"] in ("trace1", "trace7") and u.labels["seed"] < 2
    ]
    rows = [
        {"kind": "batch", **dict.fromkeys(COLUMNS), **unit.labels, "metric": metric, "value": 4e6}
        for unit in batches
        for metric in ("completion_s", "aborts", "node_mttf_s", "system_mttf_s")
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    found = KIND.report(tmp_path / "t.parquet", KIND.gather(units), [])
    judged = {judgement.rule for judgement in found.judgements}
    # failures do not depend on the number of jobs
    assert judged == ({"mean over seeds"} if "jobs" in other[0] else set())
    assert [picture.paper for picture in found.pictures] == ["Figure 2"]
    papers = {table.paper for table in found.tables}
    assert papers == ({"Table 1", "not in the paper"} if judged else {"not in the paper"})
    assert f"on a torus ({units[0].labels['torus']})" in found.lead


def evidence_of(
    hours: dict[tuple[str, str | None], list[float]],
    folder: Path,
    laws: dict[str, Trace],
    hours_of_a_job: int = 72,
) -> Batches:
    """Return results of the paper's jobs from completion times per seed, by policy and list."""
    rows = [
        {
            "kind": "batch", "trace": trace, "torus": "8x8x8x8", "size": 256, "jobs": 1000,
            "duration_s": hours_of_a_job * 3600.0, "policy": policy, "list": which, "seed": seed,
            "metric": "completion_s", "value": value * 3600,
        }
        for trace in laws
        for (policy, which), values in hours.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip
    pd.DataFrame(rows).to_parquet(folder / "t.parquet")
    return Batches(batches(folder / "t.parquet"), laws)


TIMES = {
    ("slurm-linear", None): [100_000.0, 110_000.0, 90_000.0, 100_000.0, 100_000.0],
    ("faps", "16"): [91_000.0, 106_000.0, 82_000.0, 96_000.0, 92_000.0],
    ("faps", "all"): [93_500.0, 102_800.0, 84_200.0, 93_500.0, 93_500.0],
}
"""Gains of 6.7 ± 3.0 % with list 16, and of 6.5 ± 0.1 % with all boxes, which is nearer to 6.3 %.
"""


def test_every_list_is_judged_by_the_number_beside_it(tmp_path: Path) -> None:
    evidence = evidence_of(TIMES, tmp_path, {"trace8": (22000, 32)})
    judged = [j for j in judgements(evidence) if "jobs of 72 h complete 6.3 %" in j.claim]
    assert [j.workload for j in judged] == ["trace8, list 16", "trace8, list all"]
    assert [j.direction for j in judged] == ["holds", "holds"]
    assert [j.size for j in judged] == ["inside", "outside"]
    for judgement in judged:
        which = judgement.workload.split()[-1]
        pairs = zip(TIMES["faps", which], TIMES["slurm-linear", None], strict=True)
        assert judgement.estimate == interval([1 - mine / theirs for mine, theirs in pairs])


def test_two_names_of_one_law_are_refused(tmp_path: Path) -> None:
    evidence = evidence_of(TIMES, tmp_path, {"a": (22000, 32), "b": (22000, 32)})
    with pytest.raises(InputError, match="law: a and b are the same law"):
        list(judgements(evidence))


def test_the_extreme_of_several_has_an_interval_for_all_jointly() -> None:
    samples = [{1: 2.0, 2: 4.0, 3: 6.0, 4: 4.0, 5: 4.0}, {}, dict.fromkeys(range(5), 1.0),
               {4: 0.0, 5: 3.0}]  # fmt: skip
    largest, smallest = extreme(max, samples), extreme(min, samples)
    assert largest == interval(samples[0], among=3)
    assert (largest.mean, largest.n) == (4.0, 5)
    assert smallest == Interval(1.0, 1.0, 1.0, 5, (1.0, 1.0))
    assert extreme(max, [{}]) is None
    assert extreme(max, [{0: 0.9}, {0: 1.05}, {0: 0.97}], distance_from=1.0).mean == 0.9


def test_worse_by_chance_is_not_worse(tmp_path: Path) -> None:
    """The smallest of several means is judged by its entire interval."""
    linear = [100.0] * 5
    for faps, direction in (
        ([100.4, 100.5, 100.6, 100.5, 100.5], "holds"),
        ([100.1, 99.1, 101.1, 100.1, 100.1], "undecided"),
    ):
        hours = {("slurm-linear", None): linear, ("faps", "all"): faps}
        evidence = evidence_of(hours, tmp_path, {"trace7": (22000, 8)}, hours_of_a_job=4)
        (judged,) = [j for j in judgements(evidence) if "marginally worse" in j.claim]
        assert judged.direction == direction


def test_gains_are_paired_by_seed(ran: tuple[Path, Path], tmp_path: Path) -> None:
    file, results = ran
    rows = pq.read_table(results / "results.parquet").to_pylist()
    hours = {
        (row["policy"], row["list"], row["seed"]): row["value"]
        for row in rows
        if row["metric"] == "completion_s" and row["duration_s"] == 7200
    }
    gains = [1 - hours["faps", "all", s] / hours["slurm-linear", None, s] for s in range(3)]
    mean = interval(gains)
    text = write_report(open_campaign(file), results, tmp_path)[1].read_text()
    (line,) = (li for li in text.splitlines() if li.startswith("| 2 h | faps | all |"))
    assert f"| {share(mean.mean)} |" in line


def test_seeds_may_leave_a_claim_undecided(tmp_path: Path) -> None:
    hours = {("slurm-linear", None): [100.0] * 5, ("faps", "all"): [99.0, 95.0, 94.0, 93.0, 97.0]}
    for mine, direction, size in (
        (hours["faps", "all"], "undecided", "outside"), ([10.0, 40.0, 5.0, 30.0, 9.0], "holds",
                                                         "inside"),
    ):  # fmt: skip
        hours["faps", "all"] = mine
        batches_ = evidence_of(hours, tmp_path, {"trace7": (22000, 8)})
        (verdict,) = [j for j in judgements(batches_) if "all traces" in j.workload]
        assert (verdict.direction, verdict.size) == (direction, size)


def test_the_densities_of_figure_2_integrate_to_one() -> None:
    """The area under each density is 1; each mode is where the formula has it."""
    for name, points in densities((4.0, 32.0)).items():
        area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
        assert area == pytest.approx(1.0, abs=2e-3), name
        peak = max(points, key=lambda point: point[1])[0]
        shape = float(name.removeprefix("shape "))
        assert peak == pytest.approx(2160 * ((shape - 1) / shape) ** (1 / shape), abs=10)


def test_conventions_are_compared_by_the_gains_that_they_explain(tmp_path: Path) -> None:
    """The paper's gain over Slurm-linear is 6.3 % for scale 22000 h, shape 32 and jobs of 72 h."""
    rows = [
        {
            "kind": "batch", "trace": "trace8", "torus": "8x8x8x8", "size": 256, "jobs": 1000,
            "begin_s": begin_s, "trace_end_s": None, "duration_s": 72 * 3600.0, "policy": policy,
            "list": which, "seed": seed, "metric": "completion_s",
            "value": (value + 100 * (seed - 2)) * 3600,
        }
        for begin_s, faps in ((None, 99_000.0), (3.6e6, 93_700.0))
        for policy, which, value in (("slurm-linear", None, 100_000.0), ("faps", "all", faps))
        for seed in range(5)
    ]  # fmt: skip
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    evidence = Batches(batches(tmp_path / "t.parquet"), {"trace8": (22000, 32)})
    counts, gains = report.convention_tables(evidence)
    assert counts.rows == [
        ["machine aged 1,000 h", "all", "1", "0", "0"], ["new machine", "all", "0", "0", "1"],
    ]  # fmt: skip
    assert len(gains.rows) == 2
    assert [j.size for j in judgements(evidence) if "6.3 %" in j.claim] == ["outside"]
