# SPDX-License-Identifier: Apache-2.0
"""The story of a job in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rebat.core.attempts import Cause, split_attempt
from rebat.core.numbers import clock, node_hours, span
from rebat.results.explain.story import IN_ORDER, Moment, Story

Facts = dict[str, Any]


def verdict(story: Story) -> str:
    """Return the story in one sentence."""
    if story.waited_s is None:
        return f"Job {story.job} never started."
    waited = f"waited {span(story.waited_s)}" if story.waited_s else "started immediately"
    if not story.lost_node_s:
        return f"Job {story.job} {waited} and lost no work."
    lost = f"lost {span(story.lost_s)} x {_nodes(story.n_nodes)}"
    if story.lost_node_s != story.lost_s * story.n_nodes:
        lost = f"lost {node_hours(story.lost_node_s)}"
    return f"Job {story.job} {waited} and {lost} in {story.attempts} attempts."


def sentence(moment: Moment) -> str:
    """Return a moment as a sentence."""
    return f"{clock(moment.at_s)}  {SENTENCES[moment.kind](moment.facts, moment.attempt)}."


def lines(story: Story) -> list[str]:
    """Return the story as text: a summary in one sentence, then a line for each moment."""
    return [verdict(story), "", *map(sentence, story.moments)]


# ---- moments


def _moved(facts: Facts, attempt: int) -> str:
    before, now = facts["from_s"], facts["to_s"]
    close = clock(before) == clock(now) and before != now
    ends = f"from {clock(before, close)} to {clock(now, close)}"
    if "times" not in facts:
        way = "earlier" if now < before else "later"
        return f"Its reservation moves {way}, {ends}{_because(facts)}"
    times = f"{facts['times']} times until {clock(facts['last_s'])}"
    return f"Its reservation moves {times}, {ends}{_because(facts, first=True)}"


def _obstacle(facts: Facts, attempt: int) -> str:
    kind, free = facts["obstacle"], _nodes(facts["free"])
    is_are = "is" if facts["free"] == 1 else "are"
    texts = {
        "too few nodes": f"It waits: {free} {is_are} free, and it needs {facts['needed']}",
        "reserved": f"It waits although {free} {is_are} free, because it would run into "
        f"the reservation of job {facts.get('job')} at {clock(facts.get('job_start_s', 0))}",
        "no place": f"It waits although {free} {is_are} free, because they include no place for "
        f"{facts['needed']} nodes",
        IN_ORDER: f"It waits although {free} {is_are} free, because job {facts.get('job')} is "
        "ahead of it",
        "not started": f"It waits although {free} {is_are} free, because the policy does not "
        "start it",
    }
    text = texts[kind]
    if "times" in facts:
        others = ", then another" if kind == IN_ORDER else ""
        text += f"{others} ({facts['times']} times, the last at {clock(facts['last_s'])})"
    return text


def _started(facts: Facts, attempt: int) -> str:
    name = f"Attempt {attempt}" if attempt else "The job"
    waited = f"after {span(facts['waited_s'])}" if facts["waited_s"] else "immediately"
    planned = ", as planned" if facts["as_planned"] else ""
    return f"{name} starts on {_nodes(facts['nodes'])} {waited}{planned}"


def _ended(facts: Facts, attempt: int) -> str:
    if "ran_s" not in facts:
        return NEVER_RAN.get(facts["cause"], f"It does not start: {facts['cause']}")
    text = f"{ENDINGS.get(facts['cause'], facts['cause'])} after {span(facts['ran_s'])}"
    if "by" in facts:
        text += f", and job {facts['by']} takes its nodes"
    if "node" in facts:
        text = text.replace("A node fails", f"Node {facts['node']} fails and stops the job")
    if facts["lost_s"]:
        text += f"; it loses {span(facts['lost_s'])} x {_nodes(facts['nodes'])}"
    return text


SENTENCES: dict[str, Callable[[Facts, int], str]] = {
    "submitted": lambda facts, _: f"The job is submitted; it needs {_nodes(facts['nodes'])}",
    "released": lambda _, __: "Its dependency holds, or its array has a place: it enters the queue",
    "planned": lambda facts, _: (
        f"It gets a reservation for {clock(facts['to_s'])}{_because(facts)}"
    ),
    "moved": _moved,
    "unplanned": lambda facts, _: (
        f"It loses its reservation for {clock(facts['from_s'])}{_because(facts)}"
    ),
    "obstacle": _obstacle,
    "reason": lambda facts, _: f"The policy states: {facts['text'].rstrip('.')}",
    "started": _started,
    "ended": _ended,
}

ENDINGS = {
    str(Cause.COMPLETED): "It completes",
    str(Cause.JOB_FAILED): "It fails with an error",
    str(Cause.SILENT_ERROR): "A silent error ends it",
    str(Cause.WALLTIME): "It reaches its walltime",
    str(Cause.NODE_FAILURE): "A node fails",
    str(Cause.STOLEN): "It is stopped",
    str(Cause.MOVED): "It moves to other nodes",
    str(Cause.PREEMPTED): "It makes room for another job",
    str(Cause.HORIZON): "The simulation ends it",
    str(Cause.CANCELLED): "It is cancelled",
}

NEVER_RAN = {
    str(Cause.REJECTED): "It is rejected",
    str(Cause.MOLDED): "It starts on another number of nodes",
}


# ---- parts of sentences


def _because(facts: Facts, first: bool = False) -> str:
    """Return a clause with the causes. If ``first`` is set, append "and for similar causes"."""
    stopped = [cause["job"] for cause in facts["causes"] if cause["kind"] == "stop"]
    texts = [_cause(cause) for cause in facts["causes"] if not _follows(cause, stopped)]
    if not texts:
        return ""
    *others, last = texts
    text = f"{', '.join(others)} and {last}" if others else last
    return f", because {text}" + (", and for similar causes" if first else "")


def _follows(cause: Facts, stopped: list[str]) -> bool:
    """Return whether a cause only states that one of the stopped jobs returned to the queue."""
    jobs = [split_attempt(name)[0] for name in stopped]
    return cause["kind"] == "return" and split_attempt(cause["job"])[0] in jobs


def _cause(cause: Facts) -> str:
    kind, job, node = cause["kind"], cause.get("job"), cause.get("node")
    if kind == "stop":
        if "by" in cause:
            return f"job {cause['by']} takes the nodes of job {job}"
        text = {"node failure": "lost a node", "moved": "moved"}.get(cause.get("cause", ""))
        return f"job {job} {text or 'was stopped'}"
    texts = {
        "failure": f"node {node} failed" if node is not None else "a node failed",
        "drain": f"node {node} was drained",
        "return": f"job {job} returned to the queue",
        "move": f"job {job} started on other nodes",
        "hold": f"nodes are held for job {job}",
        "repair": f"node {node} returned to service" if node is not None else "a node was repaired",
        "end": f"job {job} ended",
        "arrival": f"job {job} was submitted",
        "release": "held nodes were released",
        "withdrawal": "a job left the queue",
        "refusal": "a start was refused",
    }
    return texts[kind]


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
