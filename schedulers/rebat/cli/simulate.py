# SPDX-License-Identifier: Apache-2.0
"""``rebat simulate``: the embedded engine as a replacement for Batsim."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from rebat.cli.types import DURATION, FILE, MACHINE


@click.command()
@click.option("-w", "--workload", type=FILE, required=True, help="Batsim workload or trace.")  # fmt: skip
@click.option("-p", "--platform", type=FILE, help="SimGrid platform, used only for its number of hosts.")  # fmt: skip
@click.option("--nodes", type=MACHINE, help="Number of hosts (default: the platform's, otherwise the workload's).")  # fmt: skip
@click.option("--events", type=FILE, help="Event file with the machine events.")  # fmt: skip
@click.option("-e", "--export", default="out", show_default=True, help="Prefix of the output files PREFIX_jobs.csv and PREFIX_schedule.csv.")  # fmt: skip
@click.option("-s", "--connect", "--socket-endpoint", default="tcp://localhost:28000", show_default=True, help="Address of the scheduler.")  # fmt: skip
@click.option("--enable-dynamic-jobs", is_flag=True, help="Allow the scheduler to register jobs.")  # fmt: skip
@click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Send the scheduler a message about each job that it registered.")  # fmt: skip
@click.option("--enable-profile-reuse", is_flag=True, help="Keep a profile after its last job has ended.")  # fmt: skip
@click.option("--forward-profiles-on-submission", is_flag=True, help="Send the profile of each job with its submission.")  # fmt: skip
@click.option("--forward-unknown-events", is_flag=True, help="Send events of unknown types to the scheduler.")  # fmt: skip
@click.option("--split-instants", is_flag=True, help="For tests of a scheduler: send simultaneous events in separate messages, as Batsim may do on platforms with latency.")  # fmt: skip
@click.option("--latency", type=DURATION, help="For tests of a scheduler: delay between a decision and its effect (whole microseconds), as on a platform with network latency.")  # fmt: skip
@click.option("--sched-cfg", default="", help="Configuration text passed to the scheduler.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print no progress and no file names.")
@click.option("--timeout", type=DURATION, default="10min", show_default=True, help="Stop if the scheduler sends no message for this duration.")  # fmt: skip
def simulate(
    workload: Path, platform: Path | None, nodes: int | None, events: Path | None, export: str,
    connect: str, enable_dynamic_jobs: bool, acknowledge_dynamic_jobs: bool,
    enable_profile_reuse: bool, forward_profiles_on_submission: bool,
    forward_unknown_events: bool, split_instants: bool, latency: float | None, sched_cfg: str, quiet: bool, timeout: float,
) -> None:  # fmt: skip
    """Run any Batsim 4 scheduler on the embedded engine instead of Batsim.

    Options with the same name as in Batsim have the same meaning. Jobs that need the network model
    (parallel tasks) are an error: run them with Batsim.

    \b
    Example, in two shells (with a scheduler of pybatsim):
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
    """Return the number of compute hosts of a platform file, without the master host."""
    from rebat.platforms.simgrid_xml import read_platform

    return read_platform(platform).n_hosts
