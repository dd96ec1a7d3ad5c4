# SPDX-License-Identifier: Apache-2.0
"""The commands of each page of the documentation are run in order in a separate folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rebat.cli.main import cli
from tests.support.inputs import MADE
from tests.support.pages import ROOT, Block, blocks, console, files, pages, pattern

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}
LIMIT_S = 300
WRITTEN = ("python", "json", "toml")
"""Kinds of blocks with a title that are files."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_work(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    some = [block for block in blocks(page) if runnable(block)]
    if not any(block.kind in ("sh", "console") for block in some):
        pytest.skip("the page has no commands that can be run here")
    for file in files(page):
        MADE[file](tmp_path / file)
    for block in some:
        play(block, tmp_path, f"{name}:{block.line}")


def runnable(block: Block) -> bool:
    """Whether a block is run; blocks that need other programs are not."""
    known = block.kind in ("sh", "console") or (block.kind in WRITTEN and block.title)
    return bool(known) and not block.needs


def play(block: Block, folder: Path, where: str) -> None:
    """Do what a reader would do with a block."""
    if block.kind in WRITTEN:
        (folder / block.title).write_text(block.text)
    elif block.kind == "sh":
        shell(block.text, folder, where)
    else:
        for command, shown in console(block.text):
            printed = shell(command, folder, where)
            assert pattern(shown).fullmatch(printed), f"{where}: {command} prints\n{printed}"


def shell(script: str, folder: Path, where: str) -> str:
    """Run a script with rebat in its path; return standard output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{where}:\n{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("name", PAGES)
def test_commands_that_are_not_run_here_are_commands(name: str) -> None:
    """Blocks that need other programs or hours are not run, but their options must exist."""
    for block in blocks(PAGES[name]):
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if block.kind == "sh" and block.needs and words[:1] == ["rebat"]:
                parsed(cli, [word for word in words[1:] if word != "&"])


def parsed(command: click.Command, words: list[str]) -> None:
    """Find the command in its groups, and parse its options."""
    if isinstance(command, click.Group):
        below = command.get_command(click.Context(command), words[0])
        assert below is not None, words
        parsed(below, words[1:])
    else:
        command.make_parser(click.Context(command)).parse_args(words)


def test_every_block_of_a_shell_is_known() -> None:
    """A block of an unknown kind would not be run."""
    kinds = {block.kind for page in PAGES.values() for block in blocks(page)}
    assert kinds <= {
        "sh",
        "console",
        "python",
        "json",
        "toml",
        "text",
        "dockerfile",
        "csv",
        "latex",
    }


def test_patterns_can_fail() -> None:
    assert pattern("a\n...\nb c...\n").fullmatch("a\nx\ny\nb c d\n")
    assert not pattern("a\n...\nb\n").fullmatch("a\nx\n")
