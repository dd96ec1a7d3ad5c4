# SPDX-License-Identifier: Apache-2.0
"""The files of a new policy: a class to change, and its test."""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError
from rebat.core.files import write_text

POLICY = '''"""A policy for rebat: first come, first served, with backfilling (EASY)."""

from rebat.contract import Policy, Start


class {name}(Policy):
    """A waiting job may start early if this does not delay the first job of the queue."""

    def plan(self, view, changes):
        """Yield a proposal for each job that starts now. Times are in microseconds (_us)."""
        free, queue = view.n_free, list(view.queue.values())
        running = [(run.planned_end_us, run.attempt.n_nodes) for run in view.running.values()]
        while queue and queue[0].n_nodes <= free:
            attempt = queue.pop(0)
            free -= attempt.n_nodes
            running.append((view.now_us + attempt.walltime_us, attempt.n_nodes))
            yield Start(attempt.id)
        if queue:
            start_us, spare = reservation(queue[0].n_nodes, free, running)
            for attempt in queue[1:]:
                ends_before = view.now_us + attempt.walltime_us <= start_us
                if attempt.n_nodes <= (free if ends_before else min(free, spare)):
                    free -= attempt.n_nodes
                    spare -= 0 if ends_before else attempt.n_nodes
                    yield Start(attempt.id)


def reservation(n_nodes, free, running):
    """Return when this number of nodes is free at the latest, and how many more are free then."""
    for end_us, released in sorted(running):
        free += released
        if free >= n_nodes:
            return end_us, free - n_nodes
    return float("inf"), free  # nodes are down: no job can delay the first one
'''

TEST = '''"""Tests of {name}: it runs, and keeps the rules of every policy."""

from pathlib import Path

import rebat

POLICY = f"{{Path(__file__).with_name('{file}')}}:{name}"


def test_it_runs_all_jobs():
    result = rebat.run("toy", [POLICY], failures=rebat.failures(file="toy"))
    assert len(result.jobs) == 5


def test_it_keeps_the_rules_of_every_policy():
    checked = rebat.check_policy(POLICY, seeds=5)
    assert checked.passed, str(checked)
'''


def new_policy(name: str, folder: Path, force: bool = False) -> list[Path]:
    """Write NAME.py and test_NAME.py to a folder. Return both paths.

    Parameters
    ----------
    name : str
        Name of the file. The name of the class is the same with a capital letter.
    force : bool
        Whether to replace existing files.
    """
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise InputError(f"invalid name {name!r}", "NAME", "letters, digits and _, like my_policy")
    file = name.lower()
    texts = {folder / f"{file}.py": POLICY, folder / f"test_{file}.py": TEST}
    for path in texts:
        if path.exists() and not force:
            raise InputError("exists", str(path), "a new name, or --force to replace the file")
    for path, text in texts.items():
        write_text(path, text.format(name=class_name(name), file=f"{file}.py"))
    return [*texts]


def class_name(name: str) -> str:
    """Return the name of the class of a policy.

    >>> class_name("my_policy"), class_name("MyPolicy")
    ('MyPolicy', 'MyPolicy')
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
