# SPDX-License-Identifier: Apache-2.0
"""Everything that the Python interface returns can be pickled."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rebat

FAILURES = rebat.failures(mtbf="1min", downtime="5s")


def sweep(folder: Path) -> Any:
    return rebat.sweep(
        "toy", ["baseline"], mtbf=["1min", "2min"], downtime="5s", seeds=2, workers=1,
        out=folder / "sweep",
    )  # fmt: skip


RESULTS: dict[str, tuple[Callable[[Path], Any], tuple[Callable[[Any], Any], ...]]] = {
    "run": (
        lambda folder: rebat.run("toy", ["baseline", "sfsj"], failures=FAILURES),
        (
            lambda result: result.text(),
            lambda result: result.to_html(),
            lambda result: result.jobs.to_csv(),
            lambda result: result.attempts.to_csv(),
            lambda result: result.nodes.to_csv(),
        ),
    ),
    "explained run": (
        lambda folder: rebat.run("toy", ["easy"], failures=FAILURES, explain=True),
        (lambda result: result.to_html(),),
    ),
    "seeds": (
        lambda folder: rebat.run("toy", ["baseline"], failures=FAILURES, seeds=2),
        (lambda result: result.text(), lambda result: result.rows),
    ),
    "sweep": (sweep, (lambda result: result.frame.to_csv(),)),
    "goodput": (
        lambda folder: rebat.goodput(100, rate=6.5, runs=5, interval="1h"),
        (lambda result: result.text,),
    ),
    "workload": (lambda folder: rebat.load_workload("toy"), (lambda workload: workload.n_nodes,)),
    "failures": (lambda folder: FAILURES, (repr,)),
    "policies": (lambda folder: rebat.policies(), (lambda table: table.to_csv(),)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_can_be_pickled(name: str, tmp_path: Path) -> None:
    create, views = RESULTS[name]
    result = create(tmp_path)
    copied = pickle.loads(pickle.dumps(result))
    for view in views:
        assert view(copied) == view(result)
