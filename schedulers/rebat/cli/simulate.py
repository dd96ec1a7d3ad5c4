# SPDX-License-Identifier: Apache-2.0
"""``rebat simulate``: the embedded engine in Batsim's place on the wire."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from rebat.cli.types import DURATION, FILE, MACHINE


@click.command()
@click.option("-w", "--workload", type=FILE, required=True, help="Batsim workload (or a trace).")  # fmt: skip
@click.option("-p", "--platform", type=FILE, help="SimGrid platform: only its number of hosts counts.")  # fmt: skip
@click.option("--nodes", type=MACHINE, help="Number of hosts (default: the platform's, or the workload's).")  # fmt: skip
@click.option("--events", type=FILE, help="Machine events.")  # fmt: skip
@click.option("-e", "--export", default="out", show_default=True, help="Prefix of the files written: PREFIX_jobs.csv, PREFIX_schedule.csv.")  # fmt: skip
@click.option("-s", "--connect", "--socket-endpoint", default="tcp://localhost:28000", show_default=True, help="The scheduler's address.")  # fmt: skip
@click.option("--enable-dynamic-jobs", is_flag=True, help="The scheduler may register jobs.")  # fmt: skip
@click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Tell it of each that it registered.")  # fmt: skip
@click.option("--enable-profile-reuse", is_flag=True, help="Keep profiles whose last job ended.")  # fmt: skip
@click.option("--forward-profiles-on-submission", is_flag=True, help="Send each job's profile with it.")  # fmt: skip
@click.option("--forward-unknown-events", is_flag=True, help="Send events of types that Batsim does not know to the scheduler.")  # fmt: skip
@click.option("--split-instants", is_flag=True, help="Tell each thing that happens at one instant in a message of its own, as Batsim may on platforms with latency: a test of the scheduler.")  # fmt: skip
@click.option("--latency", type=DURATION, help="Let decisions take effect so much later (whole microseconds), as on a platform with network latency: a test of the scheduler.")  # fmt: skip
@click.option("--sched-cfg", default="", help="A text for the scheduler.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print no progress and no names of files.")
@click.option("--timeout", type=DURATION, default="10min", show_default=True, help="Give up when the scheduler is silent for so long.")  # fmt: skip
def simulate(
    workload: Path, platform: Path | None, nodes: int | None, events: Path | None, export: str,
    connect: str, enable_dynamic_jobs: bool, acknowledge_dynamic_jobs: bool,
    enable_profile_reuse: bool, forward_profiles_on_submission: bool,
    forward_unknown_events: bool, split_instants: bool, latency: float | None, sched_cfg: str, quiet: bool, timeout: float,
) -> None:  # fmt: skip
    """Stand in for Batsim: run any Batsim 4 scheduler on the embedded engine.

    Options that Batsim has too mean the same. Jobs that need the network model (parallel tasks)
    are refused: run them with Batsim.

    \b
    Example, with one of pybatsim's schedulers in another shell:
      pybatsim fillerSched
      rebat simulate -w workload.json -e out/run
    """
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.core.units import to_us
    from rebat.engine.engine import Engine
    from rebat.engine.options import EngineOptions
    from rebat.models.failures.events import EventFile, read_event_file
    from rebat.runs.single import write_batsim_files
    from rebat.wire.remote import run_remote
    from rebat.wire.zmq_link import connect as connect_zmq
    from rebat.workloads.load import load_workload

    jobs = load_workload(workload)
    external = read_event_file(events) if events else EventFile([])
    options = EngineOptions(
        dynamic_jobs=enable_dynamic_jobs,
        acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
        profile_reuse=enable_profile_reuse,
        forward_profiles=forward_profiles_on_submission,
        forward_unknown_events=forward_unknown_events,
        split_instants=split_instants,
        latency_us=to_us(latency or 0),
        sched_config=sched_cfg,
        workload_path=str(workload),
        list_resources=True,
    )
    n_nodes = nodes or (_hosts(platform) if platform else jobs.n_nodes)
    engine = Engine(jobs, n_nodes=n_nodes, events=external.events, options=options)
    bar = nullcontext() if quiet else simulation_bar(jobs.name, len(jobs.jobs))
    with compiling_notice(), connect_zmq(connect, timeout_s=timeout) as ask, bar as on_progress:
        run_remote(engine, ask, on_progress)
    for path in write_batsim_files(export, engine, external.machine_events):
        if not quiet:
            click.echo(f"wrote {path}")


def _hosts(platform: Path) -> int:
    """Compute hosts of a platform file (its master host does not count)."""
    from rebat.platforms.simgrid_xml import read_platform

    return read_platform(platform).n_hosts
