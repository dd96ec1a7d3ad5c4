# SPDX-License-Identifier: Apache-2.0
"""Properties of every failure law; a new law needs only a module and a row in a table."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import Store
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, to_us
from rebat.models.failures import laws
from rebat.models.failures.events import check_alternation, read_events, write_events
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import DrawnEvents, Law, Outage, events_of, generate_events
from rebat.models.failures.per_node_laws import Exponential, Gamma, LogNormal, Weibull
from rebat.models.failures.recorded import Recorded, Trace
from rebat.models.failures.renewal import Authors, Poisson, Renewal, Scaled
from rebat.runs.simulating import simulate_run
from tests.support.campaigns import GRID, campaign_file
from tests.support.paired import Paired

EXAMPLES = {
    "authors": Authors(100.0, 50.0),
    "poisson": Poisson(100.0, 50.0),
    "renewal": Renewal(100.0, 50.0),
    "paired": Paired(40_000.0, 0.7),
    "weibull": Weibull(40_000.0, 0.7),
    "gamma": Gamma(20_000.0, 2.0),
    "lognormal": LogNormal(40_000.0, 1.0),
    "exponential": Exponential(40_000.0),
    "fleet": Fleet(2160.0, causes="gpu=3+software=1", repair="50", rack=2, rack_share=0.1),
    "scaled": Scaled(400 * 100.0, 50.0, 0.7, 1.0),
}
NAMES = sorted(EXAMPLES)


@pytest.fixture
def paired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the row that registers the law."""
    monkeypatch.setitem(laws.LAWS, "paired", Paired)


def test_every_law_that_draws_is_tried_here() -> None:
    recorded = {Recorded}  # has no probabilities; tested in test_recorded
    drawn = {kind for kind in laws.LAWS.values() if kind.drawn} - recorded
    assert drawn <= {type(law) for law in EXAMPLES.values()}


@pytest.mark.parametrize("name", NAMES)
def test_outages_come_by_date_and_alternate(name: str) -> None:
    events = generate_events(EXAMPLES[name], 400, horizon_s=100_000, seed=3)
    assert len(events) > 400
    check_alternation(events, 400)
    assert events == generate_events(EXAMPLES[name], 400, horizon_s=100_000, seed=3)
    assert events != generate_events(EXAMPLES[name], 400, horizon_s=100_000, seed=4)


@pytest.mark.parametrize("name", NAMES)
def test_events_are_drawn_no_further_than_they_are_looked_at(name: str) -> None:
    drawn, law = [], EXAMPLES[name]

    class Watched(Law, frozen=True):
        def outages(self, n_nodes: int, seed: int):
            for outage in law.outages(n_nodes, seed):
                drawn.append(outage)
                yield outage

    events = list(itertools.islice(DrawnEvents(Watched(), 400), 20))
    assert len(drawn) <= len(events)
    assert events == list(itertools.islice(law.events(400), 20))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("duration_s", [4_000.0, 40_000.0])
def test_survival_is_the_share_of_nodes_that_were_up_all_along(name, duration_s) -> None:
    n_nodes = 4000
    law = EXAMPLES[name]
    law = type(law)(10.0, 1e-6) if name in {"authors", "poisson", "renewal"} else law
    end_us = to_us(duration_s)
    outages = itertools.takewhile(lambda o: o.down_us < end_us, law.outages(n_nodes, 5))
    hit = {node for outage in outages for node in outage.nodes}
    expected = law.survival(0.0, duration_s, n_nodes)
    spread = math.sqrt(expected * (1 - expected) / (n_nodes / 2))
    assert 1 - len(hit) / n_nodes == pytest.approx(expected, abs=4 * spread)


@pytest.mark.parametrize("name", NAMES)
def test_to_survive_a_while_and_then_another_is_to_survive_both(name: str) -> None:
    law = EXAMPLES[name]
    both = law.survival(100.0, 3000.0, 64)
    assert law.survival(100.0, 1000.0, 64) * law.survival(1100.0, 2000.0, 64) == pytest.approx(both)
    assert law.survival(100.0, 0.0, 64) == 1.0
    assert 0 < both < 1


