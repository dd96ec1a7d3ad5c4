# SPDX-License-Identifier: Apache-2.0
"""Rules in the configuration of Slurm: priorities, shares, limits and reservations.

The files are the outputs of `EXPORT_RULES`. Sources: the manual pages *slurm.conf* and *sacctmgr*,
and tests with Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import exact
from rebat.records.clock import Clock
from rebat.records.hosts import check_list
from rebat.records.sources import opened
from rebat.records.values import UNSET, duration_s

EXPORT_RULES = (
    "scontrol show config > config.txt",
    "sacctmgr -P show associations format=Cluster,Account,User,ParentName,Share,GrpJobs,GrpTRES,"
    "MaxJobs > associations.txt",
    "SLURM_TIME_FORMAT=%s sacctmgr -P show reservation start=2024-01-01 "
    "format=Cluster,Name,NodeNames,Start,End,Flags > reservations.txt",
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
    """The rules of a Slurm cluster as options of policies, its reservations, and notes."""

    options: dict[str, str]
    reservations: list[RecordedReservation]
    notes: list[str]


def read_rules(paths: Iterable[Path], zone: tzinfo) -> SlurmRules:
    """Read files with the rules of a Slurm cluster, in any order.

    The weights of priorities may also be the output of ``sprio -w``.

    Raises
    ------
    InputError
        If a file is none of the outputs of `EXPORT_RULES`.
    """
    options: dict[str, str] = {}
    reservations: list[RecordedReservation] = []
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
        elif {"account", "user", "share"} <= {*names}:
            options |= _associations([*_rows(lines, names)], str(path), notes)
        elif {"name", "nodenames"} <= {*names} or {"name", "nodename"} <= {*names}:
            reservations += _reservations(_rows(lines, names), str(path), zone)
        else:
            expected = f"the output of one of: {'; '.join(EXPORT_RULES)}"
            raise InputError("contains no rules of Slurm", str(path), expected)
    if "limits" in options and not enforces:
        del options["limits"]
        notes.append("limits that Slurm does not enforce (AccountingStorageEnforce): ignored")
    return SlurmRules(options, reservations, notes)


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


def _rows(lines: Sequence[str], names: list[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of parsable output by column. Rows of another length are left out."""
    for line in lines:
        cells = line.split("|")
        if len(cells) == len(names) and [cell.strip().lower() for cell in cells[:1]] != names[:1]:
            yield dict(zip(names, cells, strict=True))


# ---- priorities

_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fairshare",
    "priorityweightjobsize": "size",
    "priorityweightpartition": "partition",
}
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
    flags = settings.get("priorityflags", "").upper()
    unknown = [key for key in _OTHER_WEIGHTS if settings.get(key, "0") not in ("0", "(null)", "")]
    if unknown:
        notes.append(f"weights of priorities that are not simulated: {', '.join(unknown)}")
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


def _associations(rows: list[dict[str, str]], where: str, notes: list[str]) -> dict[str, str]:
    """Return the shares and limits of accounts and users, in the options of policies."""
    clusters = {row.get("cluster", "") for row in rows}
    if len(clusters) > 1:
        names = ", ".join(sorted(clusters))
        raise InputError(f"contains several clusters: {names}", where, "the rows of one cluster")
    valid = [row for row in rows if _is_plain(row)]
    if len(valid) < len(rows):
        left_out = counted(len(rows) - len(valid), "association")
        notes.append(f"{left_out} with special characters in a name, or for one partition: ignored")
    options = {}
    if shares := _shares(valid):
        options["shares"] = shares
    if limits := _limits(valid, notes):
        options["limits"] = limits
    return options


def _is_plain(row: Mapping[str, str]) -> bool:
    names = [row["account"].strip(), row["user"].strip()]
    return not row.get("partition") and all(not name or _PLAIN.match(name) for name in names)


def _shares(rows: Iterable[Mapping[str, str]]) -> str:
    """Return the tree of accounts with users, in the notation of the option ``shares``."""
    children: defaultdict[str, list[tuple[str, bool, str]]] = defaultdict(list)
    for row in rows:
        account, user = row["account"].strip(), row["user"].strip()
        shares = row["share"].strip()
        shares = shares if shares.isdecimal() else "1"  # Share=parent
        if user:
            children[account].append((user, True, shares))
        elif account != "root":
            children[row.get("parentname", "").strip() or "root"].append((account, False, shares))

    def text(account: str, above: frozenset[str]) -> str:
        parts = []
        for name, is_user, shares in dict.fromkeys(children[account]):
            members = "" if is_user or name in above else text(name, above | {name})
            if is_user or members:
                parts.append(f"{name}={shares}({members})" if members else f"{name}={shares}")
        return "+".join(parts)

    return text("root", frozenset({"root"}))


def _limits(rows: Sequence[Mapping[str, str]], notes: list[str]) -> str:
    """Return the limits of accounts and users, in the notation of the option ``limits``.

    A user without a limit has the limit of the account (``MaxJobs``).
    """
    of_account = {row["account"].strip(): row for row in rows if not row["user"].strip()}
    limits: dict[tuple[str, str], dict[str, int]] = {}
    ignored = Counter[str]()
    for row in rows:
        account, user = row["account"].strip(), row["user"].strip()
        if user:
            most = row.get("maxjobs") or of_account.get(account, {}).get("maxjobs", "")
            stated = {"jobs": most, "nodes": ""}
        else:
            stated = {"jobs": row.get("grpjobs", ""), "nodes": _nodes(row.get("grptres", ""))}
            ignored["GrpTRES"] += bool(row.get("grptres")) and not stated["nodes"]
        numbers = {key: int(value) for key, value in stated.items() if value.strip().isdecimal()}
        kind = ("user", user) if user else ("account", account)
        for key, number in numbers.items():
            own = limits.setdefault(kind, {})
            own[key] = max(own.get(key, 0), number)  # a user with several accounts
    if ignored["GrpTRES"]:
        notes.append(
            f"GrpTRES of {counted(ignored['GrpTRES'], 'account')} contains no number of nodes: "
            "ignored"
        )
    return "+".join(
        ":".join([f"{kind}={name}", *(f"{key}={number}" for key, number in fields.items())])
        for (kind, name), fields in limits.items()
        if all(fields.values())
    )


def _nodes(tres: str) -> str:
    return dict(part.partition("=")[::2] for part in tres.split(",")).get("node", "")


# ---- reservations


def _reservations(
    rows: Iterable[Mapping[str, str]], where: str, zone: tzinfo
) -> Iterator[RecordedReservation]:
    clock = Clock(zone)
    for number, row in enumerate(rows, start=2):
        nodes = (row.get("nodenames") or row.get("nodename") or "").strip()
        if not nodes or nodes in UNSET:
            continue
        try:
            check_list(nodes)
            begin_s, end_s = (
                clock.parsed(row.get(name) or row.get(f"time{name}", ""))
                for name in ("start", "end")
            )
        except InputError as error:
            raise error.at(f"{where}:{number}") from None
        if begin_s < end_s:
            yield RecordedReservation(row["name"].strip(), nodes, begin_s, end_s)
