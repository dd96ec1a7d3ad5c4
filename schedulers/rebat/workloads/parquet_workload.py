# SPDX-License-Identifier: Apache-2.0
"""Workloads as Parquet files: a row per job, read and written faster than JSON.

`COLUMNS` lists the columns. Times are in microseconds. ``extra`` is JSON with other fields of the
job. The metadata of the file contains the other parts of the workload, such as profiles, in
compressed form.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rebat.core.compact_jobs import NO_EXTRA, CompactJobs
from rebat.core.errors import InputError, short
from rebat.core.files import atomic_path
from rebat.core.id_set import IdSet
from rebat.core.jobs import Job, Workload
from rebat.core.parquet import arrow, opened
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.workloads.batsim_json import (
    MAX_NODES,
    check_extra,
    checked_profiles,
    refused_in,
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
    with opened(path) as file:
        return KEY in (file.schema_arrow.metadata or {})


def write_parquet(workload: Workload, path: Path) -> None:
    """Write a workload. Raise InputError if pyarrow is not installed."""
    pa, pq = arrow(path)
    jobs, encode = workload.jobs, msgspec.json.encode
    extras = (encode(job.extra).decode() if job.extra else None for job in jobs)
    table = pa.table(
        {
            "id": pa.array([job.id for job in jobs], pa.string()),
            "submit_us": pa.array([job.submit_us for job in jobs], pa.int64()),
            "walltime_us": pa.array([job.walltime_us for job in jobs], pa.int64()),
            "n_nodes": pa.array([job.n_nodes for job in jobs], pa.int64()),
            "profile": pa.array([job.profile for job in jobs], pa.string()).dictionary_encode(),
            "extra": pa.array(extras, pa.string()),
        }
    )
    head = _Head(workload.n_nodes, workload.profiles, workload.notes, workload.machine)
    with atomic_path(path) as temporary:
        content = zlib.compress(encode(head), 9)
        pq.write_table(table.replace_schema_metadata({KEY: content}), temporary, compression="zstd")


def read_parquet(path: Path) -> Workload:
    """Read a workload that `write_parquet` wrote.

    Raises
    ------
    InputError
        If pyarrow is not installed, or the file is invalid; the error names file and row.
    """
    path = Path(path)
    with opened(path) as file:
        schema = file.schema_arrow
        head = _head(schema.metadata or {}, str(path))
        _check_columns(schema, str(path))
        jobs = CompactJobs(_all_jobs(file, str(path), head))
    if not jobs:
        raise InputError("the workload contains no job", str(path), "at least one job")
    name = path.name.removesuffix(".parquet")
    return Workload(name, head.n_nodes, jobs, head.profiles, head.notes, head.machine)


def _all_jobs(file: Any, where: str, head: _Head) -> Iterator[Job]:
    names = IdSet()
    before = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=list(COLUMNS)):
        _check_rows(batch, where, before, head)
        for row, job in enumerate(_jobs(batch, where, before, head.n_nodes), before + 1):
            if job.id in names:
                place = f"{where}: row {row}"
                raise InputError(f"duplicate job id {job.id!r}", place, "unique ids")
            names.add(job.id)
            yield job
        before += batch.num_rows


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


def _check_rows(batch: Any, where: str, before: int, head: _Head) -> None:
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
    ids = batch.column("id").to_pylist()
    refuse(np.array([not _is_id(text) for text in ids]), "id", "a text without ( ) , | } and !")


def _is_id(text: str) -> bool:
    return text.isalnum() or (text != "" and "!" not in text and not refused_in(text))


def _jobs(batch: Any, where: str, before: int, machine: int) -> Iterator[Job]:
    """Yield the jobs of a batch of rows. ``before`` is the number of rows before the batch."""
    columns = {name: batch.column(name).to_pylist() for name in COLUMNS if name != "profile"}
    profiles = batch.column("profile")
    names, codes = profiles.dictionary.to_pylist(), profiles.indices.to_pylist()
    for row, (job_id, submit_us, walltime_us, n_nodes, code, extra) in enumerate(
        zip(
            columns["id"],
            columns["submit_us"],
            columns["walltime_us"],
            columns["n_nodes"],
            codes,
            columns["extra"],
            strict=True,
        ),
        before + 1,
    ):
        fields = _extra(extra, f"{where}: row {row}") if extra else NO_EXTRA
        job = Job(job_id, n_nodes, submit_us, walltime_us, names[code], fields)
        if fields:
            try:
                check_extra(job, machine)
            except InputError as error:
                raise error.at(f"{where}: job {job_id}") from None
        yield job


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _extra(text: str, where: str) -> dict[str, Any]:
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InputError(f"extra is {short(text)}", where, "a JSON object") from None
