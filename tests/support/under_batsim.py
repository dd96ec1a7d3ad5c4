# SPDX-License-Identifier: Apache-2.0
"""Random runs of ``rebat serve`` under a real Batsim, compared with ``rebat run``.

``python -m tests.support.under_batsim 300 --batsim ./batsim --protocol 4 --keep differing`` makes
300 runs. Each run that differs is written to a folder of its own, with its inputs and outputs.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from rebat.api.result import Result
from rebat.check.cases import operations, outages
from rebat.cli.main import main as rebat
from rebat.core.attempts import job_name
from rebat.core.cores import processors_of
from rebat.core.errors import RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.drive.simulate import Events
from rebat.engine.batsim5 import Engine5
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import (
    GenericEvent,
    in_order,
    read_texts,
    write_events,
    write_events4,
)
from rebat.policies.presets import preset
from rebat.results.files.batsim_csv import jobs_csv5
from rebat.wire.conversation import Conversation, greet, run_remote, session_for
from rebat.workloads.batsim5_json import with_failing_parts
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.load import load_workload
from tests.support.asked import simulate
from tests.support.batsim5 import options_of
from tests.support.both_ways import with_tiers, with_traits
from tests.support.dependent import dependent

POLICIES = ("greedy", "easy", "baseline", "h112", "h322", "baseline:react=replacement+stealing",
            "baseline:placement=named", "baseline:react=requeue,depth=3,reserve=first",
            "easy:detect=2,diagnose=1,init=1", "baseline:silent_errors=retry")  # fmt: skip

OPTIONS: dict[str, tuple[str, ...]] = {
    "operations": (
        "", "reservations=announced", "migration_cost=1", "migration_cost=0.300017,operators=ann",
        "migration_cost=bandwidth*400,purge=2", "migration_cost=2.5,reservations=announced",
        "operators=ann+a,order=largest", "migration_cost=table", "order=shortest",
        "limits=user:jobs=2,migration_cost=1", "reservations=m:0-1:begin=5:length=3:every=20",
    ),
    "partitions": (
        "partitions=high:0%-50%:2+low:all:1", "partitions=a:0%-50%+b:50%-100%",
        "partitions=a:all:2:max_nodes=3+b:all:1:reversed",
        "partitions=a:all:weight=9+b:0%-25%,order=age+9*partition",
    ),
    "orders": (
        "order=f1", "order=f2", "order=f3", "order=wfp3", "order=unicef", "order=ljf", "order=sa",
        "order=shortest", "order=random", "order=-usage,half_life=9", "order=10*fairshare+age",
        "order=age+size,order_period=3", "order=multifactor:age=1:size=2:fairshare=5",
    ),
    "limits": (
        "limits=user:jobs=1", "limits=user:nodes=3+account=x:jobs=2", "limits=account:nodes=4",
        "limits=user=a:jobs=1:nodes=2,order=shortest",
    ),
    "reservations": (
        "reservations=m:0:begin=10:length=9", "reservations=m:0-1:begin=5:length=3:every=20:user=a",
        "reservations=m:1:begin=4:length=6+n:0:begin=12:length=5,order=smallest",
    ),
    "announced": ("reservations=announced", "reservations=announced,order=largest"),
    "dependencies": ("", "order=shortest", "order=sa,react=requeue"),
    "predictions": (
        "predict=recent", "predict=actual", "predict=0.5", "predict=recent,margin=2",
        "predict=actual,order=shortest",
    ),
    "max_attempts": ("", "order=largest"),
    "fractions": ("", "order=f1", "order=largest", "order=sa", "order=shortest,depth=all"),
    "authors": ("semantics=authors", "semantics=authors,order=largest"),
    "racks": ("", "react=replacement,spares=1", "order=largest"),
    "queues": ("", "order=shortest", "order=random", "limits=user:nodes=3", "margin=2"),
    "boxes": ("", "order=shortest", "order=-usage,half_life=9", "react=defragment,period=3"),
    "flexible": ("", "order=fcfs", "react=replacement,spares=1", "resize_cost=1"),
    "reactions": (
        "react=preempt,grace=5,period=2", "react=exclude,hits=1,excluded_for=9",
        "react=exclude+preempt,hits=2,grace=0,period=3,order=largest", "react=foresight",
        "react=replacement+preempt,spares=1,grace=3", "react=sleep",
    ),
    "tiers": ("", "order=largest", "react=requeue,detect=1,init=2", "react=requeue,reschedule=3"),
    "stages": (
        "detect=2,diagnose=1,init=1", "react=requeue,detect=3", "react=requeue,init=2",
        "react=requeue,reschedule=8,init=0.5",
    ),
}  # fmt: skip
"""The options of each family. A run adds one of them to its policy."""

OWN_POLICIES = {
    "queues": ("r-shelf-b", "r-shelf-nb", "cluster", "batsched-fcfs", "batsched-easy"),
    "boxes": ("torus-first", "rps", "slurm-linear"),
    "operations": (
        *POLICIES[:5],
        "h223:order=f1",
        "baseline:react=stealing,timing=after",
        "cluster",
        "baseline:depth=3,reserve=first",
        "baseline:placement=named",
        "baseline:planning=shelf",
        "baseline:react=exclude+preempt,hits=1,excluded_for=9,grace=4,period=3,order=largest",
        "easy:react=exclude+preempt,hits=2,excluded_for=4,grace=0,period=2,order=smallest",
        "easy:detect=2,diagnose=1,init=1",
        "baseline:silent_errors=retry",
        "baseline:predict=recent",
    ),
    "flexible": ("sa", "pra", "pwa", "dbes", "training-shrinking"),
}
"""The policies of the families that have not those of `POLICIES`."""

TORI = {4: ("4", "2x2"), 8: ("8", "2x4", "2x2x2"), 14: ("14", "2x7"), 32: ("4x8", "4x4x2")}


class Inputs:
    """The files and options of a run, all drawn from a seed."""

    def __init__(self, family: str, seed: int) -> None:
        self.family, self.seed = family, seed
        rng = random.Random(f"{family} {seed}")
        self.n_nodes = rng.choice([4, 8, 14, 32])
        self.unit_us = to_us(1) if family != "fractions" else rng.choice([1000, 1013, 250_000])
        self.workload = _workload(rng, self.n_nodes, self.unit_us, family)
        if family == "dependencies":
            self.workload = dependent(rng, self.workload)
        tiered = family == "operations" and rng.random() < 0.4
        if family == "tiers" or tiered:  # Batsim does not know the causes of failures
            self.workload = with_tiers(self.workload, rng, self.n_nodes, causes=False)
        fails = family != "operations" or rng.random() < 0.5
        drawn = _outages(rng, self.n_nodes, family == "racks") if fails else []
        self.events = in_order(drawn)
        scaled = self.unit_us / to_us(1)
        self.events = [
            msgspec.structs.replace(event, at_us=round(event.at_us * scaled))
            for event in self.events
        ]
        self.operations: list[GenericEvent] = []
        self.cores, self.one_file = 1, False
        if family in ("announced", "racks"):
            self.operations = operations(rng, self.n_nodes, self.workload)
        if family == "announced":
            self.operations = sorted(
                [*self.operations, *_announced(rng, self.n_nodes)], key=lambda event: event.at_us
            )
        self.policy = self._policy(rng)
        if family == "operations":  # Batsim 4 does not forward the causes of failures
            self.events = [msgspec.structs.replace(each, cause=None) for each in self.events]
            self.workload = with_traits(self.workload, rng)
            self.cores = rng.choice([1, 1, 1, 2])
            self.events = [
                msgspec.structs.replace(each, nodes=processors_of(each.nodes, self.cores))
                for each in self.events
                if int(each.nodes.intervals[-1, 1]) < self.n_nodes // self.cores
            ]
            self.operations = _site_operations(rng, self)
            self.one_file = rng.random() < 0.3
            if self.one_file:  # Batsim keeps the order of lines only if their times differ
                self.operations = [
                    msgspec.structs.replace(each, at_us=each.at_us + 1000 * place + 137_000)
                    for place, each in enumerate(self.operations)
                ]
        self.max_attempts = rng.choice([1, 2, 3]) if family == "max_attempts" else None

    def _policy(self, rng: random.Random) -> str:
        """Draw policies until their options can be combined."""
        while True:
            parts = [rng.choice(OPTIONS[self.family])]
            if self.operations or self.family == "operations":
                parts.append("drain=" + rng.choice(["migrate", "wait"]))
            if self.family == "boxes":
                parts.append("torus=" + rng.choice(TORI[self.n_nodes]))
            name = rng.choice(OWN_POLICIES.get(self.family, POLICIES))
            extra = ",".join(filter(None, parts))
            policy = f"{name}{',' if ':' in name else ':'}{extra}" if extra else name
            with contextlib.suppress(RebatError):
                preset(policy)
                return policy

    @property
    def files(self) -> str:
        """The first letters of the names of Batsim's event files."""
        if self.one_file:
            return "b"
        return "".join(
            name for name, rows in zip("fo", (self.events, self.operations), strict=True) if rows
        )

    @property
    def options(self) -> list[str]:
        """The options that all commands need."""
        out = ["--max-attempts", f"{self.max_attempts}"] if self.max_attempts else []
        return out + (["--cores-per-node", f"{self.cores}"] if self.cores > 1 else [])

    def write(self, folder: Path) -> None:
        """Write the files of both versions of Batsim."""
        write_workload(self.workload, folder / "w4.json")
        write_events(self.events, folder / "f4.events")
        write_events4(self.operations, folder / "o4.events")
        write_events4(in_order([*self.events, *self.operations]), folder / "b4.events")
        quiet = ["workload", "export", f"{folder}/w4.json", "--format", "batsim5"]
        rebat([*quiet, "-o", f"{folder}/w5.json"])
        for name in "fob":  # an export has the lines in Batsim 4's order
            rebat(["failures", "export", f"{folder}/{name}4.events", "--format", "batsim5",
                   "-o", f"{folder}/{name}5.events"])  # fmt: skip
        rebat(["platform", "generate", f"flat:{self.n_nodes}", "--zero-latency",
               "-o", f"{folder}/platform.xml"])  # fmt: skip
        text = json.dumps({"policy": self.policy, "options": self.options, "files": self.files})
        (folder / "case.json").write_text(text)


