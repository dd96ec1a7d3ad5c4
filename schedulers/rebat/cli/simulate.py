# SPDX-License-Identifier: Apache-2.0
"""``rebat simulate``: the embedded engine as a replacement for Batsim 4 or 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.types import DURATION, FILE, MACHINE, PROTOCOL
from rebat.core.errors import Deadlock, InputError
from rebat.core.formatting import counted

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


@click.command()
@click.option(
    "-w",
    "--workload",
    "workloads",
    type=FILE,
    multiple=True,
    required=True,
    help="Batsim workload or trace. Batsim 5 accepts several: w0, w1, ...",
)
@click.option(
    "-p",
    "--platform",
    type=FILE,
    help="SimGrid platform. Its number of compute hosts is used, and their speed for profiles that only compute (parallel_homogeneous without communication). The hosts must then have equal speeds. The numbers of cores and hosts with other roles, such as storage, have no effect.",
)
@click.option(
    "--nodes",
    type=MACHINE,
    help="Number of hosts (default: the platform's, otherwise the workload's).",
)
@click.option(
    "--protocol", type=PROTOCOL, default=4, show_default=True, help="Version of Batsim to imitate."
)
@click.option(
    "--events",
    "--ee",
    "events",
    type=FILE,
    multiple=True,
    help=(
        "Event file with failures and repairs of machines. May be repeated, for example for a file "
        "with operations."
    ),
)
@click.option(
    "-e",
    "--export",
    help=(
        "Prefix of the output files. Batsim 4: PREFIX_jobs.csv and PREFIX_schedule.csv "
        "(default: out). Batsim 5: PREFIXjobs.csv and PREFIXschedule.json (default: out/)."
    ),
)
@click.option(
    "-s",
    "--connect",
    "--socket-endpoint",
    default="tcp://localhost:28000",
    show_default=True,
    help="Address of the scheduler.",
)
@click.option(
    "--enable-dynamic-jobs", is_flag=True, help="Allow the scheduler to register jobs (Batsim 4)."
)
@click.option(
    "--acknowledge-dynamic-jobs",
    is_flag=True,
    help="Send the scheduler a message about each job that it registered (Batsim 4).",
)
@click.option(
    "--enable-profile-reuse",
    is_flag=True,
    help="Keep a profile after its last job has ended (Batsim 4).",
)
@click.option(
    "--forward-profiles-on-submission",
    is_flag=True,
    help="Send the profile of each job with its submission (Batsim 4).",
)
@click.option(
    "--forward-unknown-events",
    is_flag=True,
    help="Send events of unknown types to the scheduler (Batsim 4).",
)
@click.option(
    "--split-instants",
    is_flag=True,
    help="For tests of a scheduler: send simultaneous events in separate messages, as Batsim may do on platforms with latency.",
)
@click.option(
    "--split-failures",
    is_flag=True,
    help="For tests of a scheduler: send simultaneous lines of an event file in separate messages, as Batsim may do.",
)
@click.option(
    "--latency",
    type=DURATION,
    help=(
        "For tests of a scheduler: delay between a decision and its effect in whole "
        "microseconds, as on a platform with network latency."
    ),
)
@click.option(
    "--sched-cfg",
    default="",
    help="Configuration text that is sent to the scheduler (in Batsim 5: the text after -s).",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no progress and no file names.")
@click.option(
    "--timeout",
    type=DURATION,
    default="10min",
    show_default=True,
    help="Stop if the scheduler sends no message for this duration.",
)
def simulate(protocol: int, quiet: bool, **options: Any) -> None:
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
    files = _simulate5(quiet, **options) if protocol == 5 else _simulate4(quiet, **options)
    for path in files:
        if not quiet:
            click.echo(f"wrote {path}")


def _simulate4(
    quiet: bool,
    *,
    workloads: tuple[Path, ...],
    events: tuple[Path, ...],
    export: str | None,
    **options: Any,
) -> list[Path]:
    """Simulate as Batsim 4 does, and return the written files."""
    from rebat.engine.engine import Engine
    from rebat.models.failures.events import EventFile, read_event_file
    from rebat.runs.single import write_batsim_files
    from rebat.wire.conversation import run_remote
    from rebat.workloads.load import load_workload

    for name, values, most in (("--workload", workloads, 1), ("--events", events, 2)):
        if len(values) > most:
            expected = f"at most {counted(most, 'file')}, or --protocol 5"
            raise InputError(f"names {len(values)} files", name, expected)
    jobs = load_workload(workloads[0])
    files = [*map(read_event_file, events), EventFile([]), EventFile([])]
    facts = _platform(options["platform"])
    engine_options = _engine_options(
        options,
        speed_flops=_speed_flops(facts, [jobs], str(options["platform"])),
        workload_path=str(workloads[0]),
        list_resources=True,
    )
    engine = Engine(
        jobs,
        n_nodes=_n_nodes(options, [jobs], facts),
        events=files[0].events,
        operations=files[1].events,
        options=engine_options,
    )
    with _connected([jobs], quiet, options) as (ask, on_progress):
        run_remote(engine, ask, on_progress)
    machine_events = [event for file in files for event in file.machine_events]
    return write_batsim_files(
        export or "out", engine, sorted(machine_events, key=attrgetter("at_us"))
    )


def _simulate5(
    quiet: bool,
    *,
    workloads: tuple[Path, ...],
    events: tuple[Path, ...],
    export: str | None,
    **options: Any,
) -> list[Path]:
    """Simulate as Batsim 5 does, and return the written files."""
    import msgspec

    from rebat.engine.batsim5 import Engine5
    from rebat.models.failures.events import machine_events_in, read_event_file, read_texts
    from rebat.runs.single import write_batsim5_files
    from rebat.wire.conversation import greet, run_remote
    from rebat.workloads.batsim5_json import with_failing_parts
    from rebat.workloads.load import load_workload

    for name in _FLAGS:
        if options[name]:
            problem = "has no effect with --protocol 5"
            expected = "a scheduler that requests the feature"
            raise InputError(problem, "--" + name.replace("_", "-"), expected)
    jobs = [with_failing_parts(load_workload(path)) for path in workloads]
    texts = [read_texts(path, number) for number, path in enumerate(events)]
    outages = machine_events_in(read_event_file(path).events for path in events)
    facts = _platform(options["platform"])
    n_nodes = _n_nodes(options, jobs, facts)
    speed_flops = _speed_flops(facts, jobs, str(options["platform"]))
    with _connected(jobs, quiet, options) as (ask, on_progress):
        features = greet(ask, options["sched_cfg"])
        engine = Engine5(
            jobs,
            n_nodes=n_nodes,
            files=texts,
            paths=[str(path.absolute()) for path in workloads],
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
        prefix = export or "out/"
        try:
            run_remote(engine, ask, on_progress)
        except Deadlock:
            write_batsim5_files(prefix, engine, outages, schedule=False)
            raise
    return write_batsim5_files(prefix, engine, outages)


def _engine_options(options: dict[str, Any], **more: Any) -> EngineOptions:
    """Return the options of the engine. Options in ``more`` take precedence."""
    from rebat.core.units import to_us
    from rebat.engine.engine import EngineOptions

    given = {
        "dynamic_jobs": options["enable_dynamic_jobs"],
        "acknowledge_dynamic_jobs": options["acknowledge_dynamic_jobs"],
        "profile_reuse": options["enable_profile_reuse"],
        "forward_profiles": options["forward_profiles_on_submission"],
        "forward_unknown_events": options["forward_unknown_events"],
        "split_instants": options["split_instants"],
        "split_failures": options["split_failures"],
        "latency_us": to_us(options["latency"] or 0),
        "sched_config": options["sched_cfg"],
    }
    return EngineOptions(**(given | more))


def _n_nodes(options: dict[str, Any], jobs: list[Workload], facts: PlatformFacts | None) -> int:
    """Return the number of hosts. Warn if the platform and the workload have different numbers."""
    from rebat.wire.conversation import other_machine

    if options["nodes"]:
        return int(options["nodes"])
    expected = max(workload.n_nodes for workload in jobs)
    if facts is None:
        return expected
    n_hosts = facts.n_hosts
    if n_hosts != expected:
        text = other_machine(n_hosts, jobs[0].name, expected)
        click.echo(f"rebat: warning: {text}", err=True)
    return n_hosts


@contextmanager
def _connected(
    jobs: list[Workload], quiet: bool, options: dict[str, Any]
) -> Iterator[tuple[Callable[[bytes], bytes], Any]]:
    """Yield the scheduler and the progress bar."""
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.wire.zmq_link import connect as connect_zmq

    n_jobs = sum(len(workload.jobs) for workload in jobs)
    bar = nullcontext() if quiet else simulation_bar(jobs[0].name, n_jobs)
    link = connect_zmq(options["connect"], timeout_s=options["timeout"])
    with compiling_notice(), link as ask, bar as on_progress:
        yield ask, on_progress


def _platform(path: Path | None) -> PlatformFacts | None:
    from rebat.platforms.simgrid_read import read_platform

    return None if path is None else read_platform(path)


def _speed_flops(facts: PlatformFacts | None, jobs: list[Workload], path: str) -> float:
    """Return the speed of the hosts. Without a platform it is 1 Gf, with a note if a profile computes."""
    if facts is None:
        from rebat.console.output import print_remarks
        from rebat.library.remarks import of_speed

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
