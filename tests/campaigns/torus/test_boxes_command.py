# SPDX-License-Identifier: Apache-2.0
"""``rebat boxes``: dimensions and counts, and the free box with the lowest failure probability."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rebat.cli.main import main
from rebat.core.nodes import NodeSet
from rebat.models.boxes import LISTS
from rebat.policies.presets import preset
from rebat.shipped.campaigns.torus import commands as torus
from tests.oracles.batch import weibull_hazard
from tests.oracles.boxes import all_boxes
from tests.support.choices import choices

PAPER = ["--torus", "8x8x8x8", "--size", "256"]


def told(capsys, *arguments: str) -> dict:
    main(["boxes", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_command_line_knows_every_list() -> None:
    assert choices(torus.boxes, "which") == choices(torus.batch, "lists") == LISTS


@pytest.mark.parametrize(
    ("more", "shapes", "placements"),
    [
        ([], 31, 11392),
        (["--boxes", "all"], 31, 11392),
        (["--aligned"], 31, 496),
        (["--boxes", "aligned"], 31, 496),
        (["--boxes", "16"], 1, 16),
    ],
)
def test_the_papers_partitions(more, shapes, placements, capsys) -> None:
    """Check item 1 of the notes on Vardas et al. 2022."""
    found = told(capsys, *PAPER, *more)
    assert (len(found["shapes"]), found["placements"]) == (shapes, placements)
    assert sum(row["placements"] for row in found["shapes"]) == placements
    assert all(math.prod(row["shape"]) == 256 for row in found["shapes"])
    assert (found["box_nodes"], found["waste"]) == (256, 0)
    assert "best" not in found


def test_a_size_that_is_no_box_gets_the_smallest_larger_one(capsys) -> None:
    found = told(capsys, "--torus", "5x4x4", "--size", "13")
    assert (found["size"], found["box_nodes"], found["waste"]) == (13, 15, 2)
    main(["boxes", "--torus", "5x4x4", "--size", "13"])
    assert "13 nodes: boxes of 15, 2 unused" in capsys.readouterr().out


def test_units_are_handed_out_as_a_whole(capsys) -> None:
    """A box of 6 of Mira's 2x3x4x4x1 midplanes is reported in nodes."""
    found = told(capsys, "--torus", "mira", "--size", "3000", "--unit", "4x4x4x4x2")
    assert (found["box_nodes"], found["waste"]) == (3072, 72)
    assert found["placements"] == len(all_boxes((2, 3, 4, 4, 1), 6))
    assert [8, 12, 4, 4, 2] in [row["shape"] for row in found["shapes"]]


