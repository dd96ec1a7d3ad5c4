# SPDX-License-Identifier: Apache-2.0
"""Rules in the configuration of Slurm: priorities, shares, limits and reservations.

The files are the outputs of `EXPORT_RULES`. Sources: the manual pages *slurm.conf* and *sacctmgr*,
and tests with Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rebat.core.errors import InputError
from rebat.core.numbers import exact, exactly
from rebat.records.clock import Clock
from rebat.records.hosts import check_list
from rebat.records.sources import opened
from rebat.records.values import UNSET, duration_s

EXPORT_RULES = (
    "scontrol show config > config.txt",
    "sacctmgr -P show associations format=Cluster,Account,User,ParentName,Share,GrpJobs,GrpTRES,"
    "MaxJobs,ID > associations.txt",
    "SLURM_TIME_FORMAT=%s sacctmgr -P show reservation start=2024-01-01 "
    "format=Cluster,Name,NodeNames,Start,End,Flags,Associations > reservations.txt",
)
"""Commands that write the rules of a Slurm cluster."""

_SETTING = re.compile(r"(\w+)\s*=\s*(.*?)\s*\Z")
_HEAD = "Configuration data as of"
_PLAIN = re.compile(r"[\w.@-]+\Z")
"""Names of accounts and users that the options of policies can contain."""


class RecordedReservation(NamedTuple):
    """A reservation of nodes. Times are Unix times."""

    name: str
    nodes: str
    begin_s: float
    end_s: float


class SlurmRules(NamedTuple):
    """The rules of a Slurm cluster as options of policies, its reservations, and notes.

    ``owners`` contains further words of the option ``reservations`` by the name of a reservation:
    who may use its nodes, and how it is repeated.
    """

    options: dict[str, str]
    reservations: list[RecordedReservation]
    notes: list[str]
    owners: dict[str, list[str]]


def read_rules(paths: Iterable[Path], zone: tzinfo) -> SlurmRules:
    """Read files with the rules of a Slurm cluster, in any order.

    The weights of priorities may also be the output of ``sprio -w``, and reservations that of
    ``scontrol show reservation``.

    Raises
    ------
    InputError
        If a file is none of the outputs of `EXPORT_RULES`.
    """
    options: dict[str, str] = {}
    reserved: list[tuple[str, list[dict[str, str]]]] = []
    associations: _Associations | None = None
    notes: list[str] = []
    enforces = True
    for path in paths:
        with opened(path) as text:
            lines = text.read().splitlines()
        first = next((line for line in lines if line.strip()), "")
        names = [name.strip().lower().replace(" ", "") for name in first.split("|")]
        if first.startswith(_HEAD):
            settings = dict(_settings(lines))
            options |= _order(settings, notes)
            enforces = enforces and _enforces_limits(settings)
        elif {"PRIORITY", "PARTITION"} <= {*first.split()} and len(lines) > 1:
            options |= _order(_weights(first, lines[1], str(path)), notes)
        elif {"account", "user"} <= {*names}:
            associations = _Associations([*_rows(lines, names, notes)], str(path), notes)
            options |= associations.options
        elif first.startswith("ReservationName="):
            reserved.append((str(path), [*_scontrol_rows(lines)]))
        elif {"name", "nodenames"} <= {*names} or {"name", "nodename"} <= {*names}:
            reserved.append((str(path), [*_rows(lines, names, notes)]))
        else:
            expected = f"the output of one of: {'; '.join(EXPORT_RULES)}"
            raise InputError("contains no rules of Slurm", str(path), expected)
    if "limits" in options and not enforces:
        del options["limits"]
        notes.append("limits that Slurm does not enforce (AccountingStorageEnforce): ignored")
    reservations = [
        row for where, rows in reserved for row in _reservations(rows, where, zone, notes)
    ]
    owners = {
        row["name"].strip(): _owners(row, associations, notes)
        for _, rows in reserved
        for row in rows
    }
    return SlurmRules(options, reservations, notes, owners)


def _settings(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := _SETTING.match(line.strip()):
            yield match[1].lower(), match[2]


def _enforces_limits(settings: Mapping[str, str]) -> bool:
    """Return whether Slurm enforces limits of associations, or does not state it."""
    words = {*settings.get("accountingstorageenforce", "limits").lower().split(",")}
    return bool(words & {"limits", "safe"})


def _weights(names: str, weights: str, where: str) -> dict[str, str]:
    """Return the settings in the output of ``sprio -w``: the factors, and their weights."""
    values = weights.split()
    if values[:1] != ["Weights"]:
        raise InputError("contains no weights", f"{where}:2", "the output of 'sprio -w'")
    factors = names.split()[-len(values[1:]) :]
    settings = {f"priorityweight{n.lower()}": v for n, v in zip(factors, values[1:], strict=True)}
    return {"prioritytype": "multifactor", **settings}


def _rows(lines: Sequence[str], names: list[str], notes: list[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of parsable output by column. Rows of another length are left out."""
    left_out = 0
    for line in filter(str.strip, lines):
        cells = line.split("|")
        if len(cells) != len(names):
            left_out += 1
        elif [cell.strip().lower() for cell in cells[:1]] != names[:1]:
            yield dict(zip(names, cells, strict=True))
    if left_out:
        notes.append(f"{exactly(left_out, 'row')} of rules with another number of columns: ignored")


