# SPDX-License-Identifier: Apache-2.0
"""Tables of nodes: written tables can be read again, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.models.failures.node_table import NodeTable, read_nodes, write_nodes
from rebat.models.failures.per_node import FAMILIES, WeibullNodes

HEADER = "node,scale_s,shape,uptime_s\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["nodes.csv", "nodes.csv.gz"])
def test_what_is_written_is_read_back_exactly(family: str, name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    shape = np.ones(50) if family == "exponential" else rng.lognormal(size=50)
    table = NodeTable(FAMILIES[family](rng.lognormal(10, 3, 50), shape), rng.uniform(0, 1e9, 50))
    write_nodes(tmp_path / name, table)
    found = read_nodes(tmp_path / name, 50)
    assert type(found.laws) is FAMILIES[family]
    assert np.array_equal(found.laws.scale_s, table.laws.scale_s)
    assert np.array_equal(found.laws.shape, table.laws.shape)
    assert np.array_equal(found.uptime_s, table.uptime_s)
    again = tmp_path / f"again-{name}"
    write_nodes(again, found)
    assert again.read_bytes() == (tmp_path / name).read_bytes()


def test_lines_and_columns_come_in_any_order_and_the_family_is_weibull(tmp_path: Path) -> None:
    text = "uptime_s,node,shape,scale_s\n0,1,2,100\n\n5.5,0,3,200\n"
    table = read_nodes(written(tmp_path / "n.csv", text))
    assert type(table.laws) is WeibullNodes
    assert table.laws.scale_s.tolist() == [200, 100]
    assert table.laws.shape.tolist() == [3, 2]
    assert table.uptime_s.tolist() == [5.5, 0]


LAW_HEADER = "node,law,scale_s,shape,uptime_s\n"
BAD = {
    "empty": ("", "n.csv:1: has no column node"),
    "no column": ("node,scale_s,uptime_s\n", "n.csv:1: has no column shape"),
    "unknown column": ("node,scale_s,shape,uptime_s,x\n", "n.csv:1: unknown column 'x'"),
    "column twice": ("node,node,scale_s,shape,uptime_s\n", "n.csv:1: column node is a duplicate"),
    "no node": (HEADER, "n.csv: has no nodes"),
    "too few fields": (HEADER + "0,1,1\n", "n.csv:2: has 3 fields (expected 4"),
    "too many fields": (HEADER + "0,1,1,0,7\n", "n.csv:2: has 5 fields (expected 4"),
    "node is a text": (HEADER + "a,1,1,0\n", "n.csv:2: node is 'a'"),
    "negative node": (HEADER + "-1,1,1,0\n", "n.csv:2: node is '-1'"),
    "foreign digit": (HEADER + "٣,1,1,0\n", "n.csv:2: node is '٣'"),
    "huge node": (HEADER + "999999999,1,1,0\n", "n.csv:2: node is '999999999'"),
    "scale zero": (HEADER + "0,1,1,0\n1,0,1,0\n", "n.csv:3: scale_s is '0' (expected a finite"),
    "scale nan": (HEADER + "0,nan,1,0\n", "n.csv:2: scale_s is 'nan'"),
    "scale infinite": (HEADER + "0,inf,1,0\n", "n.csv:2: scale_s is 'inf'"),
    "shape negative": (HEADER + "0,1,-2,0\n", "n.csv:2: shape is '-2'"),
    "shape empty": (HEADER + "0,1,,0\n", "n.csv:2: shape is ''"),
    "uptime negative": (HEADER + "0,1,1,-1\n", "n.csv:2: uptime_s is '-1' (expected seconds"),
    "uptime infinite": (HEADER + "0,1,1,inf\n", "n.csv:2: uptime_s is 'inf'"),
    "node twice": (HEADER + "0,1,1,0\n0,1,1,0\n", "n.csv:3: node 0 is a duplicate"),
    "node beyond": (HEADER + "0,1,1,0\n2,1,1,0\n", "n.csv:3: node is 2 (expected 0 to 1"),
    "unknown law": (LAW_HEADER + "0,wiebull,1,1,0\n", "n.csv:2: unknown law 'wiebull'"),
    "two laws": (
        LAW_HEADER + "0,gamma,1,1,0\n1,weibull,1,1,0\n", "n.csv:3: law is weibull (expected gamma",
    ),
    "exponential shape": (LAW_HEADER + "0,exponential,1,2,0\n", "n.csv:2: shape is 2 (expected 1"),
    "broken CSV": (HEADER + '0,"1\n', "n.csv: broken CSV"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_table_that_cannot_be_is_refused_by_its_line(case: str, tmp_path: Path) -> None:
    text, told = BAD[case]
    with pytest.raises(InputError) as refused:
        read_nodes(written(tmp_path / "n.csv", text))
    assert told in str(refused.value)
    assert "expected" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_machine_says_how_many_nodes_there_are(tmp_path: Path) -> None:
    file = written(tmp_path / "n.csv", HEADER + "1,1,1,0\n0,1,1,0\n")
    assert len(read_nodes(file, 2)) == 2
    with pytest.raises(InputError, match=r"n\.csv: has no line for node 2 \(expected nodes 0 to 3"):
        read_nodes(file, 4)
    with pytest.raises(InputError, match=r"n\.csv:2: node is 1 \(expected 0 to 0"):
        read_nodes(file, 1)
    with pytest.raises(InputError, match="cannot read the file"):
        read_nodes(tmp_path / "absent.csv")


@pytest.mark.parametrize("uptime_s", [[0.0], [0.0, -1.0], [0.0, np.nan]])
def test_a_table_in_memory_has_an_uptime_for_each_node(uptime_s: list[float]) -> None:
    with pytest.raises(InputError, match="uptime"):
        NodeTable(WeibullNodes(np.ones(2), np.ones(2)), np.array(uptime_s))
