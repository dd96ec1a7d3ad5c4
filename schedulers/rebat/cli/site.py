# SPDX-License-Identifier: Apache-2.0
"""``rebat site``: the file that describes a cluster for all other commands."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.command import command, group
from rebat.cli.options import File
from rebat.core.errors import InputError


@command()
def check(file: File) -> None:
    """Check a site, and print what it states and what is missing.

    FILE is a site.toml, as 'rebat calibrate --out' writes it. 'rebat run', 'rebat sweep',
    'rebat whatif', 'rebat calibrate', 'rebat advise' and campaigns read it in place of a workload.
    The command reads all files of the site. If one of them is invalid, or does not fit the others,
    the exit status is 2.

    \b
    Fields (only jobs is required; file names are relative to FILE):
      title = "Our cluster"        name on pages
      jobs = "jobs.json.gz"        workload, from 'rebat workload import'
      past = "past"                recorded schedule, from the same command (--schedule)
      failures = "site.events"     from 'rebat failures import'
      time_zone = "Europe/Paris"   of dates on pages
      partitions = "none"          one pool of nodes, or a table:
      [partitions]                 (without it: those of the workload)
      short = { nodes = "n[1-8]", tier = 2, max_time = "1h" }
      [scheduler]
      policy = "easy"              the policy that is most similar to the scheduler
      [[checkpoints]]              jobs that write checkpoints; the first row that fits counts
      user = "alice"               or queue, or job
      period = "1h"                or young-daly; optionally cost, recovery
      [price]
      node_hour = 0.25
      currency = "EUR"

    \b
    Example:
      rebat calibrate jobs.json.gz past --failures site.events --out calibration
      rebat site check calibration/site.toml
    """
    from rebat.studies.site_check import checked_site

    if not file.is_file():
        raise InputError("does not exist", str(file), "a site.toml of 'rebat calibrate'")
    site = checked_site(Path(file))
    for name, text in site.stated.items():
        click.echo(f"{name:<12} {text}")
    for text in site.missing:
        click.echo(f"missing: {text}")
    click.echo(f"next: {site.next_step}")


site = group("site", "Check the file that describes a cluster for all other commands.", check)
