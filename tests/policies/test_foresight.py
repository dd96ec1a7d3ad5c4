# SPDX-License-Identifier: Apache-2.0
"""The basis of FAPS: a law, a wrong law, a law fitted to the history of the run, or uptimes."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.models.failures.laws import parse_law
from rebat.models.failures.per_node import WeibullNodes
from rebat.policies.placement.hazards import Stretched, believed
from rebat.policies.presets import preset
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.runs.staging import fitted, history, staged
from rebat.workloads.generate import generator

LAW = parse_law("weibull:scale=200h,shape=4,scale_sigma=40h,shape_sigma=0.5")
BEGIN_S = 8000 * 3600.0
PREFIX = "faps:torus=4x4x4,foresight="


def scenario(begin_s: float = BEGIN_S) -> Scenario:
    return Scenario(failures=FailureScenario(LAW, 3, None, begin_s))


def test_a_factor_makes_all_times_longer() -> None:
    """A factor has the same effect as a law whose scales are larger by this factor."""
    laws = LAW.nodes(16, 0)
    stretched = WeibullNodes(laws.scale_s * 2.5, laws.shape)
    uptime_s = np.linspace(0, 1e6, 16)
    found = Stretched(laws, 2.5).hazard(uptime_s, 3600.0)
    assert found == pytest.approx(stretched.hazard(uptime_s, 3600.0), rel=1e-12)


@pytest.mark.parametrize(
    "text", ["law*", "law*x", "law*0", "law*-2", "law*nan", "law*inf", "youngest*2", "laws", "*2"]
)
def test_a_foresight_that_cannot_be(text) -> None:
    with pytest.raises(InputError, match="foresight"):
        preset(f"faps:foresight={text}")


def test_foresights_are_read() -> None:
    assert believed("law") == ("law", 1.0)
    assert believed("fit*2") == ("fit", 2.0)
    assert believed("a*b.csv") == ("a*b.csv", 1.0)


def test_a_fit_is_to_what_failed_before_and_no_more() -> None:
    past = history(scenario(), 64)
    laws = fitted(past)
    true = LAW.nodes(64, 3)
    assert max(event.at_us for event in past.events) <= BEGIN_S * 1e6
    # With 40 failures of each node, the error of its scale is 1 / (4 sqrt(40)) = 4 %.
    assert np.median(np.abs(laws.scale_s / true.scale_s - 1)) < 0.06


def test_a_fit_needs_a_history() -> None:
    jobs = generator("torus-load:nodes=64,load=50,days=2")(0)
    with pytest.raises(InputError, match="the record of failures before the run"):
        staged(jobs, scenario(0)).run(preset(PREFIX + "fit"))


@pytest.mark.slow
def test_each_foresight_runs_and_knows_the_ages_of_nodes() -> None:
    """The choices differ. If all uptimes were 0, youngest and oldest nodes would be the same at
    first."""
    jobs = generator("torus-load:nodes=64,load=60,days=4")(0)
    stage = staged(jobs, scenario())
    first = {}
    for foresight in ("law", "law*2", "fit", "youngest", "oldest"):
        ledger = stage.run(preset(PREFIX + foresight)).ledger
        first[foresight] = min(ledger.attempts, key=lambda r: r.start_us).nodes
    ages = stage.history.uptime_us
    mean = {name: np.mean(ages[list(nodes)]) for name, nodes in first.items()}
    assert mean["youngest"] <= min(mean.values())
    assert mean["oldest"] > mean["youngest"]
    assert len(set(map(str, first.values()))) >= 3


def test_a_session_of_another_size_is_refused() -> None:
    from rebat.runs.single import simulate

    jobs = generator("torus-load:nodes=64,load=50,days=2")(0)
    with pytest.raises(InputError, match="3 uptimes"):
        simulate(jobs, preset("baseline"), uptime_us=np.zeros(3, dtype=np.int64))
