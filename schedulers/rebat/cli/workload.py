# SPDX-License-Identifier: Apache-2.0
"""``rebat workload``: generate, prepare, describe and convert workloads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from msgspec import Meta

from rebat.cli.command import Values, command, group, used_options
from rebat.cli.imports import import_jobs
from rebat.cli.options import Json, OutFile, OutWorkload, WorkloadFile, WorkloadOrRun, print_json
from rebat.cli.scenario_options import PREPARATION, scenario_options
from rebat.core.declared import Seconds, Seed, Share, extra
from rebat.core.errors import InputError
from rebat.core.numbers import counted, duration, percent, share

if TYPE_CHECKING:
    from rebat.runs.scenario import ScenarioOptions


@command()
def generate(
    name: Annotated[str, extra(values="generator")],
    *,
    seed: Annotated[Seed, "Seed of the workload."] = 0,
    out: OutWorkload,
) -> None:
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


@command()
def flex(
    file: WorkloadFile,
    *,
    malleable: Annotated[
        Share,
        "Share of the rigid jobs that become malleable. They can run on a quarter of their nodes up to twice their nodes.",
    ] = 0.0,
    moldable: Annotated[
        Share,
        "Share of the rigid jobs that become moldable. They can run on a quarter, a half, all or twice their nodes.",
    ] = 0.0,
    sigma: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        "Variance of the parallelism in Downey's speedup (default: drawn per job, uniform in 0 to 2).",
    ] = None,
    seed: Annotated[Seed, "Seed that determines the changed jobs and their speedups."] = 0,
    own_spares: Annotated[
        str | None,
        "Spare nodes of each job that remains rigid: a number, or a percentage of its nodes (rounded up).",
        extra(metavar="N|P%"),
    ] = None,
    out: OutWorkload,
) -> None:
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

    if not malleable and not moldable and not own_spares:
        expected = "--malleable, --moldable or --own-spares"
        raise InputError("no change is requested", str(file), expected)
    original = load_workload(file)
    flexed = original
    if malleable or moldable:
        flexed = flexible(original, malleable=malleable, moldable=moldable, sigma=sigma, seed=seed)
    flexed = with_own_spares(flexed, own_spares) if own_spares else flexed
    save_workload(flexed, out)
    click.echo(f"{out}: {'; '.join(flexed.notes[len(original.notes) :])}")


@command()
def prepare(
    file: Annotated[WorkloadFile, extra(metavar="WORKLOAD")],
    *,
    out: OutWorkload,
    scenario: Annotated[
        Values,
        scenario_options(
            "mtbf",
            *PREPARATION,
            "seed",
            "nodes",
            mtbf="Mean time between failures of the entire machine, for the checkpoint period.",
            seed="Seed of the silent errors.",
        ),
    ],
    drop_checkpoints: Annotated[
        bool, "Remove the checkpoints of the workload first, from run times and walltimes too."
    ] = False,
) -> None:
    """Add checkpoints and silent errors to a workload, or remove its checkpoints.

    The result is the workload that 'rebat run' simulates with the same options. Use the prepared
    workload on a real Batsim and for 'rebat validate --workload', without these options.

    \b
    Example:
      rebat workload prepare june.json.gz --checkpoint young-daly --mtbf 1h -o june-1h.json.gz
    """
    import msgspec

    from rebat.api.remarks import of_checkpoints, of_names
    from rebat.console.output import print_remarks
    from rebat.models.checkpoint import without_checkpoints
    from rebat.runs.case import check_options
    from rebat.runs.scenario import ScenarioOptions
    from rebat.runs.staging import has_checkpoints, prepared
    from rebat.workloads.load import load_workload, save_workload

    options = ScenarioOptions(**scenario)
    check_options(options, used_options(), preparing=True)
    original = load_workload(file)
    loaded, notes = original, list[str]()
    if drop_checkpoints:
        if not has_checkpoints(original):
            problem = "has no effect: the workload has no checkpoints"
            raise InputError(problem, "--drop-checkpoints", "no --drop-checkpoints")
        loaded, notes = without_checkpoints(original), ["without the checkpoints of its source"]
    n_nodes = options.nodes or loaded.n_nodes
    with_additions = prepared(loaded, options.scenario())
    if with_additions is original:
        expected = "--checkpoint, --drop-checkpoints, --silent-errors or --silent-error-probability"
        raise InputError("no preparation is requested", str(file), expected)
    for remark in of_checkpoints(loaded, options.scenario().checkpoint, n_nodes):
        click.echo(f"  {remark.text}")
    if words := _in_words(options):
        notes.append(f"prepared for {n_nodes} nodes: {words}")
    save_workload(
        msgspec.structs.replace(
            with_additions, n_nodes=n_nodes, notes=(*with_additions.notes, *notes)
        ),
        out,
    )
    click.echo(f"{out}: {counted(len(with_additions.jobs), 'job')}, {counted(n_nodes, 'node')}")
    print_remarks(of_names(with_additions))


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


@command()
def export(
    file: WorkloadOrRun,
    *,
    form: Annotated[
        Literal["swf", "batsim4", "batsim5", "parquet"],
        "--format",
        "swf: trace. batsim4, batsim5: workload for Batsim. parquet: workload for rebat.",
    ] = "swf",
    of: Annotated[
        WorkloadFile | None,
        "--workload",
        "If FILE is the folder of a run: the workload of this run. It provides users, queues and the date of time 0.",
    ] = None,
    name: Annotated[
        str | None,
        "For batsim5: the name that Batsim gives to the workload, w0 for the first -w (default), w1 for the second.",
        extra(metavar="wN"),
    ] = None,
    out: OutFile,
) -> None:
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
    from rebat.api.remarks import of_names
    from rebat.console.output import print_remarks
    from rebat.workloads.batsim5_json import to_five
    from rebat.workloads.batsim_json import write_document, write_workload
    from rebat.workloads.load import load_workload, save_workload
    from rebat.workloads.swf_export import write_swf

    if name is not None and (form != "batsim5" or not name.isidentifier()):
        raise InputError(f"is {name}", "--name", "a name like w1, with --format batsim5")
    _check_ending(out, form)
    if file.is_dir():
        if form != "swf":
            raise InputError("is the folder of a run", str(file), f"a workload, for {form}")
        _export_run(file, of, form, out)
        return
    if of is not None:
        raise InputError("has no effect on a workload", "--workload", "the folder of a run")
    loaded = load_workload(file)
    if form == "swf":
        _print_notes(write_swf(loaded, out))
    elif form == "parquet":
        save_workload(loaded, out)
    elif form == "batsim4":
        write_workload(loaded, out)
    else:
        write_document(to_five(loaded, name or "w0"), out)
    click.echo(f"{out}: {counted(len(loaded.jobs), 'job')}, {form}")
    if form.startswith("batsim"):
        print_remarks(of_names(loaded))


_ENDINGS = {"swf": ".swf", "batsim4": ".json", "batsim5": ".json", "parquet": ".parquet"}
"""Endings of the files of each format. All but Parquet can be followed by .gz."""


def _check_ending(out: Path, form: str) -> None:
    """Raise InputError if the name of a file ends like that of another format."""
    ending = Path(out.name.removesuffix(".gz")).suffix.lower()
    others = {*_ENDINGS.values()} - {_ENDINGS[form]}
    if ending in others or (form == "parquet" and out.suffix != ".parquet"):
        expected = f"a name ending in {_ENDINGS[form]}, or another --format"
        raise InputError(f"is {out.name}, but the format is {form}", "--out", expected)


def _export_run(folder: Path, of: Path | None, form: str, out: Path) -> None:
    from rebat.results.files.run_folder import run_folders
    from rebat.results.files.swf_results import write_result_swf
    from rebat.workloads.load import load_workload

    folders = run_folders(folder)
    if len(folders) > 1:
        problem, expected = "contains several policies", f"one of them, such as {folders[0]}"
        raise InputError(problem, str(folder), expected)
    n_jobs, notes = write_result_swf(folders[0], out, load_workload(of) if of else None)
    _print_notes(notes)
    click.echo(f"{out}: {n_jobs} jobs, {form}")


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"  {note}")


@command()
def describe(
    file: WorkloadFile,
    *,
    period: Annotated[
        Seconds | None,
        "Duration over which the stress is computed (default: first to last submission).",
    ] = None,
    mtbf: Annotated[
        Seconds | None,
        "Print the share of jobs that write at least one Young/Daly checkpoint at this MTBF of the machine.",
    ] = None,
    checkpoint_cost: Annotated[Seconds, "With --mtbf: time to write a checkpoint."] = 300.0,
    as_json: Json = False,
) -> None:
    """Print sizes, run times and load of a workload.

    \b
    Examples:
      rebat workload describe november.json.gz
      rebat workload describe november.json.gz --mtbf 1h
    """
    from rebat.workloads.describe import checkpointing
    from rebat.workloads.describe import describe as facts_of
    from rebat.workloads.load import load_workload

    if mtbf is None and "checkpoint_cost" in (used := used_options()):
        raise InputError("has no effect", used["checkpoint_cost"], "--mtbf as well")
    loaded = load_workload(file)
    facts = facts_of(loaded, period)
    if mtbf is not None:
        facts["checkpointing"] = checkpointing(loaded, mtbf, checkpoint_cost)
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(_workload_lines(facts)))


def _workload_lines(facts: dict[str, Any]) -> list[str]:
    from rebat.records.findings import is_finding

    lines = [
        f"{counted(facts['jobs'], 'job')} for {counted(facts['nodes'], 'node')}, "
        f"submitted over {duration(facts['span_s'])}"
    ]
    if facts["stress"] is not None:
        lines.append(f"stress            {percent(facts['stress'])}")
    for key, label in (("run_time_s", "run time"), ("walltime_s", "walltime")):
        if facts[key]:
            parts = (f"{name} {duration(value)}" for name, value in facts[key].items())
            lines.append(f"{label:<18}" + ", ".join(parts))
    if machine := facts["machine"]:
        lines += [
            f"{key.replace('_', ' '):<18}{value}" for key, value in _machine_facts(machine).items()
        ]
    writing = facts.get("checkpointing", {})
    for name, count in facts["size_classes"].items():
        part = writing.get(name)
        lines.append(
            f"jobs of {name:<15} {count:>7,}"
            + (f", {share(part)} write a checkpoint" if part is not None else "")
        )
    lines += _flexible_lines(facts)
    for key, label in (
        ("without_walltime", "jobs without walltime"),
        ("eternal", "jobs without an end"),
        ("over_walltime", "jobs that run longer than their walltime"),
        ("too_large", "jobs larger than the machine"),
    ):
        if facts[key]:
            lines.append(f"{label}: {facts[key]}")
    return lines + [note if is_finding(note) else f"note: {note}" for note in facts["notes"]]


def _machine_facts(machine: dict[str, Any]) -> dict[str, Any]:
    """Return the printed data of a recorded machine."""
    from rebat.workloads.machine import stated_partitions

    facts = {"node names": machine.get("nodes"), "cores per node": machine.get("cores_per_node")}
    stated = [f"{row} {row.names}" for row in stated_partitions(machine)]
    facts["partitions"] = ", ".join(stated)
    return {key: value for key, value in facts.items() if value}


def _flexible_lines(facts: dict[str, Any]) -> list[str]:
    """Return lines about moldable jobs, malleable jobs and speedups, if there are any."""
    lines = []
    if set(facts["shapes"]) - {"rigid"}:
        for kind, sizes in facts["shapes"].items():
            name, range_ = f"{kind} jobs", f"{sizes['min']} to {sizes['max']}"
            lines.append(f"{name:<23} {sizes['jobs']:>7,}, on {range_} nodes")
    for model, count in facts["speedups"].items():
        name = f"speedups {model}"
        lines.append(f"{name:<23} {count:>7,} jobs")
    return lines


workload = group(
    "workload",
    "Import, generate, prepare and describe workloads (JSON files of Batsim).",
    generate,
    flex,
    prepare,
    export,
    describe,
    import_jobs,
)
