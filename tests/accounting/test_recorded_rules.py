# SPDX-License-Identifier: Apache-2.0
"""Three records of a Slurm cluster with the rules of a site: what Slurm did, and what rebat does.

`scripts/record-rules.py` wrote each record in about 15 minutes, and describes the configurations.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rebat.policies.formula import COLUMNS, formula_of
from rebat.policies.limits import read_limits
from rebat.records.queues import read_queues
from tests.support.slurm_rules import (
    CONFIGURATIONS,
    N_NODES,
    computed_s,
    folder_of,
    jobs_of,
    rules_of,
    samples_of,
    shares_at,
    started,
    traits,
)


@pytest.fixture(params=CONFIGURATIONS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- priorities


def weights_of(name: str) -> dict[str, float]:
    """Return the weights of partitions, divided by the largest weight."""
    rows = read_queues(folder_of(name) / "partitions.txt")
    most = max(row.get("weight", 1) for row in rows.values())
    return {partition: row.get("weight", 1) / most for partition, row in rows.items()}


def test_priorities(name: str) -> None:
    """The formula has the priorities that Slurm states, at the times at which Slurm computes them.

    A job that was submitted later has no age yet.
    """
    formula = formula_of(rules_of(name).options["order"])
    differences = Counter[int]()
    for sample in samples_of(name):
        at_s = computed_s(name, sample)
        for row in sample.priorities if at_s else ():
            job = jobs_of(name).get(row.job)
            if job is None or not job["Eligible"].isdecimal():
                continue
            table = {
                "age": max(0, at_s - int(job["Eligible"])),
                "size": int(job["NNodes"]),
                "nodes": N_NODES,
                "partition": weights_of(name)[job["Partition"]],
                "fairshare": sample.factors.get(row.user, 0.0),
            }
            values = np.array([[table.get(column, 0.0) for column in COLUMNS]])
            differences[row.priority - int(formula.values(values)[0])] += 1
    print(name, differences)
