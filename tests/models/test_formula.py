# SPDX-License-Identifier: Apache-2.0
"""Queue orders by formula: arithmetic, columns, named rules, and Slurm's weights."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.kernels.formula import MOST
from rebat.models.formula import COLUMNS, formula_of, is_formula
from rebat.policies.presets import preset
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.runs.single import simulate

NAMES = [*COLUMNS]


def value(text: str, **columns: float) -> float:
    """Return the value of a formula for one attempt."""
    row = np.zeros((1, len(NAMES)))
    for name, number in columns.items():
        row[0, NAMES.index(name.rstrip("_"))] = number
    return float(formula_of(text).values(row)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000*age/week + 10*size - 50*fairshare", 1000 * 302_400 / 604_800 + 10 * 8 - 50 * 0.5),
        ("min(age/day, 1) + max(size, 9)", 1 + 9),
        ("-size**3 / -2", 256.0),
        ("2 + 3*4 - (1 - 5)", 18.0),
        ("log2(size) + sqrt(size*2) + log10(100) + floor(2.7) + log(1)", 3 + 4 + 2 + 2 + 0),
        ("class", 3.0),
        ("hour + minute", 3660.0),
        ("1/0", MOST),
        ("-1/0", -MOST),
        ("0/0", 0.0),
        ("log(0)", -MOST),
        ("sqrt(-4)", 0.0),
        ("10**9 * 10**9 * 10**9 * 10**9", MOST),
    ],
)
def test_arithmetic(text: str, expected: float) -> None:
    columns = {"age": 302_400.0, "size": 8.0, "fairshare": 0.5, "class_": 3.0}
    assert value(text, **columns) == pytest.approx(expected, rel=1e-12)


def test_random_arithmetic_equals_python() -> None:
    rng = random.Random(5)

    def draw(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["age", "size", "walltime", "2", "0.5"])
        a, b = draw(depth - 1), draw(depth - 1)
        return rng.choice([f"({a}+{b})", f"({a}-{b})", f"({a}*{b})", f"min({a},{b})", f"(-{a})"])

    for _ in range(200):
        text = draw(4)
        columns = {name: rng.uniform(0, 9) for name in ("age", "size", "walltime")}
        expected = eval(text, {"min": min}, columns)  # a text of this test
        assert value(text, **columns) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # age 3600 s, walltime 7200 s, 16 nodes, submitted at 1000 s
        ("wfp3", (3600 / 7200) ** 3 * 16),
        ("unicef", 3600 / (4 * 7200)),
        ("f1", -(math.log10(7200) * 16 + 870 * 3)),
        ("f2", -(math.sqrt(7200) * 16 + 25600 * 3)),
        ("f3", -(7200 * 16 + 6_860_000 * 3)),
        ("f4", -(7200 * 4 + 530_000 * 3)),
        # Slurm, "Multifactor Priority Plugin": each factor is from 0 to 1
        ("multifactor:age=1000,size=500,max_age=7200", 1000 * 0.5 + 500 * 16 / 64),
        ("multifactor:size=100:favor_small=yes", 100 * (1 - 16 / 64)),
        ("multifactor:fairshare=1001,partition=10", math.floor(1001 * 0.5 + 10 * 0.25)),
    ],
)
def test_named_rules(name: str, expected: float) -> None:
    columns = {"age": 3600, "walltime": 7200, "size": 16, "submitted": 1000, "nodes": 64}
    assert value(name, fairshare=0.5, partition=0.25, **columns) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "age.x", "age[0]", "age**age", "age**0", "min(1)", "pow(2, 2)", "'a'*age",
     "age if 1 else 2", "age <", "lambda: age", "True + age", "1j*age", "days", "max(*age)",
     "(" * 300 + "age" + ")" * 300, "+".join(["age"] * 500), "1+(" * 40 + "age" + ")" * 40,
     "((((age**9)**9)**9)**9)", "multifactor:agee=1", "multifactor:age=x",
     "multifactor:favor_small=1"],
)  # fmt: skip
def test_invalid_formulas_name_the_order(text: str) -> None:
    with pytest.raises(InputError) as error:
        formula_of(text)
    assert "order" in str(error.value)


def test_names_of_orders_are_not_formulas() -> None:
    assert not any(map(is_formula, QUEUE_ORDERS))
    with pytest.raises(InputError, match="unknown order 'shortes'; did you mean shortest"):
        preset("easy:order=shortes")
    for text in ("order=age", "partitions=a:0-3:order=wfp3"):
        with pytest.raises(InputError, match="order that changes over time"):
            preset(f"easy:{text},react=preempt")
    with pytest.raises(InputError, match="half_life has no effect"):
        preset("easy:order=age+size,half_life=1d")


def test_commas_of_functions_and_weights_belong_to_the_order() -> None:
    row = preset("easy:order=Min(age/week, 1)+size,depth=2")
    assert (row.point.common.order, str(row.point.values["depth"])) == (
        "min(age/week, 1)+size",
        "2",
    )
    row = preset("easy:order=multifactor:age=1000,fairshare=500,half_life=1d,shares=phys=1(Ann=2)")
    assert row.point.common.order == "multifactor:age=1000,fairshare=500"
    assert row.point.common.shares == "phys=1(Ann=2)"


def run_of(rows: list[tuple[float, int, float, float]], policy: str, n_nodes: int = 4):
    """Return the starts of jobs (submission, nodes, walltime, run time in seconds) by id."""
    jobs = tuple(
        Job(str(number), size, to_us(at), to_us(wall), f"d{run}")
        for number, (at, size, wall, run) in enumerate(rows)
    )
    profiles = {f"d{run}": {"type": "delay", "delay": run} for *_, run in rows}
    result = simulate(Workload("w", n_nodes, jobs, profiles), preset(policy))
    starts = result.rows.column("first_start").tolist()
    return dict(zip(result.rows.column("job_id"), starts, strict=True))


def test_the_order_changes_while_jobs_wait() -> None:
    # At 10 s, both jobs have waited: (10/100)**3 * 4 = 0.004 and (5/10)**3 * 4 = 0.5.
    rows = [(0, 4, 10, 10), (0, 4, 100, 20), (5, 4, 10, 10)]
    assert run_of(rows, "easy:fcfs")["2"] == 30
    assert run_of(rows, "easy:wfp3") == {"0": 0, "2": 10, "1": 20}
    # Under the fcfs order of the arrival, the plan of the first instant would start job 1 first.
    assert run_of(rows, "baseline:wfp3")["2"] == 10


def test_between_two_sorts_the_order_stays() -> None:
    rows = [(0, 4, 10, 10), (0, 4, 100, 20), (5, 4, 10, 10)]
    assert run_of(rows, "easy:wfp3,order_period=1h")["2"] == 30  # the first values are 0
    assert run_of(rows, "easy:wfp3,order_period=6s")["2"] == 10


@pytest.mark.parametrize(
    "order", ["size#x", "size #", "size\n", "size+\u0661", "\uff53ize", "size;1"]
)
def test_text_that_is_no_arithmetic_is_refused(order: str) -> None:
    with pytest.raises(InputError, match="is not a formula"):
        formula_of(order)
