# SPDX-License-Identifier: Apache-2.0
"""What commands print: lines on standard error, and results on standard output.

Nothing that was computed is lost because it cannot be printed.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from rebat.core.errors import RebatError


class Unprinted(RebatError):
    """Standard output cannot be written to."""


def tell(text: str) -> None:
    """Print a line on standard error; one that cannot be printed is dropped."""
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    tell(f"rebat: warning: {text}")


def say(text: str, kept: str) -> None:
    """Print on standard output what is ``kept`` in files already, whatever becomes of the text.

    Raises
    ------
    Unprinted
        When standard output takes no more. A reader that has gone is another matter: see `main`.
    """
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise Unprinted(f"standard output: {error.strerror}; {kept}") from None


def silence(stream: TextIO) -> None:
    """Send a stream that failed, and what it still holds, to nowhere: Python flushes it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError, AttributeError):
        return  # no stream of the operating system: nothing will be flushed to it
