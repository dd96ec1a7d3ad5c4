# SPDX-License-Identifier: Apache-2.0
"""No command replaces a file unless --force is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rebat.cli.main import cli, main


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, context, name))
        else:
            yield f"{context.command_path} {name}", command


def test_every_command_that_writes_a_file_has_force() -> None:
    flags = {
        name: {flag for option in command.params for flag in option.opts}
        for name, command in commands(cli, click.Context(cli, info_name="rebat"))
    }
    writing = {name for name, own in flags.items() if "-o" in own}
    assert len(writing) >= 10
    assert {name for name in writing if "--force" not in flags[name]} == set()


@pytest.mark.parametrize(
    "command",
    [
        ["platform", "generate", "flat:4"],
        ["workload", "generate", "cluster-day"],
        ["failures", "generate", "--nodes", "4", "--mtbf", "1h", "--horizon", "1d"],
        ["operations", "--rolling-maintenance", "1h", "--nodes", "4"],
    ],
)
def test_a_file_is_replaced_only_with_force(command: list[str], tmp_path: Path, capsys) -> None:
    out = tmp_path / "file.json"
    out.write_text("mine")
    with pytest.raises(SystemExit) as stop:
        main([*command, "-o", str(out)])
    assert (stop.value.code, out.read_text()) == (2, "mine")
    assert (
        f"{out}: exists (expected a new file, or --force to replace it)" in capsys.readouterr().err
    )
    main([*command, "-o", str(out), "--force"])
    assert out.read_text() != "mine"