# ---- priorities

_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fairshare",
    "priorityweightjobsize": "size",
    "priorityweightpartition": "partition",
}
_NO_FLAGS = frozenset(("", "(NULL)", "0"))
_FLAGS = frozenset(("NO_FAIR_TREE", "FAIR_TREE", "CALCULATE_RUNNING"))
"""Flags that are simulated, or have no effect on the order of waiting jobs."""

_OTHER_WEIGHTS = ("priorityweightassoc", "priorityweightqos", "priorityweighttres")


def _order(settings: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """Return the queue order of a configuration, in the options of policies."""
    if settings.get("prioritytype", "").rpartition("/")[2] != "multifactor":
        return {}
    weights = {
        name: settings[key]
        for key, name in _WEIGHTS.items()
        if settings.get(key, "0").isdecimal() and int(settings.get(key, "0"))
    }
    flags = {*settings.get("priorityflags", "").upper().split(",")} - _NO_FLAGS
    unknown = [key for key in _OTHER_WEIGHTS if settings.get(key, "0") not in ("0", "(null)", "")]
    if unknown:
        notes.append(f"weights of priorities that are not simulated: {', '.join(unknown)}")
    notes += [f"PriorityFlags {flag}: not simulated" for flag in sorted(flags - _FLAGS)]
    reset = settings.get("priorityusageresetperiod", "").upper()
    if reset not in ("", "NONE", "(NULL)"):
        notes.append(f"PriorityUsageResetPeriod {reset}: not simulated, usage is never reset")
    factors = [f"{name}={weight}" for name, weight in weights.items()]
    if "age" in weights:
        factors.append(f"max_age={_seconds(settings.get('prioritymaxage', ''), 604_800):g}")
    if "size" in weights and settings.get("priorityfavorsmall", "").lower() in ("yes", "1"):
        factors.append("favor_small=yes")
    options = {"order": f"multifactor:{','.join(factors)}"} if weights else {}
    if "fairshare" in weights:
        half_life_s = _seconds(settings.get("prioritydecayhalflife", ""), 604_800)
        options["half_life"] = exact(half_life_s).replace(" ", "")
        if "NO_FAIR_TREE" in flags:
            options["fairshare_rule"] = "classic"
    if {"age", "fairshare"} & {*weights}:
        period_s = _seconds(settings.get("prioritycalcperiod", ""), 300)
        options["order_period"] = exact(period_s).replace(" ", "")
    return options


def _seconds(text: str, default: float) -> float:
    try:
        return duration_s(text) if text and text not in UNSET else default
    except InputError:
        return default


# ---- shares and limits

_LIMITS = (
    "GrpJobsAccrue", "GrpSubmit", "GrpSubmitJobs", "GrpTRESMins", "GrpTRESRunMins", "GrpWall",
    "MaxJobsAccrue", "MaxSubmit", "MaxSubmitJobs", "MaxTRES", "MaxTRESMins", "MaxTRESPerNode",
    "MaxWall",
)  # fmt: skip
"""Columns of limits that are not simulated."""

MOST = 10**8
"""Limits from this number on are no limits."""


class _Association(NamedTuple):
    """An association of Slurm: an account, or a user in an account."""

    account: str
    user: str
    row: Mapping[str, str]

    def number(self, column: str) -> int | None:
        """Return the limit in a column, or None if there is none."""
        text = self.row.get(column, "").strip()
        return int(text) if text.isdecimal() and int(text) < MOST else None

    @property
    def nodes(self) -> int | None:
        """The number of nodes in GrpTRES, or None if there is none."""
        tres = dict(part.partition("=")[::2] for part in self.row.get("grptres", "").split(","))
        return _Association("", "", tres).number("node")


class _Associations:
    """The accounts and users of a cluster, and the account above each account."""

    def __init__(self, rows: list[dict[str, str]], where: str, notes: list[str]) -> None:
        clusters = {row.get("cluster", "") for row in rows}
        if len(clusters) > 1:
            names = ", ".join(sorted(clusters))
            raise InputError(
                f"contains several clusters: {names}", where, "the rows of one cluster"
            )
        valid = [row for row in rows if _is_plain(row)]
        if len(valid) < len(rows):
            left_out = exactly(len(rows) - len(valid), "association")
            notes.append(
                f"{left_out} with special characters in a name, or for one partition: ignored"
            )
        self.rows = [_Association(r["account"].strip(), r["user"].strip(), r) for r in valid]
        self.of_account = {row.account: row for row in self.rows if not row.user}
        self.parents = self._parents(notes)
        self.children: defaultdict[str, list[str]] = defaultdict(list)
        for name, parent in self.parents.items():
            for above in _path(self.parents, parent):
                self.children[above].append(name)
        self._notes = notes

    def _parents(self, notes: list[str]) -> dict[str, str]:
        """Return the account above each account. The indentation of names also states it."""
        parents: dict[str, str] = {}
        unknown = []
        above: list[tuple[int, str]] = []
        for row in self.rows:
            text = row.row["account"]
            indent = len(text) - len(text.lstrip())
            if not row.user:
                above = [pair for pair in above if pair[0] < indent]
                stated = row.row.get("parentname", "").strip() or (above[-1][1] if above else "")
                above.append((indent, row.account))
                parents[row.account] = stated
        for account in dict.fromkeys(row.account for row in self.rows):
            parent = parents.get(account, "")
            if account != "root" and parent not in ("root", *self.of_account):
                unknown.append(account)
                parent = "root"
            parents[account] = parent
        parents["root"] = ""
        for account in [*parents]:
            if account in _path(parents, parents[account]):
                unknown.append(account)
                parents[account] = "root"
        if unknown:
            texts = exactly(len(unknown), "account"), ", ".join(unknown[:10])
            notes.append(f"{texts[0]} without the account above it ({texts[1]}): below root")
        return parents

    @property
    def options(self) -> dict[str, str]:
        """The shares and limits, in the options of policies."""
        texts = {"shares": self._shares(), "limits": self._limits()}
        return {name: text for name, text in texts.items() if text}

    def owners(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield the words for users and accounts with these ids of associations."""
        for row in self.rows:
            if row.row.get("id", "").strip() in {*ids} - {""}:
                yield f"user={row.user}" if row.user else f"account={row.account}"
                for child in () if row.user else self.children[row.account]:
                    yield f"account={child}"

    def _shares(self) -> str:
        """Return the tree of accounts with users, in the notation of the option ``shares``."""
        if not any("share" in row.row for row in self.rows):
            return ""
        members: defaultdict[str, dict[tuple[str, bool], str]] = defaultdict(dict)
        for row in self.rows:
            account = row.account
            if account != "root":
                own = _share(self.of_account.get(account))
                members[self.parents[account]].setdefault((account, False), own)
            if row.user:
                members[account].setdefault((row.user, True), _share(row))

        def text(account: str) -> str:
            parts = []
            for (name, is_user), shares in members[account].items():
                inside = "" if is_user else text(name)
                if is_user or inside:
                    parts.append(f"{name}={shares}({inside})" if inside else f"{name}={shares}")
            return "+".join(parts)

        return text("root")

    def _limits(self) -> str:
        """Return the limits of accounts and users, in the notation of the option ``limits``.

        A limit of an account holds for the account and all accounts below it. A user without
        MaxJobs has that of the account, or of the first account above it.
        """
        texts = []
        accounts_of = defaultdict[str, list[str]](list)
        for row in self.rows:
            if row.user:
                accounts_of[row.user].append(row.account)
        for row in self.rows:
            numbers = {"jobs": row.number("grpjobs"), "nodes": row.nodes}
            if row.user:
                paths = (self.of_account.get(n) for n in _path(self.parents, row.account))
                most = (each.number("maxjobs") for each in (row, *paths) if each)
                most_jobs = next((number for number in most if number is not None), None)
                given = [n for n in (most_jobs, numbers["jobs"]) if n is not None]
                numbers["jobs"] = min(given, default=None)
                several = len(accounts_of[row.user]) > 1
                words = [f"user={row.user}", *([f"account={row.account}"] if several else [])]
            else:
                children = (f"child={name}" for name in self.children[row.account])
                words = [f"account={row.account}", *children]
            fields = [f"{key}={number}" for key, number in numbers.items() if number]
            if fields:
                texts.append(":".join([*words, *fields]))
            if 0 in numbers.values():
                name = f"user {row.user}" if row.user else f"account {row.account}"
                self._notes.append(f"{name} has a limit of 0: ignored")
        self._note_ignored()
        return "+".join(texts)

    def _note_ignored(self) -> None:
        """Add notes on limits that are not simulated."""
        for noun, rows in (
            ("account", [row for row in self.rows if not row.user]),
            ("user", [row for row in self.rows if row.user]),
        ):
            lacking = sum(bool(r.row.get("grptres", "").strip()) and r.nodes is None for r in rows)
            if lacking:
                texts = exactly(lacking, noun), "contains no number of nodes: ignored"
                self._notes.append(f"GrpTRES of {' '.join(texts)}")
        for column in _LIMITS:
            stated = sum(bool(row.row.get(column.lower(), "").strip()) for row in self.rows)
            if stated:
                texts = exactly(stated, "association"), "not simulated"
                self._notes.append(f"{column} of {': '.join(texts)}")


def _path(parents: Mapping[str, str], account: str) -> list[str]:
    """Return an account and those above it, up to root or the first one in a cycle."""
    path: list[str] = []
    while account and account not in path:
        path.append(account)
        account = parents.get(account, "")
    return path


def _share(row: _Association | None) -> str:
    text = row.row.get("share", "").strip() if row else ""
    return text if text.isdecimal() or text == "parent" else "1"


def _is_plain(row: Mapping[str, str]) -> bool:
    names = [row["account"].strip(), row["user"].strip()]
    return not row.get("partition") and all(not name or _PLAIN.match(name) for name in names)


# ---- reservations

_REPEATED = {"HOURLY": "1h", "DAILY": "1d", "WEEKLY": "1w"}
_PAIR = re.compile(r"(\w+)=(\S*)")
_COLUMNS = {
    "ReservationName": "name",
    "Nodes": "nodenames",
    "StartTime": "start",
    "EndTime": "end",
}
"""Columns of ``sacctmgr`` by the words of ``scontrol``."""

_OWNERS = (("users", "user"), ("accounts", "account"))


def _scontrol_rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the reservations in the output of ``scontrol show reservation``."""
    row: dict[str, str] = {}
    for key, value in (pair for line in lines for pair in _PAIR.findall(line)):
        if key == "ReservationName" and row:
            yield row
            row = {}
        row.setdefault(_COLUMNS.get(key, key.lower()), "" if value == "(null)" else value)
    yield row


def _reservations(
    rows: Iterable[Mapping[str, str]], where: str, zone: tzinfo, notes: list[str]
) -> Iterator[RecordedReservation]:
    clock, left_out = Clock(zone), 0
    for number, row in enumerate(rows, start=2):
        nodes = (row.get("nodenames") or row.get("nodename") or "").strip()
        nodes = "" if nodes in UNSET else nodes
        try:
            check_list(nodes or "none")
            begin_s, end_s = (
                clock.parsed(row.get(name) or row.get(f"time{name}", ""))
                for name in ("start", "end")
            )
        except InputError as error:
            raise error.at(f"{where}:{number}") from None
        if nodes and begin_s < end_s:
            yield RecordedReservation(row["name"].strip(), nodes, begin_s, end_s)
        else:
            left_out += 1
    if left_out:
        notes.append(
            f"{exactly(left_out, 'reservation')} without nodes, a start or an end: ignored"
        )


def _owners(
    row: Mapping[str, str], associations: _Associations | None, notes: list[str]
) -> list[str]:
    """Return the words for the users and accounts that may use a reservation, and its repetition.

    What cannot be represented is a note.
    """
    name, words, refused = row["name"].strip(), [], []
    for column, key in _OWNERS:
        for owner in row.get(column, "").split(","):
            if owner.startswith("-"):
                refused.append(f"excluded {key} {owner[1:]}")
            elif owner.strip():
                words.append(f"{key}={quote(owner.strip(), safe='')}")
    ids = [
        number.strip().lstrip("+")
        for column, value in row.items()
        if column.startswith("assoc")
        for number in value.split(",")
        if number.strip()
    ]
    owners = [*associations.owners(ids)] if associations else []
    words += owners
    if ids and not owners:
        refused.append(f"associations {', '.join(ids)}, which no column ID states")
    if groups := row.get("groups", "").strip():
        refused.append(f"groups {groups}")
    flags = {flag.strip().upper() for flag in row.get("flags", "").split(",")}
    words += [f"every={_REPEATED[flag]}" for flag in sorted(flags & _REPEATED.keys())][:1]
    refused += sorted(f"flag {flag}" for flag in flags & {"WEEKDAY", "WEEKEND", "FLEX"})
    notes += [f"reservation {name}: {text}: not simulated" for text in refused]
    return [*dict.fromkeys(words)]
