# SPDX-License-Identifier: Apache-2.0
"""Batsim's workload format: a JSON object with ``nb_res``, ``jobs`` and ``profiles``.

Source: Batsim's documentation, *Workload*, and tests with Batsim 4.2.1. Reading is strict: an
error names the file, the job or profile, and the field. The reader accepts both Batsim 4's form and
Batsim 5's (`rebat.workloads.batsim5_json`).

Reader of large JSON documents. The elements of a list are decoded chunk by chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.batsim5 import unmistakable
from rebat.core.dependencies import check_dependencies, conditions_of
from rebat.core.errors import InputError, short
from rebat.core.files import read_text, write_parts
from rebat.core.job_table import NO_EXTRA, NO_WALLTIME, ExtraTable, Jobs
from rebat.core.jobs import Job, Workload, check_profiles, delay_us, job_fields, number, times_us_of
from rebat.core.table import Texts, distinct
from rebat.core.traits import check_shape, shape_of, traits_of
from rebat.core.units import MAX_SECONDS, to_us
from rebat.models.speedup import speedup_of
from rebat.workloads.batsim5_json import is_five, job_of_five, profiles_of_five

MAX_NODES = 2**31 - 1
"""Batsim stores ``res`` and ``nb_res`` in a C int."""

NAME = "w0"
"""The name that Batsim gives to a workload, and puts before the ids of its jobs."""

FORBIDDEN_IN_IDS = "(),|}"
"""Characters that Batsim rejects in job ids."""

_ALWAYS = ("id", "res", "subtime", "profile")
_KNOWN = {*_ALWAYS, "walltime"}
_BYTE = re.compile(r"\(byte (\d+)\)")


def read_workload(path: Path) -> Workload:
    """Read a Batsim workload file, plain or .gz.

    Parameters
    ----------
    path : Path
        The file. Its name without endings becomes the name of the workload.

    Returns
    -------
    Workload
        Jobs in the file's order. Ids become strings. A walltime that is absent or -1 is None.
        Fields unknown to rebat are kept in ``Job.extra``.
    """
    path = Path(path)
    text, name = read_text(path), path.name.removesuffix(".gz").removesuffix(".json")
    try:
        return workload_of(name, split_document(text, "jobs"))
    except InputError as error:
        raise error.at(str(path)) from None
    except (msgspec.DecodeError, RecursionError):
        _decode(text, str(path))  # this raises an error with the line
        raise


def to_json(workload: Workload) -> dict[str, Any]:
    """Return the workload as Batsim's JSON object. Times are in seconds; whole seconds are ints.

    The order of the fields is fixed. Notes and the machine are stored under keys that Batsim
    ignores.
    """
    document: dict[str, Any] = {"nb_res": workload.n_nodes}
    if workload.notes:
        document["notes"] = list(workload.notes)
    if workload.machine is not None:
        document["machine"] = workload.machine
    document["jobs"] = [*_job_rows(workload)]
    document["profiles"] = workload.profiles
    return document


def write_workload(workload: Workload, path: Path) -> None:
    """Write a Batsim workload file, one job or profile per line.

    Compress it if its name ends in .gz.
    """
    document = to_json(msgspec.structs.replace(workload, jobs=()))
    document["jobs"] = _job_rows(workload)
    write_document(document, path)


def _job_rows(workload: Workload) -> Iterator[dict[str, Any]]:
    for job in workload.jobs:
        yield job_fields(job, unmistakable(job.id, NAME))


def mistakable(jobs: Jobs) -> list[str]:
    """Return the ids that Batsim takes for complete ids, so that files have the complete ids."""
    if NAME.encode() not in jobs.ids.data:
        return []
    return [job_id for job_id in jobs.ids if NAME in job_id]


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write a JSON object. ``jobs`` (an iterable) and ``profiles`` have an entry per line."""
    write_parts(Path(path), _texts(document))