SIZES, N = (4, 3, 2), 24


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Write a table of 24 nodes with different laws and uptimes, without the family column."""
    rng = np.random.default_rng(2)
    lines = ["node,scale_s,shape,uptime_s"]
    for node in range(N):
        lines.append(f"{node},{1e6 + 10 * node!r},{2 + node / 50!r},{9e5 * rng.random()!r}")
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def hazards(path: Path, duration_s: float) -> list[float]:
    rows = [tuple(map(float, line.split(","))) for line in path.read_text().splitlines()[1:]]
    return [weibull_hazard(scale, shape, up, duration_s) for _, scale, shape, up in rows]


@pytest.mark.parametrize("busy", ["", "0-3 5", "0,7,13-15", "2 9 16 22"])
def test_no_free_box_is_less_likely_to_fail(busy: str, nodes: Path, capsys) -> None:
    """The printed box is compared with every free box of the torus."""
    found = told(capsys, "--torus", "4x3x2", "--size", "4", "--law", str(nodes),
                 "--duration", "24h", "--busy", busy)["best"]  # fmt: skip
    hazard, taken = hazards(nodes, 86_400.0), set(NodeSet.parse(busy))
    free = {box: shape for box, shape in all_boxes(SIZES, 4).items() if not box & taken}
    chances = {box: -math.expm1(-sum(hazard[n] for n in box)) for box in free}
    best = min(chances, key=lambda box: chances[box])
    assert set(found["nodes"]) == best
    assert tuple(found["shape"]) == free[best]
    assert found["failure_probability"] == pytest.approx(chances[best], rel=1e-9)
    x, y, z = found["origin"]
    assert x + 4 * y + 12 * z in best


def test_the_best_box_of_units_in_nodes(nodes: Path, capsys) -> None:
    arguments = ("--torus", "4x3x2", "--size", "5", "--unit", "2x1x2", "--law", str(nodes))
    found = told(capsys, *arguments, "--duration", "1h", "--busy", "0")["best"]
    hazard, units = hazards(nodes, 3600.0), {}
    for node in range(N):
        x, y, _ = node % 4, node // 4 % 3, node // 12
        units.setdefault(x // 2 + 2 * y, []).append(node)
    chances = {}
    for box in all_boxes((2, 3, 1), 2):
        members = [node for unit in box for node in units[unit]]
        if 0 not in members:
            chances[frozenset(members)] = sum(hazard[node] for node in members)
    assert set(found["nodes"]) == min(chances, key=lambda box: chances[box])
    assert math.prod(found["shape"]) == 8


def test_the_same_for_people(nodes: Path, capsys) -> None:
    arguments = ["--torus", "4x3x2", "--size", "4", "--law", str(nodes), "--duration", "24h"]
    best = told(capsys, *arguments)["best"]
    main(["boxes", *arguments])
    text = capsys.readouterr().out
    assert "24 nodes\n4 nodes: boxes of 4, 0 unused" in text
    assert f"probability  {best['failure_probability']:.6g}" in text
    assert f"nodes                {NodeSet.of(best['nodes'])}" in text


SMALL = ["--torus", "4x3x2", "--size", "4"]
LAW = [*SMALL, "--law", "nodes.csv", "--duration", "24h"]
BAD = {
    "size beyond the torus": (["--torus", "4x3x2", "--size", "25"], "no box of 25 nodes"),
    "no size": (["--torus", "4x3x2", "--size", "0"], "--size"),
    "extent of zero": (["--torus", "4x0x2", "--size", "4"], "--torus: invalid torus: 4x0x2"),
    "no extents": (["--torus", "four", "--size", "4"], "--torus: invalid dimensions 'four'"),
    "unit that does not divide": ([*SMALL, "--unit", "3x1x1"], "do not divide 4x3x2"),
    "unit of other dimensions": ([*SMALL, "--unit", "2x1"], "do not divide 4x3x2"),
    "unit of zero": ([*SMALL, "--unit", "0x1x1"], "do not divide 4x3x2"),
    "two lists": ([*SMALL, "--aligned", "--boxes", "16"], "--aligned: contradicts --boxes 16"),
    "duration alone": ([*SMALL, "--duration", "1h"], "--duration: has no effect"),
    "busy alone": ([*SMALL, "--busy", "0"], "--busy: has no effect"),
    "no duration": ([*SMALL, "--law", "nodes.csv"], "--duration: is missing"),
    "no table": ([*SMALL, "--law", "no.csv", "--duration", "1h"], "no.csv: cannot read"),
    "busy outside": ([*LAW, "--busy", "0-24"], "node 24 is not on the torus"),
    "busy no nodes": ([*LAW, "--busy", "0-"], "--busy: '0-' is not a set of nodes"),
    "nothing free": ([*LAW, "--busy", "0-23"], "no box of 4 nodes is free"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str, nodes: Path, monkeypatch, capsys) -> None:
    arguments, says = BAD[case]
    refused(["boxes", *arguments], says, nodes.parent, monkeypatch, capsys)


BAD_TABLES = {
    "a node is missing": (23, None, "no line for node 22"),
    "uptime below zero": (3, "2,1e6,2,-1", "nodes.csv:4: uptime_s is '-1'"),
    "uptime no number": (3, "2,1e6,2,nan", "nodes.csv:4: uptime_s is 'nan'"),
    "scale no number": (3, "2,nan,2,0", "nodes.csv:4: scale_s is 'nan'"),
    "node beyond the torus": (3, "24,1e6,2,0", "nodes.csv:4: node is 24"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_told_with_its_line(case: str, nodes: Path, monkeypatch, capsys) -> None:
    row, text, says = BAD_TABLES[case]
    lines = nodes.read_text().splitlines()
    lines[row : row + 1] = [] if text is None else [text]
    nodes.write_text("\n".join(lines) + "\n")
    refused(["boxes", *LAW], says, nodes.parent, monkeypatch, capsys)


def refused(arguments: list[str], says: str, folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    assert left.value.code == 2
    (line,) = (line for line in captured.err.splitlines() if "rror: " in line)
    assert says in line
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_the_earlier_names_still_work_with_a_note(capsys) -> None:
    main(["boxes", "--torus", "mira", "--size", "3000", "--block", "4x4x4x4x2"])
    now = capsys.readouterr()
    main(["partitions", "--torus", "mira", "--size", "3000", "--unit", "4x4x4x4x2"])
    earlier = capsys.readouterr()
    assert earlier.out == now.out
    assert earlier.err == "rebat: note: 'rebat partitions' is now 'rebat boxes'\n"
    assert preset("torus-first:block=2x2").point == preset("torus-first:unit=2x2").point
