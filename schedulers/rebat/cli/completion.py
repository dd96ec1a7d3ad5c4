# SPDX-License-Identifier: Apache-2.0
"""``rebat completion``: print the script that completes the command line in a shell."""

from __future__ import annotations

import click

NAMES = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(NAMES))
def completion(shell: str) -> None:
    """Print the completion script of a shell: bash (4.4 or later), zsh or fish.

    With this script, the TAB key completes commands, options and file names. It also completes:

    \b
      policies          baseline:depth=<TAB>
      included inputs   rebat run mira-<TAB>, --failures <TAB>, node_stealing/<TAB>
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
    from rebat.cli.main import COMPLETE, cli
    from rebat.cli.shells import script

    click.echo(script(shell, cli, COMPLETE), nl=False)
