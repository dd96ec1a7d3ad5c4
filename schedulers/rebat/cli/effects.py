# SPDX-License-Identifier: Apache-2.0
"""The options of the current command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rebat.library.checks import UsedOptions


def used_options() -> UsedOptions:
    """Return the long spelling of each option on this command line, by parameter name."""
    context = click.get_current_context()
    return {
        option.name: next(text for text in reversed(option.opts) if text.startswith("--"))
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name
        and any(text.startswith("--") for text in option.opts)
        and context.get_parameter_source(option.name) == ParameterSource.COMMANDLINE
    }
