# SPDX-License-Identifier: Apache-2.0
"""Output of commands: messages on standard error, and results on standard output.

Commands save results before they print them. Therefore, no result is lost if printing fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

import click

from rebat.core.errors import RebatError


class Unprinted(RebatError):
    """Error: standard output cannot be written."""


def print_line(text: str) -> None:
    """Print a line on standard error. If this fails, drop the line."""
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    print_remarks([("warning", text)])


def print_remarks(remarks: Iterable[tuple[str, str]]) -> None:
    """Print pairs of kind, such as ``note`` or ``warning``, and text as lines on standard error."""
    for kind, text in remarks:
        print_line(f"rebat: {kind}: {text}")


def print_result(text: str, saved: str) -> None:
    """Print a result on standard output. If this fails, the error states where it is ``saved``."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise Unprinted(f"standard output: {error.strerror}; {saved}") from None


def silence(stream: TextIO) -> None:
    """Discard the buffer of a failed stream. Otherwise, Python would flush it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError, AttributeError):
        return  # the stream has no file descriptor
