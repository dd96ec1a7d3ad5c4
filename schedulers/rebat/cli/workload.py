# SPDX-License-Identifier: Apache-2.0
"""``rebat workload``: convert traces, generate and prepare workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.completing import complete_generator
from rebat.cli.effects import used_options
from rebat.cli.output_file import output_file, workload_file
from rebat.cli.scenario_options import PREPARATION, scenario_options
from rebat.cli.types import SEED, WORKLOAD, WORKLOAD_OR_RUN, FiniteRange
from rebat.cli.workload_describe import describe
from rebat.cli.workload_import import import_
from rebat.core.errors import InputError
from rebat.core.formatting import counted

if TYPE_CHECKING:
    from rebat.runs.scenario import ScenarioOptions

SHARE = FiniteRange(min=0, max=1)


@click.group()
def workload() -> None:
    """Import, generate, prepare and describe workloads (JSON files of Batsim)."""


@workload.command()
@click.argument("name", shell_complete=complete_generator)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the workload.")
@workload_file
def generate(name: str, seed: int, out: Path) -> None:
    """Generate a workload by name.

    Append parameters as NAME:PARAMETER=VALUE,... The names are:

    june-2017, march-2018, intrepid-june-2013: random months with the statistics of the real months
    in the node-stealing paper (Tables 2 and 3, section 5.2). They are not the real traces.
    Parameters: order=random or sessions (series of similar jobs), walltimes=uniform, mira or exact.

    synthetic: the workload of section 6.3 of the same paper.

    torus-load: jobs for a machine that allocates boxes. Sizes are powers of two. Parameters:
    load=80 (percent of the nodes), nodes=4096, days=30.

    cirne-berman: rigid, moldable and malleable jobs (Prabhakaran et al. 2018). For the jobs, set
    either mix=mixed (or moldable-rigid, malleable-rigid) and jobs=1000, or the number of each kind:
    rigid=400,moldable=300,malleable=300. For the arrivals, set arrivals=zero, poisson or a trace
    file. Except with zero, also set load=80 (percent, from the first to the last arrival) or
    gap_s=60 (mean time between arrivals). Further parameters: processors=500, accuracy=1 (run time
    / estimate).

    cluster-day: a day of 8 nodes with 16 cores (Rodríguez-Pascual et al. 2019). Parameters: load=50
    (percent), parallelism=2 and length_s=1800 (means), nodes, cores, hours, accuracy=1,
    memory_mb=100 (per task), eternal=0 (serial jobs without an end).

    training-cluster: many small jobs and few large jobs, as on RSC-1. Parameters: nodes=2000,
    gpus=8 (per node), days=30, load=83 (percent), flagship=0 (nodes of a job that is submitted
    first), flagship_days=30, malleable=0 (percent of the jobs).

    \b
    Examples:
      rebat workload generate torus-load:load=95 -o torus.json.gz
      rebat workload generate cirne-berman:mix=mixed,arrivals=sdsc.swf,load=80 -o mixed.json.gz
      rebat workload generate training-cluster:nodes=256,days=7,flagship=128 -o training.json.gz
      rebat workload generate cluster-day:load=75,eternal=40 --seed 1 -o day.json.gz
    """
    from rebat.workloads.generate import generator
    from rebat.workloads.load import save_workload

    generated = generator(name)(seed)
    save_workload(generated, out)
    click.echo(
        f"{out}: {counted(len(generated.jobs), 'job')}, {counted(generated.n_nodes, 'node')}"
    )


@workload.command()
@click.argument("file", type=WORKLOAD)
@click.option(
    "--malleable",
    type=SHARE,
    default=0.0,
    show_default=True,
    help="Share of the rigid jobs that become malleable. They can run on a quarter of their nodes up to twice their nodes.",
)
@click.option(
    "--moldable",
    type=SHARE,
    default=0.0,
    show_default=True,
    help="Share of the rigid jobs that become moldable. They can run on a quarter, a half, all or twice their nodes.",
)
@click.option(
    "--sigma",
    type=FiniteRange(min=0),
    help="Variance of the parallelism in Downey's speedup (default: drawn per job, uniform in 0 to 2).",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed that determines the changed jobs and their speedups.",
)
@click.option(
    "--own-spares",
    metavar="N|P%",
    help="Spare nodes of each job that remains rigid: a number, or a percentage of its nodes (rounded up).",
)
@workload_file
def flex(file: Path, out: Path, own_spares: str | None, **options: Any) -> None:
    """Make rigid jobs moldable or malleable, or give them spare nodes.

    FILE is a workload or a trace. The options set which shares of its rigid jobs become moldable
    and malleable. No job gets more nodes than the machine has. Speedups follow Downey's model. With
    the same seed, a higher share selects the same jobs plus additional ones.

    A job with spare nodes requests more nodes than it needs. It continues when some of its nodes
    fail. Run these jobs with malleable=fixed and react=replacement.

    \b
    Examples:
      rebat workload flex june.json.gz --malleable 0.3 --moldable 0.2 --seed 1 -o june-flex.json.gz
      rebat workload flex june.json.gz --own-spares 2 -o spares.json.gz
      rebat run spares.json.gz --mtbf 1h -p sa:malleable=fixed,react=replacement
    """
    from rebat.workloads.flexible_load import flex as flexible
    from rebat.workloads.flexible_load import with_own_spares
    from rebat.workloads.load import load_workload, save_workload

    shares = options["malleable"] or options["moldable"]
    if not shares and not own_spares:
        expected = "--malleable, --moldable or --own-spares"
        raise InputError("no change is requested", str(file), expected)
    original = load_workload(file)
    flexed = flexible(original, **options) if shares else original
    flexed = with_own_spares(flexed, own_spares) if own_spares else flexed
    save_workload(flexed, out)
    click.echo(f"{out}: {'; '.join(flexed.notes[len(original.notes) :])}")


@workload.command()
@click.argument("file", type=WORKLOAD, metavar="WORKLOAD")
@workload_file
@scenario_options(
    "mtbf",
    *PREPARATION,
    "seed",
    "nodes",
    mtbf="Mean time between failures of the entire machine, for the checkpoint period.",
    seed="Seed of the silent errors.",
)
@click.option(
    "--drop-checkpoints",
    is_flag=True,
    help="Remove the checkpoints of the workload first, from run times and walltimes too.",
)
def prepare(file: Path, out: Path, drop_checkpoints: bool, **options: Any) -> None:
    """Add checkpoints and silent errors to a workload, or remove its checkpoints.

    The result is the workload that 'rebat run' simulates with the same options. Use the prepared
    workload on a real Batsim and for 'rebat validate --workload', without these options.

    \b
    Example:
      rebat workload prepare june.json.gz --checkpoint young-daly --mtbf 1h -o june-1h.json.gz
    """
    import msgspec

    from rebat.library.checks import check_options
    from rebat.library.remarks import of_checkpoints
    from rebat.models.checkpoint import without_checkpoints
    from rebat.runs.scenario import ScenarioOptions
    from rebat.runs.staging import has_checkpoints, prepared
    from rebat.workloads.load import load_workload, save_workload

    scenario = ScenarioOptions(**options)
    check_options(scenario, used_options(), preparing=True)
    original = load_workload(file)
    loaded, notes = original, list[str]()
    if drop_checkpoints:
        if not has_checkpoints(original):
            problem = "has no effect: the workload has no checkpoints"
            raise InputError(problem, "--drop-checkpoints", "no --drop-checkpoints")
        loaded, notes = without_checkpoints(original), ["without the checkpoints of its source"]
    n_nodes = scenario.nodes or loaded.n_nodes
    with_additions = prepared(loaded, scenario.scenario())
    if with_additions is original:
        expected = "--checkpoint, --drop-checkpoints, --silent-errors or --silent-error-probability"
        raise InputError("no preparation is requested", str(file), expected)
    for remark in of_checkpoints(loaded, scenario.scenario().checkpoint, n_nodes):
        click.echo(f"  {remark.text}")
    if words := _in_words(scenario):
        notes.append(f"prepared for {n_nodes} nodes: {words}")
    save_workload(
        msgspec.structs.replace(
            with_additions, n_nodes=n_nodes, notes=(*with_additions.notes, *notes)
        ),
        out,
    )
    click.echo(f"{out}: {counted(len(with_additions.jobs), 'job')}, {counted(n_nodes, 'node')}")


def _in_words(scenario: ScenarioOptions) -> str:
    """Return a text that describes the checkpoints and silent errors that were added."""
    texts = []
    if scenario.checkpoint == "perfect":
        texts.append("perfect checkpoints")
    if scenario.checkpoint == "young-daly":
        texts.append(
            f"{scenario.checkpoint} checkpoints, MTBF {scenario.mtbf:.12g} s, "
            f"checkpoint {scenario.checkpoint_cost:.12g} s, "
            f"recovery {scenario.recovery_cost:.12g} s, {scenario.checkpoint_rounding}"
        )
    if scenario.checkpoint == "tiers:auto":
        texts.append(f"checkpoints in tiers {scenario.tiers}, MTBF {scenario.mtbf:.12g} s")
    if scenario.silent_errors is not None:
        texts.append(f"silent errors at {scenario.silent_errors:g}, seed {scenario.seed}")
    if scenario.silent_error_probability is not None:
        probability = f"{scenario.silent_error_probability:g}"
        texts.append(f"silent errors with probability {probability}, seed {scenario.seed}")
    return "; ".join(texts)


@workload.command()
@click.argument("file", type=WORKLOAD_OR_RUN)
@click.option(
    "--format",
    "form",
    type=click.Choice(["swf", "batsim4", "batsim5", "parquet"]),
    default="swf",
    show_default=True,
    help="swf: trace. batsim4, batsim5: workload for Batsim. parquet: workload for rebat.",
)
@click.option(
    "--workload",
    "of",
    type=WORKLOAD,
    help=(
        "If FILE is the folder of a run: the workload of this run. It provides users, queues "
        "and the date of time 0."
    ),
)
@click.option(
    "--name",
    metavar="wN",
    help="For batsim5: the name that Batsim gives to the workload, w0 for the first -w (default), w1 for the second.",
)
@output_file("File to write (.gz: compressed).")
def export(file: Path, form: str, of: Path | None, name: str | None, out: Path) -> None:
    """Write a workload, or the results of a policy, in another format.

    swf: a trace in the Standard Workload Format. Jobs, users and queues are numbered. A workload
    has no waiting times, and its times are rounded to seconds.

    batsim5: a workload for Batsim 5. Additional fields, such as checkpoints and shapes, are in
    extra_data. batsim4: a workload for Batsim 4. All commands read both forms.

    parquet: a workload for rebat, which reads it faster than JSON.

    If FILE is the folder of a policy, the trace has waiting times, allocated nodes and status. A
    job with several attempts has a summary line and a line per attempt, as the format defines for
    partial executions (status 2 to 4).

    \b
    Examples:
      rebat workload export jobs.json.gz -o jobs.swf
      rebat workload export jobs.json.gz --format batsim5 -o jobs5.json
      rebat workload export out/june/sfsj --workload june.json.gz -o sfsj.swf
    """
    from rebat.workloads.batsim5_json import to_five
    from rebat.workloads.batsim_json import write_document, write_workload
    from rebat.workloads.load import load_workload, save_workload
    from rebat.workloads.swf_export import write_swf

    if name is not None and (form != "batsim5" or not name.isidentifier()):
        raise InputError(f"is {name}", "--name", "a name like w1, with --format batsim5")
    if file.is_dir():
        if form != "swf":
            raise InputError("is the folder of a run", str(file), f"a workload, for {form}")
        _export_run(file, of, form, out)
        return
    if of is not None:
        raise InputError("has no effect on a workload", "--workload", "the folder of a run")
    loaded = load_workload(file)
    if form == "swf":
        write_swf(loaded, out)
    elif form == "parquet":
        save_workload(loaded, _parquet(out))
    elif form == "batsim4":
        write_workload(loaded, out)
    else:
        write_document(to_five(loaded, name or "w0"), out)
    click.echo(f"{out}: {counted(len(loaded.jobs), 'job')}, {form}")


def _parquet(path: Path) -> Path:
    if path.suffix != ".parquet":
        raise InputError(f"is {path.name}", "--out", "a name ending in .parquet")
    return path


def _export_run(folder: Path, of: Path | None, form: str, out: Path) -> None:
    from rebat.results.files.run_folder import run_folders
    from rebat.results.files.swf_results import write_result_swf
    from rebat.workloads.load import load_workload

    folders = run_folders(folder)
    if len(folders) > 1:
        problem, expected = "contains several policies", f"one of them, such as {folders[0]}"
        raise InputError(problem, str(folder), expected)
    n_jobs = write_result_swf(folders[0], out, load_workload(of) if of else None)
    click.echo(f"{out}: {n_jobs} jobs, {form}")


for command in (describe, import_):
    workload.add_command(command)
