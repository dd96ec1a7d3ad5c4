# SPDX-License-Identifier: Apache-2.0
"""Reader of large JSON documents. The elements of a list are decoded chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import msgspec

CHUNK = 2**20
"""Minimum length of a chunk in bytes."""

_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_RAWS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonList:
    """A JSON list that is decoded while it is iterated. Usually its elements are objects."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._text = memoryview(raw)

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements. For the errors, see `blocks`."""
        return chain.from_iterable(self.blocks())

    def blocks(self, kind: Any = Any) -> Iterator[list[Any]]:
        """Yield the elements in lists, one for each chunk. ``kind`` is the type of the elements."""
        decode = partial(msgspec.json.decode, type=list[kind])
        start, size, left = 1, CHUNK, b"["
        while start + size < len(self._text):
            between = _BETWEEN.search(self._text, start + size)
            if between is None:
                break
            end = between.start() + 1
            try:
                elements = decode(left + self._text[start:end] + b"]")
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                size *= 2  # the end of the chunk is within an element
                continue
            yield elements
            start, size = between.end() - 1, CHUNK
        yield decode(left + self._text[start:])


def split_document(text: str, key: str) -> dict[str, Any]:
    """Return a JSON object. Its list ``key`` is a `JsonList`, which is not decoded yet."""
    raws = _RAWS.decode(text)
    document: dict[str, Any] = {}
    for name, raw in raws.items():
        is_list = name == key and bytes(memoryview(raw)[:1]) == b"["
        document[name] = JsonList(raw) if is_list else msgspec.json.decode(raw)
    return document
