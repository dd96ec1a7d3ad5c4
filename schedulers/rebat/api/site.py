# SPDX-License-Identifier: Apache-2.0
"""A site (``site.toml``) as the input of a command: its policy and its failures are defaults."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.core.errors import InputError
from rebat.models.failures.recorded import Recorded
from rebat.runs.scenario import ScenarioOptions
from rebat.workloads.load import SITE_ENDING, load_workload

if TYPE_CHECKING:
    from rebat.workloads.site import Site


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


def failures_of(
    site: Site | None, options: ScenarioOptions, turned: bool = False
) -> ScenarioOptions:
    """Return the options. If no failures are set, return them with those of the site.

    With ``turned``, each seed begins at another time of the record of failures.
    """
    if site is None or options.failure_law() is not None:
        return options
    file = site.file("failures")
    if file is None:
        return options
    if not file.is_file():
        raise InputError("does not exist", f"{file}, failures of the site", "a file of events")
    if not turned:
        return msgspec.structs.replace(options, failures=file)
    jobs = site.file("jobs")
    assert jobs is not None
    law = Recorded(str(file), format="events", size=load_workload(jobs).n_nodes, turn=True)
    return msgspec.structs.replace(options, law=law)
