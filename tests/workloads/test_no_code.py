# SPDX-License-Identifier: Apache-2.0
"""Workloads and sites are data: they run no Python files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.files import folder

CODE = "open('ran', 'w')\n\n\ndef rule(attempt):\n    return 0\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workload(**machine: object) -> None:
    record = json.loads((folder("workloads") / "toy.json").read_text())
    Path("w.json").write_text(json.dumps(record | {"machine": machine}))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--out", "out"])
    assert ended.value.code == 2
    assert not Path("ran").exists() and not Path("out").exists()
    return capsys.readouterr().err


def test_the_code_would_run_from_the_command_line(here: Path) -> None:
    main(["run", "toy", "-p", "easy:order=mine.py:rule", "--out", "out"])
    assert Path("ran").exists()


@pytest.mark.parametrize("key", ["order", "limits", "reservations"])
def test_rules_of_a_workload_name_no_code(here: Path, capsys, key: str) -> None:
    workload(rules={key: "mine.py:rule"})
    error = refused(capsys, "w.json", "-p", "easy:rules=all")
    assert f"rules: {key}: names Python code: 'mine.py:rule' (expected a name" in error


def test_partitions_of_a_workload_name_no_code(here: Path, capsys) -> None:
    workload(partitions={"a": {"nodes": "0-7", "order": "mine.py:rule"}})
    assert "partition 'a': order: is 'mine.py:rule'" in refused(capsys, "w.json", "-p", "easy")


@pytest.mark.parametrize("policy", ["mine.py:Mine", "easy:order=mine.py:rule", "mine.py"])
def test_the_policy_of_a_site_is_no_code(here: Path, capsys, policy: str) -> None:
    workload()
    Path("site.toml").write_text(f'jobs = "w.json"\n[scheduler]\npolicy = "{policy}"\n')
    error = refused(capsys, "site.toml")
    assert f"site.toml: scheduler: policy: names Python code: '{policy}'" in error


def test_rules_of_a_site_name_no_code(here: Path, capsys) -> None:
    workload()
    Path("site.toml").write_text('jobs = "w.json"\n[rules]\norder = "mine.py:rule"\n')
    assert "rules: order: names Python code" in refused(capsys, "site.toml", "-p", "easy:rules=all")
