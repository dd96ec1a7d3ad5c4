# SPDX-License-Identifier: Apache-2.0
"""Event files that number cores or nodes, and the errors when a run expects the other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent, read_events, write_events
from rebat.models.failures.laws import parse_law

SECOND = 10**6
NODES = [
    MachineEvent(SECOND, False, NodeSet.parse("0 2")),
    MachineEvent(5 * SECOND, True, NodeSet.parse("0 2")),
]
CORES = [
    MachineEvent(SECOND, False, NodeSet.parse("0-1 4-5")),
    MachineEvent(5 * SECOND, True, NodeSet.parse("0-1 4-5")),
]


@pytest.fixture
def of_nodes(tmp_path: Path) -> Path:
    write_events(NODES, tmp_path / "nodes.events")
    return tmp_path / "nodes.events"


@pytest.fixture
def of_cores(tmp_path: Path) -> Path:
    write_events(CORES, tmp_path / "cores.events", cores_per_node=2)
    return tmp_path / "cores.events"


def test_the_numbers_of_nodes_become_those_of_their_cores(of_nodes: Path) -> None:
    law = parse_law(f"trace:file={of_nodes},numbers=nodes")
    assert list(law.events(8, cores_per_node=2)) == CORES
    assert list(law.events(8)) == NODES


def test_a_file_that_numbers_cores_says_so(of_cores: Path) -> None:
    assert of_cores.read_text().count('"cores_per_node": 2}') == 2
    assert read_events(of_cores, 2) == CORES
    stated = [msgspec.structs.replace(event, cores_per_node=2) for event in CORES]
    assert read_events(of_cores) == stated
    # a run without cores per node uses the numbers of the hosts
    assert read_events(of_cores, 1) == CORES


@pytest.mark.parametrize(
    ("text", "cores", "error"),
    [
        ("cores.events", 4, r"cores.events:1: .*numbers of cores, .* 2 .*--cores-per-node 2"),
        ("cores.events,numbers=nodes", 2, r"contains numbers of cores, with 2 cores per node"),
        ("nodes.events", 2, r"nodes.events:1: .* cores of node 0 .*trace:file=.*,numbers=nodes"),
    ],
)  # fmt: skip
def test_the_other_numbers_are_an_error_with_a_remedy(
    text: str, cores: int, error: str, of_nodes: Path, of_cores: Path
) -> None:
    law = parse_law(f"trace:file={of_nodes.parent}/{text}")
    with pytest.raises(InputError, match=error):
        law.events(8, cores_per_node=cores)


def test_exported_events_still_say_so(of_cores: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "five.events", tmp_path / "four.events"
    main(["failures", "export", str(of_cores), "--format", "batsim5", "-o", str(there)])
    main(["failures", "export", str(there), "--format", "batsim4", "-o", str(back)])
    for path in (there, back):
        assert read_events(path, 2) == CORES
        with pytest.raises(InputError, match="contains numbers of cores, with 2 cores per node"):
            read_events(path, 4)


def test_the_remedy_runs_the_same_failures(of_nodes: Path, of_cores: Path) -> None:
    ours = {"cores_per_node": 2}
    by_cores = rebat.run("toy", "sfsj", failures=rebat.failures(file=of_cores), **ours)
    by_nodes = rebat.run(
        "toy", "sfsj", failures=rebat.failures(f"trace:file={of_nodes},numbers=nodes"), **ours
    )
    assert by_cores.attempts.equals(by_nodes.attempts)
    assert len(by_cores.nodes) == 4


def test_generated_failures_of_cores_say_so(tmp_path: Path) -> None:
    out = tmp_path / "f.events"
    main(["failures", "generate", "--nodes", "8", "--cores-per-node", "2", "--mtbf", "10h",
          "--downtime", "1min", "--horizon", "30h", "-o", str(out)])  # fmt: skip
    assert '"cores_per_node": 2' in out.read_text()
    main(["failures", "generate", "--nodes", "8", "--mtbf", "10h", "--downtime", "1min",
          "--horizon", "30h", "-o", str(out), "--force"])  # fmt: skip
    assert "cores_per_node" not in out.read_text()
