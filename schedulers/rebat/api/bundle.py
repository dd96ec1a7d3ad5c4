# SPDX-License-Identifier: Apache-2.0
"""Bundles: a result with its inputs in one zip file, which ``rebat reproduce`` accepts.

A bundle contains ``result/`` (the folder of the result), ``inputs/`` (copies of the inputs, at the
paths of `rebat.api.inputs.places`) and ``README.md``. Inputs that rebat includes are not copied.
The same result always becomes the same bytes.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from rebat.api.allowed import check_command, is_code
from rebat.api.inputs import (
    FoundInput,
    find_inputs,
    find_unpacked,
    is_redirected,
    places,
    redirected,
)
from rebat.api.provenance import PROVENANCE, InputFile, RecordedOrigin, read_origin
from rebat.core.archive import check_names, unpack, write_archive
from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.folders import MANIFEST, listed

RESULT = "result"
INPUTS = "inputs"
README = "README.md"


class Bundle(msgspec.Struct, frozen=True):
    """The content of a bundle.

    Attributes
    ----------
    file : Path
    results, copies, names : list of str
        Files of the result, copied inputs, and names of inputs that rebat includes.
    """

    file: Path
    results: list[str]
    copies: list[str]
    names: list[str]


def bundle(result: Path, out: Path, inputs: Path | None = None) -> Bundle:
    """Write a result and its inputs into a zip file.

    Parameters
    ----------
    result : Path
        Folder of a result of ``rebat run``.
    out : Path
        The zip file.
    inputs : Path, optional
        Folder in which inputs are searched by their hashes, as in `repetition`.

    Raises
    ------
    InputError
        If a file of the result or an input has changed or is missing, or if a colleague could not
        run the command.
    """
    origin = read_origin(result)
    check_command(origin, str(result / PROVENANCE))
    results = _checked_files(result)
    rows = list(find_inputs(origin.inputs, inputs))
    for row in rows:
        if row.change:
            raise InputError("has changed", row.recorded.file, f"sha256 {row.recorded.sha256}")
    copied = [row for row in rows if not row.included]
    where = places(row.recorded for row in copied)
    for row in copied:
        _check_policies(row, where[row.recorded], origin)
    command = ["rebat", *redirected(origin.command, where), "--out", "again"]
    members: dict[str, Path | bytes] = {f"{RESULT}/{name}": result / name for name in results}
    members |= {f"{INPUTS}/{where[row.recorded]}": row.path for row in copied}
    members[README] = _readme(origin, rows, where, command).encode()
    write_archive(out, members)
    names = [row.recorded.file for row in rows if row.included]
    return Bundle(out, results, sorted(set(where.values())), names)


def _checked_files(result: Path) -> list[str]:
    """Return the names of the files of a result, which must be unchanged."""
    hashes = listed(result)
    check_names(hashes, str(result / MANIFEST))
    if PROVENANCE not in hashes:
        expected = "a folder written by rebat run --out"
        raise InputError(f"does not list {PROVENANCE}", str(result / MANIFEST), expected)
    for name, sha256 in hashes.items():
        path = result / name
        if path.is_symlink() or not path.is_file() or file_hash(path) != sha256:
            expected = f"the file of the result, with sha256 {sha256}"
            raise InputError("is missing or has changed", str(path), expected)
    return [*sorted(hashes), MANIFEST]


def _check_policies(row: FoundInput, place: str, origin: RecordedOrigin) -> None:
    """Raise InputError if the name of a policy contains a path that a colleague cannot use."""
    recorded = row.recorded
    if recorded.option == "--policy" and is_redirected(recorded, place):
        for policy in origin.policies:
            if recorded.file in policy:
                expected = "a result whose command has a path below the current folder"
                raise InputError(f"is in the name of policy {policy}", recorded.file, expected)


def read_bundle(path: Path, folder: Path) -> tuple[RecordedOrigin, list[FoundInput]]:
    """Unpack a bundle into an empty folder. Return the record and the inputs of the result.

    Raises
    ------
    InputError
        If the file is not a bundle, or a file in it is missing, has changed, or is not part of the
        bundle.
    """
    names = set(unpack(path, folder))
    result = folder / RESULT
    try:
        origin = read_origin(result)
        check_command(origin, PROVENANCE)
        expected = {f"{RESULT}/{name}" for name in _checked_files(result)} | {README}
        rows = list(find_unpacked(origin.inputs, folder / INPUTS))
    except InputError as error:
        place = (error.where or "").replace(f"{folder}/", "")
        raise InputError(error.problem, f"{path}: {place}", error.expected) from None
    expected |= {row.path.relative_to(folder).as_posix() for row in rows if row.moved}
    for name in sorted(names - expected):
        problem = f"contains {name!r}, which is not part of a result"
        raise InputError(problem, str(path), "a zip file of rebat bundle")
    return origin, rows


_README = """\
# A result of rebat

This file contains the result of a simulation with rebat {version}, and its inputs.

- `{result}/`: the result. `{result}/comparison.csv` compares the policies, `{result}/{provenance}`
  contains the command, the versions and the hashes of the inputs.
- `{inputs}/`: the inputs that are not part of rebat.

## Run it again

Install rebat {version}. Then this command runs the result again and compares all files:

    rebat reproduce THIS_FILE.zip

{code}
To run it by hand, unpack the zip file into a new folder, and run in its folder `{inputs}`:

    {command}

## Inputs

{rows}

Policies: {policies}. Seeds: {seeds}.
"""


def _readme(
    origin: RecordedOrigin, rows: list[FoundInput], where: dict[InputFile, str], command: list[str]
) -> str:
    """Return the text of the README."""
    lines = []
    for row in rows:
        kind = "part of rebat" if row.included else f"{INPUTS}/{where[row.recorded]}"
        lines.append(f"- `{row.recorded.file}`: {kind}, SHA-256 `{row.recorded.sha256}`")
    code = [where[row.recorded] for row in rows if is_code(row.recorded)]
    warning = ""
    if code:
        files = ", ".join(f"`{INPUTS}/{file}`" for file in code)
        warning = (
            f"The result needs Python code: {files}. Read it first. rebat asks before it runs it.\n"
        )
    return _README.format(
        version=origin.versions.get("rebat", ""),
        result=RESULT,
        provenance=PROVENANCE,
        inputs=INPUTS,
        code=warning,
        command=shlex.join(command),
        rows="\n".join(lines),
        policies=", ".join(origin.policies),
        seeds=", ".join(map(str, origin.seeds)),
    )
