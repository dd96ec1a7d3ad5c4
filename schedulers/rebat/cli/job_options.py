# SPDX-License-Identifier: Apache-2.0
"""Options of the cluster jobs that run a campaign's workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rebat.cli.types import DURATION, FOLDER, NODES
from rebat.core.errors import InputError

_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "queue": ("--queue", {"help": "Batch system: queue or partition of the jobs."}),
    "account": ("--account", {"help": "Batch system: account or project of the jobs."}),
    "walltime_s": (
        "--job-walltime",
        {
            "type": DURATION,
            "help": "Walltime of each batch job. When a batch job reaches its walltime, rebat "
            "submits another job.",
        },
    ),
    "memory": (
        "--job-memory",
        {
            "metavar": "SIZE",
            "help": "Memory of each job, like '4 GiB' (default: 2 GiB per worker).",
        },
    ),
    "cores": (
        "--job-cores",
        {"type": NODES, "help": "Number of cores of each job, one worker per core (default: 1)."},
    ),
    "extra": (
        "--job-extra",
        {
            "multiple": True,
            "help": "Additional directive in the job script, like '--constraint=skylake'; may be repeated.",
        },
    ),
    "prologue": (
        "--job-prologue",
        {
            "multiple": True,
            "help": "Shell line that the job script runs before the workers start, like 'module "
            "load python'; may be repeated.",
        },
    ),
    "local_directory": (
        "--job-directory",
        {"type": FOLDER, "help": "Node-local folder for the temporary files of workers."},
    ),
    "interface": (
        "--interface",
        {
            "help": "Network interface between nodes and this machine, like ib0 (default: the interface of the default route)."
        },
    ),
}
"""For each field of `executors.resources.Jobs`: its option and the details of the option."""


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of cluster jobs to a command."""
    for field, (name, details) in reversed(_OPTIONS.items()):
        command = click.option(name, field, **details)(command)
    return command


def with_jobs(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with the options of cluster jobs combined under the key ``jobs``."""
    from rebat.executors.resources import Jobs
    from rebat.executors.systems import SYSTEMS

    others = {name: value for name, value in options.items() if name not in _OPTIONS}
    used = {name: options[name] for name in _OPTIONS if options[name] not in (None, ())}
    for name in used:
        if options["executor"] not in SYSTEMS:
            raise InputError(
                "needs a batch system", _OPTIONS[name][0], f"--executor {', '.join(SYSTEMS)}"
            )
    return others | {"jobs": Jobs(**used)}
