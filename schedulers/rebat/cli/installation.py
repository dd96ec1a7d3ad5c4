# SPDX-License-Identifier: Apache-2.0
"""Commands about the installation: ``completion``, ``pybatsim-path`` and ``warmup``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import click

from rebat.cli.command import command


@command()
def completion(
    shell: Literal["bash", "zsh", "fish"],
) -> None:
    """Print the completion script of a shell: bash (4.4 or later), zsh or fish.

    With this script, the TAB key completes commands, options and file names. It also completes:

    \b
      policies          baseline:depth=<TAB>
      included inputs   rebat run mira-<TAB>, --failures <TAB>, node-stealing/<TAB>
      failure laws      --law weibull:<TAB>
      metrics           --columns flow_<TAB>

    \b
    Put one of these lines into the file that the shell reads when it starts:
      ~/.bashrc                    source <(rebat completion bash)
      ~/.zshrc, after compinit     source <(rebat completion zsh)
      ~/.config/fish/config.fish   rebat completion fish | source

    A shell starts faster if it reads the script from a file. Write this file again after an update
    of rebat:

    \b
      rebat completion bash > ~/.local/share/bash-completion/completions/rebat
      rebat completion fish > ~/.config/fish/completions/rebat.fish
    """
    from rebat.cli.completion import script
    from rebat.cli.main import COMPLETE, cli

    click.echo(script(shell, cli, COMPLETE), nl=False)


@command()
def pybatsim_path() -> None:
    """Print the path of the scheduler file that pybatsim 3 loads.

    \b
    Example:
      pybatsim "$(rebat pybatsim-path)" -o '{"policy": "sfsj"}'
    """
    from pathlib import Path

    click.echo(Path(__file__).parents[1] / "adapters" / "rebatScheduler.py")


def warm(policies: Sequence[str]) -> None:
    """Compile the loop for policies that it covers, with a notice. Other policies do not need it."""
    from rebat.console.progress import compiling_notice
    from rebat.drive.choose import PAYS, compile_for, why_not_compiled
    from rebat.policies.presets import Preset, scheduler

    chosen = [policy for policy in map(scheduler, policies) if isinstance(policy, Preset)]
    with compiling_notice():
        for policy in chosen:
            if not why_not_compiled(policy.point):
                compile_for(policy.point, PAYS)


@command()
def warmup(
    policies: tuple[str, ...] = (),
) -> None:
    """Compile the loop and the kernels, so that later runs are fast.

    The loop is compiled for these policies (default: baseline) and all that use the same rules.
    Steals at checkpoints, rounded numbers, stages of recovery and the placement 'named' are
    compiled separately. For policies whose rules are not compiled, only the kernels are.

    The machine code is stored next to the package. Without this command, the loop and the kernels
    run as plain Python. A run compiles kernels that take long, and the loop only if the workload is
    so large that compiling it saves time.

    \b
    Examples:
      rebat warmup
      rebat warmup baseline h211 batsched-easy authors-h211
      rebat warmup faps dbes
    """
    from rebat.api.failures import failures
    from rebat.api.run import run
    from rebat.drive.choose import VARIABLE, why_not_compiled
    from rebat.kernels import jit
    from rebat.models.topology import parse_torus
    from rebat.policies.presets import Preset, scheduler

    names = policies or ("baseline",)
    warm(names)
    jit.INTERPRETED_S = 0  # each kernel is compiled when it is called first
    for policy in map(scheduler, names):
        compiled = isinstance(policy, Preset) and not why_not_compiled(policy.point)
        torus = policy.point.values.get("torus") if isinstance(policy, Preset) else None
        nodes = parse_torus("8x8x8x8" if torus == "auto" else torus).n_nodes if torus else None
        os.environ[VARIABLE] = "compiled" if compiled else "auto"
        try:
            run("toy", [policy.name], nodes=nodes, failures=failures(mtbf="9s", downtime="3s"))
        finally:
            del os.environ[VARIABLE]
    click.echo("the loop and the kernels are compiled")
