# SPDX-License-Identifier: Apache-2.0
"""Random runs of ``rebat serve`` under a real Batsim, compared with ``rebat run``.

``python -m tests.support.under_batsim 300 --batsim ./batsim --protocol 4 --keep differing`` makes
300 runs. Each run that differs is written to a folder of its own, with its inputs and outputs.
"""

from __future__ import annotations

import argparse
import contextlib
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

import msgspec

from rebat.check.cases import operations, outages
from rebat.cli.main import main as rebat
from rebat.core.errors import RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
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
from tests.support.batsim5 import options_of
from tests.support.both_ways import with_tiers
from tests.support.dependent import dependent

POLICIES = ("greedy", "easy", "baseline", "h112", "h322", "baseline:react=replacement+stealing",
            "baseline:placement=named", "baseline:react=requeue,depth=3,reserve=first",
            "easy:detect=2,diagnose=1,init=1", "baseline:silent_errors=retry")  # fmt: skip

OPTIONS: dict[str, tuple[str, ...]] = {
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
        if family == "tiers":  # Batsim does not know the causes of failures
            self.workload = with_tiers(self.workload, rng, self.n_nodes, causes=False)
        self.events = in_order(_outages(rng, self.n_nodes, family == "racks"))
        scaled = self.unit_us / to_us(1)
        self.events = [
            msgspec.structs.replace(event, at_us=round(event.at_us * scaled))
            for event in self.events
        ]
        self.operations: list[GenericEvent] = []
        if family in ("announced", "racks"):
            self.operations = operations(rng, self.n_nodes, self.workload)
        if family == "announced":
            self.operations = sorted(
                [*self.operations, *_announced(rng, self.n_nodes)], key=lambda event: event.at_us
            )
        self.policy = self._policy(rng)
        self.max_attempts = rng.choice([1, 2, 3]) if family == "max_attempts" else None

    def _policy(self, rng: random.Random) -> str:
        """Draw policies until their options can be combined."""
        while True:
            parts = [rng.choice(OPTIONS[self.family])]
            if self.operations:
                parts.append("drain=" + rng.choice(["migrate", "wait"]))
            if self.family == "boxes":
                parts.append("torus=" + rng.choice(TORI[self.n_nodes]))
            name = rng.choice(OWN_POLICIES.get(self.family, POLICIES))
            extra = ",".join(filter(None, parts))
            policy = f"{name}{',' if ':' in name else ':'}{extra}" if extra else name
            with contextlib.suppress(RebatError):
                preset(policy)
                return policy

    def write(self, folder: Path) -> None:
        """Write the files of both versions of Batsim."""
        write_workload(self.workload, folder / "w4.json")
        write_events(self.events, folder / "f4.events")
        write_events4(self.operations, folder / "o4.events")
        quiet = ["workload", "export", f"{folder}/w4.json", "--format", "batsim5"]
        rebat([*quiet, "-o", f"{folder}/w5.json"])
        for name in "fo":  # an export has the lines in Batsim 4's order
            rebat(["failures", "export", f"{folder}/{name}4.events", "--format", "batsim5",
                   "-o", f"{folder}/{name}5.events"])  # fmt: skip
        rebat(["platform", "generate", f"flat:{self.n_nodes}", "--zero-latency",
               "-o", f"{folder}/platform.xml"])  # fmt: skip
        text = json.dumps({"policy": self.policy, "max_attempts": self.max_attempts})
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
        size, extra = rng.randint(1, n_nodes), dict[str, Any](rng.choice(USERS))
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


# ---- a run


def _embedded(inputs: Inputs, folder: Path) -> None:
    command = ["run", f"{folder}/w4.json", "-p", inputs.policy, "--out", f"{folder}/embedded"]
    if inputs.events:
        command += ["--failures", f"{folder}/f4.events"]
    if inputs.operations:
        command += ["--operations", f"{folder}/o4.events"]
    if inputs.max_attempts:
        command += ["--max-attempts", str(inputs.max_attempts)]
    rebat(command)


def _batsim_command(batsim: str, protocol: int, port: int, inputs: Inputs, folder: Path) -> list:
    name, address = str(folder), f"tcp://localhost:{port}"
    command = [batsim, "-p", f"{name}/platform.xml", "-w", f"{name}/w{protocol}.json"]
    flag = "--events" if protocol == 4 else "--ee"
    for file, lines in (("f", inputs.events), ("o", inputs.operations)):
        command += [flag, f"{name}/{file}{protocol}.events"] if lines else []
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
    if inputs.max_attempts:
        command += ["--max-attempts", str(inputs.max_attempts)]
    with (folder / "batsim.log").open("w") as log:
        process = subprocess.Popen(
            _batsim_command(batsim, protocol, port, inputs, folder), stdout=log, stderr=log
        )
    watch = threading.Timer(60, process.kill)
    watch.start()
    try:
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
    return "equal"


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
    conversation = Conversation(
        lambda _, began: session_for(inputs.policy, options, began), probes=True
    )
    engine = Engine5(
        [with_failing_parts(load_workload(folder / "w5.json"))],
        files=[read_texts(folder / f"{name}5.events", n) for n, name in enumerate("fo")],
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
