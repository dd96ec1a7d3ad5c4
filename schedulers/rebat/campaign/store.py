"""The results folder of a campaign.

``runs/KEY.json`` holds one run each and is there whole or not at all; ``results.parquet`` and
``campaign.json`` are made of them; ``folders/KEY/`` holds a run's files where they were asked for;
``timings.csv`` is a log. All but the log are the same bytes whenever the results are the same.
A folder belongs to one campaign, which ``campaign.json`` names. Only what a campaign made is ever
removed: results whose key is the hash of what they say they are, and the files that a run writes.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from rebat.campaign.keys import Run, canonical
from rebat.campaign.single import RUN_FILES
from rebat.campaign.spec import RunSpec
from rebat.core.errors import InputError
from rebat.core.files import atomic_path, write_text
from rebat.models.failures.laws import name_of
from rebat.report.scenario import Scenario, exact

TABLE = "results.parquet"
OVERVIEW = "campaign.json"


_KEY = re.compile("[0-9a-f]{64}")
_LEFT_OVER = re.compile(
    rf"\.(?:{_KEY.pattern}\.json|{'|'.join(map(re.escape, (*RUN_FILES, TABLE, OVERVIEW)))})\.\w+"
)
"""Temporary names of files that are written here, see `core.files.atomic_path`."""


class Owner(msgspec.Struct, frozen=True):
    """The campaign to which a folder belongs: its name, and its file's without the folder."""

    name: str
    file: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a result file says: the metrics of a run, or why it failed."""

    key: str
    status: Literal["ok", "failed"]
    identity: dict[str, Any]
    error: str | None = None
    metrics: dict[str, Any] | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign is, in distinct runs; ``stale`` results belong to no run of it."""

    total: int
    ok: int
    failed: int
    missing: int
    stale: int


