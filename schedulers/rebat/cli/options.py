# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, as annotated types, and the output of ``--json``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from rebat.cli.command import used_options
from rebat.console.output import print_result
from rebat.core.declared import extra
from rebat.core.errors import InputError

AnyPath = Annotated[Path, extra(file="any")]
File = Annotated[Path, extra(file="file")]
Folder = Annotated[Path, extra(file="folder")]
WorkloadFile = Annotated[Path, extra(file="workloads")]
WorkloadOrRun = Annotated[Path, extra(file="workload or run")]
CampaignFile = Annotated[Path, extra(file="campaigns")]
Platform = Annotated[Path, extra(file="platforms")]
NewFile = Annotated[Path, extra(file="file", new=True)]
"""A file to write. An existing file is replaced only with ``--force``."""

NewWorkload = Annotated[Path, extra(file="workload out", new=True)]

OutFile = Annotated[NewFile, "-o", "--out", "File to write (.gz: compressed)."]
OutTable = Annotated[NewFile, "-o", "--out", "Table to write (.gz: compressed)."]
OutWorkload = Annotated[
    NewWorkload, "-o", "--out", "Workload to write (.json, .json.gz or .parquet)."
]
ForceFolder = Annotated[bool, "--force", "Replace an earlier result in the folder --out."]
Json = Annotated[bool, "--json", "Print the result as JSON, with times in seconds."]
Protocol = Literal[4, 5]
"""A version of Batsim."""


def print_json(record: Any, saved: str = "nothing is saved") -> None:
    """Print a record as JSON. If this fails, the error states where the results are ``saved``."""
    from rebat.console.output import json_text

    print_result(json_text(record), saved)


def reject_with_json(*names: str) -> None:
    """Raise InputError if ``--json`` is combined with options that only change the printed table.

    Parameters
    ----------
    *names : str
        Names of parameters of the current command.
    """
    used = used_options()
    for name in names:
        if name in used:
            raise InputError("has no effect with --json", used[name], "only one of the two options")
