# SPDX-License-Identifier: Apache-2.0
"""The choices of an option of a command."""

from __future__ import annotations

import click


def choices(command: click.Command, name: str) -> tuple[str, ...]:
    """Return the values that an option accepts."""
    (option,) = (option for option in command.params if option.name == name)
    assert isinstance(option.type, click.Choice)
    return tuple(option.type.choices)
