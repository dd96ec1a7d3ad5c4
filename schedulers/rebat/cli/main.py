# SPDX-License-Identifier: Apache-2.0
"""``rebat``: the entry point. Commands are imported only when they are called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from rebat.cli.interrupts import HungUp, Interrupted, Terminated, interruptible
from rebat.cli.once import OnceGroup
from rebat.console.output import silence, tell
from rebat.core.errors import InputError, RebatError, unknown_name

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("rebat.cli.run:run", "Simulate policies on a workload, embedded; compare them."),
    "toy": ("rebat.cli.toy:toy", "The node-stealing paper's toy example: a first look."),
    "workload": ("rebat.cli.workload:workload", "Import, generate and describe workloads."),
    "failures": ("rebat.cli.failures:failures", "Generate and describe node failures."),
    "operations": (
        "rebat.cli.operations:operations",
        "Write what an administrator asks for: rolling maintenance.",
    ),
    "serve": ("rebat.cli.serve:serve", "Decide for a real Batsim 4 over ZeroMQ."),
    "simulate": (
        "rebat.cli.simulate:simulate",
        "Stand in for Batsim: run any Batsim scheduler on the embedded engine.",
    ),
    "view": ("rebat.cli.view:view", "Explore runs in the browser: who ran where, and why not."),
    "compare": ("rebat.cli.compare:compare", "Compare two runs, job by job."),
    "validate": (
        "rebat.cli.validate:validate",
        "Check any Batsim output for impossible schedules.",
    ),
    "platform": ("rebat.cli.platform:platform", "Generate and describe SimGrid platforms."),
    "boxes": ("rebat.cli.boxes:boxes", "Boxes of a torus, and the one least likely to fail."),
    "batch": (
        "rebat.cli.batch:batch",
        "Equal jobs one after another on a torus that fails.",
    ),
    "pybatsim-path": (
        "rebat.cli.pybatsim_path:pybatsim_path",
        "Print the file that pybatsim loads.",
    ),
    "campaign": (
        "rebat.cli.campaign:campaign",
        "Run whole evaluations from one file: parallel, resumable.",
    ),
    "makespan": (
        "rebat.cli.makespan:makespan",
        "Makespans of R-LIST and R-SHELF on job sets, as CSV.",
    ),
    "bound": ("rebat.cli.bound:bound", "Lower bounds on a makespan, and the ratios proved."),
    "policies": ("rebat.cli.policies:policies", "List the schedulers, with their sources."),
}
"""Command -> (where it is, one line of help): enough for --help without importing any."""

EARLIER = {"partitions": "boxes"}
"""Earlier names of commands."""


class ReaderGone(Exception):
    """Who read standard output has closed it."""


@contextmanager
def _told_in_our_way() -> Iterator[None]:
    """Files and streams that fail, before click takes them for its own; only files have names."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is not None:
            raise InputError(reason, str(error.filename)) from None
        silence(sys.stdout)
        raise RebatError(f"cannot write: {reason}") from None


class LazyGroup(OnceGroup):
    """A group that knows its commands by name and imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in EARLIER:
            tell(f"rebat: note: 'rebat {cmd_name}' is now 'rebat {EARLIER[cmd_name]}'")
            cmd_name = EARLIER[cmd_name]
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise unknown_name("command", cmd_name, COMMANDS)
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the arguments; prints what --help and --version ask for."""
        with _told_in_our_way():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _told_in_our_way():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rebat")
def cli() -> None:
    """Resilient batch schedulers for Batsim: HPC scheduling under node failures.

    \b
    A first look, nothing else to install:
      rebat toy
      rebat run mira-like-june-2017 --policy baseline --policy sfsj \\
          --mtbf 1h --downtime 1h --checkpoint young-daly --out out/june
      rebat policies

    Times are given in human units: 300, 5min, 1h30min, 2d.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; errors of ours are one line on standard error and exit status 2.

    Ctrl-C ends with status 130, SIGTERM with 143, SIGHUP with 129, each with one line; a reader of standard output
    that goes away (``| head``) ends a command without a word, with 141. Files are there as a whole
    or not at all in each case, and what was written before stays.
    """
    try:
        with interruptible():
            return cli.main(arguments, standalone_mode=False)
    except ReaderGone:
        silence(sys.stdout)
        sys.exit(141)
    except RebatError as error:
        fail(str(error))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, Interrupted, KeyboardInterrupt):
        tell("rebat: interrupted")
        sys.exit(130)
    except Terminated:
        tell("rebat: terminated")
        sys.exit(143)
    except HungUp:
        tell("rebat: hung up")
        sys.exit(129)
    except MemoryError:
        fail("not enough memory")


def fail(text: str) -> None:
    """Print one line and leave with status 2."""
    tell(f"rebat: error: {' '.join(text.split())}")
    sys.exit(2)


if __name__ == "__main__":
    main()