class Store:
    """The results in a folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def run_path(self, key: str) -> Path:
        """The file of a run's result."""
        return self.folder / "runs" / f"{key}.json"

    def run_folder(self, key: str) -> Path:
        """The folder of a run's own files."""
        return self.folder / "folders" / key

    def write(self, result: Result) -> None:
        """Write a result in one piece."""
        text = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
        write_text(self.run_path(result.key), text + "\n")

    def read(self, key: str) -> Result | None:
        """A run's result; None where there is none, or no whole one."""
        try:
            result = msgspec.json.decode(self.run_path(key).read_bytes(), type=Result)
        except (OSError, msgspec.DecodeError):
            return None
        return result if result.key == key else None

    def has_folder(self, key: str) -> bool:
        """Whether a run's own files are all there (summary.json is the last to be written)."""
        return (self.run_folder(key) / "summary.json").exists()

    def log_time(self, key: str, seconds: float) -> None:
        """Append how long a run took to the log."""
        with (self.folder / "timings.csv").open("a") as log:
            log.write(f"{key},{seconds:.3f}\n")

    def stale(self, runs: Sequence[Run]) -> list[str]:
        """Keys of results that belong to none of these runs, but to some campaign's."""
        known = {run.key for run in runs}
        found = {path.stem for path in (self.folder / "runs").glob("[!.]*.json")}
        found |= {path.name for path in (self.folder / "folders").glob("[!.]*")}
        return sorted(key for key in found - known if self._is_ours(key))

    def _is_ours(self, key: str) -> bool:
        """Whether a campaign made the result or the folder of that name."""
        result = self.read(key)
        if result is not None:
            return hashlib.sha256(canonical(result.identity).encode()).hexdigest() == key
        files = [self.run_folder(key) / name for name in RUN_FILES]
        return bool(_KEY.fullmatch(key)) and any(file.is_file() for file in files)

    def status(self, runs: Sequence[Run]) -> Status:
        """Count what is there."""
        keys = list(dict.fromkeys(run.key for run in runs))
        states = [result.status if (result := self.read(key)) else None for key in keys]
        return Status(
            total=len(keys),
            ok=states.count("ok"),
            failed=states.count("failed"),
            missing=states.count(None),
            stale=len(self.stale(runs)),
        )

    def clean(self, runs: Sequence[Run]) -> int:
        """Remove the results that belong to none of these runs, and left-overs; how many."""
        stale = self.stale(runs)
        for key in stale:
            self.run_path(key).unlink(missing_ok=True)
            for name in RUN_FILES:
                (self.run_folder(key) / name).unlink(missing_ok=True)
            with suppress(OSError):  # what others put there stays
                self.run_folder(key).rmdir()
        self.sweep()
        return len(stale)

    def sweep(self) -> None:
        """Remove what killed writers left under temporary names."""
        for pattern in (".*", "runs/.*", "folders/*/.*"):
            for path in self.folder.glob(pattern):
                if _LEFT_OVER.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    @contextmanager
    def locked(self, owner: Owner) -> Iterator[None]:
        """Keep other campaigns out of the folder; a killed one holds no lock.

        Raises
        ------
        InputError
            When another campaign runs here or ran here, or the folder cannot be made.
        """
        try:
            (self.folder / "runs").mkdir(parents=True, exist_ok=True)
            handle = (self.folder / ".lock").open("w")
        except OSError as error:
            raise InputError(f"cannot write there: {error.strerror}", str(self.folder)) from None
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError("another campaign is running there", str(self.folder)) from None
            self.check_owner(owner)
            if not (self.folder / OVERVIEW).exists():
                self.write_overview(owner, {})
            yield

    def check_owner(self, owner: Owner) -> None:
        """Refuse a folder with the results of another campaign.

        Raises
        ------
        InputError
            With whose they are.
        """
        try:
            found = msgspec.json.decode((self.folder / OVERVIEW).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            return
        if found != owner:
            raise InputError(
                f"holds the results of campaign {found.name!r} of {found.file}, not of "
                f"{owner.name!r} of {owner.file}",
                str(self.folder),
                f"another name in the file, or --results; a renamed file's name in {OVERVIEW}",
            )

    def write_overview(self, owner: Owner, facts: dict[str, Any]) -> None:
        """Write campaign.json: whose results these are, and what there is to say of them."""
        overview = msgspec.structs.asdict(owner) | facts
        text = msgspec.json.format(msgspec.json.encode(overview), indent=1).decode()
        write_text(self.folder / OVERVIEW, text + "\n")

    def write_tables(self, owner: Owner, runs: Sequence[Run]) -> None:
        """Write results.parquet and campaign.json from the results that are there."""
        results = {key: self.read(key) for key in dict.fromkeys(run.key for run in runs)}
        self.write_overview(owner, _overview(runs, results))
        self._write_parquet(_columns(runs, results))

    def _write_parquet(self, columns: dict[str, list[Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        kinds = dict.fromkeys(_NUMBERS, pa.float64()) | dict.fromkeys(("seed", "nodes"), pa.int64())
        schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
        with atomic_path(self.folder / TABLE) as temporary:
            pq.write_table(pa.table(columns, schema=schema), temporary, compression="zstd")


_LABELS = ("grid", "workload", "policy", *Scenario._fields, "seed")
_NUMBERS = ("mtbf_s", "downtime_s", "horizon_s", "value")


def scenario_of(spec: RunSpec) -> Scenario:
    """What a run's numbers are about, workload and policy apart."""
    drawn = spec.failures
    return Scenario(
        failure_model=name_of(drawn.law) if drawn else None,
        mtbf_s=drawn.mtbf_s if drawn else None,
        downtime_s=drawn.downtime_s if drawn else None,
        law=_law_text(spec),
        horizon_s=drawn.horizon_s if drawn else None,
        checkpoint=_checkpoint_text(spec),
        nodes=spec.nodes,
        window=spec.window,
        select=spec.select,
    )


def _law_text(spec: RunSpec) -> str | None:
    """The law's other parameters; files as the campaign names them."""
    text = spec.failures.law.label() if spec.failures else None
    return text and text.replace(f"{spec.folder}/", "")


def _checkpoint_text(spec: RunSpec) -> str | None:
    """How jobs checkpoint; the MTBF of the period only where it is not the failures'."""
    model = spec.checkpoint
    if model is None:
        return None
    costs = f"cost {exact(model.cost_s)}, recovery {exact(model.recovery_s)}"
    text = f"Young/Daly ({costs}, {model.rounding}"
    follows = spec.failures is not None and spec.failures.mtbf_s == model.mtbf_s
    return text + (")" if follows else f", for an MTBF of {exact(model.mtbf_s)})")


def labels(spec: RunSpec) -> dict[str, Any]:
    """The columns that say which run a row of the table is about."""
    named = {"grid": spec.grid, "workload": spec.workload, "policy": spec.policy}
    seed = spec.failures.seed if spec.failures else None
    return named | scenario_of(spec)._asdict() | {"seed": seed}


def which(spec: RunSpec) -> str:
    """The same for people."""
    seed = f", seed {spec.failures.seed}" if spec.failures else ""
    return f"{spec.grid}, {spec.workload}, {spec.policy}, {scenario_of(spec).label}{seed}"


def flat_metrics(metrics: dict[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """(metric, size class, value) of a summary; metrics of the whole run have no size class.

    >>> list(flat_metrics({"jobs": 3, "flows": {"all": {"max_s": 2.0}}, "window_s": [0, 9]}))
    [('jobs', None, 3.0), ('flow_max_s', 'all', 2.0), ('window_first_s', None, 0.0), \
('window_last_s', None, 9.0)]
    """
    for name, value in metrics.items():
        if name == "flows":
            for size_class, flow in value.items():
                yield from ((f"flow_{n}", size_class, float(v)) for n, v in (flow or {}).items())
        elif name == "window_s":
            yield "window_first_s", None, float(value[0])
            yield "window_last_s", None, float(value[1])
        elif isinstance(value, dict):
            for inner, size_class, number in flat_metrics(value):
                yield f"{name}_{inner}", size_class, number
        elif isinstance(value, int | float):
            yield name, None, float(value)


def _columns(runs: Sequence[Run], results: dict[str, Result | None]) -> dict[str, list[Any]]:
    names = (*_LABELS, "metric", "size_class", "value", "key")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for run in runs:
        result = results[run.key]
        for metric, size_class, value in flat_metrics((result and result.metrics) or {}):
            row = labels(run.spec)
            row |= {"metric": metric, "size_class": size_class, "value": value, "key": run.key}
            for name, cells in columns.items():
                cells.append(row[name])
    return columns


def _overview(runs: Sequence[Run], results: dict[str, Result | None]) -> dict[str, Any]:
    found = [result for result in results.values() if result is not None]
    failures = [
        {**labels(run.spec), "key": run.key, "error": result.error}
        for run in runs
        if (result := results[run.key]) is not None and result.status == "failed"
    ]
    return {
        "runs": len(results),
        "ok": sum(result.status == "ok" for result in found),
        "failed": sum(result.status == "failed" for result in found),
        "grids": list(dict.fromkeys(run.spec.grid for run in runs)),
        "failures": failures,
    }
