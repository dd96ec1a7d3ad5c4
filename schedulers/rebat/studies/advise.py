# SPDX-License-Identifier: Apache-2.0
"""``rebat.advise``: simulations and records that answer six questions of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

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
from rebat.core.jobs import Workload
from rebat.runs.case import PYTHON, Door, case_of
from rebat.runs.scenario import ScenarioOptions

if TYPE_CHECKING:
    from rebat.studies.advice.advised import Advice


SCENARIO = ("checkpoint_cost", "recovery_cost", "nodes", "cores_per_node")
"""The options of a scenario that an advice has, besides failures."""


@lists(options_in(ScenarioOptions, *SCENARIO))
def advise(
    workload: Workload | str | Path,
    *,
    failures: FailuresOf = None,
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
    failures : Failures, str or Path, optional
        The recorded failures of the cluster: an event file, or the result of `rebat.failures`
        (default: those of the site).
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
    check_names(options, SCENARIO, "advise")
    choices = {
        "policy": policy,
        "past": None if past is None else Path(past),
        "checkpoints": None if checkpoints is None else str(checkpoints),
        "minutes": minutes,
        "most_seeds": most_seeds,
        "workers": workers,
        "anonymous": anonymous,
    }
    with PYTHON.errors():
        return advice_of(workload, given_in(failures, options), PYTHON, Path(out), **choices)


def advice_of(
    workload: Workload | str | Path, given: Mapping[str, Any], door: Door, out: Path, **choices: Any
) -> Advice:
    """Answer the questions. ``given`` contains the options of the scenario.

    ``choices`` are the other options, see `advise`. A site states what is not given.
    """
    from rebat.api.workloads import as_file, load_workload
    from rebat.studies.advice.advised import advised

    site = site_in(workload)
    given = with_failures_of(site, {"checkpoint": "young-daly", **given})
    options = single_options(case_of(given, (), door))
    if isinstance(workload, Workload):
        jobs = as_file(workload, out)
    else:
        jobs = load_workload(workload, **({} if site is None else {"checkpoints": False}))
    return advised(jobs, options, site=site, out=out, **choices)
