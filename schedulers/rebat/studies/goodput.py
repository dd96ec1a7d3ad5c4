# SPDX-License-Identifier: Apache-2.0
"""``rebat goodput``: effective training time of one job, from a formula and from simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from rebat.core.declared import Count, Machine, Seed
from rebat.core.units import parse_duration

if TYPE_CHECKING:
    from rebat.studies.training.goodput import Goodput

_RANDOM = "a duration like 30s, random, or by cause (see 'Training clusters' in the documentation)"


def goodput(
    nodes: Annotated[Machine, "--nodes", "Number of nodes of the job."],
    *,
    rate: Annotated[Annotated[float, Meta(gt=0)] | None, "Failures per 1,000 node-days."] = None,
    model: Annotated[
        str | None,
        "Use the failure rate of this training cluster instead of --rate, for example rsc-1 "
        "('rebat failures models' lists the names).",
    ] = None,
    interval: Annotated[
        str | float | None, "Work between two checkpoints (default: the best interval)."
    ] = None,
    write: Annotated[
        str | float, "Time for which the job stops while it writes a checkpoint."
    ] = "0",
    load: Annotated[
        str | float,
        "Time to load a checkpoint. If a node fails during this time, the loading starts again.",
    ] = "0",
    detect: Annotated[str | float, f"Time until a failure is detected: {_RANDOM}."] = "0",
    diagnose: Annotated[
        str | float, "Time after the detection until it is known which nodes have failed."
    ] = "0",
    reschedule: Annotated[
        str | float, "Time after the diagnosis until the scheduler starts the job again."
    ] = "0",
    init: Annotated[
        str | float, "Time until the job has started again, before it loads its checkpoint."
    ] = "0",
    spares: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        "Simulate this number of spare nodes (default: unlimited).",
    ] = None,
    failing: Annotated[
        Literal["all", "job"],
        "With --spares, the nodes that can fail. all: all nodes that are up, including spare "
        "nodes and the nodes of a waiting job. job: only the nodes on which the job runs.",
    ] = "all",
    tiers: Annotated[
        str | None,
        "Tiers of checkpoints instead of --interval, --write and --load: auto, or "
        "TIER=WRITE/LOAD[@INTERVAL] joined by +, like peer=1s/30s+remote=30s/2min.",
    ] = None,
    repair: Annotated[
        str | None,
        "Repair time of a node, a random duration (default: 90 % take 1 to 3 h, 10 % take 1 to 3 "
        "d).",
    ] = None,
    target: Annotated[
        Annotated[float, Meta(gt=0, lt=1)],
        "Share of the time in which the recommended number of spares suffices.",
    ] = 0.99,
    seed: Annotated[Seed, "First seed of the failures."] = 0,
    runs: Annotated[Annotated[int, Meta(ge=5)], "Number of simulations."] = 20,
    failures: Annotated[Count, "Expected number of failures of each simulation."] = 200,
) -> Goodput:
    """Return the effective training time of a job, from a formula and from simulations.

    Parameters
    ----------
    nodes : int
        Number of nodes of the job.
    rate : float, optional
        Failures per 1,000 node-days. Alternatively, set ``model``.
    model : str, optional
        A training cluster of ``rebat failures models``, like rsc-1.
    interval : duration, optional
        Work between two checkpoints (default: the best interval).
    write : duration
        Time to write a checkpoint.
    load : duration
        Time to load a checkpoint.
    detect, diagnose, reschedule, init : random duration
        Durations of the stages of the recovery, in the form of the policy axes with these names.
    spares : int, optional
        Number of spare nodes to simulate (default: unlimited).
    tiers : str, optional
        Tiers of checkpoints, in the form of ``rebat run --tiers`` or ``auto``. They replace
        ``interval``, ``write`` and ``load``.
    failing : {"all", "job"}
        With ``spares``, which nodes can fail: all nodes that are up, including spare nodes and the
        nodes of a waiting job, or only the nodes on which the job runs.
    repair : random duration, optional
        Repair time of a node.
    target : float
        Share of the time in which the recommended number of spare nodes must suffice.
    seed : int
        First seed.
    runs : int
        Number of simulations.
    failures : int
        Expected number of failures in each simulation.
    """
    from rebat.models.tiers import USUAL
    from rebat.studies.training.case import TrainingCase, failures_of
    from rebat.studies.training.goodput import simulated_goodput

    stages = {"detect": detect, "diagnose": diagnose, "reschedule": reschedule, "init": init}
    case = TrainingCase(
        nodes=nodes,
        law=failures_of(rate, model, repair),
        interval_s=None if interval is None else parse_duration(interval),
        write_s=parse_duration(write),
        load_s=parse_duration(load),
        stages={name: str(text) for name, text in stages.items() if str(text) != "0"},
        spares=spares,
        tiers=USUAL if tiers == "auto" else tiers,
        failing=failing,
    )
    return simulated_goodput(case, target, seed, runs, failures)
