"""The README's twenty lines run as they stand there, and broken ones are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rebat.campaign.single import simulate
from rebat.core.errors import InputError
from rebat.models.failures.events import read_events
from rebat.policies.presets import scheduler
from rebat.workloads.batsim_json import read_workload
from tests.scenarios import check_run

ROOT = Path(__file__).parents[2]


def test_the_readmes_policy_runs_under_failures(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    (tmp_path / "mine.py").write_text(code[1])
    chosen = scheduler(f"{tmp_path}/mine.py:SmallestFirst")
    result = simulate(
        read_workload(ROOT / "workloads/toy.json"),
        chosen,
        machine_events=read_events(ROOT / "failure_events/toy.events"),
    )
    check_run(result)
    # Job 5 gets node 2 at once, loses it at 1, and starts over on another: 1 + 2.
    assert {row.job_id: row.flow for row in result.rows}["5"] == 3


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:", "SyntaxError"),
        ("Mine = 3", "lacks plan"),
        ("class Mine:\n    def plan(self, view, changes): return []", "lacks recover"),
        ("", "has no class Mine"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(InputError, match=told):
        scheduler(f"{tmp_path}/mine.py:Mine")


def test_a_missing_file_is_told() -> None:
    with pytest.raises(InputError, match="no such file"):
        scheduler("absent.py:Mine")
