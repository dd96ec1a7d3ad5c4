# SPDX-License-Identifier: Apache-2.0
"""Files of Slurm and PBS that are no records of jobs or failures.

The error names the kind of the file, and the command or the option that helps.
"""

from __future__ import annotations

import re

from rebat.core.errors import InputError

EXPORT = (
    "SLURM_TIME_FORMAT=%s sacct -a -P -X -D -S 2024-01-01 -E now --delimiter=$'\\x1f' "
    "-o JobID,JobIDRaw,Cluster,User,Account,Partition,QOS,Submit,Eligible,Start,End,"
    "ElapsedRaw,Suspended,State,NNodes,NCPUS,ReqMem,TimelimitRaw,NodeList,"
    "JobName,SubmitLine,Reservation,Priority > jobs.txt"
)
"""Command that writes the records of all jobs with all columns."""

EXPORT_EVENTS = (
    "SLURM_TIME_FORMAT=%s sacctmgr -P show event Start=2024-01-01 "
    "format=Cluster,NodeName,Start,End,StateRaw,State,Reason > events.txt"
)
"""Command that writes the events of all nodes."""

FIRST_LINES = 100
"""Number of lines that detections read."""

_NOW = "contains only the present state"
_JOBS = f"the records of jobs: {EXPORT}"
_EVENTS = f"the events of nodes: {EXPORT_EVENTS}"
_OPTION = "a record; 'rebat workload import' reads this file with"

_KINDS = (
    (r"JobId=\d", f"is the output of 'scontrol show job', which {_NOW}", _JOBS),
    (r"NodeName=\S", f"is the output of 'scontrol show node', which {_NOW}", _EVENTS),
    (r"JOBID\s+PARTITION\s", f"is the output of squeue, which {_NOW}", _JOBS),
    (r"PARTITION\s+AVAIL\s", f"is the output of sinfo, which {_NOW}", _EVENTS),
    (r"PartitionName=\S", "states partitions of Slurm", f"{_OPTION} --partitions"),
    (r"Queue:\s", "states queues of PBS", f"{_OPTION} --partitions"),
    (r"Configuration data as of", "is the configuration of Slurm", f"{_OPTION} --rules"),
    (r"ReservationName=\S", "states reservations of Slurm", f"{_OPTION} --rules"),
)
"""Foreign texts: how they begin, what they are, and what is expected."""

_JSON = (
    (
        r'"jobs"\s*:\s*\[(?s:.*)"job_state"',
        f"is the output of squeue --json or scontrol --json, which {_NOW}",
        _JOBS,
    ),
    (r'"events"\s*:\s*\[', "is JSON of node events", _EVENTS),
    (r'"nodes"\s*:\s*\[\s*\{', f"is JSON of nodes, which {_NOW}", _EVENTS),
    (
        r'\[\s*\{(?![^{}]*"(?:job|user|submit))[^{}]*"(?:node|nodename|node_name|hostname)"\s*:',
        "is JSON of node events",
        f"a table with the columns node,down,up, or {_EVENTS}",
    ),
)
"""The same for JSON: the keys in its first lines."""

_MOST_READ = 100_000
"""Number of characters that are searched."""


def reject_foreign(text: str, where: str) -> None:
    """Raise InputError if the first lines of a file are those of a file that is no record."""
    text = text[:_MOST_READ].lstrip()
    json = text.startswith(("{", "["))
    for pattern, problem, expected in _JSON if json else _KINDS:
        if re.search(pattern, text) if json else re.match(pattern, text):
            raise InputError(problem, where, expected)
