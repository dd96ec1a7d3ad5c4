# SPDX-License-Identifier: Apache-2.0
"""JSON objects whose type is the value of one of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rebat.core.errors import InputError, unknown_name

T = TypeVar("T")


def tagged(value: Any, field: str, kinds: Mapping[str, type[T]], noun: str) -> T:
    """Return a JSON object as a struct, which the value of ``field`` selects from ``kinds``."""
    kind = str(value.get(field) if isinstance(value, dict) else value)
    if kind not in kinds:
        raise unknown_name(noun, kind, kinds)
    try:
        return msgspec.convert(value, kinds[kind])
    except msgspec.ValidationError as error:
        raise InputError(f"{noun}: {error}", expected=f"an object with {field} {kind!r}") from None
