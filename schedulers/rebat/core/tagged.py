# SPDX-License-Identifier: Apache-2.0
"""JSON objects that say by one of their fields what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rebat.core.errors import InputError, unknown_name

T = TypeVar("T")


def tagged(given: Any, field: str, kinds: Mapping[str, type[T]], what: str) -> T:
    """The struct that an object stands for; its ``field`` is a key of ``kinds``.

    Raises
    ------
    InputError
        For an unknown kind, which lists those there are, and for fields that do not fit it.
    """
    kind = str(given.get(field) if isinstance(given, dict) else given)
    if kind not in kinds:
        raise unknown_name(what, kind, kinds)
    try:
        return msgspec.convert(given, kinds[kind])
    except msgspec.ValidationError as error:
        raise InputError(f"{what}: {error}", expected=f"an object with {field} {kind!r}") from None
