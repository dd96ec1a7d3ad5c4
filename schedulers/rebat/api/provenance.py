# SPDX-License-Identifier: Apache-2.0
"""The provenance of a result: command, versions, and input files with their hashes."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rebat.api.choosing import Policies
from rebat.core.errors import InputError
from rebat.core.files import file_hash, write_json
from rebat.core.version import rebat_version, version_of
from rebat.models.failures.correlated import Correlated
from rebat.models.failures.law import Law
from rebat.policies.choosing import own_parts
from rebat.policies.own import file_of, is_own
from rebat.policies.placement.hazards import is_file
from rebat.policies.presets import is_preset
from rebat.results.files.run_folder import OVERVIEW
from rebat.runs.scenario import FILES, ScenarioOptions

if TYPE_CHECKING:
    from rebat.workloads.site import Site

PROVENANCE = "provenance.json"
"""Name of the file in a results folder."""

_PACKAGES = ("numpy", "numba", "scipy", "pandas", "matplotlib", "pyarrow")
"""Packages that compute or write results."""

WORKLOAD = "WORKLOAD"
"""Value of `InputFile.option` for the workload, which is not an option but an argument."""

SITE = "SITE"
"""Value of `InputFile.option` for a file that the workload, a site, names."""


class InputFile(msgspec.Struct, frozen=True):
    """A file that a run read.

    Attributes
    ----------
    option : str
        The option that names the file, `WORKLOAD` or `SITE`.
    file : str
        Path of the file as the user wrote it, or the name of an included input.
    sha256 : str
        Hash of the content of the file.
    """

    option: str
    file: str
    sha256: str


class CommandLine(msgspec.Struct, frozen=True):
    """A command, and those of its options that name files, as the user wrote them."""

    arguments: list[str]
    given: dict[str, str]


class Origin(msgspec.Struct, frozen=True):
    """The parts of the provenance that the summary of a run does not contain.

    ``command`` is empty if a script wrote the result.
    """

    command: list[str] = []
    inputs: list[InputFile] = []


NO_ORIGIN = Origin()


def versions() -> dict[str, str]:
    """Return the versions of rebat, Python, and the packages that affect results."""
    present = {"rebat": rebat_version(), "python": platform.python_version()}
    installed = {name: version_of(name) for name in _PACKAGES}
    return present | {name: version for name, version in installed.items() if version is not None}


def origin_of(
    workload: Path,
    sha256: str,
    options: ScenarioOptions,
    policies: Policies,
    command: CommandLine | None,
    site: Site | None = None,
) -> Origin:
    """Return the command and input files of a run as an `Origin`.

    ``sha256`` is the hash of the workload. Without a ``command``, inputs are recorded by their file
    names. ``site`` is the workload if it is a site. The files of a site are inputs, too.
    """
    given: Mapping[str, str] = command.given if command else {}
    inputs = [InputFile(WORKLOAD, given.get(WORKLOAD, workload.name), sha256)]
    of_site = site.file("failures") if site else None
    if site is not None:
        inputs += _files_of_site(site, Path(inputs[0].file).parent)
    for name in FILES:
        path: Path | None = getattr(options, name)
        if path is not None and path != of_site:
            option = f"--{name}"
            inputs.append(InputFile(option, given.get(option, path.name), file_hash(path)))
    inputs += [
        InputFile("--law", file, file_hash(Path(file)))
        for file in law_files(options.law)
        if file != str(of_site)
    ]
    for file in policy_files(policies):
        inputs.append(InputFile("--policy", file, file_hash(Path(file))))
    return Origin(command.arguments if command else [], list(dict.fromkeys(inputs)))


def _files_of_site(site: Site, folder: Path) -> Iterator[InputFile]:
    """Yield the files of a site. Their recorded paths begin with ``folder``."""
    texts = [site.jobs, site.checkpoints, site.failures]
    for text in texts:
        if text and isinstance(text, str) and (path := site.folder / text).is_file():
            yield InputFile(SITE, (folder / text).as_posix(), file_hash(path))


def law_files(law: Law | None) -> Iterator[str]:
    """Yield the files that a failure law reads, as the user wrote them."""
    base = law.of if isinstance(law, Correlated) else law
    for name in base.paths if base else ():
        if file := getattr(base, name):
            yield file


def policy_files(policies: Policies) -> Iterator[str]:
    """Yield the files in the names of policies (FILE.py:CLASS)."""
    names: Iterable[Any] = [policies] if isinstance(policies, str) else _several(policies)
    for name in names:
        for part in name.split(",") if isinstance(name, str) else ():
            before, _, value = part.rpartition("=")
            head, _, rest = value.partition(":")
            if not before and is_preset(head.strip()):
                value = rest
            axis = before.rpartition(":")[2].strip().lower()
            if is_own(value):
                yield from (file_of(place.strip()) for place in own_parts(axis, value.strip()))
            elif before.endswith("foresight") and is_file(value):
                yield value


def _several(policies: Policies) -> Iterable[Any]:
    return list(policies) if isinstance(policies, list | tuple) else [policies]


def provenance_record(
    origin: Origin, policies: list[str], seeds: list[int], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of provenance.json. ``facts`` are the workload and the options."""
    plain: dict[str, Any] = msgspec.to_builtins(origin)
    return {
        "command": plain["command"],
        "versions": versions(),
        "inputs": plain["inputs"],
        "policies": policies,
        "seeds": seeds,
        **facts,
    }


def write_provenance(folder: Path, record: Mapping[str, Any]) -> None:
    """Write provenance.json."""
    write_json(folder / PROVENANCE, record)


class RecordedOrigin(msgspec.Struct, frozen=True):
    """The part of a provenance.json that `rebat reproduce` needs."""

    command: list[str]
    versions: dict[str, str]
    inputs: list[InputFile]
    policies: list[str] = []
    seeds: list[int] = []


_T = TypeVar("_T", bound=msgspec.Struct)


def read_record(folder: Path, kind: type[_T], expected: str) -> _T:
    """Read the parts of the provenance of a result that a struct declares.

    ``expected`` describes a valid folder, for errors.
    """
    path = folder / PROVENANCE
    try:
        content = path.read_bytes()
    except OSError:
        problem = f"contains no {PROVENANCE}" if folder.exists() else "does not exist"
        raise InputError(problem, str(folder), expected) from None
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is invalid: {error}", str(path), "a file of rebat run") from None


def read_origin(folder: Path) -> RecordedOrigin:
    """Read the provenance of a result that a command wrote."""
    path = folder / PROVENANCE
    if (folder / OVERVIEW).is_file() and not path.is_file():
        expected = "a result of rebat run; 'rebat campaign run' repeats a campaign from its file"
        raise InputError("is the result of a campaign", str(folder), expected)
    origin = read_record(folder, RecordedOrigin, "a folder written by rebat run --out")
    if origin.command[:1] != ["run"]:
        raise InputError("contains no command", str(path), "a result of the command rebat run")
    return origin
