# SPDX-License-Identifier: Apache-2.0
"""Kernels and rules in copies of the package: small runs compile nothing, and no code is stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rebat
from rebat.policies.presets import PRESETS

PACKAGE = Path(rebat.__file__).parent
ROOT = PACKAGE.parents[1]

needs_numba = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package without bytecode and machine code, next to the shipped files."""
    for name in ("workloads", "platforms", "failure_events", "campaigns"):
        (tmp_path / name).symlink_to(ROOT / name)
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "schedulers" / "rebat", ignore=ignored)


def printed(copy: Path, code: str, **environment: str) -> list[str]:
    """Return the lines that a program prints, which imports this copy."""
    own = {"PYTHONPATH": str(copy.parent), "REBAT_ENGINE": "auto", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy.parent, env={**os.environ, **own}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.count("compiling") == ("SWITCH" in environment)
    return done.stdout.splitlines()


def machine_code(copy: Path) -> list[str]:
    return sorted(file.name for file in copy.rglob("*.nb?"))


SMALL = """
import sys
import rebat
for policy in %r:
    try:
        rebat.run("toy", [policy], failures=rebat.failures(file="toy"))
    except rebat.InputError:
        continue  # the policy needs another machine
print("numba" in sys.modules)
"""


@pytest.mark.slow
@needs_numba
def test_small_runs_compile_nothing_and_do_not_import_numba(copy: Path) -> None:
    assert printed(copy, SMALL % ([*PRESETS],)) == ["False"]
    assert machine_code(copy) == []


@needs_numba
def test_small_runs_need_no_folder_for_machine_code(copy: Path) -> None:
    code = SMALL % (["baseline", "sfsj", "batsched-easy"],)
    nowhere = {"HOME": "/nowhere", "NUMBA_CACHE_DIR": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    assert printed(copy, code, **nowhere) == ["False"]
    assert not list(copy.rglob("__pycache__"))


FILES = {
    "state/mine_codes.py": "FACTOR = 1\n",
    "kernels/mine_kernel.py": """
from rebat.kernels.jit import kernel, step

@step
def rest(values):
    return values

@kernel
def length(values):
    return len(rest(values)) + 1
""",
    "rules/mine_rules.py": """
from rebat.kernels.jit import rule, whole_rule
from rebat.kernels.mine_kernel import length
from rebat.state.mine_codes import FACTOR

@rule
def part(values):
    return FACTOR * length(values)

@whole_rule
def total(values):
    return part(values) + 10
""",
}
ASKS = """
import numpy as np
from rebat.kernels import jit, mine_kernel
from rebat.rules import mine_rules
values = np.arange(3)
compiled = jit.machine_code_of(mine_rules.total)
print(compiled(values), mine_rules.total(values), sum(compiled.stats.cache_hits.values()))
print(mine_kernel.rest(values) is values, type(mine_kernel.rest).__name__)
"""
CHANGES = (
    ("state/mine_codes.py", "FACTOR = 1", "FACTOR = 2", 18),
    ("kernels/mine_kernel.py", "+ 1", "+ 5", 26),
    ("rules/mine_rules.py", "FACTOR * length", "7 + length", 25),
    ("rules/mine_rules.py", "+ 10", "+ 30", 45),
)


@pytest.mark.slow
@needs_numba
def test_machine_code_is_renewed_even_if_a_changed_file_is_older(copy: Path) -> None:
    """Packages that are unpacked, and files that git restores, can have older times."""
    for name, text in FILES.items():
        (copy / name).write_text(text)
    step = "True Kernel"  # Python interprets steps
    assert printed(copy, ASKS) == ["14 14 0", step]
    assert printed(copy, ASKS) == ["14 14 1", step]
    for age, (name, old, new, result) in enumerate(CHANGES):
        file = copy / name
        text, time_s = file.read_text(), file.stat().st_mtime - 1e6 * (age + 1)
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))
        os.utime(file, (time_s, time_s))
        assert printed(copy, ASKS) == [f"{result} {result} 0", step]
        assert printed(copy, ASKS) == [f"{result} {result} 1", step]


SWITCHES = """
import sys
from pathlib import Path
import rebat
from rebat.kernels import counts, jit, pool
jit.INTERPRETED_S = 1e9
for kernel in (counts.change, pool.lowest_free):
    kernel._left_s = %r
failures = rebat.failures(mtbf="1h", downtime="10s")
rebat.run("synthetic-small", ["baseline"], failures=failures).write(%r)
print("numba" in sys.modules)
"""


@pytest.mark.slow
@needs_numba
def test_a_run_in_which_kernels_become_machine_code_has_equal_bytes(copy: Path) -> None:
    files = []
    for name, interpreted_s in (("plain", 1e9), ("switch", 1e-9)):
        out = copy.parent / name
        notice = {"SWITCH": "1"} if name == "switch" else {}
        (imported,) = printed(copy, SWITCHES % (interpreted_s, str(out)), **notice)
        assert imported == str(name == "switch")
        tables = sorted(out.rglob("*.csv"))
        files.append([(file.relative_to(out), file.read_bytes()) for file in tables])
    assert files[0] == files[1]
    assert files[0]
    assert machine_code(copy)
