# SPDX-License-Identifier: Apache-2.0
"""The options -o/--out and --force, for commands that write a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rebat.cli.types import FILE, WORKLOAD_OUT
from rebat.core.errors import InputError

Command = Callable[..., None]


def output_file(
    help: str = "File to write (.gz: compressed).",
    kind: Any = FILE,
    *others: str,
    required: bool = True,
    folder: str = "",
) -> Callable[[Command], Command]:
    """Add ``-o/--out`` and ``--force`` to a command. Only ``--force`` replaces existing files.

    ``others`` are the names of the command's parameters for further output files. ``folder`` is the
    name of the parameter for a result folder. If ``folder`` is set, the command receives ``force``.
    """

    def decorated(command: Command) -> Command:
        @wraps(command)
        def guarded(*arguments: Any, force: bool, **options: Any) -> None:
            for name in ("out", *others):
                _check_absent(options[name], force)
            command(*arguments, **options, **({"force": force} if folder else {}))

        text = "Replace an existing file."
        if folder:
            text = f"Replace existing files, and an earlier result in the folder --{folder}."
        forced = click.option("--force", is_flag=True, help=text)(guarded)
        return click.option("-o", "--out", type=kind, required=required, help=help)(forced)

    return decorated


def _check_absent(path: Path | None, force: bool) -> None:
    if path is not None and path.is_file() and not force:
        raise InputError("exists", str(path), "a new file, or --force to replace it")


workload_file = output_file("Workload to write (.json, .json.gz or .parquet).", WORKLOAD_OUT)
"""Decorator that adds these options to a command that writes a workload."""
