# SPDX-License-Identifier: Apache-2.0
"""``rebat.calibrate``: compare simulated waits with the recorded waits of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rebat.api.cases import (
    FailuresOf,
    check_names,
    given_in,
    single_options,
    site_in,
    with_failures_of,
)
from rebat.api.signatures import lists, options_in
from rebat.core.declared import Count, extra
from rebat.runs.case import PYTHON, Door, case_of
from rebat.runs.scenario import ScenarioOptions

if TYPE_CHECKING:
    from rebat.studies.calibration.calibrated import Calibration


SCENARIO = ("nodes", "cores_per_node", "max_attempts")
"""The options of a scenario that a calibration has, besides failures."""


@lists(options_in(ScenarioOptions, *SCENARIO))
def calibrate(
    workload: str | Path,
    past: str | Path,
    policies: Annotated[
        str | Sequence[str] | tuple[str, ...] | None,
        "-p",
        "--policy",
        "Policy to simulate; may be repeated (default: seven policies, with different backfilling"
        " and queue orders, and three policies with the rules that the workload states).",
    ] = None,
    *,
    failures: FailuresOf = None,
    checkpoints: Annotated[
        str | Path | None,
        "CSV file with the checkpoints that jobs write, as for 'rebat advise --checkpoints'.",
        extra(file="file"),
    ] = None,
    workers: Annotated[Count | None, "Number of workers (default: one per core)."] = None,
    **options: Any,
) -> Calibration:
    """Simulate recorded jobs in several configurations, and compare simulated and real waits.

    Parameters
    ----------
    workload : str or Path
        The recorded jobs, or a site (``site.toml``).
    past : str or Path
        The recorded schedule of these jobs, written by ``rebat workload import --schedule``.
    policies : str, or several of them
        Policies to simulate. The nearest four are also simulated with fewer nodes.
    failures : Failures, str or Path, optional
        The recorded failures of the cluster: an event file, or the result of `rebat.failures`
        (default: those of the site).
    checkpoints : str or Path, optional
        A CSV file with the checkpoints that jobs write, see `rebat.advise`.
    workers : int, optional
        Number of workers (default: one per core).
    **options
        ``nodes``, ``cores_per_node``, ``max_attempts``, as in `rebat.run`.

    Raises
    ------
    InputError
        If options or files are invalid, or if the recorded schedule has too few jobs.
    PolicyError
        If all simulations fail.
    """
    check_names(options, SCENARIO, "calibrate")
    chosen = (policies,) if isinstance(policies, str) else tuple(policies or ())
    with PYTHON.errors():
        given = given_in(failures, options)
        table = None if checkpoints is None else Path(checkpoints)
        return calibration_of(Path(workload), Path(past), chosen, given, PYTHON, table, workers)


def calibration_of(
    workload: Path,
    past: Path,
    policies: Sequence[str],
    given: Mapping[str, Any],
    door: Door,
    checkpoints: Path | None,
    workers: int | None,
) -> Calibration:
    """Calibrate. ``given`` contains the options of the scenario, see `calibrate` for the others.

    A site states the failures and the checkpoints that are not given.
    """
    from rebat.api.workloads import load_workload
    from rebat.studies.calibration.calibrated import calibrated
    from rebat.studies.calibration.rules import usual_policies

    site = site_in(workload)
    options = single_options(case_of(with_failures_of(site, given), (), door))
    jobs = load_workload(workload, **({} if site is None else {"checkpoints": False}))
    if site is not None and site.checkpoints and checkpoints is None:
        checkpoints = workload
    policies = policies or usual_policies(jobs)
    return calibrated(jobs, past, policies, options, workers, checkpoints)
