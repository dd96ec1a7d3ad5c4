# SPDX-License-Identifier: Apache-2.0
"""Options of both commands that import records: ``workload import`` and ``failures import``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

strict_option = click.option(
    "--strict",
    is_flag=True,
    help=(
        "Stop at the first invalid row (default: drop and count invalid rows, and stop if they are "
        "more than a tenth of the file)."
    ),
)

cluster_option = click.option(
    "--cluster",
    help="Import only the records of this cluster (column Cluster of sacct and sacctmgr).",
)

stale_option = click.option(
    "--stale",
    type=click.Choice(["next", "drop", "keep"]),
    help="What to do with node events of Slurm without an end if the node has a job or an event later. next (default): end the event at the next job or event of the node; drop: ignore the event; keep: the node stays down.",
)


def zone_option(*aliases: str, default: str, more: str) -> Decorator:
    """Return the option ``--zone``.

    Parameters
    ----------
    *aliases : str
        Other names of the option.
    default : str
        The zone without this option.
    more : str
        Sentence about other uses of the zone.
    """
    about = "Time zone of dates without a time zone, for example Europe/Paris"
    return click.option(*aliases, "--zone", help=f"{about} (default: {default}). {more}")
