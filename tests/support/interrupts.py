# SPDX-License-Identifier: Apache-2.0
"""Calls that Ctrl-C interrupts at random times: the same call then has the result of a new process.

``python -m tests.support.interrupts 200`` interrupts calls of `rebat.run` (with one seed and with
several), `rebat.sweep`, a question of what if, and the display of a result in a notebook.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rebat
from rebat.api.workloads import load_workload
from rebat.core.jobs import Workload
from rebat.drive.shared import Shared
from rebat.results.comparison import rows
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.whatif.answers import Answers
from rebat.studies.whatif.question import started
from tests.support.scenarios import machine

Call = Callable[[int], Any]
"""A call with the seed of the failures. It returns everything that it computed."""


def jobs() -> Workload:
    """Return 40 jobs of 2 nodes on 64 nodes."""
    return machine(64, *((2, 2000, j, 4000) for j in range(40)))


def one_run(seed: int) -> Any:
    """Run one policy on failures with a history."""
    failures = rebat.failures(mtbf="20s", downtime="5s", seed=seed, begin=1)
    return _numbers(rebat.run(jobs(), ["greedy"], failures=failures))


def per_node(seed: int) -> Any:
    """Run two policies on failures of nodes with their own laws."""
    failures = rebat.failures("weibull:scale=2h,shape=1,shape_sigma=0", seed=seed, begin="1h")
    return _numbers(rebat.run(jobs(), ["baseline", "sfsj"], failures=failures))


def several_seeds(seed: int) -> Any:
    """Run two policies with three seeds."""
    failures = rebat.failures(mtbf="1min", downtime="20s", seed=seed)
    return _numbers(rebat.run(jobs(), ["easy", "easy-sfsj"], failures=failures, seeds=3))


def sweep(seed: int) -> Any:
    """Run a sweep that writes its results to a folder."""
    with tempfile.TemporaryDirectory() as folder:
        result = rebat.sweep(
            jobs(), ["baseline"], mtbf=["1min", "2min"], downtime="20s", begin=1 + seed, seeds=2,
            workers=1, out=Path(folder) / "sweep",
        )  # fmt: skip
        return result.frame.to_csv()


def what_if(seed: int) -> Any:
    """Ask a question of what if, and wait for the answer."""
    options = ScenarioOptions(mtbf=30.0, downtime=5.0, seed=seed, begin=1.0)
    answers = Answers(1)
    try:
        answers.ask(started(load_workload("toy"), "toy", options, ("baseline", "sfsj")))
        while (answer := answers.answer) is None or not answer.complete:
            time.sleep(0.002)
        return [*rows(answer.runs)]
    finally:
        answers.close()


def notebook(seed: int) -> Any:
    """Display a result as a notebook does."""
    failures = rebat.failures(mtbf="30s", downtime="5s", seed=seed, begin="1h")
    return rebat.run("toy", ["baseline", "sfsj"], failures=failures)._repr_html_()


CALLS: dict[str, Call] = {
    "run": one_run, "laws of nodes": per_node, "seeds": several_seeds, "sweep": sweep,
    "what if": what_if, "notebook": notebook,
}  # fmt: skip


def _numbers(result: rebat.Result) -> Any:
    jobs = "" if result.seeds else result.jobs.to_csv()
    return [*result.rows], jobs


def forget() -> None:
    """Clear every cache of the package, as in a new process."""
    for module in [m for name, m in sys.modules.items() if name.startswith("rebat.")]:
        for value in [*vars(module).values()]:
            if isinstance(value, Shared):
                value._values.clear()
            elif hasattr(value, "cache_clear"):
                value.cache_clear()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def interrupted(call: Call, seed: int, after_s: float) -> bool:
    """Interrupt a call. Return whether it was still running."""
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        call(seed)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compare(n: int, first_seed: int = 0) -> Counter[str]:
    """Interrupt n calls at random times. Return the number of interrupted calls of each kind.

    Raises
    ------
    AssertionError
        If the next call has another result than a call without an interrupt.
    """
    counts: Counter[str] = Counter()
    rng = random.Random(first_seed)
    for k in range(n):
        name, call = [*CALLS.items()][k % len(CALLS)]
        seed = first_seed + k
        forget()
        began = time.perf_counter()
        expected = call(seed)
        length_s = time.perf_counter() - began
        forget()
        counts[name] += interrupted(call, seed, max(1e-4, rng.random() * length_s))
        assert call(seed) == expected, f"{name}, seed {seed}: another result after an interrupt"
    return counts


if __name__ == "__main__":
    print(dict(compare(int(sys.argv[1]))))
