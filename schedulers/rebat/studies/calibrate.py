# SPDX-License-Identifier: Apache-2.0
"""``rebat.calibrate``: compare simulated waits with the recorded waits of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rebat.api.failures import Failures
from rebat.core.declared import Count, extra

if TYPE_CHECKING:
    from rebat.studies.calibration.calibrated import Calibration


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
    failures: Failures | None = None,
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
        The recorded jobs.
    past : str or Path
        The recorded schedule of these jobs, written by ``rebat workload import --schedule``.
    policies : str, or several of them
        Policies to simulate. The nearest four are also simulated with fewer nodes.
    failures : Failures, optional
        From `rebat.failures`. Set ``file`` for the recorded failures of the cluster.
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
    from rebat.api.run import scenario_options_of
    from rebat.api.workloads import load_workload
    from rebat.studies.calibration.calibrated import calibrated
    from rebat.studies.calibration.rules import usual_policies

    loaded = load_workload(workload)
    chosen = usual_policies(loaded) if policies is None else policies
    chosen = [chosen] if isinstance(chosen, str) else list(chosen)
    scenario = scenario_options_of(failures, {"checkpoint": "none", **options})
    table = None if checkpoints is None else Path(checkpoints)
    return calibrated(loaded, Path(past), chosen, scenario, workers, table)
