# SPDX-License-Identifier: Apache-2.0
"""Tables of results whose metadata contains all other data of the reports.

From these tables, reports can be written again without the runs and their inputs.
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
"""Key of the metadata in the file. The value is a `ReportData` as JSON, deflated, in base 64."""


class ReportData(msgspec.Struct, frozen=True):
    """The data that reports need in addition to the table.

    Attributes
    ----------
    provenance, unfinished
        See `Report`.
    kinds : dict
        For each kind of unit that has results, the result of `Kind.gather`.
    code : dict
        The Python files that define the kinds and reports (see `kinds.code_of`).
    title : str
        Title of the campaign. It is the title of reports that do not check the claims of a paper.
    """

    provenance: list[str]
    unfinished: str
    kinds: dict[str, msgspec.Raw]
    title: str = ""
    code: dict[str, str] = {}


def write_with_data(results: Path, data: ReportData, target: Path) -> None:
    """Copy a table of results and add the report data to it."""
    import pyarrow.parquet as pq

    packed = base64.b64encode(zlib.compress(msgspec.json.encode(data), 9))
    table = pq.read_table(results).replace_schema_metadata({_KEY: packed})
    names = set(table.column_names) - {"value"}
    with atomic_path(target) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=sorted(names),
            use_byte_stream_split=["value"],
        )


def read_data(table: Path) -> ReportData:
    """Read the report data of a table."""
    import pyarrow.parquet as pq

    try:
        packed = (pq.read_metadata(table).metadata or {}).get(_KEY)
    except FileNotFoundError:
        expected = "a results.parquet of 'rebat campaign report FILE'"
        raise InputError("there is no such file", str(table), expected) from None
    except (OSError, ValueError) as error:
        raise InputError(f"is not a table of results: {error}", str(table)) from None
    if packed is None:
        problem = "contains results, but no report data"
        raise InputError(problem, str(table), "a results.parquet of 'rebat campaign report FILE'")
    try:
        return decoded(zlib.decompress(base64.b64decode(packed)), ReportData, table)
    except (ValueError, zlib.error) as error:
        raise InputError(f"contains damaged report data: {error}", str(table)) from None


def decoded(text: bytes | msgspec.Raw, kind: type[T], table: Path) -> T:
    """Decode the part ``text`` of the report data of a table."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        problem = f"was written by another version: {error}"
        raise InputError(
            problem, str(table), "a file written again by 'rebat campaign report FILE'"
        ) from None
