# SPDX-License-Identifier: Apache-2.0
"""rebat: resilient batch schedulers for Batsim.

Example (modules are imported on first use)::

    import rebat

    month = rebat.load_workload("mira-like-june-2017")
    failures = rebat.failures(mtbf="1h", downtime="1h", seed=0)
    result = rebat.run(month, ["baseline", "sfsj"], failures=failures, checkpoint="young-daly")
    result

``rebat.policies()`` lists the policies. The command line has the same functions: ``rebat --help``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from rebat.api.cite import cite as cite
    from rebat.api.failures import Failures as Failures
    from rebat.api.failures import failures as failures
    from rebat.api.result import Page as Page
    from rebat.api.result import Plot as Plot
    from rebat.api.result import Result as Result
    from rebat.api.run import run as run
    from rebat.api.sweep import SweepResult as SweepResult
    from rebat.api.sweep import sweep as sweep
    from rebat.api.workloads import LoadedWorkload as LoadedWorkload
    from rebat.api.workloads import load_workload as load_workload
    from rebat.check.check_policy import check_policy as check_policy
    from rebat.check.verdict import PolicyCheck as PolicyCheck
    from rebat.check.verdict import recheck as recheck
    from rebat.contract import Policy as Policy
    from rebat.contract import Start as Start
    from rebat.core.errors import InputError as InputError
    from rebat.core.errors import PolicyError as PolicyError
    from rebat.core.errors import RebatError as RebatError
    from rebat.studies.advice.advised import Advice as Advice
    from rebat.studies.advise import advise as advise
    from rebat.studies.calibrate import calibrate as calibrate
    from rebat.studies.calibration.calibrated import Calibration as Calibration
    from rebat.studies.goodput import goodput as goodput
    from rebat.studies.training.goodput import Goodput as Goodput

_MODULES = {
    "load_workload": "rebat.api.workloads",
    "LoadedWorkload": "rebat.api.workloads",
    "failures": "rebat.api.failures",
    "Failures": "rebat.api.failures",
    "run": "rebat.api.run",
    "Result": "rebat.api.result",
    "Plot": "rebat.api.result",
    "Page": "rebat.api.result",
    "sweep": "rebat.api.sweep",
    "SweepResult": "rebat.api.sweep",
    "cite": "rebat.api.cite",
    "advise": "rebat.studies.advise",
    "Advice": "rebat.studies.advice.advised",
    "calibrate": "rebat.studies.calibrate",
    "Calibration": "rebat.studies.calibration.calibrated",
    "goodput": "rebat.studies.goodput",
    "Goodput": "rebat.studies.training.goodput",
    "check_policy": "rebat.check.check_policy",
    "PolicyCheck": "rebat.check.verdict",
    "recheck": "rebat.check.verdict",
    "Policy": "rebat.contract",
    "Start": "rebat.contract",
    "InputError": "rebat.core.errors",
    "PolicyError": "rebat.core.errors",
    "RebatError": "rebat.core.errors",
}
"""Module of each public name."""

__all__ = [*_MODULES, "policies"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from rebat.core.version import rebat_version

        return rebat_version()
    if name == "policies":  # the package is callable and lists the policies
        return import_module("rebat.policies")
    if name not in _MODULES:
        raise AttributeError(f"module 'rebat' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
