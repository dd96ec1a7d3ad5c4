# SPDX-License-Identifier: Apache-2.0
"""``rebat workload``: traces in, workloads out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.output_file import workload_file
from rebat.cli.scenario_options import PREPARATION, scenario_options
from rebat.cli.types import (
    DURATION,
    FILE,
    MACHINE,
    NODES,
    SEED,
    WORKLOAD,
    FiniteRange,
)
from rebat.core.errors import InputError
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.runs.options import ScenarioOptions

SHARE = FiniteRange(min=0, max=1)


@click.group()
def workload() -> None:
    """Import, generate, prepare and describe workloads (Batsim's JSON)."""


@workload.command(name="import")
@click.argument("trace", type=FILE)
@workload_file
@click.option("--month", "months", multiple=True, metavar="YYYY-MM", help="Keep this month; may be repeated.")  # fmt: skip
@click.option("--by", type=click.Choice(["submit", "start"]), default="submit", show_default=True, help="Which date decides on the month.")  # fmt: skip
@click.option("--tz", default="UTC", show_default=True, help="Time zone of the months and of dates without one.")  # fmt: skip
@click.option("--nodes", "n_nodes", type=MACHINE, help="Nodes of the machine (default: what the trace says).")  # fmt: skip
@click.option("--size", type=click.Choice(["requested", "allocated"]), default="requested", show_default=True, help="Which number of nodes to believe first.")  # fmt: skip
@click.option("--cap", type=NODES, help="Cut larger jobs to this size (the paper: 49000 on Mira).")  # fmt: skip
@click.option("--overrun", type=click.Choice(["raise-walltime", "clamp", "drop", "keep"]), default="raise-walltime", show_default=True, help="Jobs that outran their walltime: raise it to run time + 1 s, cut the run, drop the job, or let Batsim kill it.")  # fmt: skip
@click.option("--missing-walltime", type=click.Choice(["run", "none", "drop"]), default="run", show_default=True, help="Jobs without walltime: run time + 1 s, no bound, or drop.")  # fmt: skip
@click.option("--origin", type=click.Choice(["first-job", "month"]), default="first-job", show_default=True, help="Where time zero lies.")  # fmt: skip
@click.option("--first", "first_s", type=DURATION, help="Keep submissions from here on, counted from time zero.")  # fmt: skip
@click.option("--last", "last_s", type=DURATION, help="Keep submissions before this, counted from time zero.")  # fmt: skip
@click.option("--max-jobs", type=NODES, help="Keep only the first so many jobs.")  # fmt: skip
def import_(trace: Path, out: Path, **options: Any) -> None:
    """Turn a trace (SWF, or ALCF's DIM_JOB_COMPOSITE CSV; plain or .gz) into a workload.

    \b
    Example, one month of Mira as the paper prepares it:
      rebat workload import mira.swf.gz --month 2018-11 --cap 49000 -o november.json.gz
    """
    from rebat.models.checkpoint import n_below_period
    from rebat.workloads.batsim_json import write_workload
    from rebat.workloads.load import load_workload

    options["months"] = options["months"] or None
    imported = load_workload(trace, **options)
    write_workload(imported, out)
    for note in imported.notes:
        click.echo(f"  {note}")
    if imported.jobs:
        short = n_below_period(imported, imported.n_nodes, 86_400, 300) / len(imported.jobs)
        click.echo(
            f"  {short:.1%} of the jobs are shorter than one Young/Daly period for an MTBF of 1 d and "
            "checkpoints of 5 min"
        )
    click.echo(f"{out}: {len(imported.jobs)} jobs, {imported.n_nodes} nodes")


@workload.command()
@click.argument("name")
@click.option("--seed", type=SEED, default=0, show_default=True)
@workload_file
def generate(name: str, seed: int, out: Path) -> None:
    """Generate a workload: june-2017, march-2018, intrepid-june-2013, synthetic, torus-load,
    cirne-berman or cluster-day.

    The months have every number that the node-stealing paper prints of the real ones (Tables 2 and
    3, section 5.2); 'synthetic' is its section 6.3. None of them is the real trace.
    'torus-load' is a load for a machine that hands out boxes, torus-load:load=80,nodes=4096,days=30
    where nothing else is said: sizes are powers of two, the load is in percent of the nodes.
    'cirne-berman' has rigid, moldable and malleable jobs after Prabhakaran et al. 2018: mix=mixed,
    moldable-rigid or malleable-rigid with jobs=1000, or rigid=400,moldable=300,malleable=300;
    processors=500; accuracy=1 (run time / estimate); arrivals=zero, poisson, or a trace's file,
    with load=80 (in percent, from the first arrival to the last) or gap_s=60 (the mean gap).
    'cluster-day' is a day of 8 nodes of 16 cores after Rodríguez-Pascual et al. 2019: load=50 in
    percent, parallelism=2 and length_s=1800 (means), nodes, cores, hours, accuracy=1, memory_mb=100
    (of a task), eternal=0 (serial jobs without an end).

    \b
    Examples:
      rebat workload generate torus-load:load=95 -o torus.json.gz
      rebat workload generate cirne-berman:mix=mixed,arrivals=sdsc.swf,load=80 -o mixed.json.gz
      rebat workload generate cluster-day:load=75,eternal=40 --seed 1 -o day.json.gz
    """
    from rebat.workloads.batsim_json import write_workload
    from rebat.workloads.generate import generator

    made = generator(name)(seed)
    write_workload(made, out)
    click.echo(f"{out}: {len(made.jobs)} jobs, {made.n_nodes} nodes")


@workload.command()
@click.argument("file", type=WORKLOAD)
@click.option("--malleable", type=SHARE, default=0.0, show_default=True, help="Share of the rigid jobs that become malleable: from a quarter of their size to twice that.")  # fmt: skip
@click.option("--moldable", type=SHARE, default=0.0, show_default=True, help="Share that becomes moldable: a quarter, half, all or twice of their size.")  # fmt: skip
@click.option("--sigma", type=FiniteRange(min=0), help="Variance of the parallelism in Downey's speedup (default: drawn for each job, uniform from 0 to 2).")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True)
@workload_file
def flex(file: Path, out: Path, **options: Any) -> None:
    """Make shares of the rigid jobs in FILE, a workload or trace, moldable and malleable.

    Sizes stay on the machine; speedups are Downey's, and useful up to the largest size. With the
    same seed a larger share keeps the jobs of a smaller one.

    \b
    Example:
      rebat workload flex june.json.gz --malleable 0.3 --moldable 0.2 --seed 1 -o june-flex.json.gz
    """
    from rebat.workloads.batsim_json import write_workload
    from rebat.workloads.flex import flex as flexible
    from rebat.workloads.load import load_workload

    if not options["malleable"] and not options["moldable"]:
        raise InputError("nothing to change", str(file), "--malleable or --moldable")
    made = flexible(load_workload(file), **options)
    write_workload(made, out)
    click.echo(f"{out}: {made.notes[-1]}")


