"""What the options of a run ask for: failures, and what is added to its workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.law import Law


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what fails and what checkpoints; times in seconds.

    ``failures``, and ``model`` with ``mtbf`` and ``downtime``, are short forms of a ``law``.
    """

    law: Law | None = None
    failures: Path | None = None
    mtbf: float | None = None
    downtime: float = 3600.0
    seed: int = 0
    model: str = "authors"
    horizon: float | None = None
    checkpoint: str = "none"
    checkpoint_cost: float = 300.0
    recovery_cost: float = 300.0
    checkpoint_rounding: str = "ceil"
    silent_errors: float | None = None
    silent_error_probability: float | None = None


def law_of(options: Scenario) -> Law | None:
    """How nodes fail; None: they do not."""
    from rebat.models.failures.laws import make_law, parameters

    if options.law is not None:
        return options.law
    if options.failures is not None:
        return make_law("trace", {"file": str(options.failures)})
    if options.mtbf is None:
        return None
    values: dict[str, Any] = {"mtbf": options.mtbf}
    if "downtime" in parameters(options.model):
        values["downtime"] = options.downtime
    return make_law(options.model, values)


def mtbf_of(options: Scenario) -> float | None:
    """The machine's mean time between failures, where it is told."""
    told: float | None = getattr(options.law, "mtbf_s", options.mtbf)
    return told


def prepared(workload: Workload, options: Scenario, n_nodes: int) -> Workload:
    """The workload as it is run: with the checkpoints, then the silent errors asked for."""
    return _with_silent_errors(_with_checkpoints(workload, options, n_nodes), options)


def _with_checkpoints(workload: Workload, options: Scenario, n_nodes: int) -> Workload:
    if options.checkpoint == "none":
        return workload
    mtbf_s = mtbf_of(options)
    if mtbf_s is None:
        raise InputError("the Young/Daly period needs --mtbf", "--checkpoint young-daly")
    return add_young_daly(
        workload,
        n_nodes=n_nodes,
        mtbf_s=mtbf_s,
        cost_s=options.checkpoint_cost,
        recovery_s=options.recovery_cost,
        rounding="floor" if options.checkpoint_rounding == "floor" else "ceil",
    )


def _with_silent_errors(workload: Workload, options: Scenario) -> Workload:
    """Silent errors drawn from the seed."""
    from rebat.models.silent_errors import add_silent_errors, error_rate, job_times_s

    rate, probability = options.silent_errors, options.silent_error_probability
    if rate is not None and probability is not None:
        raise InputError("give one of --silent-errors and --silent-error-probability")
    if probability is not None:
        sizes = [job.n_nodes for job in workload.jobs]
        rate = error_rate(job_times_s(workload), sizes, probability)
    return workload if rate is None else add_silent_errors(workload, rate, seed=options.seed)