def test_repairs_come_by_their_dates_and_never_for_what_stays_down() -> None:
    first, second, third = NodeSet.of([1, 2]), NodeSet.of([3]), NodeSet.of([4])
    outages = [Outage(0, 50, first), Outage(10, 20, second), Outage(30, FOREVER_US, third)]
    told = [(event.at_us, event.available, event.nodes) for event in events_of(outages)]
    assert told == [
        (0, False, first), (10, False, second), (20, True, second), (30, False, third),
        (50, True, first),
    ]  # fmt: skip


def test_a_horizon_keeps_the_failures_before_it_and_the_authors_one_more() -> None:
    for law, beyond in ((EXAMPLES["poisson"], 0), (EXAMPLES["authors"], 1)):
        outages = list(itertools.islice(law.outages(100, 0), 50))
        horizon_us = outages[20].down_us
        kept = list(law.until(iter(outages), horizon_us / 1e6))
        assert len(kept) == 20 + beyond


BAD = {
    "no such law": ("x:mtbf=1h", "--law: unknown failure law 'x'"),
    "no such parameter": ("poisson:mtbf=1h,shape=2", "unknown parameter of poisson 'shape'"),
    "a parameter is missing": ("paired:shape=1", "paired: parameter scale is missing"),
    "nothing": ("", "--law: unknown failure law ''"),
    "no value": ("poisson:mtbf", "'mtbf' is not PARAMETER=VALUE"),
    "empty value": ("poisson:mtbf=", "'mtbf=' is not PARAMETER=VALUE"),
    "two values": ("poisson:mtbf=1h,mtbf=2h", "parameter mtbf has two values"),
    "no duration": ("poisson:mtbf=soon", "mtbf: 'soon' is not a duration"),
    "zero": ("poisson:mtbf=0", "mtbf: is 0 s"),
    "no number": ("paired:scale=1h,shape=round", "shape: is 'round'"),
    "no finite number": ("paired:scale=1h,shape=inf", "shape: is inf"),
}


@pytest.mark.usefixtures("paired")
@pytest.mark.parametrize("case", BAD)
def test_a_law_that_cannot_be_is_one_line(case: str, tmp_path: Path, capsys) -> None:
    text, told = BAD[case]
    out = tmp_path / "f.events"
    with pytest.raises(SystemExit) as left:
        main(["failures", "generate", "--nodes", "8", "--law", text, "-o", str(out)])
    error = capsys.readouterr().err
    assert left.value.code == 2
    assert error.count("\n") == 1
    assert told in error
    assert not out.exists()


def run(workload: Path, out: Path, *options: str) -> bytes:
    """The schedule of a run."""
    main(["run", str(workload), "-p", "sfsj", *options, "--out", str(out)])
    return (out / "sfsj" / "jobs.csv").read_bytes()


@pytest.mark.usefixtures("paired")
def test_a_new_law_runs_and_generates_as_the_others(tmp_path: Path, capsys) -> None:
    workload = campaign_file(tmp_path).parent / "one.json"
    law = ["--law", "paired:scale=40h,shape=0.8", "--seed", "4"]
    drawn = run(workload, tmp_path / "drawn", *law, "--horizon", "2d")
    events = tmp_path / "f.events"
    main(["failures", "generate", "--nodes", "128", *law, "--horizon", "2d", "-o", str(events)])
    assert run(workload, tmp_path / "read", "--failures", str(events)) == drawn
    assert run(workload, tmp_path / "without") != drawn
    summary = json.loads((tmp_path / "drawn/sfsj/summary.json").read_text())
    assert summary["options"]["law"] == {"name": "paired", "scale_s": 144_000.0, "shape": 0.8}
    main(["run", "--help"])
    assert "paired:scale=DURATION,shape=NUMBER" in capsys.readouterr().out


