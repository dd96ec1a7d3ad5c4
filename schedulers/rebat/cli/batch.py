# SPDX-License-Identifier: Apache-2.0
"""``rebat batch``: run equal jobs one after another on a torus with node failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.batch_results import BatchCase, Results, batch_csv, means, means_text, verdict
from rebat.cli.json_output import json_option, print_json
from rebat.cli.scenario_options import LawType
from rebat.cli.types import DURATION, FOLDER, NODES, SEED
from rebat.console.output import print_line, print_result
from rebat.console.progress import Pace, compiling_notice
from rebat.core.errors import InputError
from rebat.core.units import format_duration
from rebat.library.checks import error_at

if TYPE_CHECKING:
    from rebat.models.batch import Batch
    from rebat.models.failures.law import Law

POLICIES = ("slurm-linear", "rps", "faps", "ceiling")
LISTS = ("16", "aligned", "all")
SIGMA = click.FloatRange(0, 3)


@click.command()
@click.option(
    "--torus",
    required=True,
    help=(
        "Size of the torus in each dimension, like 8x8x8x8, or the name of a machine: mira, "
        "intrepid."
    ),
)
@click.option(
    "--size",
    "sizes",
    type=NODES,
    multiple=True,
    required=True,
    help=(
        "Number of nodes of each job. If the option is repeated, the size of each job is a "
        "random one of these numbers."
    ),
)
@click.option(
    "--jobs", type=NODES, default=1000, show_default=True, help="Number of jobs in the batch."
)
@click.option(
    "--duration",
    "durations",
    type=DURATION,
    multiple=True,
    required=True,
    help="Run time of each job; repeat the option to compare durations.",
)
@click.option(
    "--duration-sigma",
    type=SIGMA,
    default=0.0,
    help="Draw the run time of each job from a log-normal distribution with mean --duration and this standard deviation of the logarithm (default: all jobs equal).",
)
@click.option(
    "--law",
    type=LawType(),
    required=True,
    help="Failure law of the nodes, like weibull:scale=5800h,shape=8; gamma, lognormal and exponential work too (see 'rebat failures generate --help').",
)
@click.option(
    "-p",
    "--policy",
    "policies",
    type=click.Choice(POLICIES),
    multiple=True,
    required=True,
    help=(
        "Policy that chooses the nodes of a job. slurm-linear: the first nodes. rps: a random "
        "box. faps: the box with the lowest failure probability. ceiling: the nodes with the "
        "lowest failure probability, anywhere on the torus. Repeat the option to compare "
        "policies."
    ),
)
@click.option(
    "--list",
    "lists",
    type=click.Choice(LISTS),
    multiple=True,
    help="Boxes that rps and faps choose from (see 'rebat boxes --help'); repeat the option to compare lists (default: all).",
)
@click.option("--seeds", type=NODES, help="Number of seeds, starting at 0 (default: 5).")
@click.option("--seed", type=SEED, help="Run only this seed.")
@click.option(
    "--repair",
    type=DURATION,
    help=(
        "Time for which an aborted job waits for the repair (default: the downtime of the law, "
        "or 9 min if the law has no downtime)."
    ),
)
@click.option(
    "--repair-sigma",
    type=SIGMA,
    default=0.0,
    help="Standard deviation of the logarithm of a repair time. Repairs are then log-normal with mean --repair (default 0: all repairs equal).",
)
@click.option(
    "--begin",
    type=DURATION,
    default=0.0,
    help="Age of the machine when the batch begins (default: a new machine). Earlier failures only set the nodes' uptimes.",
)
@click.option(
    "--trace-end",
    type=DURATION,
    help="Age of the machine after which no node fails, like the end of a failure trace (default: none).",
)
@json_option
@click.option("--out", type=FOLDER, required=True, help="Folder in which batch.csv is written.")
@click.option("--force", is_flag=True, help="Replace an earlier result in the folder --out.")
def batch(
    torus: str,
    sizes: tuple[int, ...],
    jobs: int,
    durations: tuple[float, ...],
    duration_sigma: float,
    law: Law,
    policies: tuple[str, ...],
    lists: tuple[str, ...],
    seeds: int | None,
    seed: int | None,
    repair: float | None,
    repair_sigma: float,
    begin: float,
    trace_end: float | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Run a batch of jobs, one job at a time, until all have completed.

    A node failure aborts the job on this node. The job waits for the repair. Then the policy
    chooses nodes again, and the job starts from the beginning (Vardas et al. 2022). With the same
    seed, all policies have the same jobs and failures. batch.csv has one row per policy, list of
    boxes, duration and seed. Its column lost_node_s is the node time of aborted attempts.

    \b
    Example (one bar of Figure 4a of the paper):
      rebat batch --torus 8x8x8x8 --size 256 --duration 48h --law weibull:scale=5800h,shape=8 \\
          -p slurm-linear -p rps -p faps --out out/batch
    """
    import msgspec

    from rebat.core.files import write_text
    from rebat.core.folders import atomic_folder
    from rebat.models.batch import OF_BOXES, Batch, with_lists
    from rebat.models.failures.per_node_laws import per_node
    from rebat.models.topology import parse_torus

    if lists and not set(policies) & set(OF_BOXES):
        raise InputError("has no effect", "--list", f"-p {' or -p '.join(OF_BOXES)} as well")
    if seeds is not None and seed is not None:
        raise InputError("contradicts --seeds", "--seed", "only one of the two options")
    with error_at("--torus"):
        machine = parse_torus(torus)
    drawn = per_node(law, "--law")
    if repair is not None:
        drawn = msgspec.structs.replace(drawn, downtime_s=repair)
    cases = [
        BatchCase(policy, which, duration_s)
        for policy, which in with_lists(dict.fromkeys(policies), dict.fromkeys(lists or ("all",)))
        for duration_s in dict.fromkeys(durations)
    ]
    numbers = range(5 if seeds is None else seeds) if seed is None else (seed,)
    todo = [  # all batches of a seed have the same failures
        Batch(
            machine,
            sizes[0],
            jobs,
            case.duration_s,
            drawn,
            *case[:2],
            number,
            begin,
            trace_end,
            tuple(dict.fromkeys(sizes[1:])),
            duration_sigma,
            repair_sigma,
        )
        for number in numbers
        for case in cases
    ]
    with atomic_folder(out, force) as folder, compiling_notice():
        results = _run(todo)
        write_text(folder / "batch.csv", batch_csv(cases, results))
    _print(cases, results, out, as_json)


