"""Options without effect are refused; inputs that do little are told on standard error."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rebat.cli.output import tell, warn
from rebat.core.errors import InputError
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.campaign.options import ScenarioOptions
    from rebat.campaign.single import RunResult
    from rebat.core.jobs import Workload
    from rebat.models.failures.law import Law

OF_SHORT_LAWS = ("downtime", "model")
OF_DRAWN_FAILURES = (*OF_SHORT_LAWS, "horizon")
OF_CASCADES = ("cascade_window", "cascade_within")
OF_CORRELATIONS = ("failure_group", "cascade", *OF_CASCADES)
OF_CHECKPOINTS = ("checkpoint_cost", "recovery_cost", "checkpoint_rounding")
SHORTEST_S = 1e-6
"""Times are counted in microseconds."""


@contextmanager
def given_by(option: str) -> Iterator[None]:
    """Errors within are told with the option that they come from."""
    try:
        yield
    except InputError as error:
        raise error.at(option) from None


def check_options(options: ScenarioOptions) -> None:
    """Refuse what was asked for and would change nothing, or is too short to be counted.

    Raises
    ------
    InputError
        With the option as it is spelt on the command line.
    """
    from rebat.models.failures.laws import law_named

    if options.law is not None:
        _check_beside_law(options, options.law)
    elif options.mtbf is None:
        _refuse(OF_DRAWN_FAILURES, "--mtbf beside it")
    elif options.failures is not None:
        _refuse(OF_DRAWN_FAILURES, "no --failures beside it: its file says when nodes are down")
        if options.checkpoint != "young-daly":
            _refuse(["mtbf"], "no --failures beside it, or --checkpoint young-daly")
    if options.checkpoint != "young-daly":
        _refuse(OF_CHECKPOINTS, "--checkpoint young-daly beside it")
    with given_by("--failure-model"):
        law_named(options.model)
    for name in ("mtbf", "downtime"):
        seconds = getattr(options, name)
        if seconds is not None and seconds < SHORTEST_S:
            raise InputError(f"is {seconds:g} s", _spelt(name), "a microsecond or longer")
    if not options.cascade:
        _refuse(OF_CASCADES, "--cascade beside it")
    with given_by("--failure-model"):
        law = options.single_law()
    if law is None:
        expected = "--law, --failures or --mtbf beside it"
        _refuse(["begin"], expected)
        _refuse(OF_CORRELATIONS, expected)
    options.failure_law()


def _check_beside_law(options: ScenarioOptions, law: Law) -> None:
    """What a law says itself is not said beside it."""
    _refuse(("failures", *OF_SHORT_LAWS), "no --law beside it")
    if not law.drawn:
        _refuse(["horizon"], "a law that failures are drawn from")
    if hasattr(law, "mtbf_s") or options.checkpoint != "young-daly":
        _refuse(["mtbf"], "no --law beside it, or one without it and --checkpoint young-daly")


def _refuse(names: Sequence[str], expected: str) -> None:
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InputError("has no effect", _spelt(name), expected)


def _spelt(name: str) -> str:
    """An option as it is typed, by the name of its value."""
    parameters = click.get_current_context().command.params
    return next(p.opts[-1] for p in parameters if p.name == name and p.opts[-1].startswith("--"))


def tell_of_input(workload: Workload, options: ScenarioOptions, n_nodes: int) -> None:
    """What is to be known before a run: what the importer did, and what failures will or won't."""
    for note in workload.notes:
        tell(f"rebat: note: {note}")
    from rebat.models.failures.trace import Trace

    law, mtbf_s = options.failure_law(), options.mtbf_s
    if isinstance(law, Trace):
        _tell_of_events(Path(law.file))
    elif law is not None and mtbf_s is not None:
        _tell_of_overload(workload, n_nodes, mtbf_s)


def _tell_of_events(file: Path) -> None:
    """Warn of an event file in which nothing fails, and of events that are passed over."""
    from rebat.models.failures.events import AVAILABLE, UNAVAILABLE, read_event_file

    found = read_event_file(file)
    if not found.machine_events:
        warn(f"{file} holds no failure")
    for kind, count in found.generic_types.items():
        near = difflib.get_close_matches(kind.lower(), (UNAVAILABLE, AVAILABLE), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        warn(f"{file}: {count} events of type {kind!r} passed over{hint}")


def _tell_of_overload(workload: Workload, n_nodes: int, mtbf_s: float) -> None:
    """Warn of jobs that such failures hardly ever let finish; see `models.overload`."""
    from rebat.models.overload import MANY_ATTEMPTS, hopeless_jobs

    found = hopeless_jobs(workload, n_nodes, mtbf_s)
    if found:
        worst = found[0]
        warn(
            f"{len(found)} of {len(workload.jobs)} jobs cannot be expected to finish. The worst is "
            f"job {worst.job.id}: {worst.job.n_nodes} nodes, {format_duration(worst.span_s)} between "
            f"what is kept, some {worst.attempts} attempts expected, estimated as exp(failure rate "
            f"of its nodes x that time); told from {MANY_ATTEMPTS:,} on"
        )


def tell_of_results(results: Sequence[RunResult]) -> None:
    """Warn of what makes a comparison mean less than it seems to."""
    for result in results:
        summary = result.summary
        if summary.rejected:
            warn(
                f"{result.policy} rejected {summary.rejected} jobs "
                f"(larger than {summary.n_nodes} nodes, or without a walltime)"
            )
        if summary.window_s[0] >= summary.makespan_s:
            warn(
                f"the window of {result.policy} is empty: it begins at "
                f"{format_duration(summary.window_s[0])}, the last job ended at "
                f"{format_duration(summary.makespan_s)} (see --window)"
            )
        if not summary.selected_jobs:
            warn(f"{result.policy} has no job whose flow is measured (see --select)")
