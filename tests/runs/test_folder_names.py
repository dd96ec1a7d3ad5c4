# SPDX-License-Identifier: Apache-2.0
"""The folders of policies, and ids of jobs that are unusual texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rebat
from rebat.cli.main import main
from rebat.runs.single import folders_of

LONG = "easy:order=" + "+".join(["1000*age/week"] * 20)


def test_each_policy_has_its_own_folder(tmp_path: Path) -> None:
    """The names differ only in / and +, or are longer than a file system allows."""
    policies = ["easy:order=age/size", "easy:order=age+size", LONG, LONG.replace("1000", "999")]
    result = rebat.run("toy", policies)
    result.write(tmp_path / "o")
    folders = folders_of(policies)
    assert len({*folders}) == len(policies)
    assert all(len(name.encode()) < 255 for name in folders)
    for name, policy in zip(folders, policies, strict=True):
        summary = json.loads((tmp_path / "o" / name / "summary.json").read_text())
        assert summary["policy"] == policy


@pytest.mark.parametrize("name", ["a ", " a", " ", 'a"b', "a;b", "-1", "nan", "1e5", "é", "a/b"])
def test_an_id_is_compared_as_it_is(name: str, tmp_path: Path) -> None:
    job = {"id": name, "subtime": 0, "res": 1, "walltime": 20, "profile": "p"}
    other = {**job, "id": "other", "dependency": f"afterok:{name}"}
    profiles = {"p": {"type": "delay", "delay": 10}}
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"nb_res": 2, "jobs": [job, other], "profiles": profiles}))
    out = tmp_path / "o"
    main(["run", str(file), "-p", "easy", "--out", str(out)])
    main(["validate", str(out), "--workload", str(file)])  # raises SystemExit if there are findings
