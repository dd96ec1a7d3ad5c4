# SPDX-License-Identifier: Apache-2.0
"""Workloads for Python and notebooks, with jobs as a table, and the names of their nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebat.core.errors import InputError
from rebat.core.files import located
from rebat.core.jobs import Workload, duration_us
from rebat.core.numbers import counted, duration, percent
from rebat.core.units import to_s
from rebat.runs.unit import Source
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.load import READERS, workload_hash
from rebat.workloads.load import load_workload as read_file

if TYPE_CHECKING:
    from pandas import DataFrame
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class LoadedWorkload(Workload, frozen=True):
    """A workload with the source from which it was loaded.

    Attributes
    ----------
    origin : Source
        The file and the options of its import.
    sha256 : str
        Hash of the file.
    """

    origin: Source = Source()
    sha256: str = ""

    @property
    def frame(self) -> DataFrame:
        """A row per job: id, size in nodes, submission, run time and walltime in seconds.

        A missing walltime is NaN, and so is the run time of a job that needs Batsim's network
        model. Additional fields of the jobs are further columns.
        """
        import pandas as pd

        lengths = {name: _length_s(self, name) for name in {job.profile for job in self.jobs}}
        return pd.DataFrame(
            {
                "job_id": job.id,
                "size": job.n_nodes,
                "submission_time": to_s(job.submit_us),
                "run_time": lengths[job.profile],
                "walltime": None if job.walltime_us is None else to_s(job.walltime_us),
                **job.extra,
            }
            for job in self.jobs
        )

    def __repr__(self) -> str:
        from rebat.workloads.describe import describe

        facts = describe(self)
        stress = "" if facts["stress"] is None else f", stress {percent(facts['stress'])}"
        return (
            f"<workload {self.name}: {counted(len(self.jobs), 'job')} for "
            f"{counted(self.n_nodes, 'node')}, "
            f"submitted over {duration(facts['span_s'])}{stress}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.frame.head(5).to_html()}"


def load_workload(file: str | Path | DataFrame, **options: Any) -> LoadedWorkload:
    """Read a workload or a trace from a file or a table, or one that rebat includes.

    Parameters
    ----------
    file : str, Path or DataFrame
        A Batsim workload (``.json``) or a trace (``.swf``, ALCF's ``.csv``), plain or ``.gz``; a
        table of jobs (``.parquet``, or any file with ``mapping``); a workload included in rebat
        (``mira-like-june-2017``, ``synthetic-small``, ``toy``); or a DataFrame with a row per job
        and the columns of ``LoadedWorkload.frame``. For a DataFrame, the only options are
        ``n_nodes`` (the number of nodes of the machine) and ``name``.
    **options
        Import options of a trace, as in ``rebat workload import``: ``mapping`` (for a table:
        ``"f-data"``, or a TOML file), ``months`` (``"2018-11"``, or several), ``cap`` (maximum
        size, to which larger jobs are reduced), ``n_nodes``, ``max_jobs``, ``first_s`` and
        ``last_s`` (seconds from time 0), ``overrun``, ``missing_walltime``, ``origin``, ``by``,
        ``size``, ``tz``.

    Returns
    -------
    LoadedWorkload
        The workload. Its ``frame`` contains the jobs as a pandas DataFrame.

    Raises
    ------
    InputError
        If the file cannot be read. The error names the line or job.

    Examples
    --------
    >>> load_workload("toy")
    <workload toy: 5 jobs for 8 nodes, submitted over 0 s>
    """
    if not isinstance(file, str | Path):
        return _of_table(file, options)
    path = located(Path(file), "workloads", *READERS)
    loaded = read_file(path, **options)
    origin = Source(file=str(path.resolve()), options=options)
    return LoadedWorkload(**_fields(loaded), origin=origin, sha256=workload_hash(path))


def _of_table(table: Any, options: dict[str, Any]) -> LoadedWorkload:
    import pandas as pd

    from rebat.api.frames import workload_of_table

    if not isinstance(table, pd.DataFrame):
        expected = "a file, a name, or a DataFrame of jobs"
        raise InputError(f"is a {type(table).__name__}", "workload", expected)
    if unknown := sorted(options.keys() - {"n_nodes", "name"}):
        problem = "unknown option for a workload given as a DataFrame"
        raise InputError(problem, unknown[0], "n_nodes or name")
    if "n_nodes" not in options:
        raise InputError("is missing", "n_nodes", "the number of nodes of the machine")
    return LoadedWorkload(**_fields(workload_of_table(table, **options)))


def as_file(workload: Workload, folder: Path) -> LoadedWorkload:
    """Return the workload with a file that worker processes can read.

    If the workload has no file, or differs from its file, it is written to ``folder``.
    """
    if isinstance(workload, LoadedWorkload):
        again = _read_again(workload)
        if again is not None and _fields(again) == _fields(workload):
            return again
    path = folder / f"{_plain(workload.name)}.json"
    write_workload(workload, path)
    return load_workload(path)


def _read_again(workload: LoadedWorkload) -> LoadedWorkload | None:
    """Read the file of the workload again. Return None if it has no file."""
    try:
        return load_workload(workload.origin.file or "", **workload.origin.options)
    except InputError:
        return None


def _fields(workload: Workload) -> dict[str, Any]:
    return {name: getattr(workload, name) for name in Workload.__struct_fields__}


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name) or "workload"


def _length_s(workload: Workload, profile: str) -> float | None:
    try:
        return to_s(duration_us(workload.profiles, profile))
    except InputError:
        return None


_NODE = re.compile(r"\b[Nn]ode (\d+)\b(?! \()")


def with_names(text: str, names: Sequence[str]) -> str:
    """Add the name of a node after each node number in a text.

    >>> with_names("node 2 is down", ("n1", "n2", "n7"))
    'node 2 (n7) is down'
    """

    def named(match: re.Match[str]) -> str:
        node = int(match[1])
        return f"{match[0]} ({names[node]})" if node < len(names) else match[0]

    return _NODE.sub(named, text)


@contextmanager
def errors_name_nodes(names: Sequence[str]) -> Iterator[None]:
    """Add the names of nodes to errors that are raised in the block."""
    try:
        yield
    except InputError as error:
        problem = with_names(error.problem, names)
        raise InputError(problem, error.where, error.expected) from None
