# SPDX-License-Identifier: Apache-2.0
"""The policies of a run, as people name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rebat.core.errors import InputError, short
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.preset import Preset
from rebat.policies.presets import schedulers

Policy = str | type | Preset
"""A name, a file with a class of one's own, or that class."""

Policies = Policy | Iterable[Policy]


def chosen(policies: Policies, many: bool) -> list[Any]:
    """The schedulers, each once; a class of one's own needs no file where one process runs it.

    Raises
    ------
    InputError
        For what is none, and for a class where workers would have to find it.
    """
    some = [policies] if isinstance(policies, str | type | Preset) else list(policies)
    if not some:
        raise InputError("there is none", expected="a name of 'rebat policies'")
    names = [one for one in some if isinstance(one, str)]
    if len(names) == len(some):
        return list(schedulers(names))
    found: list[Any] = []
    for one in some:
        found += schedulers([one]) if isinstance(one, str) else [_made(one, many)]
    if len({one.name for one in found}) < len(found):
        raise InputError("two policies have one name", expected="each once")
    return found


def _made(policy: Any, many: bool) -> Preset | OwnPolicy:
    if isinstance(policy, Preset):
        if many and schedulers([policy.name]) != [policy]:
            what = f"{policy.name} is not what its name says: worker processes go by that"
            raise InputError(what, expected="a name with its axes, 'baseline:depth=easy'")
        return policy
    if not isinstance(policy, type):
        raise InputError(f"is {short(policy)}", expected="a name, or a class")
    if many:
        what = f"class {policy.__name__} cannot be found by worker processes"
        raise InputError(what, expected=f"'FILE.py:{policy.__name__}', or no seeds")
    return OwnPolicy.of_class(policy)
