# SPDX-License-Identifier: Apache-2.0
"""Workloads as Parquet files: a row per job, read and written faster than JSON.

`COLUMNS` lists the columns. Times are in microseconds. ``extra`` is JSON with other fields of the
job. The metadata of the file contains the other parts of the workload, such as profiles, in
compressed form.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import InputError, short
from rebat.core.files import arrow, atomic_path, open_parquet
from rebat.core.job_table import NO_EXTRA, NO_WALLTIME, ExtraTable, Jobs
from rebat.core.jobs import Workload
from rebat.core.table import Texts
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.workloads.batsim_json import (
    MAX_NODES,
    are_ids,
    check_conditions,
    check_extras,
    checked_profiles,
)

KEY = b"rebat.workload"
"""Key of the workload in the metadata."""

COLUMNS = {
    "id": "string",
    "submit_us": "int64",
    "walltime_us": "int64",
    "n_nodes": "int64",
    "profile": "dictionary<values=string, indices=int32, ordered=0>",
    "extra": "string",
}
"""Columns with their Arrow types. In a row, ``walltime_us`` and ``extra`` may be missing."""

_MAY_MISS = ("walltime_us", "extra")
_MOST_US = int(MAX_SECONDS * US_PER_S)
_RANGES = {"submit_us": (0, _MOST_US), "walltime_us": (1, _MOST_US), "n_nodes": (1, MAX_NODES)}
_ROWS = 200_000
"""Number of rows that are converted at a time, to save memory."""


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """All parts of a workload except its jobs."""

    n_nodes: int
    profiles: dict[str, dict[str, Any]]
    notes: tuple[str, ...] = ()
    machine: dict[str, Any] | None = None


def is_workload(path: Path) -> bool:
    """Return whether a Parquet file is a workload of rebat. Otherwise, it is a table of jobs."""
    with open_parquet(path) as file:
        return KEY in (file.schema_arrow.metadata or {})


def write_parquet(workload: Workload, path: Path) -> None:
    """Write a workload. Raise InputError if pyarrow is not installed."""
    pa, pq = arrow(path)
    jobs, encode = Jobs.of(workload.jobs), msgspec.json.encode
    extras = [encode(fields).decode() if fields else None for fields in jobs.extra_fields]
    profiles = pa.DictionaryArray.from_arrays(
        jobs.profile_codes, pa.array(jobs.profile_names, pa.string())
    )
    table = pa.table(
        {
            "id": pa.array(jobs.ids, pa.string()),
            "submit_us": jobs.submit_us,
            "walltime_us": pa.array(jobs.walltime_us, mask=jobs.walltime_us == NO_WALLTIME),
            "n_nodes": jobs.n_nodes.astype(np.int64),
            "profile": profiles,
            "extra": pa.array(extras, pa.string()).take(pa.array(jobs.extra_codes)),
        }
    )
    head = _Head(workload.n_nodes, workload.profiles, workload.notes, workload.machine)
    with atomic_path(path) as temporary:
        content = zlib.compress(encode(head), 9)
        pq.write_table(table.replace_schema_metadata({KEY: content}), temporary, compression="zstd")


def read_parquet(path: Path) -> Workload:
    """Read a workload that `write_parquet` wrote."""
    path = Path(path)
    with open_parquet(path) as file:
        schema = file.schema_arrow
        head = _head(schema.metadata or {}, str(path))
        _check_columns(schema, str(path))
        jobs = _jobs(file, str(path), head)
    if not jobs:
        raise InputError("the workload contains no job", str(path), "at least one job")
    name = path.name.removesuffix(".parquet")
    return Workload(name, head.n_nodes, jobs, head.profiles, head.notes, head.machine)


def _jobs(file: Any, where: str, head: _Head) -> Jobs:
    """Return the jobs, after checking each block of rows, and all rows."""
    ids, numbers, before = [], [], 0
    profiles = {name: code for code, name in enumerate(head.profiles)}
    extras = ExtraTable()
    for batch in file.iter_batches(batch_size=_ROWS, columns=list(COLUMNS)):
        texts = _texts(batch.column("id"))
        _check_rows(batch, texts, where, before, head)
        coded = batch.column("profile")
        codes = np.array([profiles.get(name, -1) for name in coded.dictionary.to_pylist()], int)
        ids.append(texts)
        numbers.append(
            np.stack(
                [
                    batch.column("n_nodes").to_numpy(),
                    batch.column("submit_us").to_numpy(),
                    batch.column("walltime_us").fill_null(NO_WALLTIME).to_numpy(),
                    codes[coded.indices.to_numpy()],
                    _extras(batch.column("extra"), extras, where, before),
                ]
            )
        )
        before += batch.num_rows
    if not ids:
        return Jobs.of(())
    columns = [np.concatenate(parts) for parts in zip(*numbers, strict=True)]
    jobs = Jobs(Texts.joined(ids), columns, [*profiles], extras.fields)
    if (row := jobs.ids.first_repeat()) is not None:
        problem = f"duplicate job id {jobs.ids[row]!r}"
        raise InputError(problem, f"{where}: row {row + 1}", "unique ids")
    try:
        check_extras(jobs, head.n_nodes)
        check_conditions(jobs)
    except InputError as error:
        raise error.at(where) from None
    return jobs


def _texts(column: Any) -> Texts:
    """Return a column of strings. A missing value becomes an empty text."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    content = data[int(bounds[0]) : int(bounds[-1])].to_pybytes() if data else b""
    return Texts(content, bounds.astype(np.int64) - bounds[0])


