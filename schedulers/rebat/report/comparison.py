# SPDX-License-Identifier: Apache-2.0
"""Policies side by side: one table, values and ratios to the first policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.units import format_duration
from rebat.metrics.backlog import AtHand, comparable
from rebat.metrics.summary import RunSummary
from rebat.report.cluster_lines import cluster_rows


class Line(msgspec.Struct, frozen=True):
    """One metric of every policy; ``kind`` says how to print it: share, time, factor or count.

    ``of_window``: it is of the window's node time, see `metrics.backlog.comparable`.
    """

    metric: str
    kind: str
    values: dict[str, float | None]
    of_window: bool = False


def comparison(summaries: Mapping[str, RunSummary]) -> list[Line]:
    """The lines of the comparison, in the order in which people ask."""
    lines = [
        _line(summaries, "jobs rejected", "count", lambda s: s.rejected),
        _line(summaries, "jobs given up", "count", lambda s: s.given_up),
        _line(
            summaries,
            "useful utilisation, share of node time that was up",
            "share",
            lambda s: s.useful_utilisation,
        ),
        *(
            _line(summaries, f"{use}, share of node time", "share", lambda s, f=field: _share(s, f))
            for use, field in USES.items()
        ),
        *_at_hand(summaries),
        _line(summaries, "some node idle, share of time", "share", lambda s: s.platform.idle_share),
        *(
            _line(summaries, title, kind, lambda s, f=field: getattr(s.fragmentation, f))
            for title, (field, kind) in _BLOCKED.items()
        ),
        _line(summaries, "box waste (within idle), share of all node time", "share", _spare),
        _line(summaries, "failures under a job", "count", lambda s: s.failures_hit),
        _line(summaries, "  a node was free", "count", lambda s: s.free_node_at_hit),
        _line(summaries, "  steals decided", "count", lambda s: s.steals),
        _line(summaries, "  victims interrupted", "count", lambda s: s.victims),
        *(
            _line(summaries, title, "count", lambda s, f=field: getattr(s.resizes, f))
            for title, field in _RESIZES.items()
            if field != "requeued" or any(map(_replaces, summaries.values()))
        ),
        *(_line(summaries, *row) for row in cluster_rows(summaries)),
        *(
            _line(summaries, title, kind, lambda s, f=field: _service(s, f))
            for title, (field, kind) in _SERVICE.items()
        ),
        _line(summaries, "users alike (Jain's index)", "factor", _jain),
    ]
    groups = list(next(iter(summaries.values())).flows)
    for title, field in _FLOWS.items():
        for group in groups:
            line = _line(
                summaries,
                f"{title}, jobs {group}",
                "time",
                lambda s, g=group, f=field: _flow(s, g, f),
            )
            if any(value is not None for value in line.values.values()):
                lines.append(line)
    return [line for line in lines if any(line.values.values())]


USES = {
    "useful": "useful",
    "checkpoints": "checkpoint",
    "recovery": "recovery",
    "wasted by failures": "waste_failure",
    "wasted by stealing": "waste_stealing",
    "wasted by silent errors": "waste_silent",
    "wasted at walltimes": "waste_walltime",
    "wasted by moves": "waste_moving",
    "held": "held",
    "downtime": "downtime",
    "idle": "idle",
}
"""What node time goes into; the shares of these add up to 1."""
_FLOWS = {"max flow": "max_s", "mean flow": "mean_s", "weighted mean flow": "weighted_mean_s"}


_SERVICE = {
    "wait, median": ("wait_p50_s", "time"),
    "wait, 95 % of the jobs": ("wait_p95_s", "time"),
    "bounded slowdown, mean": ("bounded_slowdown_mean", "factor"),
    "bounded slowdown, 95 % of the jobs": ("bounded_slowdown_p95", "factor"),
}

_BLOCKED = {
    "head of the queue blocked, share of time": ("blocked_share", "share"),
    "  nodes free then, mean": ("blocked_free_nodes", "count"),
}


_RESIZES = {
    "  went on smaller": "by_local",
    "  on idle or spare nodes": "by_idle",
    "  on nodes of malleable jobs": "by_remote",
    "  on nodes of moldable jobs": "by_restart",
    "  waited in the queue": "requeued",
    "jobs started in another size": "molded",
    "malleable jobs grown": "grown",
    "malleable jobs shrunk": "shrunk",
    "malleable jobs shrunk to replace nodes": "lent",
    "moldable jobs started over for others": "restarted",
}


def _replaces(summary: RunSummary) -> bool:
    """Whether some dead node was replaced in its run."""
    r = summary.resizes
    return bool(r.by_local or r.by_idle or r.by_remote or r.by_restart)


def _line(summaries: Mapping[str, RunSummary], metric: str, kind: str, of: Any) -> Line:
    values = {name: of(summary) for name, summary in summaries.items()}
    return Line(metric, kind, values, ", share of node time" in metric)


def _share(summary: RunSummary, field: str) -> float:
    total = summary.platform.total
    value: float = getattr(summary.platform, field)
    return value / total if total else 0.0


def _spare(summary: RunSummary) -> float:
    total = summary.platform.total
    return summary.fragmentation.box_waste / total if total else 0.0


def _service(summary: RunSummary, field: str) -> float | None:
    return None if summary.service is None else float(getattr(summary.service, field))


def _jain(summary: RunSummary) -> float | None:
    return None if summary.fairness is None else summary.fairness.jain


def _flow(summary: RunSummary, group: str, field: str) -> float | None:
    flow = summary.flows.get(group)
    return None if flow is None else float(getattr(flow, field))


def _at_hand(summaries: Mapping[str, RunSummary]) -> list[Line]:
    """The work that there was to do, where the window is a part of the run."""
    if not any(s.backlog.begin or s.backlog.end for s in summaries.values()):
        return []
    return [
        _line(summaries, "work at hand, share of all node time", "share",
              lambda s: _at_hand_of(s).share),
        _line(summaries, "nothing waits, share of time", "share",
              lambda s: s.backlog.nothing_waits),
    ]  # fmt: skip


def ratio(line: Line, name: str, base: str) -> float | None:
    """A policy's value over the first policy's; None where there is none."""
    value, first = line.values[name], line.values[base]
    return value / first if value is not None and first else None


def comparable_with(summary: RunSummary, other: RunSummary) -> bool:
    """Whether shares of node time of two runs can be compared, see `metrics.backlog`."""
    return comparable(_at_hand_of(summary), _at_hand_of(other))


def _at_hand_of(summary: RunSummary) -> AtHand:
    work, total = summary.backlog, summary.platform.total or 1.0
    return AtHand((work.begin + work.submitted) / total, work.nothing_waits, total)


def text_of(kind: str, value: float | None) -> str:
    """A value for people."""
    if value is None:
        return "-"
    if kind == "share":
        return f"{value:.4%}" if 0 < value < 0.001 else f"{value:.2%}"
    if kind == "factor":
        return f"{value:.2f}"
    if kind == "time":
        return format_duration(value)
    return f"{value:g}" if value == int(value) else f"{value:.4g}"
