# SPDX-License-Identifier: Apache-2.0
"""Import of a table of jobs with a mapping."""

from __future__ import annotations

from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.workloads.calendar import zone
from rebat.workloads.columns import Floats, TraceColumns
from rebat.workloads.recorded import ImportedWorkload
from rebat.workloads.swf import EARLIEST_EPOCH_S
from rebat.workloads.tables.cells import (
    Cells,
    Lengths,
    Place,
    TimeReader,
    Timestamps,
    numbers,
    spans_s,
    texts,
)
from rebat.workloads.tables.mapping import (
    MEGABYTES,
    CountColumn,
    MemoryColumn,
    SpanColumn,
    TableMapping,
    TextColumn,
    TimeColumn,
)
from rebat.workloads.tables.mapping_file import AUTO, detected_mapping, open_mapping
from rebat.workloads.tables.sources import RowBatch, batches, header_of
from rebat.workloads.trace import placed, trace_options
from rebat.workloads.trace_schedule import trace_schedule

REFUSED = frozenset("(),|}!")
"""Characters that Batsim rejects in ids."""


def read_table(path: Path, *, mapping: str | Path = AUTO, **options: Any) -> Workload:
    """Read a table of jobs: CSV or JSON, plain or .gz, or Parquet.

    Parameters
    ----------
    path : Path
        The file.
    mapping : str or Path
        Name of an included mapping, or a TOML file. ``"auto"`` uses the included mapping that fits
        the header of the table.
    **options
        See `rebat.workloads.trace.TraceOptions`. ``tz`` is the time zone of dates without a zone. A
        zone in the mapping takes precedence.

    Returns
    -------
    Workload
        Jobs in order of submission, with notes on dropped and changed jobs.

    Raises
    ------
    InputError
        If the mapping or the table is invalid. The error names the file and the line. For Parquet
        and JSON, it names the number of the job instead.
    """
    return import_table(path, mapping=mapping, **options).workload


def import_table(
    path: Path, schedule: bool = False, *, mapping: str | Path = AUTO, **options: Any
) -> ImportedWorkload:
    """Read a table as in `read_table`. With ``schedule``, also return the recorded schedule.

    rebat assigns the node numbers of the recorded schedule. All attempts are assumed to be
    completed.
    """
    chosen = trace_options(options)
    path = Path(path)
    rules = open_mapping(_detected(path) if str(mapping) == AUTO else mapping)
    builder = _TraceBuilder(path, rules, chosen.tz)
    for batch in batches(path, rules):
        builder.add(batch)
    trace = builder.trace()
    done = placed(trace, chosen)
    return ImportedWorkload(done.workload, trace_schedule(trace, done) if schedule else None)


def _detected(path: Path) -> str:
    try:
        name = detected_mapping(header_of(path))
    except InputError as error:
        raise (error if error.where else error.at(str(path))) from None
    if name is None:
        raise InputError("no mapping fits the columns", str(path), "--mapping NAME or FILE.toml")
    return name


