# SPDX-License-Identifier: Apache-2.0
"""``rebat workload describe``: sizes, run times and load of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.effects import used_options
from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import DURATION, WORKLOAD
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import format_duration


@click.command()
@click.argument("file", type=WORKLOAD)
@click.option(
    "--period",
    type=DURATION,
    help="Duration over which the stress is computed (default: first to last submission).",
)
@click.option(
    "--mtbf",
    type=DURATION,
    help="Print the share of jobs that write at least one Young/Daly checkpoint at this MTBF of the machine.",
)
@click.option(
    "--checkpoint-cost",
    type=DURATION,
    default="5min",
    show_default=True,
    help="With --mtbf: time to write a checkpoint.",
)
@json_option
def describe(
    file: Path, period: float | None, mtbf: float | None, checkpoint_cost: float, as_json: bool
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
        click.echo("\n".join(_lines(facts)))


def _lines(facts: dict[str, Any]) -> list[str]:
    from rebat.records.judge import is_finding

    lines = [
        f"{counted(facts['jobs'], 'job')} for {counted(facts['nodes'], 'node')}, "
        f"submitted over {format_duration(facts['span_s'])}"
    ]
    if facts["stress"] is not None:
        lines.append(f"stress            {facts['stress']:.2%}")
    for key, label in (("run_time_s", "run time"), ("walltime_s", "walltime")):
        if facts[key]:
            parts = (f"{name} {format_duration(value)}" for name, value in facts[key].items())
            lines.append(f"{label:<18}" + ", ".join(parts))
    if machine := facts["machine"]:
        lines += [f"{key.replace('_', ' '):<18}{value}" for key, value in _machine(machine).items()]
    writing = facts.get("checkpointing", {})
    for name, count in facts["size_classes"].items():
        share = writing.get(name)
        lines.append(
            f"jobs of {name:<15} {count:>7}"
            + (f", {share:.1%} write a checkpoint" if share is not None else "")
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


def _machine(machine: dict[str, Any]) -> dict[str, Any]:
    """Return the printed data of a recorded machine."""
    partitions = machine.get("partitions")
    named = partitions.items() if isinstance(partitions, dict) else ()
    facts = {"node names": machine.get("nodes"), "cores per node": machine.get("cores_per_node")}
    facts["partitions"] = ", ".join(f"{name} {nodes}" for name, nodes in named)
    return {key: value for key, value in facts.items() if value}


def _flexible_lines(facts: dict[str, Any]) -> list[str]:
    """Return lines about moldable jobs, malleable jobs and speedups, if there are any."""
    lines = []
    if set(facts["shapes"]) - {"rigid"}:
        for kind, sizes in facts["shapes"].items():
            name, range_ = f"{kind} jobs", f"{sizes['min']} to {sizes['max']}"
            lines.append(f"{name:<23} {sizes['jobs']:>7}, on {range_} nodes")
    for model, count in facts["speedups"].items():
        name = f"speedups {model}"
        lines.append(f"{name:<23} {count:>7} jobs")
    return lines
