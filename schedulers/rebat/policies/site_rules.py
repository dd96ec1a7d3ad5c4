# SPDX-License-Identifier: Apache-2.0
"""Rules of a site as options of policies: its queue order, limits, and reservations of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebat.core.errors import InputError, unknown_name
from rebat.workloads.machine import RULES_OF_SITE, stated_rules_of

_FOR_FAIR_SHARE = ("shares", "fairshare_rule")


def check_rules(text: str) -> None:
    """Raise InputError if a text names no rules of a site."""
    for name in text.split("+") if text not in ("", "all") else ():
        if name not in RULES_OF_SITE:
            raise unknown_name("rules", name, ("all", *RULES_OF_SITE))


def stated_rules(declared: Mapping[str, Any]) -> list[str]:
    """Return the names of the rules that a site states."""
    return [name for name, options in RULES_OF_SITE.items() if declared.get(options[0])]


def rules_in(machine: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the rules that the machine of a workload states."""
    return stated_rules(stated_rules_of(machine))


def without_each(names: Sequence[str]) -> dict[str, str]:
    """Return the text of the other rules, for each rule that is left out.

    >>> without_each(["order", "limits"])
    {'order': 'limits', 'limits': 'order'}
    """
    return {name: "+".join(other for other in names if other != name) for name in names}


def rules_of(text: str, declared: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of the rules that a text names.

    >>> rules_of("limits", {"order": "wfp3", "limits": "user:jobs=2"})
    {'limits': 'user:jobs=2'}
    """
    stated = stated_rules(declared)
    if not stated:
        expected = "a workload or site.toml that states rules"
        raise InputError("the site states no rules", "axis rules", expected)
    names = stated if text == "all" else text.split("+")
    for name in names:
        if name not in stated:
            expected = f"one of {', '.join(stated)}"
            raise InputError(f"the site states no {name}", "axis rules", expected)
    options = {
        key: str(declared[key]) for n in names for key in RULES_OF_SITE[n] if key in declared
    }
    if "fairshare" not in options.get("order", ""):
        options = {key: value for key, value in options.items() if key not in _FOR_FAIR_SHARE}
    return options
