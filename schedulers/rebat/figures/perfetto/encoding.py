# SPDX-License-Identifier: Apache-2.0
"""Fields of protobuf messages as bytes.

rebat does not use the library protobuf, because its versions may write different bytes.
"""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(value: int) -> bytes:
    """Return a number of at least 0 in groups of 7 bits, the lowest first.

    >>> varint(1).hex(), varint(300).hex()
    ('01', 'ac02')
    """
    if value < 0x80:
        return value.to_bytes(1, "little")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a field with a number of at least 0."""
    return varint(field << 3 | _VARINT) + varint(value)


def message(field: int, content: bytes) -> bytes:
    """Return a field with a message or with bytes."""
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    """Return a field with a text. Surrogates, which UTF-8 does not have, become ``?``."""
    return message(field, value.encode(errors="replace"))


def double(field: int, value: float) -> bytes:
    """Return a field with a floating-point number."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def fixed64(field: int, value: int) -> bytes:
    """Return a field with a number of 8 bytes."""
    return varint(field << 3 | _FIXED64) + struct.pack("<Q", value)
