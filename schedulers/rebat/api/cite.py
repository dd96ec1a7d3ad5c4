# SPDX-License-Identifier: Apache-2.0
"""The BibTeX entries for a result: rebat, Batsim, and the publications that the result uses."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import msgspec

from rebat.api.provenance import read_record
from rebat.core.files import names
from rebat.core.version import rebat_version
from rebat.policies.choosing import parts_of
from rebat.policies.own import is_own
from rebat.policies.presets import is_preset, preset, split_changes
from rebat.results.citations import bibtex, cited


class _Uses(msgspec.Struct, frozen=True):
    """The parts of a provenance.json that determine what to cite."""

    policies: list[str]
    options: dict[str, Any] = {}
    versions: dict[str, str] = {}


def cite(result: str | Path | None = None, policies: Iterable[str] = ()) -> str:
    """Return the BibTeX entries of rebat, of Batsim, and of the publications that a result uses.

    Parameters
    ----------
    result : str or Path, optional
        A folder written by ``rebat run``, a campaign file (.toml), or the name of a campaign that
        rebat includes.
    policies : iterable of str
        Names of further policies. Policies in files of the user have no publication.

    Returns
    -------
    str
        The entries. If ``result`` is a folder, the version of rebat is that of the result.

    Raises
    ------
    InputError
        If the folder has no provenance.json, or a policy is unknown.
    """
    uses = _Uses([])
    if result is not None:
        campaigns = names("campaigns", ".toml")
        file = campaigns.get(Path(result).as_posix(), Path(result))
        uses = _of_campaign(file) if file.suffix == ".toml" else _of_run(file)
    named = [name for name in policies if is_preset(name) or not is_own(name)]
    presets = [preset(_without_code(name)) for name in (*uses.policies, *named)]
    keys = cited(presets, uses.options)
    return bibtex(keys, uses.versions.get("rebat", rebat_version()), _repository())


def _repository() -> str:
    """Return the address of the repository in the metadata of the package, or an empty text."""
    try:
        urls = metadata("rebat").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((url.partition(", ")[2] for url in urls if url.startswith("Repository, ")), "")


_EXPECTED = "a folder written by rebat run --out, or a campaign file (.toml)"


def _of_run(folder: Path) -> _Uses:
    uses = read_record(folder, _Uses, _EXPECTED)
    return msgspec.structs.replace(uses, policies=[*filter(is_preset, uses.policies)])


def _of_campaign(file: Path) -> _Uses:
    """Return the policies and options of a campaign file. Its code is not loaded."""
    from rebat.campaign.opening import read_tables

    policies: list[str] = []
    options: dict[str, Any] = {}
    for grid in read_tables(file).get("grid", []):
        policies += filter(is_preset, map(str, grid.get("policies", [])))
        policies += ["r-list-q", "r-shelf-b"] if "sets" in grid else []
        policies += ["rps", "faps"] if "laws" in grid else []
        for name, key in (("failures", "law"), ("checkpoint", "model")):
            table = grid.get(name)
            if isinstance(table, dict) and key in table:
                options["law" if name == "failures" else name] = table[key]
    return _Uses(policies, options)


def _without_code(name: str) -> str:
    """Return the name of a preset without the rules that are code in files.

    This code has no publication and is not loaded.
    """
    head, _, changes = name.partition(":")
    plain = []
    for change in split_changes(changes):
        axis, equals, value = change.rpartition("=")
        names = [part for part in parts_of(axis.strip().lower(), value) if not is_own(part)]
        plain += [axis + equals + "+".join(names)] if names else []
    return f"{head}:{','.join(plain)}" if any(plain) else head