USERS = ({"user": "a", "account": "x"}, {"user": "b", "account": "y"}, {"user": "c"}, {})


def _workload(rng: random.Random, n_nodes: int, unit_us: int, family: str) -> Workload:
    """Draw jobs, many of which have equal times, users, and sometimes checkpoints."""
    lengths = rng.sample(range(1, 30), 6)
    profiles: dict[str, dict[str, Any]] = {
        f"d{length}": {"type": "delay", "delay": length * unit_us / 1e6} for length in lengths
    }
    if rng.random() < 0.3:
        profiles[f"d{lengths[0]}"]["ret"] = 1
    jobs = []
    for number in range(rng.randint(5, 25)):
        length = rng.choice(lengths)
        walltime = rng.choice([None, length + rng.randint(0, 9), rng.randint(1, 30)])
        most = n_nodes // rng.choice([1, 2, 4]) if family == "operations" else n_nodes
        size, extra = rng.randint(1, most), dict[str, Any](rng.choice(USERS))
        if family == "flexible":
            extra |= rng.choice([{"shape": _shape(rng, size, n_nodes)}, {}])
        jobs.append(
            Job(
                str(number), size, rng.choice([0, 3, 6, 14, 33, 45]) * unit_us,
                walltime and walltime * unit_us, f"d{length}", extra,
            )
        )  # fmt: skip
    made = Workload("w", n_nodes, tuple(jobs), profiles)
    if rng.random() < 0.5 or unit_us != to_us(1):
        return made
    return add_young_daly(made, n_nodes=n_nodes, mtbf_s=20, cost_s=1.0, recovery_s=2.0)


