"""``rebat failures``: scenarios of node failures as Batsim event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.scenario_options import LawCommand, law_options
from rebat.cli.types import DURATION, FILE, NODES, SEED
from rebat.core.errors import InputError
from rebat.core.units import format_duration


@click.group()
def failures() -> None:
    """Generate and describe node failures (Batsim's --events files)."""


@failures.command(cls=LawCommand)
@click.option("--nodes", type=NODES, required=True, help="Nodes of the machine.")  # fmt: skip
@law_options
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--horizon", type=DURATION, default="5000000", show_default=True, help="Last date.")  # fmt: skip
@click.option("-o", "--out", type=FILE, required=True, help="File to write (.gz: compressed).")  # fmt: skip
def generate(nodes: int, out: Path, **options: Any) -> None:
    """Draw failures and write them for 'rebat run --failures' or Batsim's --events.

    \b
    Example, the paper's first scenario on Mira:
      rebat failures generate --nodes 49152 --mtbf 1h --downtime 1h --seed 0 -o f0.events
    """
    from rebat.campaign.options import ScenarioOptions
    from rebat.cli.effects import check_options
    from rebat.models.failures.events import write_events
    from rebat.models.failures.law import generate_events

    asked = ScenarioOptions(**options)
    check_options(asked)
    law = asked.failure_law()
    if law is None or not law.drawn:
        raise InputError("nothing to draw", expected="--law, or --mtbf")
    events = generate_events(law, nodes, horizon_s=options["horizon"], seed=asked.seed)
    write_events(events, out)
    count = sum(not event.available for event in events)
    click.echo(f"{out}: {count} failures in {format_duration(options['horizon'])}")


@failures.command()
@click.argument("file", type=FILE)
@click.option("--nodes", type=NODES, required=True, help="Nodes of the machine.")  # fmt: skip
def describe(file: Path, nodes: int) -> None:
    """Say what a scenario amounts to: failures, MTBF, downtime, busiest nodes."""
    from rebat.models.failures.events import describe_events, read_events

    facts = describe_events(read_events(file), nodes)
    for line in _lines(facts):
        click.echo(line)


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"{facts['failures']} failures on {facts['nodes_hit']} nodes"]
    if facts["mtbf_s"]:
        lines.append(f"mean time between failures   {format_duration(facts['mtbf_s'])}")
    if facts["mean_downtime_s"]:
        lines.append(f"mean downtime                {format_duration(facts['mean_downtime_s'])}")
    lines.append(f"share of node time down      {facts['downtime_share']:.4e}")
    busiest = ", ".join(f"{node} ({count})" for node, count in facts["busiest_nodes"])
    if busiest:
        lines.append(f"most often failing nodes     {busiest}")
    return lines