def _print(cases: Sequence[BatchCase], results: Results, out: Path, as_json: bool) -> None:
    saved, rows, lines = f"the results are in {out}", means(cases, results), verdict(cases, results)
    if as_json:
        print_json({"verdict": lines, "cases": rows, "out": out}, saved)
    else:
        text = "".join(f"{line}\n" for line in lines) + means_text(rows)
        print_result(f"{text}results in {out}", saved)


def _run(todo: Sequence[Batch]) -> Results:
    from rebat.models.batch import run_batch

    results = {}
    with _progress(len(todo)) as reporter:
        for number, batch in enumerate(todo):
            policy = f"{batch.policy} {batch.which}".strip()
            label = f"{policy}, {format_duration(batch.duration_s)}, seed {batch.seed}"
            results[batch] = run_batch(batch, reporter(number, label, batch.n_jobs))
    return results


Reporter = Callable[[int, str, int], Callable[[int, float], None]]
"""Function of the number of completed batches, the current batch and its number of jobs.

It returns a progress callback.
"""


@contextmanager
def _progress(total: int) -> Iterator[Reporter]:
    """Show a progress bar on a terminal. Otherwise, print a line after 2 s and then every 10 s."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("batches, {task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task, pace = bar.add_task("", total=total), Pace()

        def reporter(done: int, label: str, jobs: int) -> Callable[[int, float], None]:
            def on_progress(ended: int, at_s: float) -> None:
                if bar.disable:
                    if pace.due():
                        time_text = format_duration(at_s)
                        print_line(
                            f"rebat: {done} of {total} batches; {label}: {ended} of {jobs} jobs "
                            f"completed, simulated {time_text}"
                        )
                elif ended % 50 == 0:
                    bar.update(task, completed=done, description=f"{label}: {ended} of {jobs} jobs")

            return on_progress

        yield reporter
