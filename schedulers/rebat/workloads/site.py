# SPDX-License-Identifier: Apache-2.0
"""A site in one file, ``site.toml``: its records, its scheduler, partitions, checkpoints, prices.

A command that reads a workload also reads a site. The workload of a site consists of its jobs, with
the partitions and the checkpoints that the file states. File names are relative to ``site.toml``.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import file_hash, read_text
from rebat.core.jobs import Workload
from rebat.models.failures.events import machine_mtbf_s
from rebat.models.failures.recorded import Trace
from rebat.workloads.checkpoint_table import (
    CheckpointRow,
    UsualCosts,
    checkpoint_row,
    read_checkpoints,
    with_checkpoints_of,
)
from rebat.workloads.machine import reject_code, stated_partitions, stated_rules_of

ENDING = ".toml"
NO_PARTITIONS = "none"


class SitePartition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of a site. Times are durations like 12h."""

    nodes: str
    tier: int = 1
    order: str = ""
    max_nodes: int = 0
    max_time: str = ""
    default_time: str = ""
    weight: int = 1


class Scheduler(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scheduler of a site: the most similar policy of rebat."""

    policy: str = "easy"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a node-hour."""

    node_hour: float
    currency: str = "EUR"


class Site(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``site.toml``.

    Attributes
    ----------
    title : str
        Name of the site on pages.
    jobs, past, failures : str
        The workload, its recorded schedule, and the failures of nodes. The last two may be empty.
    time_zone : str
        Time zone of dates on pages, for example Europe/Paris.
    scheduler : Scheduler
    partitions : dict of SitePartition, "none" or None
        None: those of the workload.
    rules : dict of str or None
        Options of policies for the queue order, limits and reservations of the site. None: those
        of the workload. A policy with the option ``rules`` has them.
    checkpoints : list of dict, str or None
        Rows of the table of checkpoints, or its file. None: no job writes checkpoints.
    price : Price or None
    folder : Path
        The folder of the file.
    """

    title: str = ""
    jobs: str
    past: str = ""
    failures: str = ""
    time_zone: str = ""
    scheduler: Scheduler = Scheduler()
    partitions: dict[str, SitePartition] | str | None = None
    rules: dict[str, str] | None = None
    checkpoints: list[dict[str, str]] | str | None = None
    price: Price | None = None

    folder: Path = Path()

    def file(self, name: str) -> Path | None:
        """Return the path of a file of the site, or None if the site has none."""
        text = getattr(self, name)
        return (self.folder / text).resolve() if text else None

    def rows(self, usual: UsualCosts) -> list[CheckpointRow]:
        """Return the rows of the table of checkpoints."""
        if isinstance(self.checkpoints, str):
            return read_checkpoints((self.folder / self.checkpoints).resolve(), usual)
        return [
            checkpoint_row(row, usual, f"checkpoints, row {number}")
            for number, row in enumerate(self.checkpoints or (), start=1)
        ]


def read_site(path: Path) -> Site:
    """Read a site.

    Raises
    ------
    InputError
        If the file is not a site. The error names the field.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", str(path)) from None
    if "grids" in tables or "grid" in tables:
        expected = "a file of 'rebat calibrate'; 'rebat campaign run' reads campaigns"
        raise InputError("is a campaign, not a site", str(path), expected)
    if "folder" in tables:
        raise InputError("is an unknown field", f"{path}: folder")
    try:
        site = msgspec.convert(tables, Site, strict=True)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        where = f"{path}: {place.rstrip('`')}" if place else str(path)
        raise InputError(
            problem[:1].lower() + problem[1:], where, "a field of 'rebat site check --help'"
        ) from None
    _check(site, path)
    if isinstance(site.partitions, str) and site.partitions != NO_PARTITIONS:
        expected = f"{NO_PARTITIONS!r}, or a table of partitions"
        raise InputError(f"is {site.partitions!r}", f"{path}: partitions", expected)
    return msgspec.structs.replace(site, folder=path.parent)


def _check(site: Site, path: Path) -> None:
    """Raise InputError if the name of a file, the policy, the time zone or the price is invalid."""
    reject_code(site.scheduler.policy, f"{path}: scheduler: policy")
    for field in ("jobs", "past", "failures"):
        name = getattr(site, field)
        if "\0" in name or (field == "jobs" and not name):
            raise InputError(f"is {name!r}", f"{path}: {field}", "the name of a file")
    try:
        ZoneInfo(site.time_zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        expected = "a name like Europe/Paris"
        raise InputError(f"is {site.time_zone!r}", f"{path}: time_zone", expected) from None
    if site.price is not None and not 0 < site.price.node_hour < math.inf:
        raise InputError(f"is {site.price.node_hour:g}", f"{path}: price: node_hour", "above 0")


def checkpoint_rows(path: Path, usual: UsualCosts) -> list[CheckpointRow]:
    """Return the rows of a table of checkpoints, in a CSV file or in a site."""
    return read_site(path).rows(usual) if path.suffix == ENDING else read_checkpoints(path, usual)


def site_hash(path: Path) -> str:
    """Return a hash of a site and of all files that determine its workload."""
    site, digest = read_site(path), hashlib.sha256(path.read_bytes())
    files = [site.file("jobs")]
    if isinstance(site.checkpoints, str):
        files.append((site.folder / site.checkpoints).resolve())
    if site.checkpoints:
        files.append(site.file("failures"))
    for file in filter(None, files):
        digest.update(file_hash(file).encode())
    return digest.hexdigest()


def site_jobs(
    path: Path, load_workload: Callable[[Path], Workload], *, checkpoints: bool = True
) -> Workload:
    """Return the workload of a site, with its checkpoints or without them."""
    site = read_site(path)
    file = site.file("jobs")
    assert file is not None
    if file.suffix == ENDING:
        raise InputError("is a site", f"{path}: jobs", "a workload")
    workload = with_partitions(load_workload(file), site)
    if site.rules is not None:
        machine = {**(workload.machine or {}), "rules": site.rules}
        workload = msgspec.structs.replace(workload, machine=machine)
    try:
        stated_partitions(workload.machine)
        stated_rules_of(workload.machine)
    except InputError as error:
        raise error.at(str(path)) from None
    if site.title:
        workload = msgspec.structs.replace(workload, name=site.title)
    if not (checkpoints and site.checkpoints):
        return workload
    mtbf_s = mtbf_of(site, workload.n_nodes)
    try:
        rows = site.rows(UsualCosts())
    except InputError as error:
        raise error.at(str(path)) from None
    return with_checkpoints_of(workload, rows, workload.n_nodes, mtbf_s)[0]


def with_partitions(workload: Workload, site: Site) -> Workload:
    """Return a workload with the partitions of a site, if it states any."""
    if site.partitions is None:
        return workload
    rows: Any = site.partitions
    if isinstance(rows, dict):
        usual = msgspec.structs.asdict(SitePartition(""))
        rows = {
            name: {
                key: value
                for key, value in msgspec.structs.asdict(row).items()
                if key == "nodes" or value != usual[key]
            }
            for name, row in rows.items()
        }
    machine = {**(workload.machine or {}), "partitions": {} if rows == NO_PARTITIONS else rows}
    return msgspec.structs.replace(workload, machine=machine)


def mtbf_of(site: Site, n_nodes: int) -> float:
    """Return the mean time between failures of a site's machine, or a year if it is unknown."""
    failures = site.file("failures")
    events = list(Trace(str(failures)).events(n_nodes)) if failures else []
    return machine_mtbf_s(events) or 365 * 86_400.0


def write_site(site: Site, comments: dict[str, str]) -> str:
    """Return the text of a site, with a comment for each key of ``comments``."""
    lines = [
        "# A site of rebat: its records, and what its scheduler does. Edit it as you like.",
        "# 'rebat site check FILE' says what is missing. File names are relative to this file.",
        "",
    ]

    def add(key: str, value: str, indent: str = "") -> None:
        lines.append(f"{indent}{key} = {value}{_comment(comments.get(key, ''))}")

    for key in ("title", "jobs", "past", "failures", "time_zone"):
        if text := getattr(site, key):
            add(key, _quoted(text))
        elif key in comments:
            lines.append(f'# {key} = ""{_comment(comments[key])}')
    if isinstance(site.checkpoints, str):
        lines.append(f"checkpoints = {_quoted(site.checkpoints)}")
    elif "checkpoints_file" in comments:
        lines.append(f"# {comments['checkpoints_file']}  # or rows, see below")
    if isinstance(site.partitions, str):
        add("partitions", _quoted(site.partitions))
    lines += ["", "[scheduler]"]
    add("policy", _quoted(site.scheduler.policy))
    if isinstance(site.partitions, dict):
        lines += ["", f"[partitions]{_comment(comments.get('partitions', ''))}"]
        usual = msgspec.structs.asdict(SitePartition(""))
        for name, row in site.partitions.items():
            fields = msgspec.structs.asdict(row)
            pairs = ", ".join(
                f"{key} = {_quoted(value) if isinstance(value, str) else value}"
                for key, value in fields.items()
                if key == "nodes" or value != usual[key]
            )
            lines.append(f"{_quoted(name)} = {{ {pairs} }}")
    if site.rules:
        lines += ["", "[rules]", *(f"{key} = {_quoted(v)}" for key, v in site.rules.items())]
    if not site.checkpoints:
        lines += ["", *comments.get("checkpoints", "").splitlines()]
    if site.price is None:
        lines += ["", *comments.get("price", "").splitlines()]
    else:
        lines += ["", "[price]", f"node_hour = {site.price.node_hour:g}"]
        lines.append(f"currency = {_quoted(site.price.currency)}")
    return "\n".join(lines).rstrip() + "\n"


def _comment(text: str) -> str:
    return f"  # {text}" if text else ""


def _quoted(text: str) -> str:
    """Return a basic string of TOML."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