def _texts(document: dict[str, Any]) -> Iterator[str]:
    """Yield the JSON of a workload in parts."""
    encode = msgspec.json.Encoder(decimal_format="number").encode
    before = "{"
    for key, value in document.items():
        yield f'{before}"{key}":'
        before = ",\n"
        if key == "jobs":
            rows = (encode(job).decode() for job in value)
            yield from _listed("[", rows, "]")
        elif key == "profiles":
            rows = (f"{encode(n).decode()}:{encode(p).decode()}" for n, p in value.items())
            yield from _listed("{", rows, "}")
        else:
            yield encode(value).decode()
    yield "}\n"


def _listed(left: str, rows: Iterator[str], right: str) -> Iterator[str]:
    yield f"{left}\n"
    yield next(rows, "")
    yield from (f",\n{row}" for row in rows)
    yield f"\n{right}"


def _decode(text: str, where: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text)
    except RecursionError:
        raise InputError("broken JSON: nested too deeply", where) from None
    except msgspec.DecodeError as error:
        place = _place(text, str(error))
        hint = "valid JSON, without NaN and Infinity"
        raise InputError(f"broken JSON: {error}", where + place, hint) from None
    if not isinstance(document, dict):
        raise InputError("is not a Batsim workload", where, "an object with nb_res, jobs, profiles")
    return document


def _place(text: str, message: str) -> str:
    """Return ``:line:column`` of a msgspec error. In a truncated text, the error is at its end."""
    match = _BYTE.search(message)
    if not match and "truncated" not in message:
        return ""
    before = text.encode()[: int(match[1])] if match else text.encode()
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f":{line}:{column}"


def workload_of(name: str, document: dict[str, Any]) -> Workload:
    """Return the workload in a JSON object; see `read_workload`."""
    n_nodes = _count(document, "nb_res")
    raw_profiles = _required(document, "profiles", dict, "an object of profiles by name")
    raw_jobs = _required(document, "jobs", (list, JsonList), "a list of jobs")
    five = is_five(raw_profiles)
    profiles = checked_profiles(profiles_of_five(raw_profiles) if five else raw_profiles)
    jobs = _jobs(raw_jobs, job_of_five if five else None, profiles, n_nodes)
    if not jobs:
        raise InputError("the workload contains no job", "jobs", "at least one job")
    check_conditions(jobs)
    machine = document.get("machine")
    return Workload(
        name,
        n_nodes,
        jobs,
        profiles,
        _notes(document),
        machine if isinstance(machine, dict) else None,
    )


def _jobs(
    raw_jobs: list[Any] | JsonList,
    convert: Callable[[Any], Any] | None,
    profiles: dict[str, dict[str, Any]],
    machine: int,
) -> Jobs:
    """Return the jobs as a table. If a block is not regular, check one job after the other."""
    blocks = raw_jobs.blocks if isinstance(raw_jobs, JsonList) else None
    for kind in (_PlainJob, Any) if blocks and not convert else (Any,):
        columns = _Columns(profiles)
        try:
            for block in blocks(kind) if blocks else [[*raw_jobs]]:
                columns.add([*map(convert, block)] if convert else block)
            return columns.table(machine)
        except (InputError, LookupError, TypeError, ValueError, OverflowError, msgspec.DecodeError):
            continue
    return Jobs.of(_checked(map(convert, raw_jobs) if convert else raw_jobs, profiles, machine))


