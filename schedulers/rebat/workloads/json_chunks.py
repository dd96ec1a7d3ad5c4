# SPDX-License-Identifier: Apache-2.0
"""Reading of large JSON documents: the elements of a list are decoded chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

CHUNK = 2**20
"""Length in bytes from which a chunk may end."""

_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_RAWS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonList:
    """A JSON list whose elements are objects in most cases, decoded while it is iterated."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._text = memoryview(raw)

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements.

        Raises
        ------
        msgspec.DecodeError
            For invalid JSON.
        """
        start, size, left = 1, CHUNK, b"["
        while start + size < len(self._text):
            between = _BETWEEN.search(self._text, start + size)
            if between is None:
                break
            end = between.start() + 1
            try:
                elements = msgspec.json.decode(left + self._text[start:end] + b"]")
            except msgspec.DecodeError:
                size *= 2  # not between elements, but within one
                continue
            yield from elements
            start, size = between.end() - 1, CHUNK
        yield from msgspec.json.decode(left + self._text[start:])


def split_document(text: str, key: str) -> dict[str, Any]:
    """Return a JSON object in which the list ``key`` is a `JsonList`.

    Raises
    ------
    msgspec.DecodeError
        For invalid JSON outside this list, or if the text is no object.
    RecursionError
        For JSON that is nested too deeply.
    """
    raws = _RAWS.decode(text)
    document: dict[str, Any] = {}
    for name, raw in raws.items():
        is_list = name == key and bytes(memoryview(raw)[:1]) == b"["
        document[name] = JsonList(raw) if is_list else msgspec.json.decode(raw)
    return document
