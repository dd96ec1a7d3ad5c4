# SPDX-License-Identifier: Apache-2.0
"""Options of all importers of records, jobs or failures, as annotated types."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

Strict = Annotated[
    bool,
    "Stop at the first invalid row (default: drop and count invalid rows, and stop if they are "
    "more than a tenth of the file).",
]
Cluster = Annotated[
    str, "Import only the records of this cluster (column Cluster of sacct and sacctmgr)."
]
Stale = Annotated[
    Literal["next", "drop", "keep"],
    "What to do with node events of Slurm without an end if the node has a job or an event later. "
    "next (default): end the event at the next job or event of the node; drop: ignore the event; "
    "keep: the node stays down.",
]
Maintained = Literal["leave-out", "down"]
"""What happens in a maintenance period, see `models.failures.records.mira`."""
MAINTAINED: tuple[Maintained, ...] = get_args(Maintained)
ZONE = "Time zone of dates without a time zone, for example Europe/Paris (default: {}). {}"
"""Help of the time zone, with its default and a sentence about its other uses."""