LAW_GRID = """
[[grid]]
name = "small"
workloads = ["one"]
policies = ["baseline", "sfsj"]
failure_free = ["baseline"]
[grid.failures]
law = "paired"
scale = ["40h", "80h"]
shape = 0.8
seeds = [0, 1]
[grid.checkpoint]
mtbf = "1h"
"""


@pytest.mark.usefixtures("paired")
def test_a_new_law_is_a_campaign_as_the_others(tmp_path: Path) -> None:
    import pandas as pd

    file, results = campaign_file(tmp_path, LAW_GRID), tmp_path / "results"
    main(["campaign", "run", str(file), "--results", str(results), "--workers", "1"])
    table = pd.read_parquet(results / "results.parquet")
    steals = table[(table.metric == "steals") & (table.failure_model == "paired")]
    assert len(steals) == 2 * 2 * 2
    assert set(steals.law) == {"scale=40h,shape=0.8", "scale=80h,shape=0.8"}
    assert steals.mtbf_s.isna().all()
    hit = table[(table.metric == "failures_hit") & (table.policy == "sfsj")]
    assert hit[hit.failure_model == "paired"].value.sum() > 0
    main(["campaign", "report", str(file), "--results", str(results)])
    report = (results / "report/report.md").read_text()
    assert "failures paired:scale=40h,shape=0.8" in report


def test_a_short_form_is_its_law(tmp_path: Path) -> None:
    workload = campaign_file(tmp_path).parent / "one.json"
    short = run(workload, tmp_path / "a", "--mtbf", "30min", "--failure-model", "poisson")
    assert run(workload, tmp_path / "b", "--law", "poisson:mtbf=30min,downtime=1h") == short
    other = run(workload, tmp_path / "c", "--law", "poisson:mtbf=30min,downtime=10min")
    assert other != short
    period = ["--checkpoint", "young-daly"]
    short = run(workload, tmp_path / "d", "--mtbf", "30min", *period)
    assert run(workload, tmp_path / "e", "--law", "authors:mtbf=30min", *period) == short


