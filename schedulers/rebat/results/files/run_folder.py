# SPDX-License-Identifier: Apache-2.0
"""Reader of the result folders of runs: summary, timeline, record of plans, and source."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.files import read_text, write_bytes
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.numbers import counted, node_h, share
from rebat.drive.plan_record import PLAN_COLUMNS, ROW_COLUMNS, PlanRecord
from rebat.results.files.run_csv import HOLD_COLUMNS
from rebat.results.files.tables import Int, Rows, table_in
from rebat.results.measures.nodetime import NodeIntervals, repeats
from rebat.results.measures.summary import part_of_run
from rebat.results.measures.timeline import (
    CAUSES,
    Blocks,
    Pattern,
    Spans,
    Timeline,
    blocks_of,
    outages_of,
    spans_of,
)

RECORDED = "recorded"
"""Policy name of a recorded run, and the key of its source in summary.json."""

OVERVIEW = "campaign.json"
"""Name of the file that describes the results folder of a campaign."""


class RecordSource(msgspec.Struct, frozen=True):
    """The source of a recorded run, and how the run differs from a simulated run.

    Attributes
    ----------
    format : str
        Format of the accounting record. Empty for a simulated run.
    file, sha256 : str
        Name and hash of the accounting record.
    events : dict, optional
        Name and hash of the file of node events.
    attempts : int
        Number of attempts.
    shared_attempts : int
        Number of attempts that share nodes with other attempts.
    assigned_nodes : bool
        Whether rebat chose the nodes of attempts because the record contains no node names.
    notes : tuple of str
        Sentences about the conversion of the record to attempts.
    """

    format: str = ""
    file: str = ""
    sha256: str = ""
    events: dict[str, str] | None = None
    attempts: int = 0
    shared_attempts: int = 0
    assigned_nodes: bool = False
    notes: tuple[str, ...] = ()


SIMULATED = RecordSource()


def source_of(summary: dict[str, Any]) -> RecordSource:
    """Return the source in the content of summary.json, or `SIMULATED` if there is none."""
    return msgspec.convert(summary.get(RECORDED, {}), RecordSource)


def read_source(folder: Path) -> RecordSource:
    """Return the source of the run in a folder, or `SIMULATED` if there is no readable summary."""
    try:
        return source_of(_readable_summary(folder))
    except msgspec.ValidationError:
        return SIMULATED


def machine_of(folder: Path) -> dict[str, Any]:
    """Return what a run recorded of its workload and machine (see `workloads.machine`)."""
    workload = _readable_summary(folder).get("workload")
    return workload if isinstance(workload, dict) else {}


def verdict_of(folder: Path, failures: int) -> str:
    """Return a sentence on the most important metrics of a run, or an empty text.

    ``failures`` is the number of failures of nodes in the entire run. The other metrics may refer
    to a part of it: the sentence states this part.
    """
    metrics = _readable_summary(folder).get("metrics")
    try:
        platform, all_jobs = metrics["platform"], metrics["jobs"]  # type: ignore[index]
        used, lost_h = platform["useful"] / platform["total"], platform["waste_failure"] / 3600
        part = part_of_run(metrics["window_s"], metrics["makespan_s"])  # type: ignore[index]
        return (
            f"{counted(all_jobs, 'job')}, {counted(failures, 'failure')} of nodes; "
            f"{part}{share(used)} of the node time is useful work, and failures destroyed "
            f"{node_h(lost_h)} of work"
        )
    except (TypeError, KeyError, ValueError, ZeroDivisionError):
        return ""


def node_list_of(folder: Path) -> str:
    """Return the node names of the run in ``folder`` in compact form, like ``node[1-4]``.

    If the nodes have no names, return an empty string.
    """
    names = machine_of(folder).get("nodes")
    return names if isinstance(names, str) else ""


def _readable_summary(folder: Path) -> dict[str, Any]:
    """Return the content of summary.json, or an empty dict if the file cannot be read."""
    try:
        summary = msgspec.json.decode((folder / "summary.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return summary if isinstance(summary, dict) else {}


OnRows = Callable[[int, int], None]
"""Progress callback that receives the number of rows read and the number of all rows."""

ATTEMPTS, EVENTS, SUMMARY = "rebat_attempts", "node_events.csv", "summary.json"
HOLDS = "rebat_holds.csv"
"""The file of held nodes. It exists only if a run held nodes for jobs."""
REQUIRED = (
    "job_id",
    "attempt",
    "submission_time",
    "queued_time",
    "start_time",
    "finish_time",
    "cause",
    "why",
    "kept_seconds",
    "lost_later_seconds",
    "nodes",
)
CHECKPOINTS = ("recovery_seconds", "first_period_seconds", "period_seconds", "checkpoint_seconds")
"""Columns that older versions of rebat did not write."""


def run_folders(out: Path, wanted: Sequence[str] = (), most: int = 2) -> list[Path]:
    """Return the folders of the wanted policies, or of the first ``most`` policies.

    ``out`` is a folder written by ``rebat run``, or the folder of one of its policies.
    """
    if not out.is_dir():
        raise InputError("is not a folder", str(out), "a folder written by rebat run --out")
    if (out / SUMMARY).is_file():
        folders = {policy_of(out): out}
    else:
        places = sorted(path.parent for path in out.glob(f"*/{SUMMARY}"))
        by_policy = {policy_of(place): place for place in places}
        folders = {name: by_policy[name] for name in in_order(out, by_policy)}
    if not folders and (out / "seeds.csv").is_file():
        problem = "contains no single runs, because the run used several seeds"
        raise InputError(problem, str(out), "a run of one seed, without --seeds")
    if not folders:
        problem = f"contains no {SUMMARY}"
        raise InputError(problem, str(out), "a folder written by rebat run --out")
    for name in wanted:
        if name not in folders:
            raise unknown_name("policy", name, folders).at(str(out))
    return [folders[name] for name in dict.fromkeys(wanted)] or list(folders.values())[:most]


def in_order(out: Path, policies: Iterable[str]) -> list[str]:
    """Sort policies as in comparison.csv, which lists them in the order of the command line."""
    try:
        names = Rows(out / "comparison.csv", ("policy",)).names("policy")
    except InputError:
        names = []  # Without this file, the order of the policies is unknown.
    rank = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return sorted(policies, key=lambda name: (rank.get(name, len(rank)), name))


def policy_of(folder: Path) -> str:
    """Return the policy of a run from its summary."""
    return str(_summary(folder)["policy"])


def n_nodes_of(folder: Path) -> int:
    """Return the number of nodes of the machine of a run."""
    return int(_summary(folder)["metrics"]["n_nodes"])


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    try:
        summary = msgspec.json.decode(read_text(path), type=dict[str, Any])
        n_nodes = summary["metrics"]["n_nodes"]
        if not isinstance(n_nodes, int) or not 0 < n_nodes < MAX_NODES:
            raise InputError(f"metrics.n_nodes is {short(n_nodes)}", str(path), "a number of nodes")
        summary["policy"]
        source_of(summary)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        problem = f"has no key {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(problem, str(path), "the summary of a run") from None
    return summary


def read_timeline(folder: Path, on_rows: OnRows = lambda done, of: None) -> Timeline:
    """Read the timeline of a run."""
    summary = _summary(folder)
    n_nodes, path = int(summary["metrics"]["n_nodes"]), table_in(folder, ATTEMPTS)
    if not path.is_file():
        expected = "results of this version of rebat: run the simulation again"
        raise InputError(f"contains no {path.name}", str(folder), expected)
    rows = Rows(path, REQUIRED)
    start_us = rows.times("start_time", empty=-1)
    end_us = rows.times("finish_time", empty=-1)
    rows.refuse((start_us >= 0) & (end_us < 0), "has a start_time but no finish_time")
    rows.refuse((start_us >= 0) & (end_us < start_us), "finish_time is before start_time")
    blocks = _blocks(rows, n_nodes, on_rows)
    outages, failures = outages_of(
        read_node_events(folder / EVENTS, n_nodes), int(end_us.max(initial=0))
    )
    return Timeline(
        str(summary["policy"]),
        n_nodes,
        rows.names("job_id"),
        rows.counts("attempt"),
        rows.times("submission_time"),
        rows.times("queued_time"),
        start_us,
        end_us,
        _causes(rows),
        rows.names("why"),
        rows.times("kept_seconds"),
        rows.times("lost_later_seconds"),
        blocks,
        outages,
        failures,
        _pattern(rows),
        *_holds(folder / HOLDS, n_nodes, int(end_us.max(initial=0))),
        *_repeats(summary, start_us, end_us, blocks),
    )


def _repeats(
    summary: dict[str, Any], start_us: Int, end_us: Int, blocks: Blocks
) -> list[tuple[Int, Int]]:
    """Return the field ``repeats`` of a `Timeline`.

    The arrays are empty unless a recorded run has shared nodes.
    """
    if not source_of(summary).shared_attempts:
        return []
    return [repeats(NodeIntervals(start_us, end_us, blocks.of_each(len(start_us))))]


def _holds(path: Path, n_nodes: int, until_us: int) -> tuple[Spans, list[str]]:
    """Return held nodes and their jobs. Nodes without an end are held until ``until_us``."""
    if not path.is_file():
        none = np.empty(0, dtype=np.int64)
        return Spans(none, none, none, none), []
    rows = Rows(path, HOLD_COLUMNS)
    begin_us, end_us = rows.times("start_time"), rows.times("finish_time", empty=until_us)
    rows.refuse(end_us < begin_us, "finish_time is before start_time")
    blocks, names = _blocks(rows, n_nodes, lambda done, of: None), rows.texts("job_id")
    return spans_of(begin_us, end_us, blocks), [names[at] for at in blocks.owner]


def _blocks(rows: Rows, n_nodes: int, on_rows: OnRows) -> Blocks:
    sets, texts = [], rows.texts("nodes")
    for at, text in enumerate(texts):
        if at % 1000 == 0:
            on_rows(at, len(texts))
        try:
            nodes = NodeSet.parse(text)
        except InputError as error:
            raise error.at(rows.place(at)) from None
        if len(nodes) and nodes.intervals[-1, 1] >= n_nodes:
            problem = f"node {nodes.intervals[-1, 1]} is outside the machine"
            raise InputError(problem, rows.place(at), f"nodes below {n_nodes}")
        sets.append(nodes.intervals)
    return blocks_of(sets)


def _causes(rows: Rows) -> npt.NDArray[np.int64]:
    number = {str(cause): at for at, cause in enumerate(CAUSES)}
    causes = np.array([number.get(text, -1) for text in rows.texts("cause")], dtype=np.int64)
    rows.refuse(causes < 0, "unknown cause", f"one of: {', '.join(number)}")
    return causes


def _pattern(rows: Rows) -> Pattern:
    """Read the checkpoint times of attempts. Results of older versions do not contain them."""
    if not all(name in rows for name in CHECKPOINTS):
        none = np.full(len(rows), -1, dtype=np.int64)
        return Pattern(none + 1, none, none, none)
    recovery, *periods = CHECKPOINTS
    return Pattern(rows.times(recovery), *(rows.times(name, empty=-1) for name in periods))


def read_node_events(path: Path, n_nodes: int) -> NodeEvents:
    """Read the events of node_events.csv."""
    rows = Rows(path, ("time", "event", "nodes"))
    times_us, words = rows.times("time"), rows.texts("event")
    up = np.array([word == "rejuvenated" for word in words], dtype=np.bool_)
    failed = np.array([word == "failed" for word in words], dtype=np.bool_)
    rows.refuse(~(up | failed), "unknown event", "failed or rejuvenated")
    rows.refuse(
        np.diff(times_us, prepend=0) < 0, "is earlier than the previous event", "ascending times"
    )
    blocks = _blocks(rows, n_nodes, lambda done, of: None)
    sets = np.split(
        np.stack([blocks.first, blocks.last], axis=1),
        np.searchsorted(blocks.owner, np.arange(1, len(words))),
    )
    return NodeEvents(
        (int(at), bool(is_up), NodeSet(nodes))
        for at, is_up, nodes in zip(times_us, up, sets, strict=False)
    )


PLANS = "rebat_plans.npz"

_ROW_TYPES = (np.int32, np.int32, np.int8, np.int64)
"""Data types of the arrays ``row_*`` in the file."""


def write_plans(folder: Path, record: PlanRecord) -> None:
    """Write the record of plans to a folder."""
    buffer = io.BytesIO()
    columns: dict[str, Any] = {
        **{f"plan_{name}": record.plans[:, at] for at, name in enumerate(PLAN_COLUMNS)},
        **{
            f"row_{name}": record.rows[:, at].astype(kind)
            for at, (name, kind) in enumerate(zip(ROW_COLUMNS, _ROW_TYPES, strict=True))
        },
        "attempt_serials": record.serials,
        "attempt_ids": np.array(record.ids, dtype=np.str_),
        "texts": np.array(record.texts, dtype=np.str_),
    }
    np.savez(buffer, **columns)
    write_bytes(folder / PLANS, (buffer.getbuffer().tobytes(),))


def read_plans(folder: Path) -> PlanRecord:
    """Read the record of plans in the folder of a policy."""
    path = folder / PLANS
    if not path.is_file():
        expected = "a run that recorded its plans: run again with --explain"
        raise InputError(f"contains no {PLANS}", str(folder), expected)
    try:
        with np.load(path, allow_pickle=False) as file:
            return PlanRecord(
                np.stack([file[f"plan_{name}"] for name in PLAN_COLUMNS], axis=1),
                np.stack([file[f"row_{name}"] for name in ROW_COLUMNS], axis=1, dtype=np.int64),
                file["attempt_serials"],
                file["attempt_ids"].tolist(),
                file["texts"].tolist(),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"broken record of plans: {error}", str(path)) from None
