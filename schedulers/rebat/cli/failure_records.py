# SPDX-License-Identifier: Apache-2.0
"""``rebat failures import``, ``map`` and ``export``: records of machines as event files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import DURATION, FILE, MACHINE, SEED
from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, format_duration, parse_duration, to_s, to_us

if TYPE_CHECKING:
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.mapping import MappedRecord
    from rebat.models.failures.records.record import Record


class FormatCommand(click.Command):
    """A command whose help ends with the formats of records."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rebat.models.failures.records.formats import FORMATS

        with formatter.section("Formats (--format)"):
            formatter.write_dl([(name, form.about) for name, form in FORMATS.items()])


@click.command("import", cls=FormatCommand)
@click.argument("trace", type=FILE)
@click.option(
    "--format",
    "form",
    default="auto",
    show_default=True,
    help="Format of the record, one of those listed below; auto: detect it from the first lines.",
)
@click.option(
    "--system", type=int, help="lanl: number of the system, where the record has several."
)
@click.option(
    "--platform", type=int, help="fta: which platform of the table, where there are several."
)
@click.option(
    "--downtime",
    "downtime_s",
    type=DURATION,
    help="mira-ras: how long an outage lasts at least (default: 1h; the record has no repairs).",
)
@click.option(
    "--maintenance",
    type=FILE,
    help="mira-ras: periods in which the machine was maintained, START,END on a line.",
)
@click.option(
    "--maintained",
    type=click.Choice(("leave-out", "down")),
    help="With --maintenance. leave-out (default): events that begin within a period are dropped, since no job ran that they could hit; the machine is up. down: the whole machine is down for it, which kills all that runs, as nothing is drained before.",
)
@click.option(
    "--begin",
    help="Take what is later than this date, or this long after date 0; it becomes date 0 (nodes that are down then fail at 0).",
)
@click.option("--end", help="Take what fails before this date, or so long after date 0.")
@click.option(
    "--names", type=FILE, help="csv, fta: keep which number stands for which name, as node,name."
)
@output_file("File to write (.gz: compressed).", FILE, "names")
def import_(
    trace: Path, form: str, out: Path, begin: str | None, end: str | None,
    names: Path | None, **options: Any,
) -> None:  # fmt: skip
    """Turn a machine's failure record into an --events file.

    Says how many lines were read, taken and dropped, and why. Outages of a node that overlap, or
    touch, are joined to one.

    \b
    Example, a machine of 512 nodes, fitted on its first half; Mira's 49,152; a table of one's own:
      rebat failures import LA-UR-05-7318.csv.xz --system 20 -o 20.events
      rebat failures fit 20.events --nodes 512 --until 16000h -o nodes.csv
      rebat failures import mira.cor.gz --format mira-ras -o mira.events
      rebat failures import mine.csv --format csv --names names.csv -o mine.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import write_events
    from rebat.models.failures.records.formats import ReaderOptions, read_record
    from rebat.models.failures.records.plain import write_names

    if names is not None and names.resolve() == out.resolve():
        raise InputError("is the file of the events", "--names", "another file")
    with at_work(f"reading {trace.name}"):
        record = read_record(form, trace, ReaderOptions(**options))
        if names is not None and not record.names:
            raise InputError("has no effect: the record's nodes are numbers", "--names")
        events = _windowed(record, begin, end)
        write_events(events, out)
    if names is not None:
        write_names(record.names, names)
    for line in (f"{out}: {_summary(events)} from {_origin(record, begin)}", *_lines(record)):
        click.echo(line)


def _windowed(record: Record, begin: str | None, end: str | None) -> list[MachineEvent]:
    """The events of the record between two dates."""
    from rebat.models.failures.spans import window

    if begin is None and end is None:
        return record.events
    begin_us = 0 if begin is None else _date_us(begin, record.origin, "--begin")
    end_us = FOREVER_US if end is None else _date_us(end, record.origin, "--end")
    if end_us <= begin_us:
        raise InputError("is not after --begin", "--end", "a later date")
    return window(record.events, begin_us, end_us)


def _date_us(text: str, origin: datetime | None, option: str) -> int:
    """A date, or a duration from date 0."""
    try:
        return to_us(parse_duration(text))
    except InputError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        expected = "a date like 2018-09-01, or a duration like 400d"
        raise InputError(f"is {text[:40]!r}", option, expected) from None
    if origin is None or date.tzinfo is not None:
        expected = "a duration from date 0" if origin is None else "a date without a time zone"
        raise InputError(f"is {text[:40]!r}", option, expected)
    if date < origin:
        raise InputError(f"is before the record, which begins at {origin}", option, "a later date")
    return to_us((date - origin).total_seconds())


def _origin(record: Record, begin: str | None) -> str:
    from datetime import timedelta

    if record.origin is None:
        return "date 0" if begin is None else f"{begin} after its date 0"
    begin_us = 0 if begin is None else _date_us(begin, record.origin, "--begin")
    return str(record.origin + timedelta(microseconds=begin_us))


def _summary(events: list[MachineEvent]) -> str:
    count = sum(not event.available for event in events)
    length = format_duration(to_s(events[-1].at_us)) if events else "0 s"
    return f"{count} failures in {length}"


def _lines(record: Record) -> list[str]:
    """What became of the lines."""
    taken = ", ".join(f"{kind} {n}" for kind, n in sorted(record.taken.items()))
    lines = [f"  {record.n_lines} lines read, {record.taken.total()} taken ({taken})"]
    for reason, n in sorted(record.dropped.items()):
        lines.append(f"  {n} dropped: {reason}")
    lines.append(
        f"  {record.n_outages} outages of nodes, {record.n_joined} joined to others that they "
        "overlap or touch"
    )
    return lines


@click.command("map")
@click.argument("events", type=FILE)
@click.option(
    "--from-nodes",
    type=MACHINE,
    help="Nodes of the machine that failed (default: up to the largest that fails).",
)
@click.option("--nodes", type=MACHINE, required=True, help="Nodes of the machine asked for.")
@click.option("--by", default="rank", show_default=True, help="rank, share or rate, see above.")
@click.option(
    "--turn",
    is_flag=True,
    help="Begin at a random date of the record, and go on with its beginning after its end.",
)
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Of what rate and --turn draw."
)
@output_file()
def map_(
    events: Path, from_nodes: int | None, nodes: int, by: str, turn: bool, seed: int, out: Path,
) -> None:  # fmt: skip
    """Put a record of M nodes on a machine of N.

    \b
    rank   node i becomes node i*N/M: the machine fails as often as it did, and neighbours
           stay neighbours. Nodes that fall on one are down while any of them is.
    share  the same, but node i is all of the nodes from i*N/M to (i+1)*N/M: as large a share
           of the machine is lost as was.
    rate   nodes fail as often as they did, the machine N/M times as often: a smaller machine
           is made of nodes drawn at random, a larger one of copies of the record, each but
           the first begun at a random date of it, the last of nodes drawn at random.

    No node fails while it is down: outages that overlap are joined.

    \b
    Example, the failures of 512 nodes on the 49,152 of Mira:
      rebat failures map 20.events --from-nodes 512 --nodes 49152 --by rate -o mira20.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import write_events
    from rebat.models.failures.mapping import mapped

    with at_work(f"mapping {events.name}"):
        source = _source(events, from_nodes)
        found = mapped(source, nodes, by, seed, turn)
        write_events(found, out)
    click.echo(f"{out}: {_summary(found)}, of {source.n_nodes} nodes on {nodes} by {by}")


def _source(file: Path, n_nodes: int | None) -> MappedRecord:
    from rebat.models.failures.events import read_events
    from rebat.models.failures.mapping import source_of

    events = read_events(file)
    try:
        return source_of(events, n_nodes)
    except InputError as error:
        raise error.at(str(file)) from None


@click.command()
@click.argument("events", type=FILE)
@output_file()
def export(events: Path, out: Path) -> None:
    """Write an --events file as a table node,down,up, in seconds.

    'rebat failures import --format csv' makes the same failures of it again.
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import read_events
    from rebat.models.failures.records.plain import write_plain

    with at_work(f"writing {out.name}"):
        count = write_plain(read_events(events), out)
    click.echo(f"{out}: {count} outages of nodes")