class _TraceBuilder:
    """The columns of jobs, which are filled batch by batch."""

    def __init__(self, path: Path, mapping: TableMapping, tz: str) -> None:
        self.path, self.mapping = path, mapping
        self._fields = dict(mapping.columns.items())
        self._readers = {
            field: TimeReader(column, zone(column.zone or tz))
            for field, column in self._fields.items()
            if isinstance(column, TimeColumn)
        }
        self._parts: dict[str, list[Any]] = {field: [] for field in self._fields}
        self._lines: list[Any] = []
        self._shared: dict[str, str] = {}
        self._n_rows = 0

    def add(self, batch: RowBatch) -> None:
        """Convert the cells of a batch and add them."""
        self._n_rows += len(batch.lines)
        if batch.lines:
            batch = _selected(batch, self.mapping, str(self.path))
        if not batch.lines:
            return
        place = Place(str(self.path), batch.lines)
        self._lines.append(np.array(batch.lines, dtype=np.int64))
        for field, column in self._fields.items():
            if column.column in batch.columns:
                values = self._converted(field, column, batch.columns[column.column], place)
                self._parts[field].append(values)

    def _converted(self, field: str, column: TextColumn, cells: Cells, place: Place) -> Any:
        if field in self._readers:
            return self._readers[field].seconds(cells, place)
        if isinstance(column, SpanColumn):
            return spans_s(cells, column, place)
        if isinstance(column, CountColumn):
            values = numbers(cells, column, place)
            return values if column.per_node == 1 else np.ceil(values / column.per_node)
        if isinstance(column, MemoryColumn):
            return numbers(cells, column, place) * MEGABYTES[column.unit]
        plain = texts(cells, column, place)
        if field == "id":
            _check_ids(plain, column.column, place)
            return np.array(plain, dtype=object)
        return np.array([self._shared.setdefault(t, t) for t in plain], dtype=object)

    def trace(self) -> TraceColumns:
        """Return the jobs of all batches.

        Raises
        ------
        InputError
            If there are no rows.
        """
        if not self._lines:
            problem = "has no row with the values of 'where'" if self._n_rows else "has no rows"
            raise InputError(problem, str(self.path), "a row per job")
        lines = np.concatenate(self._lines)
        self._lines.clear()
        submit_s, start_s, run_s = self._times(len(lines))
        requested, allocated = self._sizes(len(lines))
        machine = self.mapping.machine
        trace = TraceColumns(
            name=_name(self.path),
            where=str(self.path),
            n_nodes=machine.nodes,
            dated=self._dated(submit_s),
            lines=lines,
            ids=self._ids(lines),
            submit_s=submit_s,
            start_s=start_s,
            requested=requested,
            allocated=allocated,
            run_s=np.where(run_s < 0, np.nan, run_s) if self._has_interval else run_s,
            walltime_s=self._floats("walltime", len(lines)),
            why_not=np.zeros(len(lines), dtype=np.int64),
            users=self._texts("user", len(lines)),
            queues=self._texts("queue", len(lines)),
            extras=self._extras(len(lines)),
            machine=None
            if machine.cores_per_node is None
            else {"cores_per_node": machine.cores_per_node},
        )
        return self._noted(self._marked(trace, run_s))

    @property
    def _has_interval(self) -> bool:
        """Whether the table has no run times, so that they are computed from two times."""
        return "run" not in self._fields

    def _times(self, count: int) -> tuple[Floats, Floats, Floats]:
        """Return submission times, start times and run times in seconds. Unknown times are NaN."""
        submit_s, start_s = self._floats("submit", count), self._floats("start", count)
        start_s = np.where(np.isnan(start_s), submit_s + self._floats("wait", count), start_s)
        end_s = self._floats("end", count)
        run_s = end_s - start_s if self._has_interval else self._floats("run", count)
        start_s = np.where(np.isnan(start_s), end_s - run_s, start_s)
        return submit_s, start_s, run_s

    def _sizes(self, count: int) -> tuple[Floats, Floats]:
        """Return requested and allocated nodes. Unknown numbers are 0.

        If the table has only one of the two columns, it is used for both.
        """
        columns = [
            np.nan_to_num(self._floats(field, count), nan=0.0)
            for field in ("requested", "allocated")
            if field in self._fields
        ]
        return columns[0], columns[-1]

    def _dated(self, submit_s: Floats) -> bool:
        last_s = np.nanmax(submit_s) if np.isfinite(submit_s).any() else 0.0
        return self._readers["submit"].column.unit == "date" or last_s >= EARLIEST_EPOCH_S

    def _floats(self, field: str, count: int) -> Floats:
        parts = self._parts.get(field)
        return np.concatenate(parts).astype(np.float64) if parts else np.full(count, np.nan)

    def _texts(self, field: str, count: int) -> Any:
        parts = self._parts.get(field)
        return np.concatenate(parts) if parts else np.full(count, "", dtype=object)

    def _ids(self, lines: Any) -> Any:
        """Return the ids of jobs. If there is no column of ids, return numbers from 1."""
        if self._parts.get("id"):
            return self._texts("id", len(lines))
        return np.array([str(number) for number in range(1, len(lines) + 1)], dtype=object)

    def _extras(self, count: int) -> Any:
        """Return account, QOS and memory of each job. Jobs with equal values share a dict."""
        fields = [field for field in ("account", "qos", "memory") if self._parts.get(field)]
        if not fields:
            return None
        names = ["requested_memory_mb" if field == "memory" else field for field in fields]
        columns = [
            np.nan_to_num(self._floats(field, count), nan=-1.0).tolist()
            if field == "memory"
            else self._texts(field, count).tolist()
            for field in fields
        ]
        shared: dict[tuple[Any, ...], dict[str, Any]] = {}
        extras = np.empty(count, dtype=object)
        for position, values in enumerate(zip(*columns, strict=True)):
            if values not in shared:
                pairs = zip(names, values, strict=True)
                shared[values] = {name: value for name, value in pairs if value not in ("", -1.0)}
            extras[position] = shared[values]
        return extras

    def _marked(self, trace: TraceColumns, run_s: Floats) -> TraceColumns:
        """Mark the rows that are not jobs, with the reason."""
        trace = trace.marking(np.isnan(trace.submit_s), "no submission time")
        rules = self.mapping.columns.state
        if rules is not None and self._parts["state"]:
            states = self._texts("state", len(trace))
            for names, reason in ((rules.never_ran, "never ran"), (rules.running, "no end")):
                for state in names:
                    trace = trace.marking(states == state, f"{reason} ({state})")
        if self._has_interval:
            trace = trace.marking(run_s < 0, "end before start")
        return trace

    def _noted(self, trace: TraceColumns) -> TraceColumns:
        if len(trace) < self._n_rows:
            trace = trace.noting(f"{len(trace)} of {self._n_rows} rows have the values of 'where'")
        if repeated := sum(reader.repeated for reader in self._readers.values()):
            trace = trace.noting(
                f"{repeated} local times are in the hour that clocks repeat in autumn: the first "
                "of the two hours is used"
            )
        return trace


def _selected(batch: RowBatch, mapping: TableMapping, where: str) -> RowBatch:
    """Return the rows that have the values required by ``mapping.where``."""
    mask = np.ones(len(batch.lines), dtype=np.bool_)
    place = Place(where, batch.lines)
    for name, wanted in mapping.where.items():
        values = (wanted,) if isinstance(wanted, str) else wanted
        mask &= np.isin(texts(batch.columns[name], TextColumn(column=name), place), values)
    if mask.all():
        return batch
    taken = {name: _taken(cells, mask) for name, cells in batch.columns.items()}
    return RowBatch(list(compress(batch.lines, mask)), taken)


def _taken(cells: Cells, mask: Any) -> Cells:
    if isinstance(cells, list):
        return list(compress(cells, mask))
    if isinstance(cells, Timestamps):
        return Timestamps(cells.seconds[mask], cells.zoned)
    return Lengths(cells.seconds[mask]) if isinstance(cells, Lengths) else cells[mask]


def _check_ids(ids: list[str], column: str, place: Place) -> None:
    for position, job in enumerate(ids):
        if not job or not job.isprintable() or REFUSED.intersection(job):
            expected = f"a name without the characters {' '.join(sorted(REFUSED))}"
            raise place.error(column, position, job, expected)


def _name(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] or name