def _shape(rng: random.Random, size: int, n_nodes: int) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"kind": "moldable", "sizes": rng.sample(range(1, n_nodes + 1), 2)}
    return {"kind": "malleable", "min": rng.randint(1, size), "max": rng.randint(size, n_nodes)}


def _outages(rng: random.Random, n_nodes: int, racks: bool) -> list[Any]:
    """Draw failures and repairs. With ``racks``, nodes fail together, on a line per node."""
    if not racks:
        return outages(rng, n_nodes)
    groups = outages(rng, n_nodes // 4 * 2)
    return [
        msgspec.structs.replace(event, nodes=NodeSet.of([node]))
        for event in groups
        for each in event.nodes
        for node in (2 * each, 2 * each + 1)
    ]


def _announced(rng: random.Random, n_nodes: int) -> list[GenericEvent]:
    begin = rng.randint(1, 20)
    data = {"type": "announce", "nodes": str(rng.randrange(n_nodes)), "begin": begin,
            "end": begin + 6}  # fmt: skip
    return [GenericEvent(to_us(rng.randint(0, begin)), data)]


def _site_operations(rng: random.Random, inputs: Inputs) -> list[GenericEvent]:
    """Draw operations of an administrator and of users. Many of them are refused.

    Each node is drained and undrained in turn. In the end, no node is drained. The jobs that
    migrate run at this time if there are no other operations.
    """
    n_nodes, rows = inputs.n_nodes // inputs.cores, list[GenericEvent]()
    plain = simulate(
        inputs.workload, preset(inputs.policy), n_nodes=inputs.n_nodes, how="asked",
        machine_events=Events(inputs.events).all, cores_per_node=inputs.cores,
    )  # fmt: skip
    runs = [each for each in plain.ledger.attempts if 0 <= each.start_us < each.end_us]
    end_s = max((run.end_us for run in runs), default=0) // to_us(1) * 3 // 4 + 1
    until, scale = [0.0] * n_nodes, rng.choice([1, 1, 0.731])
    kinds = ["drain", "drain", "migrate", "migrate", "migrate"]
    kinds += ["announce"] * ("reservations=announced" in inputs.policy)

    def add(at_s: float, kind: str, **data: Any) -> None:
        rows.append(GenericEvent(to_us(round(at_s, 3)), {"type": kind, **data}))

    for turn in sorted(rng.randint(1, end_s) for _ in range(rng.randint(1, 12))):
        at_s, kind, data = turn * scale, rng.choice(kinds), dict[str, Any]()
        if rng.random() < 0.3:
            data["user"] = rng.choice(["a", "b", "ann", "eve"])
        if rng.random() < 0.4:
            data["spanning"] = rng.random() < 0.5
        first = rng.randrange(n_nodes)
        last = rng.choice([first, min(first + 2, n_nodes - 1), rng.randrange(first, n_nodes)])
        nodes = str(NodeSet.of(range(first, last + 1)))
        if kind == "drain":
            length_s = rng.randint(1, 15)
            if max(until[first : last + 1]) < at_s:
                add(at_s, kind, nodes=nodes, **data)
                add(at_s + length_s, "undrain", nodes=nodes)
                until[first : last + 1] = [at_s + length_s] * (last + 1 - first)
        elif kind == "announce":
            begin_s = round(at_s, 3) + rng.randint(0, 15)
            add(at_s, kind, nodes=nodes, begin=begin_s, end=begin_s + rng.randint(1, 12), **data)
        else:
            now = [each for each in runs if each.start_us <= to_us(at_s) <= each.end_us]
            any_job = rng.choice(inputs.workload.jobs).id
            job = job_name(rng.choice(now).attempt.job_id) if now else any_job
            if rng.random() < 0.6:
                data["nodes"] = rng.choice([nodes, f"0-{n_nodes - 1}"])
            add(at_s, kind, job=job, **data)
    return sorted(rows, key=lambda event: event.at_us)


# ---- a run


def _embedded(inputs: Inputs, folder: Path) -> None:
    command = ["run", f"{folder}/w4.json", "-p", inputs.policy, "--out", f"{folder}/embedded"]
    if inputs.events:
        command += ["--failures", f"{folder}/{inputs.files[0]}4.events"]  # Batsim sorts each file
    if inputs.operations:
        command += ["--operations", f"{folder}/o4.events"]
    rebat(command + inputs.options)


def _batsim_command(batsim: str, protocol: int, port: int, inputs: Inputs, folder: Path) -> list:
    name, address = str(folder), f"tcp://localhost:{port}"
    command = [batsim, "-p", f"{name}/platform.xml", "-w", f"{name}/w{protocol}.json"]
    flag = "--events" if protocol == 4 else "--ee"
    for file in inputs.files:
        command += [flag, f"{name}/{file}{protocol}.events"]
    if protocol == 5:
        return [*command, "-e", f"{name}/real/", "-s", address, ""]
    return [*command, "-q", "--disable-schedule-tracing", "--disable-machine-state-tracing",
            "-e", f"{name}/real/run", "-s", address, "--enable-dynamic-jobs",
            "--acknowledge-dynamic-jobs", "--enable-profile-reuse",
            "--forward-unknown-events"]  # fmt: skip


def _served(batsim: str, protocol: int, port: int, inputs: Inputs, folder: Path) -> int:
    """Run Batsim with ``rebat serve`` as its scheduler. Return the exit status of Batsim."""
    (folder / "real").mkdir()
    command = ["serve", "-p", inputs.policy, "--endpoint", f"tcp://127.0.0.1:{port}", "--timeout",
               "20s", "--protocol", str(protocol), "--record", f"{folder}/talk.jsonl"]  # fmt: skip
    command += inputs.options
    if inputs.family == "operations":
        command += ["--out", f"{folder}/served"]
    with (folder / "batsim.log").open("w") as log:
        process = subprocess.Popen(
            _batsim_command(batsim, protocol, port, inputs, folder), stdout=log, stderr=log
        )
    watch = threading.Timer(60, process.kill)
    watch.start()
    try:
        with contextlib.redirect_stdout(io.StringIO()), mock.patch.object(Result, "to_html"):
            rebat(command)
    finally:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
        watch.cancel()
    return process.wait()


def play(family: str, seed: int, batsim: str, protocol: int, port: int, folder: Path) -> str:
    """Make a run. Return how the two results compare, in a few words."""
    inputs = Inputs(family, seed)
    with contextlib.redirect_stdout(io.StringIO()):
        inputs.write(folder)
        _embedded(inputs, folder)
    try:
        status = _served(batsim, protocol, port, inputs, folder)
    except SystemExit:
        return "serve ends with an error"
    if status:
        return f"Batsim ends with {status}"
    table = folder / "real" / ("run_jobs.csv" if protocol == 4 else "jobs.csv")
    if told := _finding("compare", f"{table}", f"{folder}/embedded", "--allocations"):
        (folder / "difference.txt").write_text(told)
        if protocol == 5 and not _finding(
            "compare", f"{table}", _simulated(inputs, folder), "--allocations"
        ):
            return "equal to simulate --protocol 5, whose wake-ups are whole milliseconds"
        return "other schedule"
    options = ["--events", f"{folder}/f4.events"] if inputs.events else []
    options += ["--max-attempts", f"{inputs.max_attempts}"] if inputs.max_attempts else []
    told = _finding("validate", f"{table}", "--workload", f"{folder}/w4.json", "--by-rebat",
                    *options)  # fmt: skip
    if told and not preset(inputs.policy).point.recovery:  # Batsim does not know which jobs hang
        (folder / "difference.txt").write_text(told)
        return "not valid"
    if told := _other_records(folder):
        (folder / "difference.txt").write_text(told)
        return "other records"
    return "equal"


def _other_records(folder: Path) -> str:
    """Return the records of ``rebat serve --out`` that ``rebat run`` does not have, if any.

    The records contain the causes of all ends, the lost work, and the refused operations. The
    fairness is left out, because Batsim does not tell the users of jobs.
    """
    told = []
    for ours in sorted(folder.glob("served/*/*")):
        name = ours.relative_to(folder / "served")
        texts = [ours.read_text(), (folder / "embedded" / name).read_text()]
        if ours.suffix == ".json":
            metrics = [json.loads(text)["metrics"] for text in texts]
            texts = [json.dumps({**each, "fairness": None}, indent=1) for each in metrics]
        lines = [text.splitlines() for text in texts]
        if ours.suffix == ".csv":  # the order of simultaneous ends is Batsim's
            lines = [sorted(each) for each in lines]
        told += difflib.unified_diff(*lines, str(name), "embedded", lineterm="")
    return "\n".join(told)


def _finding(*command: str) -> str:
    """Return what a command reports, or '' if it reports nothing."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            rebat(list(command))
        except SystemExit as end:
            return out.getvalue() if end.code else ""
    return ""


def _simulated(inputs: Inputs, folder: Path) -> str:
    """Run the engine in place of Batsim 5. Return its table of jobs."""
    options = {"max_attempts": inputs.max_attempts} if inputs.max_attempts else {}
    options |= {"cores_per_node": inputs.cores}
    conversation = Conversation(
        lambda _, began: session_for(inputs.policy, options, began), probes=True
    )
    engine = Engine5(
        [with_failing_parts(load_workload(folder / "w5.json"))],
        files=[read_texts(folder / f"{name}5.events", n) for n, name in enumerate(inputs.files)],
        options=options_of(greet(conversation.answer)),
    )
    run_remote(engine, conversation.answer)
    file = folder / "simulated.csv"
    file.write_text("\n".join(jobs_csv5(engine.ended)) + "\n")
    return str(file)


def main() -> None:
    """Make this number of runs, over all families in turn; print how many were equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--batsim", required=True)
    parser.add_argument("--protocol", type=int, choices=(4, 5), default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--port", type=int, default=28640)
    parser.add_argument("--family", choices=OPTIONS)
    parser.add_argument("--keep", type=Path, help="folder for the runs that differ")
    options = parser.parse_args()
    results: Counter[tuple[str, str]] = Counter()
    families = [options.family] if options.family else [*OPTIONS]
    for number in range(options.first, options.first + options.count):
        family, seed = families[number % len(families)], number // len(families)
        folder = Path(tempfile.mkdtemp())
        result = play(family, seed, options.batsim, options.protocol, options.port, folder)
        results[family, result] += 1
        if result != "equal":
            print(f"{family} {seed}: {result}", flush=True)
        if options.keep and result != "equal":
            shutil.copytree(folder, options.keep / f"{family}-{seed}", dirs_exist_ok=True)
        shutil.rmtree(folder)
    for (family, result), count in sorted(results.items()):
        print(f"{family}: {count} {result}")
    print(f"{sum(n for (_, r), n in results.items() if r == 'equal')} of {options.count} equal")


if __name__ == "__main__":
    sys.exit(main())
