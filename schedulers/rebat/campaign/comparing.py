"""Several policies on one scenario: run each, then write their results side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rebat.campaign.single import Runnable, RunResult, write_run
from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.core.files import write_text
from rebat.policies.own import OwnCode
from rebat.report.comparison import comparison, comparison_csv


class Compared(msgspec.Struct):
    """The runs that ended, and for each policy that failed a line that names it.

    ``sources`` are the files behind the runs that ended, where there are any.
    """

    results: list[RunResult] = []
    failures: list[str] = []
    sources: list[tuple[OwnCode, ...]] = []


class Recorded(Runnable, Protocol):
    """Something runnable that can say which files it comes from."""

    @property
    def sources(self) -> tuple[OwnCode, ...]: ...


def run_each(policies: Iterable[Recorded], run: Callable[[Runnable], RunResult]) -> Compared:
    """Run every policy; one that fails costs the others nothing.

    Raises
    ------
    InputError
        When the input is at fault: no policy can run it.
    PolicyError
        When all failed, with why the first did.
    """
    done = Compared()
    for policy in policies:
        try:
            done.results.append(run(policy))
            done.sources.append(policy.sources)
        except RebatError as error:
            if isinstance(error, InputError) and not done.results:
                raise
            done.failures.append(f"policy {policy.name}: {error}")
    if not done.results:
        raise PolicyError("; ".join(done.failures))
    return done


def folder_of(policy: str) -> str:
    """What a policy's folder is called."""
    return policy.replace(":", "+").replace("/", "+")


def write_comparison(
    folder: Path, done: Compared, provenance: Mapping[str, Any], figures: bool = False
) -> None:
    """A folder per policy, comparison.csv, and figures if they are wanted."""
    results = done.results
    for result, sources in zip(results, done.sources, strict=True):
        own = {"own_code": msgspec.to_builtins(sources)} if sources else {}
        write_run(folder / folder_of(result.policy), result, own | dict(provenance))
    summaries = {result.policy: result.summary for result in results}
    write_text(folder / "comparison.csv", comparison_csv(comparison(summaries)))
    if figures:
        _draw(folder, results)


def _draw(folder: Path, results: Sequence[RunResult]) -> None:
    """Flows by job size, and what happened over time."""
    from rebat.figures.flows import draw_flows
    from rebat.figures.runs import draw_runs

    draw_flows({result.policy: result.summary for result in results}, folder / "flows.png")
    ledgers = {result.policy: result.ledger for result in results}
    draw_runs(ledgers, results[0].summary.n_nodes, folder)
