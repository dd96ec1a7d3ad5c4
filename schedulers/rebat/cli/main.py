# SPDX-License-Identifier: Apache-2.0
"""``rebat``: the entry point. A command is imported when it is called.

Ctrl-C, SIGTERM and SIGHUP are exceptions, so that all cleanup code runs when they arrive.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from rebat.console.output import print_line, silence
from rebat.core.errors import InputError, RebatError, unknown_name

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "run": ("rebat.cli.run:run", "Simulate policies on a workload and compare them."),
        "toy": ("rebat.cli.run:toy", "Run a small example: five jobs, one failure."),
        "sweep": ("rebat.cli.sweep:sweep", "Map the best policy over one or two parameters."),
        "whatif": (
            "rebat.cli.whatif:whatif",
            "Open a page that answers while you change settings.",
        ),
        "goodput": (
            "rebat.cli.goodput:goodput",
            "Compute the effective training time of one job on many nodes.",
        ),
        "workload": (
            "rebat.cli.workload:workload",
            "Import, generate, prepare and describe workloads.",
        ),
        "failures": ("rebat.cli.failures:failures", "Generate, import and describe node failures."),
        "operations": (
            "rebat.cli.platform:operations",
            "Write the operations of a rolling maintenance.",
        ),
        "platform": ("rebat.cli.platform:platform", "Generate and describe SimGrid platforms."),
    },
    "Your cluster": {
        "advise": (
            "rebat.cli.studies:advise",
            "Answer six questions about a cluster, from its jobs and its failures.",
        ),
        "calibrate": (
            "rebat.cli.studies:calibrate",
            "Compare simulations of a cluster's past with its recorded waits.",
        ),
        "site": ("rebat.cli.site:site", "Check the file that describes a cluster."),
    },
    "Look at results": {
        "view": ("rebat.cli.view:view", "Explore runs in the browser: jobs, nodes, failures."),
        "compare": ("rebat.cli.compare:compare", "Compare two runs, job by job."),
        "explain": ("rebat.cli.results:explain", "Explain why a job started when it did."),
        "diff-policies": (
            "rebat.cli.compare:diff_policies",
            "Find the first decision at which two policies differ.",
        ),
        "validate": (
            "rebat.cli.results:validate",
            "Check the output of Batsim or rebat for errors.",
        ),
        "export": ("rebat.cli.results:export", "Write a run in the format of another program."),
        "reproduce": (
            "rebat.cli.results:reproduce",
            "Run a result again and compare all its files.",
        ),
        "bundle": (
            "rebat.cli.results:bundle",
            "Pack a result and its inputs into one zip file.",
        ),
        "cite": ("rebat.cli.cite:cite", "Print BibTeX entries for a result."),
    },
    "Policies": {
        "policies": ("rebat.cli.policies:policies", "List the policies with their sources."),
        "policy": ("rebat.cli.policies:policy", "Write a user-defined policy, and check it."),
    },
    "Batsim": {
        "serve": (
            "rebat.cli.serve:serve",
            "Run the scheduler of a real Batsim 4 or 5, over ZeroMQ.",
        ),
        "simulate": (
            "rebat.cli.simulate:simulate",
            "Replace Batsim: run any Batsim scheduler on the embedded engine.",
        ),
        "wire": (
            "rebat.cli.serve:wire",
            "Check recorded conversations between Batsim and a scheduler.",
        ),
        "pybatsim-path": (
            "rebat.cli.installation:pybatsim_path",
            "Print the path of the file that pybatsim loads.",
        ),
    },
    "Campaigns and papers": {
        "campaign": (
            "rebat.cli.campaign:campaign",
            "Run many simulations from one file, in parallel.",
        ),
        "boxes": (
            "rebat.shipped.campaigns.torus.commands:boxes",
            "List the boxes of a torus, and the safest free box.",
        ),
        "batch": (
            "rebat.shipped.campaigns.torus.commands:batch",
            "Run jobs one after another on a torus with failures.",
        ),
        "makespan": (
            "rebat.shipped.campaigns.silent_errors.commands:makespan",
            "Compute makespans of R-LIST and R-SHELF on job sets.",
        ),
        "bound": (
            "rebat.shipped.campaigns.silent_errors.commands:bound",
            "Print lower bounds on a makespan, and proved ratios.",
        ),
    },
    "This installation": {
        "completion": (
            "rebat.cli.installation:completion",
            "Print the completion script of bash, zsh or fish.",
        ),
        "warmup": ("rebat.cli.installation:warmup", "Compile the simulation loop once."),
    },
}
"""Module and help line of each command, by group. Thanks to this table, --help imports no command."""

COMMANDS = {name: row for rows in GROUPS.values() for name, row in rows.items()}

COMPLETE = "_REBAT_COMPLETE"
"""Environment variable with which a shell requests completions (see `rebat.cli.completion`)."""

EARLIER = {"partitions": "boxes"}
"""Current names of renamed commands, by former name."""


class ReaderGone(Exception):
    """The program that reads standard output closed the pipe."""


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate errors of files and streams to errors of rebat before click handles them."""
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


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and rejects repeated options."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, arguments = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # completion prints no errors
            reject_repeated(command, arguments, ctx)
        return name, command, arguments

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in EARLIER:
            print_line(f"rebat: note: 'rebat {cmd_name}' is now 'rebat {EARLIER[cmd_name]}'")
            cmd_name = EARLIER[cmd_name]
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise unknown_name("command", cmd_name, COMMANDS, "rebat --help")
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete the name of a command from the table, without importing a command."""
        from rebat.cli.completion import items_of

        names = {name: help_line for name, (_, help_line) in COMMANDS.items()}
        options = click.Command.shell_complete(self, ctx, incomplete)
        return items_of(names, "", incomplete) + options

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the arguments. If they include --help or --version, print the requested text."""
        with _translated_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _translated_errors():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, rows in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), help_line) for name, (_, help_line) in rows.items()]
                )


