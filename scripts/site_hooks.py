# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs. They insert commands, axes, metrics and public names into pages.

They also state the requirements of code blocks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path
from public_surface import commands, python_page

PYTHON = re.compile(r"^<!-- python: (\S+) -->$", re.MULTILINE)
NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with its insertions. mkdocs calls this for each page."""
    text = NEEDS.sub(r"*Needs \1:*\n", markdown)
    if "<!-- commands -->" in text:
        text = text.replace("<!-- commands -->", "\n".join(help_texts()))
    if "<!-- axes -->" in text:
        text = text.replace("<!-- axes -->", axes())
    if "<!-- schedulers -->" in text:
        text = text.replace("<!-- schedulers -->", schedulers())
    if "<!-- metrics -->" in text:
        text = text.replace("<!-- metrics -->", metrics())
    if "<!-- release notes -->" in text:
        text = text.replace("<!-- release notes -->", release_notes())
    return PYTHON.sub(lambda match: python_page(match[1]), text)


def release_notes() -> str:
    """Return the release notes with links for a page in the folder `reference`."""
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    text = text.replace("](docs/reference/", "](").replace("](docs/", "](../")
    text = text.replace("](SECURITY.md)", "](../explanation/security.md)")
    return text.replace("](workloads/README.md", "](workload-file.md")


def metrics() -> str:
    """Return the catalogue of metrics as a table."""
    from rebat.results.catalogue import CATALOGUE, FURTHER

    rows = ["| name in files | in tables | better | definition |", "|---|---|---|---|"]
    for row in (*CATALOGUE, *FURTHER):
        name = "" if row.derived else f"`{row.name}`"
        title = row.heading.strip() + (" (by size class)" if row.by_class else "")
        rows.append(f"| {name} | {title} | {row.better} | {row.definition} |")
    return "\n".join(rows) + "\n"


def help_texts() -> Iterator[str]:
    """Yield every command with the output of its --help."""
    for ctx in commands():
        if ctx.parent is not None:
            level = len(ctx.command_path.split())
            ctx.max_content_width = 100
            yield f"{'#' * level} {ctx.command_path}\n"
            yield f"```text\n{ctx.command.get_help(ctx)}\n```\n"


def axes() -> str:
    """Return the output of `rebat policies --axes`."""
    from click.testing import CliRunner

    from rebat.cli.policies import policies

    result = CliRunner().invoke(policies, ["--axes"])
    return f"```text\n{result.output}```\n"


def schedulers() -> str:
    """Return the presets as a table."""
    from rebat.policies.presets import ALIASES, PRESETS

    aliases = {name: alias for alias, name in ALIASES.items()}
    rows = ["| name | rule | source |", "|---|---|---|"]
    for preset in PRESETS.values():
        alias = f" (`{aliases[preset.name]}`)" if preset.name in aliases else ""
        rows.append(f"| `{preset.name}`{alias} | {preset.summary} | {preset.source} |")
    return "\n".join(rows) + "\n"