BESIDE = {
    "MTBF": (["--mtbf", "1h"], "--mtbf"),
    "downtime": (["--downtime", "1h"], "--downtime"),
    "model": (["--failure-model", "poisson"], "--failure-model"),
    "file": (["--failures", "f.events"], "--failures"),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_a_law_says_itself_is_refused_beside_it(case: str, tmp_path: Path, capsys) -> None:
    options, name = BESIDE[case]
    workload = campaign_file(tmp_path).parent / "one.json"
    with pytest.raises(SystemExit) as left:
        run(workload, tmp_path / "out", "--law", "authors:mtbf=1h", *options)
    error = capsys.readouterr().err
    assert left.value.code == 2
    assert f"{name}: has no effect" in error
    assert not (tmp_path / "out").exists()


def test_the_key_of_a_law_is_its_name_and_parameters(tmp_path: Path) -> None:
    (run_,) = {r.key: r for r in open_campaign(campaign_file(tmp_path)).units
               if r.spec.scenario.failures and r.spec.policy == "sfsj" and r.spec.workload == "one"
               and r.spec.scenario.failures.seed == 1}.values()  # fmt: skip
    assert run_.identity["failures"] == {
        "model": "authors", "mtbf_s": 1800.0, "downtime_s": 600.0, "seed": 1,
        "horizon_s": 864_000.0,
    }  # fmt: skip
    spelt = campaign_file(tmp_path / "b", GRID.replace("mtbf =", 'law = "authors"\nmtbf ='))
    assert run_.key in {r.key for r in open_campaign(spelt).units}


FILE_GRID = """
[[grid]]
name = "small"
workloads = ["one"]
policies = ["sfsj"]
[grid.failures]
file = "some.events"
"""


def test_a_campaign_takes_recorded_failures(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, FILE_GRID)
    write_events(generate_events(Poisson(1800, 600), 128, horizon_s=1e5), tmp_path / "some.events")
    (run_,) = open_campaign(file).units
    results = tmp_path / "results"
    main(["campaign", "run", str(file), "--results", str(results), "--workers", "1", "--keep-runs"])
    by_hand = run(
        tmp_path / "one.json", tmp_path / "out", "--failures", str(tmp_path / "some.events")
    )
    assert (results / "folders" / run_.key / "jobs.csv").read_bytes() == by_hand
    write_events(generate_events(Poisson(1800, 600), 128, horizon_s=2e5), tmp_path / "some.events")
    assert open_campaign(file).units[0].key != run_.key
    with pytest.raises(InputError, match="changed while the campaign ran"):
        simulate_run(run_)
    (tmp_path / "some.events").rename(tmp_path / "other.events")
    with pytest.raises(InputError, match=r"some\.events"):
        open_campaign(file)


def test_silent_errors_beside_recorded_failures_have_seeds_of_their_own(tmp_path: Path) -> None:
    write_events(generate_events(Poisson(1800, 600), 128, horizon_s=1e5), tmp_path / "some.events")
    silent = "[grid.silent_errors]\nrate = 1e-7\nseeds = [7, 8]\n"
    units = open_campaign(campaign_file(tmp_path, FILE_GRID + silent)).units
    assert [unit.spec.scenario.silent_errors.seed for unit in units] == [7, 8]
    assert [unit.labels["seed"] for unit in units] == [7, 8]
    assert {unit.labels["law"] for unit in units} == {"file=some.events"}
    assert len({unit.key for unit in units}) == 2


def test_recorded_failures_that_change_while_a_campaign_runs_fail_the_run(tmp_path: Path) -> None:
    file = tmp_path / "some.events"
    write_events(generate_events(Poisson(1800, 600), 128, horizon_s=1e5), file)
    campaign = open_campaign(campaign_file(tmp_path, FILE_GRID))
    write_events(generate_events(Poisson(1800, 600), 128, horizon_s=2e5), file)
    status = run_campaign(campaign, tmp_path / "results", executor="inline")
    assert (status.ok, status.failed) == (0, 1)
    result = Store(tmp_path / "results").read(campaign.units[0].key)
    assert result is not None
    assert result.error == "file=some.events: changed while the campaign ran"


BAD_TABLES = {
    "seeds of a file": ('file = "some.events"\nseeds = [0, 1]', "failures.seeds"),
    "horizon of a file": ('file = "some.events"\nhorizon = "1d"', "failures.horizon"),
    "file of a law": ('law = "poisson"\nmtbf = "1h"\nfile = "x"', "unknown key 'file'"),
    "two names": ('law = "poisson"\nmodel = "poisson"\nmtbf = "1h"', "failures.model"),
    "unknown law": ('law = "x"\nmtbf = "1h"', "failures.law"),
    "other law's parameter": ('law = "poisson"\nmtbf = "1h"\nshape = 1', "'shape'"),
    "no value": ('law = "poisson"\nmtbf = []', "failures.mtbf"),
    "value twice": ('law = "poisson"\nmtbf = ["1h", "60min"]', "failures.mtbf"),
    "no MTBF": ('law = "poisson"', "poisson: parameter mtbf is missing"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused(case: str, tmp_path: Path) -> None:
    table, told = BAD_TABLES[case]
    grid = FILE_GRID.replace('file = "some.events"', table)
    with pytest.raises(InputError, match=told.replace(".", r"\.")):
        open_campaign(campaign_file(tmp_path, grid))


def test_a_trace_gives_its_outages_node_by_node(tmp_path: Path) -> None:
    file = tmp_path / "f.events"
    write_events(generate_events(Paired(4000.0, 1.0), 8, horizon_s=1e4), file)
    law = Trace(str(file))
    assert law.events(8) == read_events(file)
    outages = list(law.outages(8, 0))
    assert [o.down_us for o in outages] == sorted(o.down_us for o in outages)
    assert {len(outage.nodes) for outage in outages} == {1}
    with pytest.raises(InputError, match="probability"):
        law.survival(0.0, 1.0, 8)
    with pytest.raises(InputError, match="not on the machine"):
        law.events(2)
