# SPDX-License-Identifier: Apache-2.0
"""A table of results that stands for itself: in its metadata is what its reports need beside it.

So a report can be written again where neither the runs nor their inputs are at hand.
"""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import atomic_path

T = TypeVar("T")

_KEY = b"rebat.report"
"""The metadata's name in the file; its value is a `Kept` as JSON, deflated (pictures are long),
in base 64."""


class Kept(msgspec.Struct, frozen=True):
    """What reports need beside the table.

    Attributes
    ----------
    provenance, unfinished
        As of a `Report`.
    kinds : dict
        What `Kind.gather` returned, for every kind of unit that has results.
    title : str
        The title of the campaign, for a report that is not about a paper's claims.
    """

    provenance: list[str]
    unfinished: str
    kinds: dict[str, msgspec.Raw]
    title: str = ""


def keep(results: Path, kept: Kept, target: Path) -> None:
    """Write a table of results once more, with this in it."""
    import pyarrow.parquet as pq

    packed = base64.b64encode(zlib.compress(msgspec.json.encode(kept), 9))
    table = pq.read_table(results).replace_schema_metadata({_KEY: packed})
    names = set(table.column_names) - {"value"}
    with atomic_path(target) as temporary:
        pq.write_table(
            table, temporary, compression="zstd", compression_level=19,
            use_dictionary=sorted(names), use_byte_stream_split=["value"],
        )  # fmt: skip


def read_kept(table: Path) -> Kept:
    """What a table was kept with.

    Raises
    ------
    InputError
        For a file that is no such table.
    """
    import pyarrow.parquet as pq

    try:
        found = (pq.read_metadata(table).metadata or {}).get(_KEY)
    except (OSError, ValueError) as error:
        raise InputError(f"not a table of results: {error}", str(table)) from None
    if found is None:
        what = "holds results, but not what a report needs beside them"
        raise InputError(what, str(table), "the table that rebat campaign report FILE writes")
    try:
        return decoded(zlib.decompress(base64.b64decode(found)), Kept, table)
    except (ValueError, zlib.error) as error:
        raise InputError(f"holds what is no report: {error}", str(table)) from None


def decoded(text: bytes | msgspec.Raw, what: type[T], table: Path) -> T:
    """A part of what was kept."""
    try:
        return msgspec.json.decode(text, type=what)
    except msgspec.DecodeError as error:
        told = f"was kept by another version: {error}"
        raise InputError(told, str(table), "rebat campaign report FILE") from None
