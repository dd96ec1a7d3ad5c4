# SPDX-License-Identifier: Apache-2.0
"""``rebat failures``: node failures as Batsim event files, and failure laws of nodes as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from msgspec import Meta

from rebat.cli.command import Values, command, group, used_options
from rebat.cli.failure_describe import describe
from rebat.cli.imports import failures_in, import_failures
from rebat.cli.options import File, Json, OutFile, OutTable, print_json
from rebat.cli.scenario_options import LAW, laws, scenario_options
from rebat.core.declared import Machine, Seconds, Seed, extra
from rebat.core.errors import InputError
from rebat.core.numbers import counted, duration, number

if TYPE_CHECKING:
    from rebat.models.failures.fitting import Fit
    from rebat.models.failures.laws import Prefab
    from rebat.models.failures.recorded import MappedRecord


FAMILIES = ("weibull", "gamma", "lognormal", "exponential")


@command(laws)
def generate(
    *,
    nodes: Annotated[Machine, "Number of nodes of the machine."],
    scenario: Annotated[Values, scenario_options(*LAW)],
    seed: Annotated[Seed, "Seed of the failures."] = 0,
    horizon: Annotated[
        Seconds, "Draw no failure after this time.", extra(default="5000000")
    ] = 5_000_000.0,
    out: OutFile,
) -> None:
    """Draw failures and write an event file.

    Pass the file to 'rebat run --failures', or to Batsim with --events.

    \b
    Example (the first scenario of the node-stealing paper, on Mira):
      rebat failures generate --nodes 49152 --mtbf 1h --downtime 1h --seed 0 -o f0.events
    """
    from rebat.models.failures.events import write_events
    from rebat.models.failures.law import generate_events
    from rebat.runs.case import check_options
    from rebat.runs.scenario import ScenarioOptions

    options = ScenarioOptions(**scenario, seed=seed, horizon=horizon)
    check_options(options, used_options())
    law = options.failure_law()
    if law is None or not law.drawn:
        raise InputError("no failure law is given", expected="--law or --mtbf")
    events = generate_events(
        law,
        nodes,
        horizon_s=horizon,
        seed=options.seed,
        cores_per_node=options.cores_per_node,
    )
    write_events(events, out, cores_per_node=options.cores_per_node)
    count = sum(not event.available for event in events)
    click.echo(f"{out}: {counted(count, 'failure')} in {duration(horizon)}")


@command()
def nodes(
    law: Annotated[str, extra(values="law")],
    *,
    n_nodes: Annotated[Machine, "--nodes", "Number of nodes of the machine."],
    seed: Annotated[
        Seed,
        "Seed from which the failure parameters of the nodes are drawn. Use the same seed as 'rebat failures generate' or the run.",
    ] = 0,
    out: OutTable,
) -> None:
    """Write the parameters of each node under a law.

    LAW states how the parameters of each node are drawn. The uptimes in the table are 0.

    \b
    Example (nodes of the first trace of the torus paper):
      rebat failures nodes weibull:scale=5800h,shape=8 --nodes 4096 --seed 0 -o nodes.csv
    """
    import numpy as np

    from rebat.models.failures.laws import parse_law
    from rebat.models.failures.node_table import NodeTable, write_nodes
    from rebat.models.failures.per_node_laws import PerNodeLaw

    per_node = parse_law(law)
    if not isinstance(per_node, PerNodeLaw):
        raise InputError("the law has no parameters per node", law, " or ".join(FAMILIES))
    table = NodeTable(per_node.nodes(n_nodes, seed), np.zeros(n_nodes))
    write_nodes(out, table)
    click.echo(f"{out}: {counted(n_nodes, 'node')}, {table.laws.family}")


@command()
def fit(
    events: File,
    *,
    n_nodes: Annotated[
        Machine | None,
        "--nodes",
        "Number of nodes of the machine (default: up to the largest node that fails).",
    ] = None,
    law: Annotated[
        Literal["weibull", "gamma", "lognormal", "exponential"],
        "Distribution of the times to failure.",
    ] = "weibull",
    pool: Annotated[
        Annotated[int, Meta(ge=2)],
        "Fit a separate shape parameter to each node with at least this number of failures. All other nodes use the shape parameter fitted to the uptimes of all nodes.",
    ] = 10,
    until_s: Annotated[
        Seconds | None,
        "--until",
        "End of the record, later events are ignored (default: the last event).",
    ] = None,
    out: OutTable,
) -> None:
    """Fit a failure law to each node of an event file.

    The fit uses maximum likelihood. The table has the parameters of each node, and its uptime at
    the end of the record.

    \b
    Example:
      rebat failures fit f.events --nodes 4096 --until 20000h -o nodes.csv
    """
    from rebat.console.progress import counting_bar
    from rebat.models.failures.events import read_events
    from rebat.models.failures.fitting import fit_nodes
    from rebat.models.failures.node_table import write_nodes

    recorded = read_events(events)
    largest = max((int(event.nodes.intervals[-1, 1]) for event in recorded), default=0)
    count = n_nodes or largest + 1
    try:
        with counting_bar("nodes fitted", count) as on_progress:
            fitted = fit_nodes(
                recorded, count, law=law, pool=pool, until_s=until_s, on_progress=on_progress
            )
    except InputError as error:
        raise error.at(str(events)) from None
    write_nodes(out, fitted.table)
    for line in _fit_lines(fitted):
        click.echo(line)


def _fit_lines(fit: Fit) -> list[str]:
    n_shared = len(fit.table) - fit.n_own
    scale, shape = duration(fit.pooled.scale_s), number(fit.pooled.shape)
    return [
        f"{counted(fit.n_failures, 'failure')} of {counted(len(fit.table), 'node')} in "
        f"{duration(fit.until_s)}",
        f"nodes with an individual shape {fit.n_own}; with the common shape: {n_shared}",
        f"{fit.table.laws.family} of all uptimes".ljust(31) + f"scale {scale}, shape {shape}",
        f"log-likelihood (seconds)       {number.with_digits(10)(fit.log_likelihood)}",
    ]


@command()
def models(
    *,
    nodes: Annotated[
        Machine | None,
        "Print the MTBF of a machine with this number of nodes (default: the recorded machine).",
    ] = None,
    as_json: Json = False,
) -> None:
    """List failure laws of real machines by name.

    Use a name with --law, for example --law lanl-20. On a machine of another size, the failure rate
    of a node stays the same. To change a parameter, append it: --law lanl-20:repair=1h. 'rebat run
    --help' explains the parameters.

    \b
    Example:
      rebat run mira-like-june-2017 --law lanl-20 --checkpoint young-daly -p baseline -p sfsj
    """
    from rebat.models.failures.laws import prefabs

    records = [_model_record(name, prefab, nodes) for name, prefab in prefabs().items()]
    if as_json:
        print_json({"models": records})
    else:
        click.echo(_models_table(records, nodes), nl=False)


def _model_record(name: str, prefab: Prefab, nodes: int | None) -> dict[str, Any]:
    from rebat.models.failures.laws import make_law

    law = make_law(name, {})
    return {
        "name": name,
        "machine": prefab.title,
        "nodes": prefab.nodes,
        "failures": prefab.failures,
        "days": prefab.days,
        "mtbf_s": law.mtbf_on(nodes or prefab.nodes),
        "law": prefab.law,
        "parameters": prefab.parameters,
        "source": prefab.source,
    }


def _models_table(records: list[dict[str, Any]], nodes: int | None) -> str:
    from rebat.report.table import Table

    mtbf = "MTBF" if nodes is None else f"MTBF of {counted(nodes, 'node')}"
    rows = [
        [
            row["name"],
            row["machine"],
            number(row["nodes"]),
            number(row["failures"]),
            duration(row["mtbf_s"]),
        ]
        for row in records
    ]
    sources = "\n".join(dict.fromkeys(f"Source: {row['source']}." for row in records))
    columns = ["name", "machine", "nodes", "failures", mtbf]
    title = "Failure laws of real machines (--law NAME)"
    return Table("", title, columns, rows, sources, words=2).text()


@command(name="map")
def map_(
    events: File,
    *,
    from_nodes: Annotated[
        Machine | None,
        "Number of nodes of the recorded machine (default: up to the largest node that fails).",
    ] = None,
    nodes: Annotated[Machine, "Number of nodes of the new machine."],
    by: Annotated[str, "How nodes are mapped: rank, share or rate (see above)."] = "rank",
    turn: Annotated[
        bool, "Start at a random time of the record and wrap around at its end."
    ] = False,
    seed: Annotated[Seed, "Seed for the random choices of '--by rate' and of --turn."] = 0,
    out: OutFile,
) -> None:
    """Map a failure record of M nodes to a machine of N nodes.

    \b
    rank   Node i becomes node i*N/M. The failure rate of the machine is unchanged, and
           neighbours stay neighbours. If several nodes map to the same node, it is down
           while any of them is down.
    share  As rank, but node i becomes all nodes from i*N/M to (i+1)*N/M. Each failure
           takes down the same share of the machine.
    rate   The failure rate of a node is unchanged. The machine fails N/M times as often.
           A smaller machine consists of random nodes of the record. A larger machine
           consists of copies of the record: each copy after the first starts at a random
           time of the record, and the last copy uses random nodes.

    Overlapping outages of a node are joined.

    \b
    Example (failures of 512 nodes on the 49,152 nodes of Mira):
      rebat failures map 20.events --from-nodes 512 --nodes 49152 --by rate -o mira20.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import write_events
    from rebat.models.failures.recorded import mapped

    with at_work(f"mapping {events.name}"):
        source = _source(events, from_nodes)
        record = mapped(source, nodes, by, seed, turn)
        write_events(record, out)
    click.echo(
        f"{out}: {failures_in(record)}, mapped from {source.n_nodes} to {nodes} nodes by {by}"
    )


