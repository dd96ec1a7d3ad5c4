# SPDX-License-Identifier: Apache-2.0
"""Records of a Slurm cluster with the rules of a site: what Slurm did, and what rebat does.

`scripts/record-rules.py` wrote each record in about 15 minutes, and describes the configurations.
"""

from __future__ import annotations

import numpy as np
import pytest

from rebat.policies.formula import COLUMNS, formula_of
from tests.support.slurm_rules import (
    CONFIGURATIONS,
    N_NODES,
    PERIOD_S,
    computed_s,
    factors_at,
    jobs_of,
    rules_of,
    samples_of,
    weights_of,
)


@pytest.fixture(params=CONFIGURATIONS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- priorities


def test_slurm_computes_priorities_once_a_minute(name: str) -> None:
    times = [computed_s(name, sample) for sample in samples_of(name)]
    steps = np.diff(np.unique([time_s for time_s in times if time_s]))
    assert {*steps.tolist()} == {PERIOD_S}


def test_the_formula_has_the_priorities_of_slurm(name: str) -> None:
    """All priorities are equal. A job that was submitted later has no age yet."""
    formula, weights = formula_of(rules_of(name).options["order"]), weights_of(name)
    differences = []
    for sample in samples_of(name):
        at_s = computed_s(name, sample)
        for row in sample.priorities if at_s else ():
            job = jobs_of(name)[row.job]
            table = {
                "age": max(0, at_s - int(job["Eligible"])),
                "size": int(job["NNodes"]),
                "nodes": N_NODES,
                "partition": weights[job["Partition"]],
                "fairshare": sample.factors.get(row.user, 0.0),
            }
            values = np.array([[table.get(column, 0.0) for column in COLUMNS]])
            differences.append(row.priority - int(formula.values(values)[0]))
    assert (len(differences), {*differences}) == (N_PRIORITIES[name], {0})


N_PRIORITIES = {"unenforced": 583, "limits": 0}


# ---- fair share


def test_factors_of_users() -> None:
    for name in ("unenforced", "fair"):
        equal = []
        for sample in samples_of(name):
            if at_s := computed_s(name, sample):
                ours = {user: round(f, 6) for user, f in factors_at(name, at_s).items()}
                equal += [ours[user] == sample.factors[user] for user in ours]
        print(name, sum(equal), len(equal))
