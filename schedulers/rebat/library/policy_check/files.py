# SPDX-License-Identifier: Apache-2.0
"""Files of a failing case: its inputs for ``rebat run``, and a test for pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.core.files import write_text
from rebat.library.policy_check.cases import case_of, case_record
from rebat.library.policy_check.verdict import FailingCase, PolicyCheck, problem_in
from rebat.models.failures.events import write_events
from rebat.models.operations import write_operations
from rebat.workloads.batsim_json import write_workload

TEST = '''"""{problem}"""

import json

from rebat.library.policy_check.files import recheck

CASE = json.loads(
    """
{case}
"""
)


def test_{name}():
    assert recheck({policy!r}, {check!r}, CASE) == ""
'''


def write_cases(checked: PolicyCheck, folder: Path) -> list[Path]:
    """Write the failing cases of a policy, and return the paths of the test files.

    For a failed check NAME, the files are NAME.json (the workload), NAME.events (failures),
    NAME-operations.json (drains and migrations, if there are any), and test_NAME.py.
    """
    paths = []
    for check in checked.checks:
        if check.failing:
            paths.append(_write(checked.policy, check.name, check.failing, folder))
    return paths


def _write(policy: str, check: str, failing: FailingCase, folder: Path) -> Path:
    case, record = failing.case, case_record(failing.case)
    write_workload(case_of(record).workload, folder / f"{check}.json")
    if case.events:
        write_events(case.events, folder / f"{check}.events", cores_per_node=case.cores_per_node)
    if case.operations:
        write_operations(record["operations"], folder / f"{check}-operations.json")
    text = TEST.format(
        problem=f"{check}: {failing.problem}".replace("\\", "/").replace('"', "'"),
        case=_json(record),
        name=check.replace("-", "_"),
        policy=policy,
        check=check,
    )
    path = folder / f"test_{check.replace('-', '_')}.py"
    write_text(path, text)
    return path


def _json(record: dict[str, Any]) -> str:
    """Return JSON with escaped backslashes, for the literal string of a test."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    return text.replace("\\", "\\\\")


def recheck(policy: str, check: str, case: dict[str, Any]) -> str:
    """Test a policy with one check and a stored case.

    Returns
    -------
    str
        The problem, or an empty text if the policy passes.

    Raises
    ------
    InputError
        If the policy cannot be loaded, the check is unknown, or the case is invalid.
    """
    return problem_in(policy, check, case_of(case))
