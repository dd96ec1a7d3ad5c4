# SPDX-License-Identifier: Apache-2.0
"""The stories of ``rebat explain``, compared with the records of a run.

Every fact of a story, in complete and in grouped form, is compared with rebat_plans.npz, the tables
of jobs and attempts, and the node events. The comparison uses only numpy and pandas, not the code
that writes the stories.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner

from rebat.cli.main import cli

NEVER = 2**62
PLANNED, REASON = 1, 7
OBSTACLES = {
    2: "too few nodes",
    3: "reserved",
    4: "no place",
    5: "in order",
    6: "not started",
}
BITS = (
    "arrival", "return", "end", "stop", "move", "hold",
    "failure", "drain", "repair", "withdrawal", "refusal", "release",
)  # fmt: skip
COLUMN_OF = {
    "arrival": "arrived", "return": "returned", "end": "ended", "stop": "stopped",
    "move": "moved", "hold": "held", "failure": "down_node", "drain": "down_node",
    "repair": "up_node",
}  # fmt: skip
LOSSES = ("node failure", "stolen", "moved", "preempted", "silent error")


class Wrong(Exception):
    """Error: a fact of a story differs from the records."""


def same(label: str, stated: Any, recorded: Any) -> None:
    """Raise Wrong if a fact differs from the records. Numbers may differ by half a microsecond."""
    if isinstance(stated, float) or isinstance(recorded, float):
        equal = stated is not None and math.isclose(stated, recorded, rel_tol=0, abs_tol=5e-7)
    else:
        equal = stated == recorded
    if not equal:
        raise Wrong(f"{label}: stated {stated!r}, recorded {recorded!r}")


def says(sentence: str, *texts: str) -> None:
    """Raise Wrong if one of the texts is missing in the sentence."""
    for text in texts:
        if text not in sentence:
            raise Wrong(f"the sentence {sentence!r} lacks {text!r}")


def time_text(seconds: float) -> str:
    """Return a time as in the sentences."""
    whole = math.floor(seconds)
    text = f"{whole % 86400 // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return text if whole < 86400 else f"{whole // 86400} d {text}"


def span_text(seconds: float) -> str:
    """Return a duration as in the sentences."""
    if seconds < 1:
        return f"{seconds:.3g} s"
    whole = math.floor(seconds)
    values = (whole // 86400, whole % 86400 // 3600, whole % 3600 // 60, whole % 60)
    first = next(place for place, value in enumerate(values) if value)
    shown = list(zip(values, ("d", "h", "min", "s"), strict=True))[first : first + 2]
    return " ".join(f"{value} {unit}" for value, unit in shown if value)


class Records:
    """The records of a run in tables."""

    def __init__(self, folder: Path) -> None:
        text = {"job_id": str, "why": str, "nodes": str, "cause": str}
        attempts = pd.read_csv(folder / "rebat_attempts.csv", dtype=text, keep_default_na=True)
        attempts[["why", "nodes"]] = attempts[["why", "nodes"]].fillna("")
        numbers = attempts["attempt"]
        attempts["name"] = attempts["job_id"] + np.where(numbers > 0, "#" + numbers.astype(str), "")
        self.attempts = attempts.set_index("name", drop=False)
        batsim = pd.read_csv(folder / "jobs.csv", dtype={"job_id": str})
        self.walltimes = dict(zip(batsim["job_id"], batsim["requested_time"], strict=True))
        events = pd.read_csv(folder / "node_events.csv", dtype={"nodes": str})
        self.failed = {
            (round(row.time * 1e6), int(row.nodes))
            for row in events.itertuples()
            if row.event == "failed" and row.nodes.isdigit()
        }
        file = np.load(folder / "rebat_plans.npz", allow_pickle=False)
        self.plan = {name[5:]: file[name] for name in file.files if name.startswith("plan_")}
        self.row = {name[4:]: file[name].copy() for name in file.files if name.startswith("row_")}
        ids = [text.partition("!")[2] for text in file["attempt_ids"].tolist()]
        self.names = dict(zip(file["attempt_serials"].tolist(), ids, strict=True))
        self.serials = {name: serial for serial, name in self.names.items()}
        self.texts = file["texts"].tolist()

    def rows(self, name: str) -> list[tuple[int, int, int]]:
        """Return (plan, kind, value) of each change of an attempt."""
        of = self.row["serial"] == self.serials.get(name, -1)
        columns = (self.row[column][of].tolist() for column in ("plan", "kind", "value"))
        return list(zip(*columns, strict=True))

    def planned(self, name: str, plan: int) -> int | None:
        """Return the planned start of an attempt after a plan."""
        values = [v for p, kind, v in self.rows(name) if kind == PLANNED and p <= plan]
        return values[-1] if values and values[-1] < NEVER else None


def moves(records: Records, name: str) -> list[tuple[int, int | None, int | None]]:
    """Return (plan, from, to) of each move of an attempt. A time is None without a reservation."""
    start = records.attempts.loc[name, "start_time"]
    before: int | None = None
    sequence: list[tuple[int, int | None, int | None]] = []
    for plan, kind, value in records.rows(name):
        if kind != PLANNED:
            continue
        at_us = int(records.plan["at_us"][plan])
        now = value if value < NEVER else None
        begins = now is not None and now <= at_us and at_us == to_us(start)
        if not (begins and before in (None, now)):
            sequence.append((plan, before, now))
        before = now
    return sequence


def to_us(seconds: float) -> int:
    """Return seconds as whole microseconds, or -1 if there is no time."""
    return -1 if math.isnan(seconds) else round(seconds * 1e6)


def check_causes(records: Records, stated: list[dict], plan: int, own: str) -> None:
    """Compare the causes of a move with the recorded plan and with the tables."""
    at_us = int(records.plan["at_us"][plan])
    if at_us == to_us(records.attempts.loc[own, "queued_time"]):
        same("causes on arrival", stated, [])
        return
    bits = int(records.plan["causes"][plan])
    expected = {name for place, name in enumerate(BITS) if bits >> place & 1}
    same("causes", {cause["kind"] for cause in stated}, expected)
    for cause in stated:
        column = COLUMN_OF.get(cause["kind"])
        subject = int(records.plan[column][plan]) if column else -1
        if column and column.endswith("node"):
            same("node", cause.get("node", -1), subject)
            if cause["kind"] == "failure" and subject >= 0:
                same("failure of a node", (at_us, subject) in records.failed, True)
        elif column and subject >= 0:
            name = records.names[subject]
            same("job of a cause", cause["job"], name.partition("~")[0])
            if name in records.attempts.index:
                check_subject(records.attempts.loc[name], cause, at_us)


TIME_OF = {
    "arrival": "submission_time", "return": "queued_time",
    "end": "finish_time", "stop": "finish_time", "move": "start_time",
}  # fmt: skip


def check_subject(attempt: Any, cause: dict, at_us: int) -> None:
    """Compare the attempt that a cause names with its row in the table of attempts."""
    if cause["kind"] in TIME_OF:
        same(f"time of {cause['kind']}", to_us(attempt[TIME_OF[cause["kind"]]]), at_us)
    if cause["kind"] == "stop":
        same("cause of a stop", cause["cause"], attempt["cause"])
        if attempt["cause"] == "stolen":
            same("thief", "for " + cause["by"], attempt["why"].partition("#")[0])


def check_move(records: Records, name: str, stated: dict, expected: tuple) -> None:
    """Compare one planned start with the records."""
    plan, before, now = expected
    same("time of a move", stated["at_s"], records.plan["at_us"][plan] / 1e6)
    same("from", stated.get("from_s"), None if before is None else before / 1e6)
    same("to", stated.get("to_s"), None if now is None else now / 1e6)
    kind = "planned" if before is None else "unplanned" if now is None else "moved"
    same("kind", stated["kind"], kind)
    check_causes(records, stated["causes"], plan, name)
    says(stated["sentence"], *(time_text(x / 1e6) for x in (before, now) if x is not None))
    if kind == "moved":
        says(stated["sentence"], "earlier" if now < before else "later")


def check_obstacle(records: Records, name: str, stated: dict, row: tuple[int, int, int]) -> None:
    """Compare one obstacle with the records, and check that it existed."""
    plan, kind, value = row
    at_us, free = int(records.plan["at_us"][plan]), int(records.plan["n_free"][plan])
    size = int(records.attempts.loc[name, "size"])
    same("time of an obstacle", stated["at_s"], at_us / 1e6)
    same("obstacle", stated["obstacle"], OBSTACLES[kind])
    same("free nodes", stated["free"], free)
    same("needed nodes", stated["needed"], size)
    same("too few nodes", stated["obstacle"] == "too few nodes", free < size)
    says(stated["sentence"], str(free))
    if value >= 0:
        other = records.names[value]
        same("job of an obstacle", stated["job"], other)
        says(stated["sentence"], f"job {other} ")
    if stated["obstacle"] == "reserved":
        start = records.planned(records.names[value], plan)
        assert start is not None
        same("start of the other job", stated["job_start_s"], start / 1e6)
        end_us = at_us + to_us(records.walltimes[name])
        same("whether it would run into the reservation", at_us < start < end_us, True)
        says(stated["sentence"], time_text(start / 1e6))


def lost(attempt: Any) -> float:
    """Return the run time of an attempt whose work was lost at its end or later."""
    if attempt["cause"] not in LOSSES:
        return 0.0
    ran = attempt["finish_time"] - attempt["start_time"] - attempt["recovery_seconds"]
    return max(0.0, float(ran - attempt["kept_seconds"] + attempt["lost_later_seconds"]))


def check_start(records: Records, name: str, stated: dict) -> None:
    """Compare a start with its row and with the last plan."""
    attempt = records.attempts.loc[name]
    start_us = to_us(attempt["start_time"])
    same("start", stated["at_s"], float(attempt["start_time"]))
    same("waited", stated["waited_s"], float(attempt["start_time"] - attempt["queued_time"]))
    same("nodes", stated["nodes"], int(attempt["size"]))
    says(stated["sentence"], str(attempt["size"]))
    if stated["waited_s"]:
        says(stated["sentence"], span_text(attempt["start_time"] - attempt["queued_time"]))
    plans = [(p, v) for p, kind, v in records.rows(name) if kind == PLANNED]
    if plans:
        plan, value = plans[-1]
        earlier = int(records.plan["at_us"][plan]) < start_us
        same("start of the last plan", value, start_us)
        same("as planned", stated["as_planned"], earlier)


def check_end(records: Records, name: str, stated: dict) -> None:
    """Compare an end with its row and with the node events."""
    attempt = records.attempts.loc[name]
    same("cause of the end", stated["cause"], attempt["cause"])
    if math.isnan(attempt["start_time"]):
        return
    ran = float(attempt["finish_time"] - attempt["start_time"])
    same("end", stated["at_s"], float(attempt["finish_time"]))
    same("ran", stated["ran_s"], ran)
    same("kept", stated["kept_s"], float(attempt["kept_seconds"]))
    same("lost", stated["lost_s"], lost(attempt))
    says(stated["sentence"], span_text(round(ran, 6)))
    if stated["lost_s"]:
        says(stated["sentence"], f"loses {span_text(round(lost(attempt), 6))} x {attempt['size']}")
    if "node" in stated:
        failed = (to_us(attempt["finish_time"]), stated["node"]) in records.failed
        same("failed node", failed and on(attempt["nodes"], stated["node"]), True)
        says(stated["sentence"], f"Node {stated['node']} fails")
    if attempt["cause"] == "stolen":
        same("thief", "for " + stated["by"], attempt["why"].partition("#")[0])
        says(stated["sentence"], f"job {stated['by']} takes its nodes")


def on(nodes: str, node: int) -> bool:
    """Return whether a node is in a set like ``0-3 7``."""
    pairs = (part.split("-") for part in nodes.split())
    return any(int(pair[0]) <= node <= int(pair[-1]) for pair in pairs)


def check_story(records: Records, job: str, story: dict[str, Any]) -> int:
    """Compare a complete story with the records. Return the number of sentences."""
    attempts = records.attempts[records.attempts["job_id"] == job].sort_values("attempt")
    ran = attempts[attempts["start_time"].notna()]
    same("attempts", story["attempts"], len(ran))
    waited = float(ran["start_time"].iloc[0] - ran["submission_time"].iloc[0])
    same("waited", story["waited_s"], waited)
    if waited:
        says(story["verdict"], f"Job {job} waited {span_text(round(waited, 6))}")
    losses = [lost(attempt) for _, attempt in ran.iterrows()]
    same("lost", story["lost_s"], float(sum(losses)))
    weighted = float(np.dot(losses, ran["size"]))
    if not math.isclose(story["lost_node_s"], weighted, abs_tol=1e-3):
        raise Wrong(f"lost node seconds: stated {story['lost_node_s']}, recorded {weighted}")
    said: Counter[str] = Counter()
    for name, attempt in attempts.iterrows():
        moments = [m for m in story["moments"] if m["attempt"] == attempt["attempt"]]
        said += check_attempt(records, str(name), moments)
    same("number of sentences", sum(said.values()), len(story["moments"]))
    times = [moment["at_s"] for moment in story["moments"]]
    same("order of time", times, sorted(times))
    return len(times)


def check_attempt(records: Records, name: str, moments: list[dict]) -> Counter[str]:
    """Compare the moments of an attempt. Return the number of compared moments by kind."""
    of = {kind: [m for m in moments if m["kind"] == kind] for kind in ("obstacle", "reason")}
    planned = [m for m in moments if m["kind"] in ("planned", "moved", "unplanned")]
    attempt, checked = records.attempts.loc[name], Counter[str]()
    starts = moves(records, name)
    same("number of planned starts", len(planned), len(starts))
    for stated, expected in zip(planned, starts, strict=True):
        check_move(records, name, stated, expected)
    rows = [row for row in records.rows(name) if row[1] in OBSTACLES]
    same("number of obstacles", len(of["obstacle"]), len(rows))
    for stated, row in zip(of["obstacle"], rows, strict=True):
        check_obstacle(records, name, stated, row)
    reasons = [records.texts[value] for _, kind, value in records.rows(name) if kind == REASON]
    same("reasons", [m["text"] for m in of["reason"]], reasons)
    for moment in moments:
        says(moment["sentence"], time_text(moment["at_s"]))
        checked[moment["kind"]] += 1
        if moment["kind"] == "submitted":
            same("submission", moment["at_s"], float(attempt["submission_time"]))
            same("nodes", moment["nodes"], int(attempt["size"]))
        elif moment["kind"] == "started":
            check_start(records, name, moment)
        elif moment["kind"] == "ended":
            check_end(records, name, moment)
    ran = not math.isnan(attempt["start_time"])
    same("starts and ends", (checked["started"], checked["ended"]), (int(ran), 1))
    return checked


def check_grouped(complete: dict[str, Any], short: dict[str, Any]) -> None:
    """Compare a grouped story with the complete story."""
    same("verdict", short["verdict"], complete["verdict"])
    n = sum(moment.get("times", 1) for moment in short["moments"])
    same("number of moments", n, len(complete["moments"]))
    for group in (moment for moment in short["moments"] if "times" in moment):
        alike = [
            m
            for m in complete["moments"]
            if m["kind"] == group["kind"]
            and m["attempt"] == group["attempt"]
            and group["at_s"] <= m["at_s"] <= group["last_s"]
        ]
        if group["kind"] == "obstacle":
            alike = [m for m in alike if m["obstacle"] == group["obstacle"]]
            if group["obstacle"] != "in order":
                alike = [m for m in alike if m.get("job") == group.get("job")]
            same("first obstacle", group.get("job"), alike[0].get("job"))
        else:
            same("first planned start", group["from_s"], alike[0]["from_s"])
            same("last planned start", group["to_s"], alike[-1]["to_s"])
        same("times", group["times"], len(alike))
        same("last time", group["last_s"], alike[-1]["at_s"])
        says(group["sentence"], f"{group['times']} times", time_text(group["last_s"]))


def story_of(folder: Path, job: str, *options: str) -> dict[str, Any]:
    """Return the JSON of ``rebat explain``."""
    done = CliRunner().invoke(cli, ["explain", str(folder), job, "--json", *options])
    if done.exit_code:
        raise Wrong(f"rebat explain failed: {done.exception}")
    stated: dict[str, Any] = json.loads(done.stdout)
    return stated


def plant(records: Records, jobs: list[str]) -> None:
    """Change the planned start of one recorded move by a minute."""
    names = {
        name for name in records.attempts.index if records.attempts.loc[name, "job_id"] in jobs
    }
    of = np.isin(records.row["serial"], [records.serials[name] for name in names])
    at = np.flatnonzero(of & (records.row["kind"] == PLANNED) & (records.row["value"] < NEVER))
    records.row["value"][at[len(at) // 2]] += 60_000_000


def wrong_stories(folder: Path, n_jobs: int, seed: int, planted: bool = False) -> list[str]:
    """Return the facts that differ from the records, for random jobs of a run.

    With ``planted``, one record is changed first, so there must be a difference.
    """
    records = Records(folder)
    ids = records.attempts["job_id"].unique()
    rng = np.random.default_rng(seed)
    jobs = sorted(rng.choice(ids, min(n_jobs, len(ids)), replace=False).tolist())
    if planted:
        plant(records, jobs)
    wrong = []
    for job in jobs:
        try:
            complete = story_of(folder, job, "--all")
            check_story(records, job, complete)
            check_grouped(complete, story_of(folder, job))
        except Wrong as error:
            wrong.append(f"job {job}: {error}")
    return wrong
