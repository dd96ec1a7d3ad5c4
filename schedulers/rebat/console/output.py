# SPDX-License-Identifier: Apache-2.0
"""Output of commands: messages on standard error, and results as text, tables or JSON.

Commands save results before they print them. Therefore, no result is lost if printing fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any, TextIO

import click

from rebat.core.errors import RebatError
from rebat.core.formatting import printable
from rebat.core.numbers import plain


class Unprinted(RebatError):
    """Error: standard output cannot be written."""


def print_line(text: str) -> None:
    """Print a line on standard error, without control characters. If this fails, drop the line."""
    try:
        click.echo(printable(text), err=True)
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


def json_text(value: Any) -> str:
    """Return a value as JSON, indented by 2, without a final newline.

    NaN and infinite numbers become null. Numbers of numpy become plain numbers, and paths become
    text. Texts have ASCII signs.

    >>> print(json_text({"low": float("nan"), "n": 3}))
    {
      "low": null,
      "n": 3
    }
    """
    import msgspec  # 'rebat --help' prints without it

    return plain(
        msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON cannot represent {type(value).__name__}")
