# SPDX-License-Identifier: Apache-2.0
"""``rebat explain``: the story of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json
from rebat.console.output import print_result
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.results.explain.story import Story


@click.command()
@click.argument("folder", metavar="OUT/POLICY", type=click.Path(path_type=Path))
@click.argument("job")
@click.option(
    "--all", "complete", is_flag=True, help="Print every moment, without grouping similar ones."
)
@json_option
def explain(folder: Path, job: str, complete: bool, as_json: bool) -> None:
    """Explain why JOB started when it did: its planned starts, obstacles and attempts.

    OUT/POLICY is the folder of a policy in a result of 'rebat run --explain'. The command prints
    what the run recorded about the job: its planned start times, the causes that moved its
    reservation, why it could not use free nodes, how each attempt ended, and how much work it lost.

    \b
    Example:
      rebat run mira-like-june-2017 -p easy --mtbf 1h --downtime 1h --explain --out out/june
      rebat explain out/june/easy 1200
    """
    from rebat.results.explain.book import RunBook
    from rebat.results.explain.sentences import lines
    from rebat.results.explain.story import story
    from rebat.results.files.run_folder import run_folders

    folders = run_folders(folder)
    if len(folders) > 1:
        expected = f"the folder of one policy, like {folders[0]}"
        raise InputError("contains several policies", str(folder), expected)
    result = story(RunBook(folders[0]), job, complete)
    if as_json:
        print_json(_record(result))
    else:
        print_result("\n".join(lines(result)), "nothing is saved")


def _record(result: Story) -> dict[str, Any]:
    """Return a story as plain data. Each moment contains its sentence."""
    import msgspec

    from rebat.results.explain.sentences import sentence, verdict

    moments = [
        {"kind": moment.kind, "at_s": moment.at_s, "attempt": moment.attempt}
        | moment.facts
        | {"sentence": sentence(moment)}
        for moment in result.moments
    ]
    return {**msgspec.structs.asdict(result), "verdict": verdict(result), "moments": moments}
