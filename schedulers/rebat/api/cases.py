# SPDX-License-Identifier: Apache-2.0
"""Cases from calls in Python, and the policy and the failures that a site adds to a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rebat.api.failures import Failures
from rebat.core.errors import InputError, short, unknown_name
from rebat.models.failures.recorded import Recorded
from rebat.runs.case import Case, combinations
from rebat.runs.scenario import OPTIONS, ScenarioOptions
from rebat.workloads.load import SITE_ENDING, load_workload

if TYPE_CHECKING:
    from rebat.workloads.site import Site

FailuresOf = Failures | str | PathLike[str] | None
"""How nodes fail: the result of `failures`, or an event file."""


def check_names(options: Iterable[str], valid: Sequence[str], function: str) -> None:
    """Raise InputError if a function has no option with one of these names."""
    for name in options:
        if name not in valid:
            raise unknown_name(f"option of {function}", name, valid)


def given_in(failures: FailuresOf, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a scenario that a call sets.

    Raises
    ------
    InputError
        If an option is set twice.
    """
    given = dict(options)
    if failures is None:
        return given
    if isinstance(failures, str | PathLike):
        return given | {"failures": Path(failures)}
    if not isinstance(failures, Failures):
        raise InputError(f"is {short(failures)}", "failures", "rebat.failures(...), or a file")
    for name in OPTIONS:
        value = getattr(failures, name)
        if value != OPTIONS[name].default:
            if name in given:
                raise InputError("has no effect", name, f"only one of {name} and failures")
            given[name] = value
    if "seed" in options:
        raise InputError("has no effect", "seed", "failures(..., seed=...)")
    return given


def single_options(case: Case) -> ScenarioOptions:
    """Return the options of a case in which each option has one value.

    Raises
    ------
    InputError
        If an option other than the seed has several values.
    """
    several = [name for name, of in case.values.items() if len(of) > 1 and name != "seed"]
    if several:
        expected = "one value; 'rebat sweep' simulates several"
        problem = f"has {len(case.values[several[0]])} values"
        raise InputError(problem, case.door.place(several[0]), expected)
    ((machine, options),) = combinations(case)
    return replace(options[0], operations=machine.operations)


# ---- sites


def site_in(workload: Any) -> Site | None:
    """Return the site that an argument for a workload names, or None if it is something else."""
    if not isinstance(workload, str | Path) or Path(workload).suffix.lower() != SITE_ENDING:
        return None
    if not Path(workload).is_file():
        raise InputError("does not exist", str(workload), "a site.toml of 'rebat calibrate'")
    from rebat.workloads.site import read_site  # most workloads are not sites

    return read_site(Path(workload))


def policies_of(site: Site | None, policies: Sequence[Any]) -> Sequence[Any]:
    """Return the policies. If there are none, return that of the site.

    Raises
    ------
    InputError
        If there is neither a policy nor a site.
    """
    if policies:
        return policies
    if site is None:
        raise InputError("is missing", "--policy", "a name from 'rebat policies', or a site.toml")
    return (site.scheduler.policy,)


def with_failures_of(
    site: Site | None, given: Mapping[str, Any], turned: bool = False
) -> dict[str, Any]:
    """Return the options. If no failures are set, return them with those of the site.

    With ``turned``, each seed begins at another time of the record of failures.
    """
    values = dict(given)
    if site is None or {"law", "failures", "mtbf"} & values.keys():
        return values
    file = site.file("failures")
    if file is None:
        return values
    if not file.is_file():
        raise InputError("does not exist", f"{file}, failures of the site", "a file of events")
    if not turned:
        return values | {"failures": file}
    jobs = site.file("jobs")
    assert jobs is not None
    law = Recorded(str(file), format="events", size=load_workload(jobs).n_nodes, turn=True)
    return values | {"law": law}
