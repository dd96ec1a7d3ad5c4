# SPDX-License-Identifier: Apache-2.0
"""A picture for the report on training clusters: the time line of the largest job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rebat.figures.flagship import flagship_svg
from rebat.papers.common.parts import Picture
from rebat.results.measures.recoveries import largest_job
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run
from rebat.runs.unit import Unit

MOST_DRAWN = 4
"""Maximum number of policies in the picture."""


def flagship_pictures(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield the time line of the job that used the most node time, under several policies.

    The first time line is from the first run with failures of the campaign. The others are from the
    same scenario under the next policies of the grid. All runs are simulated again.
    """
    first = next((unit for unit in units if unit.spec.scenario.failures), None)
    if first is None:
        return
    alike = {
        unit.spec.policy: unit
        for unit in units
        if unit.grid == first.grid
        and unit.spec.source == first.spec.source
        and unit.spec.scenario == first.spec.scenario
    }
    chosen = islice(alike.items(), MOST_DRAWN)
    ledgers = {policy: simulate_run(unit).ledger for policy, unit in chosen}
    job = largest_job(ledgers[first.spec.policy])
    about = f"{scenario_of(first.spec).label}, seed {first.labels['seed']}"
    title = f"job {job} of {first.spec.workload}: attempts, recoveries and ETTR"
    yield Picture("", title, flagship_svg(ledgers, job), about)
