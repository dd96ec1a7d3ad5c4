# SPDX-License-Identifier: Apache-2.0
"""The recorded commands that ``rebat reproduce`` runs again.

A record can come from another person. Its command must be ``rebat run`` in the form in which rebat
records it, with options that affect only the result, and all its files must be recorded inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from rebat.api.figure_files import FigureFiles
from rebat.api.many import SeedOptions
from rebat.api.provenance import WORKLOAD, InputFile, RecordedOrigin, law_files, policy_files
from rebat.core.declared import declared
from rebat.core.errors import InputError, short
from rebat.models.failures.laws import parse_law
from rebat.runs.scenario import ScenarioOptions

_LOCAL = ("--workers",)
"""Options of the structs that are not recorded, because they do not change the result."""

Value = Literal["no", "yes", "optional"]
"""Whether an option has a value."""

_OWN: dict[str, Value] = {
    "--policy": "yes", "--format": "yes", "--explain": "no", "--engine": "yes"
}  # fmt: skip
"""Options that only the command declares, and whether they have a value."""


def _declared() -> Iterator[tuple[str, Value]]:
    for kind in (ScenarioOptions, SeedOptions, FigureFiles):
        for name, row in declared(kind).items():
            flag = max(row.extra.get("flags", (f"--{name.replace('_', '-')}",)), key=len)
            optional = "without_value" in row.extra
            yield flag, "no" if row.kind is bool else "optional" if optional else "yes"


OPTIONS = {name: value for name, value in _declared() if name not in _LOCAL} | _OWN
"""The recorded options of ``rebat run``, and whether they have a value."""

_FILES = re.compile(r"\.(py|csv)\b", re.IGNORECASE)
"""Pattern of the endings of files in the names of policies."""


def check_command(origin: RecordedOrigin, where: str) -> None:
    """Raise InputError unless the command of a record may run again.

    Parameters
    ----------
    origin : RecordedOrigin
        The record.
    where : str
        The file of the record, for errors.
    """
    pairs = list(_pairs(origin.command, where))
    recorded = {(row.option, row.file) for row in origin.inputs}
    for option, file in _files(pairs, where):
        if (option, file) not in recorded:
            problem = f"the command reads {short(file)}, which is not among the inputs"
            raise InputError(problem, where, "a record written by rebat run")


def _pairs(command: Sequence[str], where: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a command with their values, after the workload."""
    expected = "a command as rebat records it"
    workload, *words = command[1:] or [""]
    if not workload or workload.startswith("-"):
        raise InputError("the command has no workload", where, expected)
    yield WORKLOAD, workload
    while words:
        option = words.pop(0)
        if option not in OPTIONS:
            problem = f"the command has the argument {short(option)}"
            raise InputError(problem, where, "only options that change the result of rebat run")
        value = ""
        alone = not words or words[0].startswith("-")
        if OPTIONS[option] == "yes" or (OPTIONS[option] == "optional" and not alone):
            if not words:
                raise InputError(f"{option} has no value", where, expected)
            value = words.pop(0)
        yield option, value


def _files(pairs: Sequence[tuple[str, str]], where: str) -> Iterator[tuple[str, str]]:
    """Yield the options that name files, with the files."""
    for option, value in pairs:
        if option in (WORKLOAD, "--failures", "--operations"):
            yield option, value
        elif option == "--law":
            try:
                law = parse_law(value)
            except InputError as error:
                raise error.at(where) from None
            yield from ((option, file) for file in law_files(law))
        elif option == "--policy":
            rest = value
            for file in policy_files(value):
                yield option, file
                rest = rest.replace(file, "")
            if _FILES.search(rest):
                problem = f"the policy {short(value)} names a file in an unusual way"
                raise InputError(problem, where, "FILE.py:NAME, or foresight=FILE.csv")


def is_code(row: InputFile) -> bool:
    """Return whether an input is Python code."""
    return row.option == "--policy" and not row.file.endswith(".csv")
