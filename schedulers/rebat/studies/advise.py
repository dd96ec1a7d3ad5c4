# SPDX-License-Identifier: Apache-2.0
"""``rebat.advise``: simulations and records that answer six questions of an operator."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from rebat.api.checks import lists, options_in
from rebat.api.failures import Failures
from rebat.core.declared import Count, extra
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.runs.scenario import ScenarioOptions

if TYPE_CHECKING:
    from rebat.studies.advice.advised import Advice


@lists(options_in(ScenarioOptions, "checkpoint_cost", "recovery_cost", "nodes", "cores_per_node"))
def advise(
    workload: Workload | str | Path,
    *,
    failures: Failures | None = None,
    policy: Annotated[
        str | None,
        "-p",
        "--policy",
        "Policy that is most similar to the cluster's current scheduler (default: the policy "
        "of the site, otherwise easy).",
        extra(values="policy"),
    ] = None,
    past: Annotated[
        str | Path | None,
        "Recorded schedule of these jobs, written by 'rebat workload import --schedule'. The work"
        " that failures destroyed is computed from it.",
        extra(file="folder"),
    ] = None,
    checkpoints: Annotated[
        str | PathLike[str] | None,
        "Checkpoints that the jobs write today (default: the checkpoints of the site, otherwise "
        "none). none: no job. young-daly: all jobs, at their Young/Daly periods. FILE: a CSV file "
        "with the columns user, queue or job, and period, cost, recovery; jobs without a row write "
        "no checkpoints.",
        extra(metavar="none|young-daly|FILE"),
    ] = None,
    minutes: Annotated[
        Annotated[float, Meta(gt=0)],
        "Maximum time for simulations. Seeds are added until the intervals are narrow, or until "
        "this time is over.",
    ] = 10.0,
    most_seeds: Annotated[Count, "--seeds", "Maximum number of seeds."] = 30,
    workers: Annotated[Count | None, "Number of workers (default: one per core)."] = None,
    anonymous: Annotated[
        bool,
        "Write numbers instead of the names of users on pages and in advice.json. Other files in "
        "OUT still contain the names.",
    ] = False,
    out: str | Path = "advice",
    **options: Any,
) -> Advice:
    """Simulate the recorded jobs of a cluster, and answer six questions about it.

    Parameters
    ----------
    workload : Workload, str or Path
        The recorded jobs, or a site (``site.toml``). The site sets the defaults of ``failures``,
        ``policy``, ``past`` and ``checkpoints``.
    failures : Failures, optional
        From `rebat.failures`. Set ``file`` for the recorded failures of the cluster.
        Required if there is no site with failures.
    policy : str
        The policy that represents the cluster's current scheduler (default: that of the site, or
        ``"easy"``).
    past : str or Path, optional
        The recorded schedule of these jobs, written by ``rebat workload import --schedule``. The
        recorded losses are computed from it.
    checkpoints : {"none", "young-daly"} or Path
        The checkpoints that the jobs write today: no job, all jobs at their Young/Daly periods, or
        a CSV file with the columns ``user``, ``queue`` or ``job``, and ``period``, ``cost``,
        ``recovery``.
    minutes : float
        Time for simulations in minutes. Seeds are added until the intervals are narrow or this time
        is over.
    most_seeds : int
        Maximum number of seeds.
    workers : int, optional
        Number of workers (default: one per core).
    anonymous : bool
        Whether pages and numbers contain numbers instead of the names of users.
    out : str or Path
        Folder of the page, the numbers and all runs. After an interruption, the same call continues
        the simulations.
    **options
        ``checkpoint_cost``, ``recovery_cost``, ``nodes``, ``cores_per_node``, as in `rebat.run`.

    Raises
    ------
    InputError
        If there are no failures, or if options or files are invalid.
    PolicyError
        If a run fails.
    """
    from rebat.api.run import scenario_options_of
    from rebat.api.site import failures_of, site_in
    from rebat.api.workloads import as_file, load_workload
    from rebat.studies.advice.advised import advised

    if "checkpoint" in options:
        raise InputError("is not an option of advise", "checkpoint", "checkpoints=...")
    site = site_in(workload)
    if isinstance(workload, Workload):
        loaded = as_file(workload, Path(out))
    elif site is not None:
        loaded = load_workload(workload, checkpoints=False)
    else:
        loaded = load_workload(workload)
    scenario = scenario_options_of(failures, {"checkpoint": "young-daly", **options})
    return advised(
        loaded,
        failures_of(site, scenario),
        site=site,
        policy=policy,
        past=None if past is None else Path(past),
        checkpoints=None if checkpoints is None else str(checkpoints),
        minutes=minutes,
        most_seeds=most_seeds,
        workers=workers,
        anonymous=anonymous,
        out=Path(out),
    )