def _head(metadata: dict[bytes, bytes], where: str) -> _Head:
    expected = "a Parquet file of 'rebat workload'"
    try:
        head = msgspec.json.decode(zlib.decompress(metadata[KEY]), type=_Head)
    except (KeyError, zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"invalid metadata {KEY.decode()}: {error}", where, expected) from None
    if not 1 <= head.n_nodes <= MAX_NODES:
        raise InputError(f"n_nodes is {head.n_nodes}", where, f"1 to {MAX_NODES}")
    try:
        checked_profiles(head.profiles)
    except InputError as error:
        raise error.at(where) from None
    return head


def _check_columns(schema: Any, where: str) -> None:
    for name, kind in COLUMNS.items():
        present = str(schema.field(name).type) if name in schema.names else "missing"
        if present != kind:
            raise InputError(f"column {name} is {present}", where, kind)


def _check_rows(batch: Any, ids: Texts, where: str, before: int, head: _Head) -> None:
    """Raise InputError for the first invalid value of each column."""

    def refuse(wrong: Any, name: str, expected: str) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            value = batch.column(name)[at].as_py()
            raise InputError(f"{name} is {value!r}", f"{where}: row {before + at + 1}", expected)

    for name in COLUMNS:
        missing = batch.column(name).is_null().to_numpy(zero_copy_only=False)
        if name not in _MAY_MISS:
            refuse(missing, name, "a value")
        if name in _RANGES:
            low, high = _RANGES[name]
            values = batch.column(name).fill_null(low).to_numpy()
            refuse((values < low) | (values > high), name, f"a whole number, {low} to {high}")
    profiles = batch.column("profile")
    unknown = [name not in head.profiles for name in profiles.dictionary.to_pylist()]
    codes = profiles.indices.to_numpy()
    refuse(np.array(unknown, dtype=bool)[codes], "profile", "a profile of the workload")
    refuse(~are_ids(ids), "id", "a text without ( ) , | } and !")


def _extras(column: Any, table: ExtraTable, where: str, before: int) -> Any:
    """Return the codes of the additional fields. ``before`` is the number of rows before these."""
    coded = column.fill_null("").dictionary_encode()
    rows = coded.indices.to_numpy()
    codes = []
    for code, text in enumerate(coded.dictionary.to_pylist()):
        try:
            codes.append(table.code(_decode(text) if text else NO_EXTRA))
        except (msgspec.DecodeError, RecursionError):
            place = f"{where}: row {before + int(np.argmax(rows == code)) + 1}"
            raise InputError(f"extra is {short(text)}", place, "a JSON object") from None
    return np.array(codes, np.int64)[rows]


_decode = msgspec.json.Decoder(dict[str, Any]).decode
