# SPDX-License-Identifier: Apache-2.0
"""Options of the jobs in which a campaign's workers run on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rebat.cli.types import DURATION, FOLDER, NODES
from rebat.core.errors import InputError

_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "queue": ("--queue", {"help": "Queue, or partition."}),
    "account": ("--account", {"help": "Account, or project."}),
    "walltime_s": ("--job-walltime", {"type": DURATION, "help": "Of each job; a job that reaches it is replaced."}),
    "memory": ("--job-memory", {"metavar": "SIZE", "help": "Of each job, like '4 GiB' (default: 2 GiB per worker)."}),
    "cores": ("--job-cores", {"type": NODES, "help": "Of each job, one per worker (default: 1)."}),
    "extra": ("--job-extra", {"multiple": True, "help": "One more directive, like '--constraint=skylake'; may be repeated."}),
    "prologue": ("--job-prologue", {"multiple": True, "help": "A line of the job's script before its workers start, like 'module load python'; may be repeated."}),
    "local_directory": ("--job-directory", {"type": FOLDER, "help": "Where workers on a node put temporary files."}),
    "interface": ("--interface", {"help": "Network by which nodes and this machine reach each other, like ib0 (default: the one to the outside)."}),
}  # fmt: skip
"""Field of executors.resources.Jobs -> option."""


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of jobs."""
    for field, (name, details) in reversed(_OPTIONS.items()):
        command = click.option(name, field, **details)(command)
    return command


def with_jobs(options: dict[str, Any]) -> dict[str, Any]:
    """The options with those of jobs made into one.

    Raises
    ------
    InputError
        For one that has no effect: elsewhere than on a cluster.
    """
    from rebat.executors.resources import Jobs
    from rebat.executors.systems import SYSTEMS

    others = {name: value for name, value in options.items() if name not in _OPTIONS}
    given = {name: options[name] for name in _OPTIONS if options[name] not in (None, ())}
    for name in given:
        if options["executor"] not in SYSTEMS:
            raise InputError(
                "is for batch systems", _OPTIONS[name][0], f"--executor {', '.join(SYSTEMS)}"
            )
    return others | {"jobs": Jobs(**given)}
