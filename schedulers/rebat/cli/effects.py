# SPDX-License-Identifier: Apache-2.0
"""The options of the current command line, and remarks on standard error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rebat.console.output import print_line

if TYPE_CHECKING:
    from rebat.library.checks import UsedOptions
    from rebat.library.remarks import Remark


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


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print each remark as a line on standard error."""
    for remark in remarks:
        print_line(f"rebat: {remark.kind}: {remark.text}")
