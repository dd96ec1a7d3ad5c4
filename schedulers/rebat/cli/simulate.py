# SPDX-License-Identifier: Apache-2.0
"""``rebat simulate``: the embedded engine as a replacement for Batsim 4 or 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from rebat.cli.command import command
from rebat.cli.options import File, Protocol
from rebat.core.declared import Machine, Seconds
from rebat.core.errors import Deadlock, InputError
from rebat.core.numbers import counted

if TYPE_CHECKING:
    from rebat.core.jobs import Workload
    from rebat.engine.engine import EngineOptions
    from rebat.platforms.simgrid_read import PlatformFacts


_FLAGS = (
    "enable_dynamic_jobs",
    "acknowledge_dynamic_jobs",
    "enable_profile_reuse",
    "forward_profiles_on_submission",
    "forward_unknown_events",
)
"""Options of Batsim 4 that enable features. In Batsim 5, the scheduler's first message does."""


class SimulateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``rebat simulate``."""

    workloads: Annotated[
        tuple[File, ...],
        "-w",
        "--workload",
        "Batsim workload or trace. Batsim 5 accepts several: w0, w1, ...",
    ]
    platform: Annotated[
        File | None,
        "-p",
        "--platform",
        "SimGrid platform. Its number of compute hosts is used, and their speed for profiles that only compute (parallel_homogeneous without communication). The hosts must then have equal speeds. The numbers of cores and hosts with other roles, such as storage, have no effect.",
    ] = None
    nodes: Annotated[
        Machine | None, "Number of hosts (default: the platform's, otherwise the workload's)."
    ] = None
    protocol: Annotated[Protocol, "Version of Batsim to imitate."] = 4
    events: Annotated[
        tuple[File, ...],
        "--events",
        "--ee",
        "Event file with failures and repairs of machines. May be repeated, for example for a file with operations.",
    ] = ()
    export: Annotated[
        str | None,
        "-e",
        "--export",
        "Prefix of the output files. Batsim 4: PREFIX_jobs.csv and PREFIX_schedule.csv (default: out). Batsim 5: PREFIXjobs.csv and PREFIXschedule.json (default: out/).",
    ] = None
    connect: Annotated[str, "-s", "--connect", "--socket-endpoint", "Address of the scheduler."] = (
        "tcp://localhost:28000"
    )
    enable_dynamic_jobs: Annotated[bool, "Allow the scheduler to register jobs (Batsim 4)."] = False
    acknowledge_dynamic_jobs: Annotated[
        bool, "Send the scheduler a message about each job that it registered (Batsim 4)."
    ] = False
    enable_profile_reuse: Annotated[
        bool, "Keep a profile after its last job has ended (Batsim 4)."
    ] = False
    forward_profiles_on_submission: Annotated[
        bool, "Send the profile of each job with its submission (Batsim 4)."
    ] = False
    forward_unknown_events: Annotated[
        bool, "Send events of unknown types to the scheduler (Batsim 4)."
    ] = False
    split_instants: Annotated[
        bool,
        "For tests of a scheduler: send simultaneous events in separate messages, as Batsim may do on platforms with latency.",
    ] = False
    split_failures: Annotated[
        bool,
        "For tests of a scheduler: send simultaneous lines of an event file in separate messages, as Batsim may do.",
    ] = False
    latency: Annotated[
        Seconds | None,
        "For tests of a scheduler: delay between a decision and its effect in whole microseconds, as on a platform with network latency.",
    ] = None
    sched_cfg: Annotated[
        str | None,
        "Configuration text that is sent to the scheduler (in Batsim 5: the text after -s).",
    ] = None
    quiet: Annotated[bool, "-q", "--quiet", "Print no progress and no file names."] = False
    timeout: Annotated[Seconds, "Stop if the scheduler sends no message for this duration."] = 600.0


@command()
def simulate(*, options: SimulateOptions) -> None:
    """Run any Batsim scheduler on the embedded engine instead of Batsim.

    Options with the same name as in Batsim have the same meaning. The engine has no network model.
    If a job needs a network model (parallel tasks), the command ends with an error. Use Batsim for
    these jobs. If a decision would make Batsim abort, the command ends with an error too.

    \b
    Examples, in two shells each (with a scheduler of pybatsim, and with rebat):
      pybatsim fillerSched
      rebat simulate -w workload.json -e out/run

    \b
      rebat serve --policy sfsj
      rebat simulate --protocol 5 -w workload.json --ee failures.events -e out/
    """
    (_simulate5 if options.protocol == 5 else _simulate4)(options)


def _report(paths: list[Path], options: SimulateOptions) -> None:
    if not options.quiet:
        for path in paths:
            click.echo(f"wrote {path}")


def _simulate4(options: SimulateOptions) -> None:
    """Simulate as Batsim 4 does, and write the files, also if the simulation cannot continue."""
    from rebat.engine.engine import Engine
    from rebat.models.failures.events import EventFile, machine_events_in, read_event_file
    from rebat.runs.single import write_batsim_files
    from rebat.wire.conversation import run_remote
    from rebat.workloads.load import load_workload

    for name, values, most in (
        ("--workload", options.workloads, 1),
        ("--events", options.events, 2),
    ):
        if len(values) > most:
            expected = f"at most {counted(most, 'file')}, or --protocol 5"
            raise InputError(f"names {len(values)} files", name, expected)
    jobs = load_workload(options.workloads[0])
    files = [*map(read_event_file, options.events), EventFile([]), EventFile([])]
    facts = _platform(options.platform)
    engine_options = _engine_options(
        options,
        speed_flops=_speed_flops(facts, [jobs], str(options.platform)),
        workload_path=str(options.workloads[0]),
        list_resources=True,
    )
    engine = Engine(
        jobs,
        n_nodes=_n_nodes(options, [jobs], facts),
        events=files[0].events,
        operations=files[1].events,
        options=engine_options,
    )
    outages = machine_events_in(file.events for file in files)
    prefix = options.export or "out"
    with _connected([jobs], options) as (ask, on_progress):
        try:
            run_remote(engine, ask, on_progress)
        except Deadlock:
            _report(write_batsim_files(prefix, engine, outages), options)
            raise
    _report(write_batsim_files(prefix, engine, outages), options)


def _simulate5(options: SimulateOptions) -> None:
    """Simulate as Batsim 5 does, and write the files, also if the simulation cannot continue."""
    from rebat.engine.batsim5 import Engine5
    from rebat.models.failures.events import machine_events_in, read_event_file, read_texts
    from rebat.runs.single import write_batsim5_files
    from rebat.wire.conversation import greet, run_remote
    from rebat.workloads.batsim5_json import with_failing_parts
    from rebat.workloads.load import load_workload

    for name in _FLAGS:
        if getattr(options, name):
            problem = "has no effect with --protocol 5"
            expected = "a scheduler that requests the feature"
            raise InputError(problem, "--" + name.replace("_", "-"), expected)
    jobs = [with_failing_parts(load_workload(path)) for path in options.workloads]
    texts = [read_texts(path, number) for number, path in enumerate(options.events)]
    outages = machine_events_in(read_event_file(path).events for path in options.events)
    facts = _platform(options.platform)
    n_nodes = _n_nodes(options, jobs, facts)
    speed_flops = _speed_flops(facts, jobs, str(options.platform))
    with _connected(jobs, options) as (ask, on_progress):
        features = greet(ask, options.sched_cfg or "")
        engine = Engine5(
            jobs,
            n_nodes=n_nodes,
            files=texts,
            paths=[str(path.absolute()) for path in options.workloads],
            options=_engine_options(
                options,
                speed_flops=speed_flops,
                dynamic_jobs=features.dynamic_registration,
                acknowledge_dynamic_jobs=features.acknowledge_dynamic_jobs,
                profile_reuse=features.profile_reuse,
                forward_profiles=features.forward_profiles_on_job_submission,
            ),
            arguments=msgspec.structs.asdict(features),
        )
        prefix = options.export or "out/"
        try:
            run_remote(engine, ask, on_progress)
        except Deadlock:
            _report(write_batsim5_files(prefix, engine, outages, schedule=False), options)
            raise
    _report(write_batsim5_files(prefix, engine, outages), options)


def _engine_options(options: SimulateOptions, **more: Any) -> EngineOptions:
    """Return the options of the engine. Options in ``more`` take precedence."""
    from rebat.core.units import to_us
    from rebat.engine.engine import EngineOptions

    given: dict[str, Any] = {
        "dynamic_jobs": options.enable_dynamic_jobs,
        "acknowledge_dynamic_jobs": options.acknowledge_dynamic_jobs,
        "profile_reuse": options.enable_profile_reuse,
        "forward_profiles": options.forward_profiles_on_submission,
        "forward_unknown_events": options.forward_unknown_events,
        "split_instants": options.split_instants,
        "split_failures": options.split_failures,
        "latency_us": to_us(options.latency or 0),
        "sched_config": options.sched_cfg or "",
    }
    return EngineOptions(**(given | more))


def _n_nodes(options: SimulateOptions, jobs: list[Workload], facts: PlatformFacts | None) -> int:
    """Return the number of hosts. Warn if the machine and the workload have different numbers."""
    from rebat.wire.conversation import other_machine

    largest = max(jobs, key=lambda workload: workload.n_nodes)
    n_hosts = options.nodes or (facts.n_hosts if facts else largest.n_nodes)
    if n_hosts != largest.n_nodes:
        machine = "machine" if options.nodes else "platform"
        text = other_machine(n_hosts, largest.name, largest.n_nodes, machine)
        click.echo(f"rebat: warning: {text}", err=True)
    return int(n_hosts)


@contextmanager
def _connected(
    jobs: list[Workload], options: SimulateOptions
) -> Iterator[tuple[Callable[[bytes], bytes], Any]]:
    """Yield the scheduler and the progress bar."""
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.models.node_pool import compile_kernels
    from rebat.wire.zmq_link import connect as connect_zmq

    n_jobs = sum(len(workload.jobs) for workload in jobs)
    bar = nullcontext() if options.quiet else simulation_bar(jobs[0].name, n_jobs)
    link = connect_zmq(options.connect, timeout_s=options.timeout)
    with compiling_notice():
        compile_kernels()  # before the scheduler waits for a message
        with link as ask, bar as on_progress:
            yield ask, on_progress


def _platform(path: Path | None) -> PlatformFacts | None:
    from rebat.platforms.simgrid_read import read_platform

    return None if path is None else read_platform(path)


def _speed_flops(facts: PlatformFacts | None, jobs: list[Workload], path: str) -> float:
    """Return the speed of the hosts. Without a platform it is 1 Gf, with a note if a profile computes."""
    if facts is None:
        from rebat.api.remarks import of_speed
        from rebat.console.output import print_remarks

        for workload in jobs:
            print_remarks(of_speed(workload))
        return 1e9
    if facts.speed_flops is not None:
        return facts.speed_flops
    for workload in jobs:
        for name, profile in workload.profiles.items():
            if "cpu" in profile:
                problem = f"its hosts have different speeds, but profile {name!r} computes"
                raise InputError(problem, path, "hosts of equal speed, or delay profiles")
    return 1e9