@workload.command()
@click.argument("file", type=WORKLOAD, metavar="WORKLOAD")
@workload_file
@scenario_options(
    "mtbf", *PREPARATION, "seed", "nodes",
    mtbf="Mean time between failures of the whole machine, for the checkpoint period.",
    seed="Seed of the silent errors.",
)  # fmt: skip
def prepare(file: Path, out: Path, **options: Any) -> None:
    """Write WORKLOAD as 'rebat run' runs it with the same options: checkpoints, silent errors.

    A run of what is written, without these options, is the same run: under a real Batsim, and for
    'rebat validate --workload'.

    \b
    Example:
      rebat workload prepare june.json.gz --checkpoint young-daly --mtbf 1h -o june-1h.json.gz
    """
    import msgspec

    from rebat.library.remarks import of_checkpoints
    from rebat.runs.options import ScenarioOptions
    from rebat.runs.staging import prepared
    from rebat.workloads.batsim_json import write_workload
    from rebat.workloads.load import load_workload

    given = ScenarioOptions(**options)
    if given.mtbf is not None and given.checkpoint != "young-daly":
        raise InputError("has no effect", "--mtbf", "--checkpoint young-daly with it")
    found = load_workload(file)
    n_nodes = given.nodes or found.n_nodes
    made = prepared(found, given.scenario())
    if made is found:
        expected = "--checkpoint, --silent-errors or --silent-error-probability"
        raise InputError("nothing to prepare", str(file), expected)
    for remark in of_checkpoints(found, given.scenario().checkpoint, n_nodes):
        click.echo(f"  {remark.text}")
    note = f"prepared for {n_nodes} nodes: {_in_words(given)}"
    write_workload(msgspec.structs.replace(made, n_nodes=n_nodes, notes=(*made.notes, note)), out)
    click.echo(f"{out}: {len(made.jobs)} jobs, {n_nodes} nodes")


