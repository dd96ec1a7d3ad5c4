# SPDX-License-Identifier: Apache-2.0
"""``rebat export``: a run in the format of another program."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import NODES
from rebat.core.errors import InputError
from rebat.core.formatting import counted


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--perfetto",
    "form",
    flag_value="perfetto",
    required=True,
    help="Write a trace for the Perfetto viewer, https://ui.perfetto.dev.",
)
@click.option(
    "--tracks",
    type=NODES,
    default=256,
    show_default=True,
    help="Maximum number of tracks for nodes. A track shows 1, 2, 4, 8, ... nodes.",
)
@output_file("File to write, like run.pftrace (.gz: compressed).")
def export(run: Path, form: str, tracks: int, out: Path) -> None:
    """Write a run in the format of another program. RUN is the folder of one policy.

    The trace has a track per node. If the machine has more nodes than --tracks, it has a track per
    group of consecutive nodes. A slice is an attempt, an outage (down) or a hold (held). The
    arguments of a slice of an attempt are columns of rebat_attempts.csv. All tracks of an attempt
    show the arguments attempt, cause, why and nodes. Its first track also shows all other
    arguments, its recovery and its checkpoints. If a job took nodes from an attempt, an arrow leads
    from this attempt to the job's next attempt. Curves show nodes in use, the queue and free nodes.

    Open the file in the viewer; plain and compressed files work. The viewer runs in the browser and
    does not upload the file. To export a run as an SWF trace, use 'rebat workload export'.

    \b
    Example:
      rebat export --perfetto out/june/sfsj -o sfsj.pftrace.gz
    """
    from rebat.console.progress import counting_bar
    from rebat.core.files import write_bytes
    from rebat.figures.perfetto import nodes_per_track, run_trace
    from rebat.library.node_names import names_in
    from rebat.results.files.run_folder import node_list_of, read_timeline, run_folders

    folders = run_folders(run)
    if len(folders) > 1:
        problem, expected = "contains several policies", f"one of them, such as {folders[0]}"
        raise InputError(problem, str(run), expected)
    with counting_bar(f"reading {folders[0].name}", 1) as on_rows:
        timeline = read_timeline(folders[0], on_rows)
    names = names_in(node_list_of(folders[0]))
    trace = run_trace(timeline, names if len(names) == timeline.n_nodes else (), tracks)
    write_bytes(out, trace.parts())
    size_mb, group = out.stat().st_size / 1e6, nodes_per_track(timeline.n_nodes, tracks)
    per_track = "a node" if group == 1 else f"{group} nodes"
    attempts = int(timeline.ran.sum())
    click.echo(
        f"{out}: {counted(attempts, 'attempt')}, {per_track} per track, {size_mb:.1f} MB, {form}"
    )
