# SPDX-License-Identifier: Apache-2.0
"""Validation of a run's files, including the tables in which rebat records its decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.core.attempts import Cause, resubmission_id
from rebat.core.errors import RebatError
from rebat.core.options import HUNG, MAX_ATTEMPTS
from rebat.policies.presets import preset
from rebat.results.files.batsim_files import JobsFile, read_jobs
from rebat.results.files.run_folder import read_source
from rebat.results.files.tables import Rows, table_in
from rebat.results.validate.findings import Finding, Reference
from rebat.results.validate.validate import Latency, latency, validate


class Validation(msgspec.Struct, frozen=True):
    """A validated table, its findings, and the latency that explains findings, if there is one."""

    table: JobsFile
    findings: list[Finding]
    latency: Latency | None


def validate_files(jobs: Path, reference: Reference) -> Validation:
    """Validate a jobs.csv or the folder of a run.

    Data that ``reference`` does not contain are read from the tables of rebat in the folder.
    """
    table = read_jobs(jobs)
    folder = table.path.parent
    reference = _completed(reference, folder)
    findings = validate(table, reference)
    recorded = bool(read_source(folder).format)
    return Validation(table, findings, None if recorded else latency(table, reference, findings))


def _completed(reference: Reference, folder: Path) -> Reference:
    """Return a reference with the data in the tables of rebat in a folder."""
    by_rebat: bool | None = None
    if read_source(folder).format:
        by_rebat = False
    elif table_in(folder, "rebat_jobs").is_file():
        by_rebat = True
    queued_us, ended_us, spans_us = _attempts(folder)
    return msgspec.structs.replace(
        reference,
        resubmits=by_rebat if reference.resubmits is None else reference.resubmits,
        by_rebat=by_rebat if reference.by_rebat is None else reference.by_rebat,
        six_digits=_six_digits(folder) if reference.six_digits is None else reference.six_digits,
        ended_us=ended_us,
        queued_us=queued_us,
        spans_us=spans_us,
        hung_us=_hung_us(folder),
        given_up=_given_up(folder),
    )


def _attempts(folder: Path) -> tuple[dict[str, int], dict[str, int], dict[str, tuple[int, int]]]:
    """Return when each attempt was queued, when rebat ended each job without an end, and the start
    and end of each attempt (us)."""
    path = table_in(folder, "rebat_attempts")
    if not path.is_file():
        return {}, {}, {}
    columns = ("job_id", "attempt", "queued_time", "start_time", "finish_time", "cause")
    rows = Rows(path, columns)
    queued_us = rows.times("queued_time").tolist()
    start_us = rows.times("start_time", empty=-1).tolist()
    end_us = rows.times("finish_time", empty=0).tolist()
    ends = zip(rows.names("job_id"), end_us, rows.texts("cause"), strict=True)
    ended_us = {job: us for job, us, cause in ends if cause == Cause.HORIZON}
    ids = _ids(rows)
    spans_us = dict(zip(ids, zip(start_us, end_us, strict=True), strict=True))
    return dict(zip(ids, queued_us, strict=True)), ended_us, spans_us


def _hung_us(folder: Path) -> dict[str, int]:
    """Return how long (us) each attempt hung after a failure, by id."""
    path = folder / "rebat_recoveries.csv"
    if not path.is_file():
        return {}
    columns = [f"{name}_seconds" for name in HUNG]
    rows = Rows(path, ("job_id", "attempt", *columns))
    stages = zip(*(rows.times(name).tolist() for name in columns), strict=True)
    return dict(zip(_ids(rows), map(sum, stages), strict=True))


def _given_up(folder: Path) -> frozenset[str]:
    """Return the ids of jobs with as many failures as the run allowed."""
    path = table_in(folder, "rebat_jobs")
    if not path.is_file():
        return frozenset()
    try:
        most = int(_summary(folder)["options"].get("max_attempts", MAX_ATTEMPTS))
    except (KeyError, TypeError, ValueError, AttributeError):
        most = MAX_ATTEMPTS
    rows = Rows(path, ("job_id", "failures"))
    failures = rows.counts("failures").tolist()
    return frozenset(
        job for job, n in zip(rows.names("job_id"), failures, strict=True) if n >= most
    )


def _ids(rows: Rows) -> list[str]:
    """Return the id of each attempt as in jobs.csv."""
    attempts = zip(rows.names("job_id"), rows.counts("attempt").tolist(), strict=True)
    return [resubmission_id(job, number) if number else job for job, number in attempts]


def _six_digits(folder: Path) -> bool | None:
    """Return whether the policy in the summary writes six digits, or None if this is unknown."""
    try:
        policy = str(_summary(folder)["policy"])
        return bool(preset(policy).session.dialect.digits == "six")
    except (KeyError, TypeError, RebatError):
        return None


def _summary(folder: Path) -> Any:
    """Return the content of a run's summary, or None if it cannot be read."""
    try:
        return msgspec.json.decode((folder / "summary.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
