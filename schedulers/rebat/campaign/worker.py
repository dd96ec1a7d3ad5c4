"""What a worker does: simulate one run and write its result, or why there is none."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from rebat.campaign.keys import Run, canonical, content_hash, generated, scheduler_of
from rebat.campaign.single import RunResult, simulate, write_run
from rebat.campaign.spec import CheckpointModel, RunSpec, Source
from rebat.campaign.store import Result, Store
from rebat.core.errors import InputError, RebatError
from rebat.core.jobs import Workload
from rebat.metrics.summary import Measures, as_json, parse_selection, parse_window
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import MachineEvent
from rebat.policies.own import OwnPolicy
from rebat.policies.presets import Preset, identity
from rebat.workloads.load import load_workload


class Task(msgspec.Struct, frozen=True):
    """What a worker gets: a run, where its result goes, and whether to keep its files."""

    run: Run
    results: Path
    keep: bool


class Outcome(msgspec.Struct, frozen=True):
    """What a worker says of a run whose result it has written."""

    key: str
    error: str | None
    seconds: float


def perform(task: Task) -> Outcome:
    """Simulate one run and write its result, or why there is none; runs in a worker."""
    began = time.perf_counter()
    run, store = task.run, Store(task.results)
    try:
        result = simulate_run(run)
        if task.keep:
            write_run(store.run_folder(run.key), result, {"run": run.identity})
        done = Result(
            key=run.key, status="ok", identity=run.identity, metrics=as_json(result.summary)
        )
    except Exception as error:
        done = _failed(run, _line(error, run.spec))
    store.write(done)
    return Outcome(run.key, done.error, time.perf_counter() - began)


def lost(task: Task, reason: str) -> Outcome:
    """Record a run whose worker died."""
    Store(task.results).write(_failed(task.run, reason))
    return Outcome(task.run.key, reason, 0.0)


def simulate_run(run: Run) -> RunResult:
    """Run one point of the grid.

    Raises
    ------
    InputError
        For inputs that cannot be run, or whose content is another than when the campaign began.
    BatsimAbort
        For what a real Batsim would have died on.
    """
    spec, content = run.spec, run.content
    source = canonical(msgspec.to_builtins(spec.source))
    n_nodes = spec.nodes or _loaded(source, content).n_nodes
    return simulate(
        _prepared(source, content, n_nodes, spec.checkpoint),
        _scheduler(run),
        n_nodes=n_nodes,
        machine_events=_events(run, n_nodes),
        measures=Measures(parse_window(spec.window), parse_selection(spec.select)),
    )


def _events(run: Run, n_nodes: int) -> Iterable[MachineEvent]:
    asked = run.spec.failures
    if asked is None:
        return ()
    if not asked.law.identity().items() <= run.identity["failures"].items():
        raise InputError("changed while the campaign ran", asked.law.label())
    return asked.law.events(n_nodes, asked.seed, asked.horizon_s)


def _scheduler(run: Run) -> Preset | OwnPolicy:
    chosen = scheduler_of(run.spec)
    if msgspec.to_builtins(identity(chosen)) != run.identity["policy"]:
        raise InputError("changed while the campaign ran", run.spec.policy)
    return chosen


def workload_of(run: Run) -> Workload:
    """A run's workload as it came, without checkpoints."""
    return _loaded(canonical(msgspec.to_builtins(run.spec.source)), run.content)


@lru_cache(maxsize=8)
def _loaded(source: str, content: str) -> Workload:
    """A workload, read once per process; ``content`` is what it must hash to."""
    where = msgspec.json.decode(source, type=Source)
    if where.file is None:
        return generated(where)
    if content_hash(where) != content:
        raise InputError("changed while the campaign ran", Path(where.file).name)
    return load_workload(Path(where.file), **where.options)


@lru_cache(maxsize=16)
def _prepared(
    source: str, content: str, n_nodes: int, checkpoint: CheckpointModel | None
) -> Workload:
    """A workload with its checkpoints, made once per process."""
    workload = _loaded(source, content)
    if checkpoint is None:
        return workload
    return add_young_daly(
        workload,
        n_nodes=n_nodes,
        mtbf_s=checkpoint.mtbf_s,
        cost_s=checkpoint.cost_s,
        recovery_s=checkpoint.recovery_s,
        rounding=checkpoint.rounding,
    )


def _failed(run: Run, error: str) -> Result:
    return Result(key=run.key, status="failed", identity=run.identity, error=error)


def _line(error: Exception, spec: RunSpec) -> str:
    """An error in one line that is the same wherever the campaign runs."""
    text = str(error) if isinstance(error, RebatError) else f"{type(error).__name__}: {error}"
    if spec.source.file:
        text = text.replace(spec.source.file, Path(spec.source.file).name)
    text = text.replace(f"{spec.folder}/", "") if spec.folder else text
    return " ".join(text.split())