def reject_repeated(command: click.Command, arguments: list[str], parent: click.Context) -> None:
    """Raise InputError if an option that accepts one value is repeated.

    click would use the last value. click reports all other errors.
    """
    ctx = click.Context(command, parent=parent, resilient_parsing=True, **command.context_settings)
    _, positional, options = command.make_parser(ctx).parse_args(list(arguments))
    for option in options:
        single = isinstance(option, click.Option) and not (
            option.multiple or option.count or option.is_eager
        )
        if single and options.count(option) > 1:
            name = max(option.opts, key=len)
            raise InputError(f"is given {options.count(option)} times", name, "once")
    if isinstance(command, click.Group) and positional:
        subcommand = command.get_command(ctx, positional[0])
        if subcommand is not None:
            reject_repeated(subcommand, positional[1:], ctx)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rebat")
def cli() -> None:
    """Resilient batch schedulers for Batsim: HPC scheduling under node failures.

    \b
    Examples (no other software is needed):
      rebat toy
      rebat run mira-like-june-2017 --policy baseline --policy sfsj \\
          --mtbf 1h --downtime 1h --checkpoint young-daly --out out/june
      rebat policies

    Write durations like 300 (seconds), 5min, 1h30min or 2d.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line. An error of rebat is one line on standard error, with exit status 2.

    Ctrl-C ends the command with exit status 130, SIGTERM with 143, and SIGHUP with 129. In each
    case, it prints one line on standard error. If the reader of standard output closes it (``|
    head``), the command ends silently with 141. After an interruption, each output file is either
    complete or absent, and earlier files are kept.
    """
    if arguments is None:
        collect_less_garbage()
    try:
        with interruptible():
            prepare_completion()
            return cli.main(arguments, standalone_mode=False, complete_var=COMPLETE)
    except ReaderGone:
        silence(sys.stdout)
        sys.exit(141)
    except RebatError as error:
        fail(str(error))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, Interrupted, KeyboardInterrupt):
        print_line("rebat: interrupted")
        sys.exit(130)
    except Terminated:
        print_line("rebat: terminated")
        sys.exit(143)
    except HungUp:
        print_line("rebat: hung up")
        sys.exit(129)
    except MemoryError:
        fail("not enough memory")


def collect_less_garbage() -> None:
    """Run the garbage collector less often in this process, and not at its end.

    A short command spends a tenth of its time in the collector, and most of this time at its end,
    when Python removes all modules.
    """
    gc.set_threshold(200_000, 20)
    atexit.register(gc.freeze)


def prepare_completion() -> None:
    """If a shell requests completions, register the classes that answer it."""
    if COMPLETE in os.environ:
        from rebat.cli.completion import register

        register()


def fail(text: str) -> None:
    """Print an error line and exit."""
    print_line(f"rebat: error: {' '.join(text.split())}")
    sys.exit(2)


SOON_S = 0.02


class Interrupted(BaseException):
    """Ctrl-C."""


class Terminated(BaseException):
    """SIGTERM."""


class HungUp(BaseException):
    """SIGHUP: the terminal or connection was closed."""


_RAISED = {
    signal.SIGINT: Interrupted,
    signal.SIGTERM: Terminated,
    signal.SIGHUP: HungUp,
}


@contextmanager
def interruptible() -> Iterator[None]:
    """Within this context, raise Interrupted, Terminated or HungUp when the signal arrives.

    Python drops exceptions in some places, for example in the callback of a weak reference. In this
    case, the signal is sent again until its exception propagates. If the process ignores a signal
    (``nohup``), the signal stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in _RAISED if signal.getsignal(number) != signal.SIG_IGN]
    handlers = {number: signal.signal(number, _raise) for number in handled}
    hook, sys.unraisablehook = sys.unraisablehook, _send_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _raise(number: int, _: object) -> None:
    raise _RAISED[signal.Signals(number)]


def _send_again(dropped: Any) -> None:
    """If Python dropped the exception of a signal, send the signal again."""
    for number, kind in _RAISED.items():
        if dropped.exc_type is kind:
            threading.Timer(SOON_S, os.kill, (os.getpid(), number)).start()
            return
    sys.__unraisablehook__(dropped)
