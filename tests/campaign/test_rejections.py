# SPDX-License-Identifier: Apache-2.0
"""The command and the report state how many jobs were rejected."""

from __future__ import annotations

from pathlib import Path

from rebat.cli.main import main

FILE = """
[workloads.drawn]
generator = "synthetic"
seed = 0
[[grid]]
name = "small"
workloads = ["drawn"]
policies = ["easy"]
nodes = {nodes}
"""
TEXT = "1 run rejected 496 jobs in total; flows do not include rejected jobs"


def test_rejected_jobs_are_in_the_warning_and_in_the_report(tmp_path: Path, capsys) -> None:
    pages = {}
    for nodes in (1, 128):
        file = tmp_path / f"on{nodes}.toml"
        file.write_text(FILE.format(nodes=nodes))
        where = [str(file), "--results", str(tmp_path / file.stem)]
        main(["campaign", "run", *where, "--executor", "inline"])
        assert (f"rebat: warning: {TEXT}" in capsys.readouterr().err) == (nodes == 1)
        main(["campaign", "report", *where])
        pages[nodes] = (tmp_path / file.stem / "report/report.md").read_text()
    note, _, tables = pages[1].partition("| policy |")
    assert f"Warning: {TEXT}." in note
    assert "jobs rejected" in tables and "| 496.0 |" in tables
    assert "its own machine, not to the nodes of a grid" in tables
    assert "reject" not in pages[128]


def test_one_run_on_one_node_is_in_the_singular(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(FILE.format(nodes=1))
    where = [str(file), "--results", str(tmp_path / "r")]
    main(["campaign", "run", *where, "--executor", "inline"])
    main(["campaign", "report", *where])
    page = (tmp_path / "r/report/report.md").read_text()
    assert "checkpoints: none, 1 node; means over 1 seed\n" in page
    assert "- 1 distinct run, no seeds\n" in page