def _in_words(given: ScenarioOptions) -> str:
    """What was asked for, in words."""
    texts = []
    if given.checkpoint == "perfect":
        texts.append("perfect checkpoints")
    if given.checkpoint == "young-daly":
        texts.append(
            f"{given.checkpoint} checkpoints, MTBF {given.mtbf:.12g} s, "
            f"checkpoint {given.checkpoint_cost:.12g} s, "
            f"recovery {given.recovery_cost:.12g} s, {given.checkpoint_rounding}"
        )
    if given.silent_errors is not None:
        texts.append(f"silent errors at {given.silent_errors:g}, seed {given.seed}")
    if given.silent_error_probability is not None:
        probability = f"{given.silent_error_probability:g}"
        texts.append(f"silent errors with probability {probability}, seed {given.seed}")
    return "; ".join(texts)


@workload.command()
@click.argument("file", type=WORKLOAD)
@click.option("--period", type=DURATION, help="Length over which the stress is taken (default: first to last submission).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def describe(file: Path, period: float | None, as_json: bool) -> None:
    """Say what a workload or trace asks of its machine."""
    import json

    from rebat.workloads.describe import describe as facts_of
    from rebat.workloads.load import load_workload

    facts = facts_of(load_workload(file), period)
    click.echo(json.dumps(facts, indent=2) if as_json else "\n".join(_lines(facts)))


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [
        f"{facts['jobs']} jobs for {facts['nodes']} nodes, "
        f"submitted over {format_duration(facts['span_s'])}"
    ]
    if facts["stress"] is not None:
        lines.append(f"stress            {facts['stress']:.2%}")
    for key, label in (("run_time_s", "run time"), ("walltime_s", "walltime")):
        if facts[key]:
            parts = (f"{name} {format_duration(value)}" for name, value in facts[key].items())
            lines.append(f"{label:<18}" + ", ".join(parts))
    lines += [f"jobs of {name:<15} {count:>7}" for name, count in facts["size_classes"].items()]
    lines += _flexible_lines(facts)
    for key, label in (
        ("without_walltime", "jobs without walltime"),
        ("eternal", "jobs without an end"),
        ("over_walltime", "jobs that outrun their walltime"),
        ("too_large", "jobs larger than the machine"),
    ):
        if facts[key]:
            lines.append(f"{label}: {facts[key]}")
    return lines + [f"note: {note}" for note in facts["notes"]]


def _flexible_lines(facts: dict[str, Any]) -> list[str]:
    """Of jobs that can run on several sizes, and of speedups, where there are any."""
    lines = []
    if set(facts["shapes"]) - {"rigid"}:
        for kind, of in facts["shapes"].items():
            name, range_ = f"{kind} jobs", f"{of['min']} to {of['max']}"
            lines.append(f"{name:<23} {of['jobs']:>7}, on {range_} nodes")
    for model, count in facts["speedups"].items():
        name = f"speedups {model}"
        lines.append(f"{name:<23} {count:>7} jobs")
    return lines
