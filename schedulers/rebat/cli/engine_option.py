# SPDX-License-Identifier: Apache-2.0
"""The option ``--engine``, and ``rebat warmup``."""

from __future__ import annotations

import os
from typing import Any, get_args

import click

from rebat.sim.choose import VARIABLE, How


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:  # processes started by this command inherit the variable
        os.environ[VARIABLE] = value
        context.call_on_close(lambda: os.environ.pop(VARIABLE, None))


def engine_option(command: Any) -> Any:
    """Add the option ``--engine`` to a command."""
    return click.option(
        "--engine",
        type=click.Choice(get_args(How)),
        expose_value=False,
        callback=_remember,
        help=(
            "How to simulate; all results are equal. compiled: only with the compiled loop, which "
            "covers list scheduling of rigid jobs with requeueing or stealing. reference: with the "
            f"session that all policies use. auto: compiled if possible. [default: {VARIABLE}, or "
            "auto]"
        ),
    )(command)


@click.command()
@click.argument("policies", nargs=-1)
def warmup(policies: tuple[str, ...]) -> None:
    """Compile the loop and the kernels, so that later runs are fast.

    The loop is compiled for these policies (default: baseline) and all that use the same rules.
    Steals at checkpoints, rounded numbers and the placement 'named' are compiled separately.

    The machine code is stored next to the package. Without this command, a run uses the compiled
    loop only if the loop is already compiled, or if the workload is so large that compiling it
    saves time.

    \b
    Examples:
      rebat warmup
      rebat warmup baseline h211 batsched-easy authors-h211
    """
    from rebat.console.output import print_line
    from rebat.library.failures import failures
    from rebat.library.run import run
    from rebat.policies.presets import preset
    from rebat.sim.choose import ready

    names = policies or ("baseline",)
    if not all(ready(preset(name).point) for name in names):
        print_line("rebat: compiling the loop (about a minute) ...")
    os.environ[VARIABLE] = "compiled"
    try:
        run("toy", names, failures=failures(file="toy"))
    finally:
        del os.environ[VARIABLE]
    click.echo("the loop is compiled")
