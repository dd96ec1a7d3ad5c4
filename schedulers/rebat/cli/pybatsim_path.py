# SPDX-License-Identifier: Apache-2.0
"""``rebat pybatsim-path``: print the file that pybatsim loads."""

from __future__ import annotations

import click


@click.command()
def pybatsim_path() -> None:
    """Print the path of the scheduler file that pybatsim 3 loads.

    \b
    Example:
      pybatsim "$(rebat pybatsim-path)" -o '{"policy": "sfsj"}'
    """
    from pathlib import Path

    import rebat

    click.echo(Path(rebat.__file__).parent / "adapters" / "rebatScheduler.py")
