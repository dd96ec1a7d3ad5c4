# SPDX-License-Identifier: Apache-2.0
"""Names of nodes: in results, in the explorer, in `failures describe`, in errors and findings."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

import rebat
from rebat.api.workloads import with_names
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.workloads.machine import names_in

NAMES = "gpu[1-2],n[007,010]"


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """Write a workload of four named nodes as the importers of accounting records do."""
    document = {
        "nb_res": 4,
        "machine": {"nodes": NAMES},
        "jobs": [
            {"id": str(n), "subtime": n, "walltime": 60, "res": 2, "profile": "p"} for n in range(4)
        ],
        "profiles": {"p": {"type": "delay", "delay": 30}},
    }
    path = tmp_path / "named.json"
    path.write_text(json.dumps(document))
    return path


def data_of(page: str) -> bytes:
    """Return the unpacked data of an explorer page."""
    (packed,) = re.findall(r">(H4sI[A-Za-z0-9+/=]+)<", page)
    return gzip.decompress(base64.b64decode(packed))


def events(folder: Path, *lines: tuple[bool, str, float]) -> str:
    path = folder / "some.events"
    path.write_text("".join(
        json.dumps({
            "type": "machine_available" if up else "machine_unavailable",
            "resources": nodes, "timestamp": at,
        }) + "\n"
        for up, nodes, at in lines
    ))  # fmt: skip
    return str(path)


def test_names_are_in_the_order_of_the_numbers() -> None:
    assert names_in(NAMES) == ("gpu1", "gpu2", "n007", "n010")
    assert names_in(None) == names_in("n[1-") == ()


def test_a_number_without_a_name_stays() -> None:
    assert (
        with_names("node 1, Node 9 and node 0 (a)", ("a", "b"))
        == "node 1 (b), Node 9 and node 0 (a)"
    )


@pytest.mark.slow
def test_results_and_pages_have_the_names(named: Path, tmp_path: Path) -> None:
    result = rebat.run(named, "baseline")
    assert result.provenance["workload"]["nodes"] == NAMES
    result.write(tmp_path / "out")
    page = tmp_path / "page.html"
    main(["view", str(tmp_path / "out"), "--html", str(page)])
    for text in (page.read_text(), result.explore()):
        assert b'"nodeNames":["gpu1","gpu2","n007","n010"]' in data_of(text)


def test_names_of_another_number_of_nodes_are_left_out(named: Path) -> None:
    result = rebat.run(named, "baseline", nodes=5)
    assert "nodes" not in result.provenance["workload"]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([(False, "2", 1), (False, "2", 2)], r"node 2 \(n007\) becomes unavailable"),
        ([(True, "0", 1)], r"node 0 \(gpu1\) becomes available while it is up"),
        ([(False, "7", 1)], "node 7 is not on the machine"),
    ],
)
def test_errors_name_nodes(named: Path, tmp_path: Path, lines, text: str) -> None:
    with pytest.raises(InputError, match=text):
        rebat.run(named, "baseline", failures=rebat.failures(file=events(tmp_path, *lines)))


def test_describe_names_the_busiest_nodes(named: Path, tmp_path: Path, capsys) -> None:
    file = events(tmp_path, (False, "3", 1), (True, "3", 2), (False, "3", 4), (True, "3", 9))
    main(["failures", "describe", file, "--workload", str(named)])
    assert "nodes with most failures     n010 (2)" in capsys.readouterr().out
    main(["failures", "describe", file, "--workload", str(named), "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["nodes"], record["busiest_nodes"]) == (
        4, [{"node": 3, "name": "n010", "failures": 2}],
    )  # fmt: skip


def test_describe_needs_a_number_of_nodes(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as status:
        main(["failures", "describe", events(tmp_path, (False, "3", 1))])
    assert status.value.code == 2
    assert (
        "--nodes: is missing (expected the number of nodes, or --workload)"
        in capsys.readouterr().err
    )


def test_findings_name_nodes(named: Path, tmp_path: Path, capsys) -> None:
    rebat.run(named, "baseline").write(tmp_path / "out")
    file = events(tmp_path, (False, "0", 3), (True, "0", 9))
    folder = tmp_path / "out" / "baseline"
    folder = folder if folder.is_dir() else tmp_path / "out"
    with pytest.raises(SystemExit):
        main(["validate", str(folder), "--events", file])
    assert "node 0 (gpu1)" in capsys.readouterr().out
