# SPDX-License-Identifier: Apache-2.0
"""Processors that fail together: in laws, event files, runs and campaigns."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.campaign.opening import open_campaign
from rebat.cli.main import main
from rebat.core.cores import nodes_of, processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import check_alternation, read_events, write_events
from rebat.models.failures.law import generate_events
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.runs.staging import history
from tests.models.test_failure_laws import EXAMPLES, run
from tests.support.campaigns import campaign_file

RENEWAL = ["--law", "renewal:mtbf=1h,shape=0.78,repair=2.8h,sigma=1.9407"]


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(1, 9))
def test_the_processors_of_nodes_are_the_nodes_again(nodes, cores) -> None:
    processors = processors_of(NodeSet.of(nodes), cores)
    assert set(processors) == {cores * node + i for node in nodes for i in range(cores)}
    assert processors == NodeSet.of(processors)  # equal to the canonical form
    assert nodes_of(processors, cores) == NodeSet.of(nodes)


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(1, 5))
def test_a_part_of_a_node_is_told(processors, cores) -> None:
    parts = {p // cores for p in processors if not all(
        p // cores * cores + i in processors for i in range(cores)
    )}  # fmt: skip
    if not parts:
        assert set(nodes_of(NodeSet.of(processors), cores)) == {p // cores for p in processors}
        return
    with pytest.raises(InputError, match="contains only some cores of node") as error:
        nodes_of(NodeSet.of(processors), cores)
    assert int(str(error.value).split("node ")[1].split()[0]) in parts


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_law_fails_whole_nodes(name: str) -> None:
    law = EXAMPLES[name]
    one_by_one = generate_events(law, 100, horizon_s=20_000, seed=3)
    together = generate_events(law, 400, horizon_s=20_000, seed=3, cores_per_node=4)
    check_alternation(together, 400)
    assert len(one_by_one) > 20
    assert [(e.at_us, e.available) for e in together] == [
        (e.at_us, e.available) for e in one_by_one
    ]
    for event, of_node in zip(together, one_by_one, strict=True):
        assert set(event.nodes) == {4 * node + i for node in of_node.nodes for i in range(4)}
    lazily = itertools.islice(law.events(400, 3, None, 4), 10)
    assert list(lazily) == together[:10]


def generated(folder: Path, *options: str) -> Path:
    """Write failures of 32 nodes with 4 processors to a file."""
    file = folder / "f.events"
    arguments = ["--nodes", "128", "--cores-per-node", "4", "--seed", "2", "--horizon", "2d"]
    main(["failures", "generate", *arguments, *(options or RENEWAL), "-o", str(file)])
    return file


def test_a_file_names_the_processors(tmp_path: Path, capsys) -> None:
    file = generated(tmp_path)
    first = json.loads(file.read_text().splitlines()[0])["resources"]
    low, high = map(int, first.split("-"))
    assert (low % 4, high) == (0, low + 3)
    n_failures = sum(not event.available for event in read_events(file, 4))
    main(["failures", "describe", str(file), "--nodes", "128", "--cores-per-node", "4"])
    assert f"{n_failures} failures of single nodes" in capsys.readouterr().out
    main(["failures", "describe", str(file), "--nodes", "128"])
    assert f"{4 * n_failures} failures of single nodes" in capsys.readouterr().out


@pytest.mark.parametrize("begin", [[], ["--begin", "6h"]])
def test_a_run_draws_what_the_file_says(begin: list[str], tmp_path: Path) -> None:
    workload = campaign_file(tmp_path).parent / "one.json"
    options = ["--cores-per-node", "4", *begin]
    drawn = run(workload, tmp_path / "drawn", *RENEWAL, "--seed", "2", *options)
    file = generated(tmp_path)
    assert run(workload, tmp_path / "read", "--failures", str(file), *options) == drawn
    assert run(workload, tmp_path / "plain", "--failures", str(file), *begin) == drawn
    assert run(workload, tmp_path / "one", *RENEWAL, "--seed", "2", *begin) != drawn


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_processors_have_the_uptime_of_their_node(name: str) -> None:
    of_nodes = Scenario(failures=FailureScenario(EXAMPLES[name], seed=3, begin_s=30_000.0))
    grouped = msgspec.structs.replace(of_nodes, cores_per_node=4)
    past, nodes_past = history(grouped, 400), history(of_nodes, 100)
    assert past is not None
    assert nodes_past is not None
    assert past.uptime_us.tolist() == np.repeat(nodes_past.uptime_us, 4).tolist()
    assert len(set(past.uptime_us.tolist())) > 10


def refused(capsys, *arguments: str) -> str:
    """Run a command that fails, and return its error, which is one line."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    told = capsys.readouterr().err
    assert left.value.code == 2
    assert told.count("\n") == 1
    return told


