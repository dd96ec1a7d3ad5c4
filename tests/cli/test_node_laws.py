# SPDX-License-Identifier: Apache-2.0
"""``rebat failures nodes`` and ``fit``: tables of nodes from laws and from records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rebat.cli import failures
from rebat.cli.main import main
from rebat.models.failures import per_node
from rebat.models.failures.events import read_events
from rebat.models.failures.fitting import fit_nodes
from rebat.models.failures.laws import parse_law
from rebat.models.failures.node_table import read_nodes
from tests.support.choices import choices

LAW = "weibull:scale=50h,shape=2"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Write a record of 32 nodes over 1000 h, with about 22 failures per node."""
    file = tmp_path / "f.events"
    main(["failures", "generate", "--nodes", "32", "--law", LAW, "--horizon", "1000h",
          "-o", str(file)])  # fmt: skip
    return file


def test_the_command_line_knows_every_family() -> None:
    assert set(choices(failures.fit, "law")) == set(per_node.FAMILIES) == set(failures.FAMILIES)


@pytest.mark.parametrize("name", ["n.csv", "n.csv.gz"])
def test_the_nodes_of_a_law_are_written(name: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / name
    main(["failures", "nodes", LAW, "--nodes", "32", "--seed", "5", "-o", str(out)])
    assert f"{out}: 32 nodes, weibull" in capsys.readouterr().out
    table, law = read_nodes(out, 32), parse_law(LAW).nodes(32, 5)
    assert np.array_equal(table.laws.scale_s, law.scale_s)
    assert np.array_equal(table.laws.shape, law.shape)
    assert not table.uptime_s.any()


def test_a_record_is_fitted(record: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "n.csv"
    main(["failures", "fit", str(record), "--nodes", "33", "--until", "1000h", "-o", str(out)])
    found = fit_nodes(read_events(record), 33, until_s=3.6e6)
    told = capsys.readouterr().out
    assert f"{found.n_failures} failures of 33 nodes in 41.7 d" in told
    assert "individual shape 32; with the common shape: 1" in told
    assert f"shape {found.pooled.shape:.4g}" in told
    assert f"{-found.log_likelihood:,.6f}" in told
    table = read_nodes(out, 33)
    assert np.array_equal(table.laws.shape, found.table.laws.shape)
    assert table.uptime_s[32] == 3.6e6


def test_the_machine_is_as_large_as_its_largest_failed_node(record: Path, tmp_path: Path) -> None:
    out = tmp_path / "n.csv"
    main(["failures", "fit", str(record), "--law", "gamma", "--pool", "1000", "-o", str(out)])
    table = read_nodes(out)
    assert len(table) == 32
    assert table.laws.family == "gamma"
    assert len(set(table.laws.shape)) == 1


BAD = {
    "no nodes of its own": (["nodes", "poisson:mtbf=1h", "--nodes", "4"], "no parameters per node"),
    "no such law": (["nodes", "x:mtbf=1h", "--nodes", "4"], "unknown failure law 'x'"),
    "no shape": (["nodes", "weibull:scale=1h", "--nodes", "4"], "parameter shape is missing"),
    "sigma": (["nodes", "exponential:mean=1h,mean_sigma=1d", "--nodes", "99"], "mean_sigma: is 86"),
    "no record": (["fit", "absent.events"], "absent.events: cannot read"),
    "too few nodes": (["fit", "f.events", "--nodes", "3"], "f.events: event"),
    "nothing yet": (["fit", "f.events", "--until", "1s"], "cannot be fitted to 0 failures"),
    "unknown family": (["fit", "f.events", "--law", "poisson"], "--law"),
    "pool of one": (["fit", "f.events", "--pool", "1"], "--pool"),
    "negative end": (["fit", "f.events", "--until", "0"], "--until"),
}  # fmt: skip


@pytest.mark.usefixtures("record")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(case, tmp_path, monkeypatch, capsys) -> None:
    arguments, told = BAD[case]
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(["failures", *arguments, "-o", "n.csv"])
    error = capsys.readouterr().err
    assert left.value.code == 2
    (line,) = (line for line in error.splitlines() if "rror: " in line)
    assert told in line
    assert "Traceback" not in error
    assert not Path("n.csv").exists()


def test_a_long_fit_says_how_far_it_is(record: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    """Progress lines appear on standard error; here after every node."""
    monkeypatch.setattr("rebat.console.progress.EVERY_S", 0.0)
    main(["failures", "fit", str(record), "--nodes", "33", "-o", str(tmp_path / "n.csv")])
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"rebat: nodes fitted: {n} of 33" for n in range(1, 34)]


@pytest.mark.parametrize("command", ["fit", "nodes"])
def test_a_table_is_replaced_by_force_only(command, record, tmp_path, capsys) -> None:
    out = tmp_path / "n.csv"
    out.write_text("mine")
    arguments = {"fit": ["fit", str(record)], "nodes": ["nodes", LAW, "--nodes", "4"]}[command]
    with pytest.raises(SystemExit) as left:
        main(["failures", *arguments, "-o", str(out)])
    assert left.value.code == 2
    assert f"{out}: exists (expected a new file, or --force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    main(["failures", *arguments, "-o", str(out), "--force"])
    assert read_nodes(out).laws.family == "weibull"


def test_same_input_same_bytes(record: Path, tmp_path: Path) -> None:
    written = []
    for name in ("a.csv", "b.csv"):
        main(["failures", "fit", str(record), "-o", str(tmp_path / name)])
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
