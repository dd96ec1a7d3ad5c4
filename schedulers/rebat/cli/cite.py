# SPDX-License-Identifier: Apache-2.0
"""``rebat cite``: the entries for a bibliography."""

from __future__ import annotations

from typing import Annotated

import click

from rebat.cli.command import command
from rebat.cli.options import AnyPath
from rebat.core.declared import extra


@command()
def cite(
    result: AnyPath | None = None,
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Also cite the source of this policy; may be repeated.",
        extra(values="policy"),
    ] = (),
) -> None:
    """Print BibTeX entries of rebat, of Batsim, and of the publications that RESULT uses.

    RESULT is a folder that 'rebat run --out' wrote, a campaign file (.toml), or the name of a
    campaign that rebat includes. The entries depend on the policies, the failure law and the
    checkpoints.

    \b
    Examples:
      rebat cite
      rebat cite out/june > rebat.bib
      rebat cite -p sfsj -p faps
    """
    from rebat.api.cite import cite as entries

    click.echo(entries(result, policies))