def test_a_group_that_does_not_divide_the_machine(tmp_path: Path, capsys) -> None:
    workload = str(campaign_file(tmp_path).parent / "one.json")
    out = ["--out", str(tmp_path / "out")]
    told = "cores per node: is 3 (expected a number that divides the machine's 128 processors)"
    cores = ["--cores-per-node", "3"]
    assert told in refused(capsys, "run", workload, "-p", "easy", *RENEWAL, *cores, *out)
    generate = ["failures", "generate", "--nodes", "128", *RENEWAL, *cores]
    assert told in refused(capsys, *generate, "-o", str(tmp_path / "f.events"))
    file = str(generated(tmp_path))
    capsys.readouterr()
    assert told in refused(capsys, "run", workload, "-p", "easy", "--failures", file, *cores, *out)
    assert told in refused(capsys, "failures", "describe", file, "--nodes", "128", *cores)


def test_half_a_node_is_told_with_its_line(tmp_path: Path, capsys) -> None:
    workload = str(campaign_file(tmp_path).parent / "one.json")
    whole, part = NodeSet.parse("0-3"), NodeSet.parse("8-11 13-15")
    file = tmp_path / "half.events"
    events = generate_events(EXAMPLES["poisson"], 4, horizon_s=200, seed=1)
    write_events([type(events[0])(at, False, nodes) for at, nodes in ((0, whole), (9, part))], file)
    out, cores = ["--out", str(tmp_path / "out")], ["--cores-per-node", "4"]
    told = refused(capsys, "run", workload, "-p", "easy", "--failures", str(file), *cores, *out)
    problem = "contains only some cores of node 3 (expected all of 12-15, or none; if"
    assert f"{file}:2: {problem}" in told
    assert len(read_events(file)) == 2


GRID = """
[[grid]]
name = "small"
workloads = ["one"]
policies = ["sfsj"]
cores_per_node = 4
[grid.failures]
law = "renewal"
mtbf = "1h"
"""


def test_a_campaign_has_groups(tmp_path: Path) -> None:
    file, results = campaign_file(tmp_path, GRID), tmp_path / "results"
    (unit,) = open_campaign(file).units
    assert unit.identity["cores_per_node"] == 4
    main(["campaign", "run", str(file), "--results", str(results), "--workers", "1", "--keep-runs"])
    options = ["--law", "renewal:mtbf=1h", "--cores-per-node", "4"]
    by_hand = run(tmp_path / "one.json", tmp_path / "out", *options)
    assert (results / "folders" / unit.key / "jobs.csv").read_bytes() == by_hand
    table = pd.read_parquet(results / "results.parquet")
    assert set(table.law) == {"repair=2.8h,shape=0.7,sigma=1.9407"}
    assert set(table.cores_per_node) == {4}


def test_cores_may_stand_with_the_failures(tmp_path: Path) -> None:
    """This is the earlier place of the key."""
    once = GRID.replace("cores_per_node = 4\n", "") + "cores_per_node = 4\n"
    (unit,) = open_campaign(campaign_file(tmp_path, once)).units
    assert unit.identity["cores_per_node"] == 4
    with pytest.raises(InputError, match="is a duplicate"):
        open_campaign(campaign_file(tmp_path, GRID + "cores_per_node = 4\n"))


def test_a_campaign_checks_its_groups(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"grid\[0\]\.cores_per_node: is 0"):
        open_campaign(campaign_file(tmp_path, GRID.replace("= 4", "= 0")))
    faps = GRID.replace('"sfsj"', '"faps:torus=2x8x8"')
    with pytest.raises(InputError, match="predicts independent failures of nodes"):
        open_campaign(campaign_file(tmp_path, faps))
    (tmp_path / "free").mkdir()
    assert open_campaign(campaign_file(tmp_path / "free", faps.replace("= 4", "= 1"))).units


def test_hazards_of_single_nodes_are_refused_in_a_run(tmp_path: Path, capsys) -> None:
    workload = str(campaign_file(tmp_path).parent / "one.json")
    options = ["--law", "renewal:mtbf=1h", "--cores-per-node", "4", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as left:
        main(["run", workload, "-p", "faps:torus=2x8x8", *options])
    assert left.value.code == 2
    assert "predicts independent failures of nodes" in capsys.readouterr().err
