# SPDX-License-Identifier: Apache-2.0
"""``rebat wire``: check recorded conversations between Batsim and a scheduler."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import FILE, PROTOCOL
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.wire.recording import Checked

MOST = 20
"""Maximum number of problems that are printed."""


@click.group()
def wire() -> None:
    """Check recorded conversations between Batsim and a scheduler."""


@wire.command()
@click.argument("conversation", type=FILE)
@click.option(
    "--protocol",
    type=PROTOCOL,
    help="Version of Batsim, 4 or 5 (default: the version that the first message shows).",
)
@json_option
def check(conversation: Path, protocol: int | None, as_json: bool) -> None:
    """Check each message of a recorded conversation.

    This command is for authors of schedulers. It reports messages that rebat does not understand,
    and replies whose form makes Batsim abort. It also reports messages whose meaning changes if
    rebat reads and rewrites them. The exit status is 1 if a message is reported.

    CONVERSATION has one JSON object per line. The objects are those of 'rebat serve --record', or
    have the keys "from" ("batsim" or "edc") and "raw" or "message".

    \b
    Example:
      rebat serve --policy sfsj --record talk.jsonl
      rebat wire check talk.jsonl
    """
    from rebat.wire.recording import check_frames, read_frames

    rows = list(check_frames(read_frames(conversation), protocol))
    if not rows:
        raise InputError("contains no message", str(conversation), "a recorded conversation")
    failed = [row for row in rows if not row.passed]
    if as_json:
        print_json({"messages": [_record(row) for row in rows], "failed": len(failed)})
    else:
        click.echo("\n".join(_lines(conversation, rows, failed)))
    if failed:
        raise SystemExit(1)


def _record(row: Checked) -> dict[str, object]:
    return {
        "line": row.line,
        "sender": row.sender,
        "content": row.content,
        "understood": row.understood,
        "repeated": row.repeated,
        "problem": row.problem,
    }


def _lines(file: Path, rows: list[Checked], failed: list[Checked]) -> list[str]:
    verdict = f"rebat reads and writes all {len(rows)} messages with the same meaning"
    if failed:
        verdict = f"{len(failed)} of {len(rows)} messages fail"
    lines = [f"{file}: {verdict}"]
    lines += [f"  line {row.line}, {row.sender}: {row.problem}" for row in failed[:MOST]]
    if len(failed) > MOST:
        lines.append(f"  and {len(failed) - MOST} more; --json lists all")
    counts = Counter((row.sender, row.content or "no event") for row in rows)
    lines += [f"  {count:>6}  {sender}: {text}" for (sender, text), count in counts.most_common()]
    return lines
