# SPDX-License-Identifier: Apache-2.0
"""The failures of recorded machines at any size, and laws fitted to real machines, by name."""

from __future__ import annotations

import importlib.util
import json
import math
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.files import folder
from rebat.models.failures.events import check_alternation
from rebat.models.failures.law import generate_events
from rebat.models.failures.laws import FILE, LAWS, make_law, name_of, parse_law, prefabs
from rebat.models.failures.renewal import Scaled
from tests.support.recordings import beside

ROOT = Path(__file__).parents[2]
HOUR, DAY = 3600.0, 86400.0


def script() -> ModuleType:
    """Return the script that fits the laws."""
    spec = importlib.util.spec_from_file_location("fit", ROOT / "scripts/fit_failure_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", list(prefabs()))
def test_every_machine_has_a_law_whose_rate_grows_with_its_nodes(name: str) -> None:
    law, row = parse_law(name), prefabs()[name]
    assert name_of(law) == name
    mtbf_s = law.mtbf_on(row.nodes)
    assert mtbf_s is not None
    assert law.mtbf_on(2 * row.nodes) == mtbf_s / 2
    if row.days is None or row.failures is None:
        assert "rate" in row.parameters
        return
    # the record's own mean: its length over its number of failures
    assert mtbf_s == pytest.approx(row.days * DAY / row.failures, rel=2e-3)


def test_a_changed_parameter_changes_the_name() -> None:
    law = parse_law("lanl-20:repair=1h")
    assert (name_of(law), law.label()[:10]) == ("scaled", "node_mtbf=")
    assert law == msgspec.structs.replace(parse_law("lanl-20"), repair_s=HOUR, machine="")


def test_an_unknown_machine_lists_laws_and_machines() -> None:
    with pytest.raises(InputError, match=r"did you mean lanl-20.*authors.*mira"):
        make_law("lanl-21", {})


@pytest.mark.parametrize("nodes", [64, 512])
def test_failures_come_at_the_rate_of_the_nodes(nodes: int) -> None:
    law = Scaled(node_mtbf_s=512 * HOUR, repair_s=60, shape=1.0)
    expected = 4000
    events = generate_events(law, nodes, horizon_s=expected * 512 / nodes * HOUR)
    count = sum(not event.available for event in events)
    assert count == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_groups_come_in_their_shares_aligned_and_cut_at_the_end_of_the_machine() -> None:
    law = Scaled(node_mtbf_s=100 * 100 * HOUR, repair_s=60, groups="1:3+8:1")
    events = generate_events(law, 100, horizon_s=4000 * 100 * HOUR)
    check_alternation(events, 100)
    failed = [event.nodes for event in events if not event.available]
    sizes = Counter(map(len, failed))
    share = (sizes[8] + sizes[4]) / sizes.total()
    assert share == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / sizes.total()))
    assert {nodes.lowest % 8 for nodes in failed if len(nodes) == 8} == {0}
    assert {nodes.lowest for nodes in failed if len(nodes) == 4} == {96}


def test_overlapping_outages_of_groups_are_joined() -> None:
    law = Scaled(node_mtbf_s=32 * HOUR, repair_s=5 * HOUR, groups="1:1+4:1+16:1")
    check_alternation(generate_events(law, 32, horizon_s=2000 * HOUR), 32)


def test_a_node_survives_as_often_as_the_law_says() -> None:
    law = Scaled(node_mtbf_s=1000 * HOUR, repair_s=1, groups="1:1+4:1")
    events = generate_events(law, 16, horizon_s=200_000 * HOUR)
    hits = Counter(node for event in events if not event.available for node in event.nodes)
    mean_h = 200_000 / np.mean([hits[node] for node in range(16)])
    assert law.survival(0, HOUR, 16) == pytest.approx(math.exp(-1 / mean_h), abs=2e-4)


@pytest.mark.parametrize(
    "groups", ["", "1", "1:0", "0:1", "1:1+1:2", "x:1", "1:-1", "1:inf", "1:nan"]
)
def test_invalid_groups(groups: str) -> None:
    with pytest.raises(InputError, match=r"groups: is .*SIZE:WEIGHT"):
        Scaled(HOUR, groups=groups)


def test_young_daly_takes_the_mtbf_of_the_law(tmp_path: Path, capsys) -> None:
    options = ["--checkpoint", "young-daly", "-p", "baseline", "--out", str(tmp_path / "out")]
    main(["run", "toy", "--law", "lanl-20", *options])
    mtbf_s = parse_law("lanl-20").mtbf_on(8)
    assert f"MTBF of the failure law: {mtbf_s:.12g} s" in capsys.readouterr().err
    result = rebat.run(
        "toy", "baseline", failures=rebat.failures("lanl-20"), checkpoint="young-daly"
    )
    assert result.provenance["options"]["law"]["name"] == "lanl-20"


def test_the_command_lists_them(capsys) -> None:
    main(["failures", "models", "--nodes", "1024", "--json"])
    records = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert list(records) == list(prefabs())
    assert records["lanl-20"]["mtbf_s"] == parse_law("lanl-20").mtbf_on(1024)
    main(["failures", "models"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in prefabs())


def test_names_of_machines_are_no_names_of_laws() -> None:
    assert not set(prefabs()) & set(LAWS)


def test_the_parameters_are_those_of_the_record() -> None:
    """The parameters in the file equal those that the script fits."""
    fitted = tomllib.loads(script().entry_of_lanl(20, beside(
        "traces/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
    )))  # fmt: skip
    assert (
        fitted["lanl-20"] == tomllib.loads((folder("failure_events") / FILE).read_text())["lanl-20"]
    )
