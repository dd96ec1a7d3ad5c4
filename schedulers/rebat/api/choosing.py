# SPDX-License-Identifier: Apache-2.0
"""The policies of a run, from names, files and classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rebat.core.errors import InputError, short
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.presets import Preset, schedulers

Policy = str | type | Preset
"""An argument that defines a policy: a name, FILE.py:CLASS, a policy class, or a preset."""

Policies = Policy | Iterable[Policy]


def chosen(policies: Policies, many: bool) -> list[Any]:
    """Return the schedulers of the policies.

    ``many`` states whether there are several seeds. In this case, worker processes must be able to
    load presets by name.
    """
    requested = [policies] if isinstance(policies, str | type | Preset) else list(policies)
    if not requested:
        raise InputError("no policy is given", expected="a name from 'rebat policies'")
    names = [policy for policy in requested if isinstance(policy, str)]
    if len(names) == len(requested):
        return list(schedulers(names))
    runnable: list[Any] = []
    for policy in requested:
        runnable += schedulers([policy]) if isinstance(policy, str) else [_loaded(policy, many)]
    if len({scheduler.name for scheduler in runnable}) < len(runnable):
        raise InputError("two policies have the same name", expected="different policies")
    return runnable


def _loaded(policy: Any, many: bool) -> Preset | OwnPolicy:
    if isinstance(policy, Preset):
        if many and schedulers([policy.name]) != [policy]:
            problem = f"{policy.name} differs from the preset with the same name"
            raise InputError(problem, expected="a name with axes, like 'baseline:depth=easy'")
        return policy
    if not isinstance(policy, type):
        raise InputError(f"is {short(policy)}", expected="a name or a class")
    return OwnPolicy.of_class(policy)
