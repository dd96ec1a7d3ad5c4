# SPDX-License-Identifier: Apache-2.0
"""``rebat policy check`` finds each planted bug, and passes correct policies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebat.check.check_policy import check_policy
from rebat.check.verdict import PolicyCheck, new_policy
from tests.support.bugs import BUGS, HEAD

ROOT = Path(__file__).parents[2]


def failed(checked: PolicyCheck) -> dict[str, str]:
    """Return the problem of each failed check."""
    return {row.name: row.failing.problem for row in checked.checks if row.failing}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are plain Python: loading them takes longer than the cases."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    bug = BUGS[name]
    (tmp_path / "mine.py").write_text(HEAD + bug.code)
    timeout_s = 5.0 if "within 5 s" in bug.problem else 30.0
    problems = failed(check_policy(f"{tmp_path}/mine.py:Mine", seeds=5, timeout_s=timeout_s))
    assert bug.check in problems
    assert bug.problem in problems[bug.check]
    assert problems.keys() <= {bug.check, "starvation"}  # no other check fails


@pytest.mark.slow
def test_the_policy_without_a_bug_passes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{HEAD}    pass\n")
    checked = check_policy(f"{tmp_path}/mine.py:Mine", seeds=8)
    assert checked.passed, str(checked)


@pytest.mark.slow
def test_the_new_policy_passes(tmp_path: Path) -> None:
    file, _ = new_policy("mine", tmp_path)
    checked = check_policy(f"{file}:Mine", seeds=12)
    assert checked.passed, str(checked)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["easy", "sfsj", "dbes", "compaction:period=3", "sa"])
def test_a_preset_passes(policy: str) -> None:
    checked = check_policy(policy, seeds=7)
    assert checked.passed, str(checked)


@pytest.mark.slow
def test_the_readmes_policy_starves_large_jobs_and_is_correct_otherwise(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    code = re.search(r"## Your own policy\n\n```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    (tmp_path / "mine.py").write_text(code[1])
    assert failed(check_policy(f"{tmp_path}/mine.py:SmallestFirst", seeds=7)).keys() == {
        "starvation"
    }
