# SPDX-License-Identifier: Apache-2.0
"""Comparison of the policies in several result folders, based on their summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import read_text
from rebat.library import sheets
from rebat.results.catalogue import VERDICT
from rebat.results.comparison import Seeds, rows, verdict
from rebat.results.files.run_folder import SUMMARY, policy_of, run_folders
from rebat.results.measures.summary import RunSummary, as_json
from rebat.results.metric import flat_metrics

MOST_RUNS = 1000
"""Maximum number of policies in a folder."""


def runs_in(path: Path) -> list[Path]:
    """Return the folders of the policies in a result folder.

    Return an empty list for other folders.
    """
    try:
        return run_folders(path, most=MOST_RUNS)
    except InputError:
        return []


def compared_summaries(folders: Sequence[Path]) -> str:
    """Return the verdict and the table of several runs, with changes relative to the first run."""
    summaries = {name: _summary(folder) for name, folder in _named(folders).items()}
    sizes = {name: summary.n_nodes for name, summary in summaries.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n_nodes}" for name, n_nodes in sizes.items())
        problem = f"the machines have different numbers of nodes: {listed}"
        raise InputError(problem, expected="runs on the same machine")
    seeds = Seeds(list(summaries))
    for name, summary in summaries.items():
        seeds.add(0, name, flat_metrics(as_json(summary)))
    table = list(rows(seeds))
    if len(summaries) > sheets.MANY_POLICIES:
        sheet = sheets.by_policy(table, seeds, VERDICT)
    else:
        sheet = sheets.by_metric(summaries, others_in="summary.json of each policy")
    return f"{verdict(table, seeds)}\n\n{sheet.text()}{_jobs(summaries)}"


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the folders by name of policy or, if names are not unique, by path."""
    names = [policy_of(folder) for folder in folders]
    counts = Counter(names)
    return {
        name if counts[name] == 1 else str(folder): folder
        for name, folder in zip(names, folders, strict=True)
    }


def _summary(folder: Path) -> RunSummary:
    path = folder / SUMMARY
    try:
        content = msgspec.json.decode(read_text(path))
        return msgspec.convert(content["metrics"], RunSummary)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        problem = f"has no field {error}" if isinstance(error, KeyError) else f"is invalid: {error}"
        raise InputError(problem, str(path), "a summary of this version of rebat") from None


def _jobs(summaries: Mapping[str, RunSummary]) -> str:
    """Return a line about the numbers of jobs. It is empty if these numbers are equal."""
    jobs = {name: summary.jobs for name, summary in summaries.items()}
    if len(set(jobs.values())) == 1:
        return ""
    numbers = ", ".join(f"{name} {n_jobs}" for name, n_jobs in jobs.items())
    return f"The runs have different numbers of jobs: {numbers}.\n"
