# SPDX-License-Identifier: Apache-2.0
"""The table ``[grid.sweep]``: several values for parameters of policies.

``{spares}`` in the name of a policy is replaced by each value of ``spares``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rebat.core.errors import InputError, unknown_name
from rebat.runs.reading import distinct, nonempty

_PLACE = re.compile(r"\{(\w+)\}")


def swept(policies: Sequence[str], values: Mapping[str, Sequence[Any]], where: str) -> list[str]:
    """Return a policy for each combination of the values of the names in braces."""
    return list(dict.fromkeys(text for policy in policies for text in _each(policy, values, where)))


def check_values(policies: Sequence[str], values: Mapping[str, Sequence[Any]], where: str) -> None:
    """Raise InputError for empty lists, duplicate values, and values that no policy uses."""
    used = {name for policy in policies for name in _PLACE.findall(policy)}
    for name, listed in values.items():
        nonempty(listed, f"{where}.{name}")
        distinct([str(value) for value in listed], f"{where}.{name}")
        if name not in used:
            raise InputError(
                "has no effect", f"{where}.{name}", f"a policy that contains {{{name}}}"
            )


def _each(policy: str, values: Mapping[str, Sequence[Any]], where: str) -> list[str]:
    names = list(dict.fromkeys(_PLACE.findall(policy)))
    for name in names:
        if name not in values:
            if not values:
                expected = f"{name} = [...] in [grid.sweep]"
                raise InputError(f"{name!r} has no values", where, expected)
            raise unknown_name("swept parameter", name, values).at(where)
    combinations = itertools.product(*(values[name] for name in names))
    return [_filled(policy, dict(zip(names, chosen, strict=True))) for chosen in combinations]


def _filled(policy: str, chosen: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda place: str(chosen[place[1]]), policy)
