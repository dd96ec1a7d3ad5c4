# SPDX-License-Identifier: Apache-2.0
"""The option ``--json`` of commands that print a table."""

from __future__ import annotations

from typing import Any

import click

from rebat.cli.effects import used_options
from rebat.console.output import print_result
from rebat.core.errors import InputError

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, with times in seconds."
)
"""Decorator that adds ``--json`` to a command, as its parameter ``as_json``."""


def print_json(record: Any, saved: str = "nothing is saved") -> None:
    """Print a record as JSON. If this fails, the error states where the results are ``saved``."""
    from rebat.console.json_text import json_text

    print_result(json_text(record), saved)


def reject_with_json(*names: str) -> None:
    """Raise InputError if ``--json`` is combined with options that only change the printed table.

    Parameters
    ----------
    *names : str
        Names of parameters of the current command.
    """
    used = used_options()
    for name in names:
        if name in used:
            raise InputError("has no effect with --json", used[name], "only one of the two options")