def _source(file: Path, n_nodes: int | None) -> MappedRecord:
    from rebat.models.failures.events import read_events
    from rebat.models.failures.recorded import source_of

    events = read_events(file)
    try:
        return source_of(events, n_nodes)
    except InputError as error:
        raise error.at(str(file)) from None


@command()
def export(
    events: File,
    *,
    form: Annotated[
        Literal["csv", "batsim4", "batsim5"],
        "--format",
        "Format of the file: a table, or an event file of Batsim 4 or 5.",
    ] = "csv",
    out: OutFile,
) -> None:
    """Write an event file as a CSV table, or in the form of Batsim 4 or 5.

    csv: a table with the columns node, down and up. Times are in seconds. 'rebat failures import
    --format csv' converts the table to an event file with the same failures.

    batsim4: an event file for the option --events of Batsim 4.

    batsim5: an event file for the option --ee of Batsim 5. Batsim 5 does not simulate failures: it
    sends the text of each line to the scheduler.

    All rebat commands read both forms (Batsim 4 and 5). The command also converts files of
    operations.

    \b
    Examples:
      rebat failures export f.events -o outages.csv
      rebat failures export f.events --format batsim5 -o failures5.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import (
        read_event_file,
        read_events,
        write_events4,
        write_events5,
    )
    from rebat.models.failures.outages import write_plain

    with at_work(f"writing {out.name}"):
        if form == "csv":
            count = write_plain(read_events(events), out)
            click.echo(f"{out}: {count} node outages")
            return
        content = read_event_file(events).events
        (write_events5 if form == "batsim5" else write_events4)(content, out)
    click.echo(f"{out}: {len(content)} events, {form}")


failures = group(
    "failures",
    "Generate, import and describe node failures (event files of Batsim), and fit failure laws.",
    generate,
    nodes,
    fit,
    describe,
    import_failures,
    map_,
    export,
    models,
)