class _PlainJob(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The JSON of a job without additional fields, which is decoded faster than a dictionary."""

    id: int | str
    res: int
    subtime: float
    profile: str
    walltime: float = -1


class _Columns:
    """The columns of jobs, which grow by a block of decoded jobs at a time.

    Both methods raise one of several exceptions if a job is invalid, or valid in an unusual way.
    """

    def __init__(self, profiles: Iterable[str]) -> None:
        self._names = [*profiles]
        self._codes = {name: code for code, name in enumerate(self._names)}
        self._ids: list[Texts] = []
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._extras = ExtraTable()

    def add(self, jobs: list[Any]) -> None:
        """Add jobs, either all as `_PlainJob` or all as dictionaries."""
        if not jobs:
            return
        plain = isinstance(jobs[0], _PlainJob)
        get = attrgetter if plain else itemgetter
        ids, sizes, submits_s, names = ([*map(get(key), jobs)] for key in _ALWAYS)
        if _kinds(ids) != {str}:
            _require(_kinds(ids) <= {str, int})
            ids = [*map(str, ids)]
        texts = Texts.of(ids)
        _require(are_ids(texts).all())
        _require(_kinds(sizes) == {int} and min(sizes) >= 1 and max(sizes) <= MAX_NODES)
        submit_us = times_us_of(submits_s)
        walltime = attrgetter("walltime") if plain else methodcaller("get", "walltime", -1)
        walls_s = [*map(walltime, jobs)]
        limits_s = [1 if s == -1 else s for s in walls_s] if -1 in walls_s else walls_s
        limits_us = times_us_of(limits_s, least_us=1)
        walltime_us = np.where(np.array(walls_s) == -1, NO_WALLTIME, limits_us)
        profiles = [*map(self._codes.__getitem__, names)]
        extras = np.zeros(len(jobs), np.int64)
        n_keys = 0 if plain else np.fromiter(map(len, jobs), np.int64)
        for row in np.flatnonzero(n_keys + (walltime_us == NO_WALLTIME) > 5).tolist():
            fields = {key: value for key, value in jobs[row].items() if key not in _KNOWN}
            extras[row] = self._extras.code(fields)
        self._ids.append(texts)
        self._numbers.append(np.stack([sizes, submit_us, walltime_us, profiles, extras]))

    def table(self, machine: int) -> Jobs:
        """Return the jobs, after checks that need all jobs."""
        columns = [np.concatenate(parts) for parts in zip(*self._numbers, strict=True)]
        jobs = Jobs(Texts.joined(self._ids), columns, self._names, self._extras.fields)
        _require(jobs.ids.first_repeat() is None)
        check_extras(jobs, machine)
        return jobs


def _require(regular: object) -> None:
    if not regular:
        raise ValueError


def _kinds(values: list[Any]) -> set[type]:
    return set(map(type, values))


def _checked(
    raw_jobs: Iterable[Any], profiles: dict[str, dict[str, Any]], machine: int
) -> Iterator[Job]:
    """Yield the jobs; raise InputError at the first invalid job."""
    names: set[str] = set()
    for position, raw in enumerate(raw_jobs):
        job = _job(raw, position, profiles, machine)
        if job.id in names:
            raise InputError(f"duplicate job id {job.id!r}", _nth(position), "unique ids")
        names.add(job.id)
        yield job


def _notes(document: dict[str, Any]) -> tuple[str, ...]:
    notes = document.get("notes")
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        return ()  # rebat did not write the text
    return tuple(notes)


def _nth(position: int) -> str:
    return f"job number {position + 1} of the list"


def _job(raw: Any, position: int, profiles: dict[str, dict[str, Any]], machine: int) -> Job:
    if not isinstance(raw, dict):
        raise InputError(f"{short(raw)} is not a job", _nth(position), "an object")
    try:
        job_id = _job_id(raw)
    except InputError as error:
        raise error.at(_nth(position)) from None
    try:
        job = _job_fields(job_id, raw, profiles)
        _check_extra(job, machine)
    except InputError as error:
        raise error.at(f"job {job_id}") from None
    return job


def check_extras(jobs: Jobs, machine: int) -> None:
    """Raise InputError for the first job with an invalid shape or trait."""
    rows, _ = distinct(jobs.extra_codes, jobs.n_nodes)
    for row in rows.tolist():
        job = jobs.at(row)
        try:
            _check_extra(job, machine)
        except InputError as error:
            raise error.at(f"job {job.id}") from None


def check_conditions(jobs: Jobs) -> None:
    """Raise InputError if a dependency names an unknown job, or if dependencies form a cycle."""
    texts = [extra.get("dependency") for extra in jobs.extra_fields]
    if any(texts):
        rows = np.flatnonzero(np.array([bool(text) for text in texts])[jobs.extra_codes])
        conditions = {
            jobs.ids[row]: conditions_of(texts[jobs.extra_codes.item(row)] or "")
            for row in rows.tolist()
        }
        check_dependencies(conditions, set(jobs.ids))


def _check_extra(job: Job, machine: int) -> None:
    if job.extra:
        check_shape(shape_of(job.extra), job.n_nodes, machine)
        traits_of(job.extra)


def _job_fields(job_id: str, raw: dict[str, Any], profiles: dict[str, dict[str, Any]]) -> Job:
    submit_us = to_us(number(raw, "subtime", MAX_SECONDS, "seconds"))
    n_nodes = _count(raw, "res")
    profile = _required(raw, "profile", str, "the name of a profile")
    if profile not in profiles:
        raise InputError(f"unknown profile {profile!r}", "profile", "a name listed in profiles")
    extra = {key: value for key, value in raw.items() if key not in _KNOWN}
    return Job(job_id, n_nodes, submit_us, _walltime_us(raw), profile, extra or NO_EXTRA)


def _job_id(raw: dict[str, Any]) -> str:
    value = raw.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise InputError(f"invalid job id {short(value)}", "id", "an integer or a non-empty text")
    text = str(value)
    if text.isalnum():
        return text
    own = text.removeprefix(f"{NAME}!")
    if text != own and NAME in own and "!" not in own:
        text = own
    if "!" in text:
        raise InputError(
            f"job id {text!r} contains '!'", "id", "the id without 'w0!', which Batsim adds"
        )
    if bad := refused_in(text):
        expected = "an id without any of ( ) , | }"
        raise InputError(f"job id {text!r} contains {bad[0]!r}", "id", expected)
    return text


def are_ids(texts: Texts) -> npt.NDArray[np.bool_]:
    """Return whether each text is a valid id of a job."""
    if texts.data.isalnum():
        return np.diff(texts.bounds) > 0
    return np.array([text.isalnum() or _is_id(text) for text in texts], dtype=bool)


def _is_id(text: str) -> bool:
    return text != "" and "!" not in text and not refused_in(text)


def refused_in(job_id: str) -> list[str]:
    """Return the characters that Batsim does not accept in the id of a job."""
    return [c for c in job_id if c in FORBIDDEN_IN_IDS or not c.isprintable()]


def _walltime_us(raw: dict[str, Any]) -> int | None:
    if "walltime" not in raw or (raw["walltime"] == -1 and raw["walltime"] is not False):
        return None
    walltime_us = to_us(number(raw, "walltime", MAX_SECONDS, "seconds"))
    if walltime_us <= 0:
        value = short(raw["walltime"])
        raise InputError(f"is {value}", "walltime", "more than 0 s, or -1 for no walltime")
    return walltime_us


def checked_profiles(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return profiles by name, after checking them; raise InputError if one is invalid."""
    for name, profile in raw.items():
        try:
            _check_profile(profile)
        except InputError as error:
            raise error.at(f"profile {name!r}") from None
    check_profiles(raw)
    return raw


def _check_profile(profile: Any) -> None:
    if not isinstance(profile, dict) or not isinstance(profile.get("type"), str):
        raise InputError(f"{short(profile)} is not a profile", expected="an object with a type")
    if profile["type"] == "delay":
        delay_us(profile)
    speedup_of(profile)
    ret = profile.get("ret", 0)
    if isinstance(ret, bool) or not isinstance(ret, int):
        raise InputError(f"is {short(ret)}", "ret", "a whole number")


def _required(raw: dict[str, Any], key: str, kind: type | tuple[type, ...], expected: str) -> Any:
    if key not in raw:
        raise InputError("is missing", key, expected)
    if not isinstance(raw[key], kind):
        raise InputError(f"is {short(raw[key])}", key, expected)
    return raw[key]


def _count(raw: dict[str, Any], key: str) -> int:
    expected = f"a whole number from 1 to {MAX_NODES}"
    value = _required(raw, key, int, expected)
    if isinstance(value, bool) or not 1 <= value <= MAX_NODES:
        raise InputError(f"is {short(value)}", key, expected)
    return int(value)


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
