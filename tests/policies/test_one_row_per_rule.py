# SPDX-License-Identifier: Apache-2.0
"""A new victim rule, criterion or tie rule is one function and one row of `rules/steals.py`.

A copy of the package gets a new rule of each kind. The rules as plain Python and the session that
is asked must then decide the same, and not as the other rules do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.kernels.jit import inlined_rule, reads

PACKAGE = Path(__file__).parents[2] / "schedulers" / "rebat"
NEW = {
    "VICTIMS": (
        "def longest_left(candidate):\n    return -candidate.left_us // candidate.n_nodes",
        '    "longest-left": VictimRule(longest_left),',
    ),
    "CRITERIA": (
        "def at_most_one_more(steal):\n    return steal.victim_nodes <= steal.failed_nodes + 1",
        '    "one-more": at_most_one_more,',
    ),
}
SCRIPT = """
import random
from rebat.check.cases import outages
from rebat.core.jobs import Job, Workload
from rebat.drive.eligible import why_not_policy
from rebat.policies.presets import preset
from rebat.runs.single import simulate

def starts(spec, seed, how):
    rng = random.Random(seed)
    n_nodes = 2 * rng.randint(2, 5)
    profiles = {f"d{n}": {"type": "delay", "delay": n} for n in range(5, 30)}
    names = [*profiles]
    jobs = [Job(str(j), rng.randint(1, n_nodes // 2), rng.randint(0, 9) * 1_000_000,
                rng.randint(30, 60) * 1_000_000, rng.choice(names)) for j in range(12)]
    made, events = Workload("random", n_nodes, tuple(jobs), profiles), outages(rng, n_nodes)
    result = simulate(made, preset(spec), machine_events=events, how=how)
    return [(a.attempt.id, a.start_us, a.end_us, a.cause) for a in result.ledger.attempts]

for spec, old in (("sfsj:victim=longest-left,criterion=one-more", "sfsj:criterion=one-more"),
                  ("sfsj:criterion=one-more", "sfsj")):
    assert not why_not_policy(preset(spec).point)
    differ = 0
    for seed in range(40):
        by_rules = starts(spec, seed, "interpreted")
        assert by_rules == starts(f"{spec},react=stealing+exclude,hits=99", seed, "auto"), seed
        differ += by_rules != starts(old, seed, "auto")
    assert differ, spec
"""


@pytest.mark.slow
def test_a_new_rule_is_a_function_and_a_row(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "rebat", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "rebat" / "rules" / "steals.py"
    text = file.read_text()
    for name, (function, row) in NEW.items():
        head, table, rest = text.partition(f"{name}: dict")
        first, brace, rows = rest.partition("{\n")
        text = f"{head}@inlined_rule\n{function}\n\n\n{table}{first}{brace}{row}\n{rows}"
    file.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_rule_without_its_mark_is_told() -> None:
    from rebat.kernels.jit import chosen

    def unmarked(candidate: object) -> int:
        return 0

    with pytest.raises(TypeError, match="unmarked: a rule needs the mark @inlined_rule"):
        chosen([unmarked])


@inlined_rule
def lost(candidate):
    return candidate.lost_us


@inlined_rule
def fewest_lost(candidate):
    return lost(candidate)


def test_what_a_called_rule_reads_is_known() -> None:
    assert reads(fewest_lost, {"lost_us"})
    assert not reads(fewest_lost, {"left_us"})
