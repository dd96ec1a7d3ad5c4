# SPDX-License-Identifier: Apache-2.0
"""Campaign files: the runs that they define, and errors before a run starts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.cli import main as cli
from rebat.core.errors import InputError
from rebat.runs.scenario import CheckpointModel
from rebat.runs.unit import RunSpec, identity
from tests.support.campaigns import GRID, WORKLOADS, campaign_file, specs_of

CAMPAIGNS = Path(__file__).parents[2] / "campaigns" / "node_stealing"


@pytest.mark.slow
def test_the_full_campaign_is_the_papers() -> None:
    """There are 20 draws of each month, and 30 of the synthetic workload.

    Sections 6.1 and 7: 2 months x (19 policies + 1 failure-free) x 20 = 800, Intrepid 3 x 20 = 60.
    Section 6.2: 2 months x 2 policies x 6 pairs x 20 = 480. Section 6.3: 3 x 30 = 90. The grids of
    the authors' program have no failure-free runs: 760, 40, 12 pairs 960 and 60. Of the 960 runs,
    the 2 x 2 x 20 = 80 runs of (1 h, 1 h) are also in section 6.1.
    """
    opened = open_campaign(CAMPAIGNS / "full.toml")
    counts = Counter(unit.grid for unit in opened.units)
    paper = {"months": 800, "Intrepid": 60, "sweep": 480, "synthetic": 90}
    program = {"months": 760, "Intrepid": 40, "sweep": 960, "synthetic": 60}
    assert counts == paper | {f"{name}, as the program": n for name, n in program.items()}
    assert len(opened.distinct) == 800 + 60 + 480 + 90 + 760 + 40 + 960 - 80 + 60


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), [("quick", 111), ("trace", 266)])
def test_the_other_shipped_campaigns(name: str, runs: int) -> None:
    assert len(open_campaign(CAMPAIGNS / f"{name}.toml").distinct) == runs


def test_a_grid_is_the_product_of_its_lists(tmp_path: Path) -> None:
    specs = specs_of(open_campaign(campaign_file(tmp_path)))
    assert len(specs) == 10
    assert len({(s.workload, s.policy, s.scenario.failures) for s in specs}) == 10
    free = [s for s in specs if s.scenario.failures is None]
    assert [(s.workload, s.policy) for s in free] == [("one", "baseline"), ("two", "baseline")]


def test_the_checkpoint_period_follows_the_scenario(tmp_path: Path) -> None:
    grid = GRID.replace('mtbf = "30min"', 'mtbf = ["30min", "1h"]')
    specs = specs_of(open_campaign(campaign_file(tmp_path, grid)))
    drawn = [s for s in specs if s.scenario.failures]
    assert {s.scenario.failures.mtbf_s for s in drawn} == {1800.0, 3600.0}
    assert all(s.scenario.checkpoint.mtbf_s == s.scenario.failures.mtbf_s for s in drawn)


def test_a_trace_takes_the_place_of_the_files(tmp_path: Path) -> None:
    file = campaign_file(tmp_path)
    mine = tmp_path / "mine.json"
    mine.write_bytes((tmp_path / "one.json").read_bytes())
    specs = specs_of(open_campaign(file, mine))
    assert {s.source.file for s in specs} == {str(mine)}


def test_a_trace_that_replaces_no_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    grid = '[[grid]]\nname = "g"\nworkloads = ["made"]\npolicies = ["easy"]\n'
    file.write_text('[workloads.made]\ngenerator = "synthetic"\n' + grid)
    assert len(open_campaign(file).units) == 1
    with pytest.raises(InputError, match=r"c.toml: --trace: has no effect .expected a table"):
        open_campaign(file, tmp_path / "mine.json")


GENERATED = WORKLOADS + '[workloads.made]\ngenerator = "synthetic"\n'
USES_IT = GRID.replace('"two"', '"made"')
BAD = {
    "no TOML": ("[[grid", "small.toml"),
    "no workload": (GRID, "workloads"),
    "no grid": (WORKLOADS, "grid"),
    "unknown key": ("color = 1\n" + WORKLOADS + GRID, "'color'"),
    "unknown key of a grid": (WORKLOADS + GRID.replace("policies", "polices"), "grid[0]: "),
    "unknown key of failures": (WORKLOADS + GRID.replace("seeds", "seed"), "grid[0].failures"),
    "unknown key of checkpoints": (WORKLOADS + GRID + "costs = 1", "grid[0].checkpoint"),
    "unknown policy": (WORKLOADS + GRID.replace('"sfsj"', '"h999"'), "h323"),
    "unknown axis": (WORKLOADS + GRID.replace('"sfsj"', '"sfsj:deep=3"'), "depth"),
    "unknown workload": (WORKLOADS + GRID.replace('["one",', '["three",'), "grid[0].workloads"),
    "unknown model": (WORKLOADS + GRID.replace("seeds", 'model = "x"\nseeds'), "poisson"),
    "unknown generator": (GENERATED.replace('"synthetic"', '"x"') + USES_IT, "june-2017"),
    "generator with a trace option": (GENERATED + "cap = 3\n" + USES_IT, "workloads.made"),
    "negative seed of a generator": (GENERATED + "seed = -1\n" + USES_IT, "workloads.made.seed"),
    "neither generator nor file": (WORKLOADS + "[workloads.x]\nseed = 1\n" + GRID, "workloads.x"),
    "no such file": (WORKLOADS.replace("one.json", "none.json") + GRID, "workloads.one.file"),
    "trace option for JSON": (WORKLOADS + "cap = 3\n" + GRID, "workloads.two"),
    "option of a wrong type": (WORKLOADS + 'cap = "3"\n' + GRID, "workloads.two.cap"),
    "MTBF 0": (WORKLOADS + GRID.replace('"30min"', '"0"'), "grid[0].failures.mtbf"),
    "MTBF of no unit": (WORKLOADS + GRID.replace('"30min"', '"3 parsecs"'), "failures.mtbf"),
    "MTBF is a table": (WORKLOADS + GRID.replace('"30min"', "{}"), "grid[0].failures.mtbf"),
    "negative seed": (WORKLOADS + GRID.replace("[0, 1]", "[-1]"), "grid[0].failures.seeds"),
    "seed too large": (WORKLOADS + GRID.replace("[0, 1]", f"[{2**63}]"), "failures.seeds"),
    "seed of a generator too large": (
        GENERATED + f"seed = {2**63}\n" + USES_IT,
        "workloads.made.seed",
    ),
    "seed twice": (WORKLOADS + GRID.replace("[0, 1]", "[1, 1]"), "grid[0].failures.seeds"),
    "no seed": (WORKLOADS + GRID.replace("[0, 1]", "[]"), "grid[0].failures.seeds"),
    "policy twice": (WORKLOADS + GRID.replace('"sfsj"', '"baseline"'), "grid[0].policies"),
    "policies is a text": (
        WORKLOADS + GRID.replace('["baseline", "sfsj"]', '"sfsj"'),
        "grid[0].policies",
    ),
    "no name": (
        WORKLOADS + GRID.replace('name = "small"', ""),
        "grid[0].name: is missing (expected a text)",
    ),
    "workloads is a text": (
        WORKLOADS + GRID.replace('["one", "two"]', '"one"'),
        "grid[0].workloads: is a text (expected a list)",
    ),
    "nodes is a text": (
        WORKLOADS + GRID.replace("[grid.f", 'nodes = "2"\n[grid.f'),
        "grid[0].nodes: is '2' (expected a whole number)",
    ),
    "value without a sweep": (
        WORKLOADS + GRID.replace('"sfsj"', '"easy:react=replacement,spares={spares}"'),
        "'spares' has no values (expected spares = [...] in [grid.sweep])",
    ),
    "seeds twice": (
        WORKLOADS + GRID.replace("[grid.f", "seeds = [0]\n[grid.f"),
        "grid[0].failures.seeds: is a duplicate (expected only grid[0].seeds)",
    ),
    "two grids of one name": (WORKLOADS + GRID + GRID, "'small'"),
    "no nodes": (WORKLOADS + GRID.replace("[grid.f", "nodes = 0\n[grid.f"), "grid[0].nodes"),
    "window": (WORKLOADS + GRID.replace("[grid.f", 'window = "9"\n[grid.f'), "window"),
    "select": (WORKLOADS + GRID.replace("[grid.f", 'select = "x"\n[grid.f'), "select"),
    "rounding": (WORKLOADS + GRID + 'rounding = "up"', "grid[0].checkpoint.rounding"),
    "checkpoints without MTBF": (
        WORKLOADS + '[[grid]]\nname = "g"\nworkloads = ["one"]\npolicies = ["easy"]\n'
        "[grid.checkpoint]\n",
        "grid[0].checkpoint",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_file_and_key(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ("rebat.cli.campaign:campaign", "Whole evaluations.")
    monkeypatch.setitem(cli.COMMANDS, "campaign", row)
    text, place = BAD[case]
    file = campaign_file(tmp_path)
    file.write_text(text)
    with pytest.raises(SystemExit) as left:
        cli.main(["campaign", "run", str(file), "--results", str(tmp_path / "out")])
    error = capsys.readouterr().err
    assert left.value.code == 2
    assert error.count("\n") == 1
    assert str(file) in error
    assert place in error
    assert not (tmp_path / "out").exists()


def test_the_largest_seed_gets_into_the_table(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID.replace("[0, 1]", f"[{2**63 - 1}]"), jobs=5)
    assert run_campaign(open_campaign(file), tmp_path / "r", executor="inline").ok == 6
    assert (tmp_path / "r/results.parquet").exists()


def test_an_unknown_key_lists_the_choices(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID.replace("downtime", "downtimes"))
    with pytest.raises(InputError, match="downtime, group, horizon, law, model, mtbf, seeds"):
        open_campaign(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        open_campaign(tmp_path / "none.toml")


def test_a_file_that_is_not_text_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "bin.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"bin\.toml: is not a text file") as error:
        open_campaign(file)
    assert str(error.value).count("bin.toml") == 1


def calm(folder: Path, old: str = "", new: str = "") -> list[RunSpec]:
    """Return the failure-free runs of the small campaign, after a replacement in its file."""
    opened = open_campaign(campaign_file(folder, GRID.replace(old, new) if old else GRID))
    return [spec for spec in specs_of(opened) if spec.scenario.failures is None]


FREE = 'failure_free = ["baseline"]'


def test_runs_without_failures_keep_their_checkpoints_unless_told_otherwise(tmp_path: Path) -> None:
    for spec in calm(tmp_path):
        assert spec.scenario.checkpoint == CheckpointModel(1800, 300, 300, "floor")
    for spec in calm(tmp_path, FREE, f"{FREE}\nfailure_free_checkpoints = false"):
        assert spec.scenario.checkpoint is None


def test_each_kind_of_checkpoints_has_its_run_without_failures(tmp_path: Path) -> None:
    free = calm(tmp_path, 'mtbf = "30min"', 'mtbf = ["30min", "1h"]')
    assert [(s.workload, s.scenario.checkpoint.mtbf_s) for s in free] == [
        ("one", 1800), ("one", 3600), ("two", 1800), ("two", 3600),
    ]  # fmt: skip


def test_how_checkpoints_are_counted_is_in_the_key_if_unusual(tmp_path: Path) -> None:
    exact, program = (
        calm(tmp_path, FREE, f'{FREE}\naccounting = "{how}"') for how in ("exact", "program")
    )
    assert calm(tmp_path) == exact
    assert "accounting" not in identity(exact[0], "x", {})
    assert identity(program[0], "x", {}) == identity(exact[0], "x", {}) | {"accounting": "program"}
