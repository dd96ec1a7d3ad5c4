# SPDX-License-Identifier: Apache-2.0
"""``rebat serve``: the scheduler process for a real Batsim (or for ``rebat simulate``)."""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.completing import complete_policy
from rebat.cli.interrupts import HungUp, Interrupted, Terminated
from rebat.cli.json_output import json_option, print_json
from rebat.cli.serve_lines import (
    WAITS,
    Refusals,
    launch_commands,
    log,
    rejected,
    warn_of_missing_jobs,
    warn_of_other_machines,
)
from rebat.cli.types import DURATION, FILE, FOLDER, NODES, PROTOCOL
from rebat.core.errors import InputError, RebatError
from rebat.core.formatting import counted
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.library.result import Result
    from rebat.session.session import Session
    from rebat.wire.conversation import Conversation


@click.command()
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    default=("baseline",),
    show_default=True,
    shell_complete=complete_policy,
    help=(
        "Policy: NAME (see 'rebat policies') or FILE.py:CLASS. If the option is repeated, each "
        "policy schedules one simulation, in this order."
    ),
)
@click.option(
    "--endpoint",
    default="tcp://127.0.0.1:28000",
    show_default=True,
    help="Address to listen on; tcp://0.0.0.0:28000 accepts connections from the network.",
)
@click.option(
    "--protocol",
    type=PROTOCOL,
    help="Version of Batsim, 4 or 5 (default: the version that Batsim's first message shows).",
)
@click.option(
    "--options",
    "options_json",
    default="{}",
    help=(
        "Policy options as JSON (see 'rebat policies --axes'). Options from Batsim override "
        "these options. Batsim 4 passes options with --sched-cfg, Batsim 5 in the text after -s."
    ),
)
@click.option(
    "--cores-per-node",
    type=NODES,
    default=1,
    show_default=True,
    help="Treat Batsim's hosts as cores and group every N consecutive hosts into one node.",
)
@click.option(
    "--probes/--no-probes",
    default=True,
    show_default=True,
    help=(
        "Before a decision on failures, repairs and operations, ask Batsim whether it has reported "
        "everything that happens at this time. With Batsim 4, each probe adds a rejected job of the "
        "workload 'rebat' to Batsim's output. Without probes, Batsim can abort if it reports "
        "simultaneous events in several messages."
    ),
)
@click.option(
    "--timeout",
    type=DURATION,
    default="10min",
    show_default=True,
    help="Stop if Batsim sends no message for this duration.",
)
@click.option(
    "--record",
    type=FILE,
    help="Write all messages to this file, one per line. With several policies, file names begin with POLICY-.",
)
@json_option
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the results: comparison.csv, report.html and a folder per policy.",
)
@click.option("--force", is_flag=True, help="Replace an earlier result in the folder --out.")
def serve(
    policies: tuple[str, ...],
    endpoint: str,
    protocol: int | None,
    options_json: str,
    cores_per_node: int,
    probes: bool,
    timeout: float,
    record: Path | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Schedule the jobs of a Batsim 4 or 5 that connects to this process.

    With several policies, start one Batsim per policy, one after another, with the same workload
    and events. With --out, the policies are then compared in a table and an HTML page. The command
    ends when the last simulation ends.

    \b
    Example, in two shells, for Batsim 4:
      rebat serve --policy sfsj
      mkdir -p out
      batsim -p platform.xml -w workload.json --events failures.events -e out/run \\
          --enable-dynamic-jobs --acknowledge-dynamic-jobs --enable-profile-reuse

    \b
    For Batsim 5, with files that 'rebat workload export' and 'rebat failures export' write:
      rebat serve --policy sfsj
      mkdir -p out
      batsim -p platform.xml -w workload5.json --ee failures5.events -e out/ \\
          -s tcp://localhost:28000 ""

    The profiles of the workload determine the checkpoints of jobs. For profiles without
    checkpoints, set the policy options mtbf, checkpoint_cost and recovery_cost. Operations (see
    'rebat operations --help') are lines in Batsim's --events file, and Batsim needs the option
    --forward-unknown-events. For Batsim 5, they are lines in an --ee file. Policies without
    migration need the axis drain=migrate to carry out operations.
    """
    from rebat.console.output import print_result
    from rebat.core.folders import atomic_folder
    from rebat.library.records import comparison_record
    from rebat.policies.options import parse_options
    from rebat.runs.single import folder_of

    options = parse_options(options_json, "--options")
    if cores_per_node > 1:
        options["cores_per_node"] = cores_per_node
    _check(policies, options)
    for name, value in (("--force", force), ("--json", as_json)):
        if value and out is None:
            raise InputError("has no effect", name, "--out FOLDER as well")
    with atomic_folder(out, force) if out else nullcontext() as folder:
        sessions = []
        for number, policy in enumerate(policies):
            file = record
            if record is not None and len(policies) > 1:
                file = record.with_name(f"{folder_of(policy)}-{record.name}")
            # The Batsim of the previous simulation may still connect before it ends.
            patience = 0.0 if number else PATIENCE_S
            sessions.append(
                _serve_one(policy, options, endpoint, protocol, probes, timeout, patience, file)
            )
        if folder is None or out is None:
            return
        result = _write(policies, sessions, cores_per_node, folder)
    saved = f"the results are in {out}"
    if as_json:
        print_json(comparison_record(result, (), out), saved)
    else:
        print_result(repr(result), saved)


def _check(policies: tuple[str, ...], options: dict[str, Any]) -> None:
    """Report errors in the policies before a Batsim connects."""
    from rebat.library.checks import error_at
    from rebat.policies.options import configure
    from rebat.policies.presets import schedulers

    with error_at("--policy"):
        schedulers(policies)
    for policy in policies:
        with error_at("--options"):
            configured = configure(policy, options)
        try:
            configured.make()
        except InputError as error:  # Batsim's --sched-cfg may override it
            log(f"warning: {error}")


def _serve_one(
    policy: str,
    options: dict[str, Any],
    endpoint: str,
    protocol: int | None,
    probes: bool,
    timeout: float,
    patience: float,
    record: Path | None,
) -> Session:
    """Schedule one simulation until it ends."""
    from rebat.wire.recording import Recorder
    from rebat.wire.zmq_link import PeerGone
    from rebat.wire.zmq_link import serve as serve_zmq

    conversation = _conversation(policy, options, protocol, probes)
    spans: list[float] = []
    refusals = Refusals()

    def answer(data: bytes) -> bytes:
        start, begun = time.perf_counter(), conversation.session is not None
        try:
            reply = conversation.answer(data)
        except RebatError as error:
            raise RebatError(f"{error}; {WAITS}") from None
        spans.append(time.perf_counter() - start)
        if not begun:
            _warn_of_missing_flags(conversation, probes)
            warn_of_other_machines(conversation.session)
        refusals.print_new(conversation.session)
        return reply

    def bound(address: str) -> None:
        commands = "\n".join(f"  {line}" for line in launch_commands(address, protocol))
        log(f"{policy} waits at {address} for this command:\n{commands}")

    try:
        with Recorder(record) if record else nullcontext() as recorder:
            serve_zmq(
                endpoint,
                answer,
                conversation.finished,
                timeout_s=timeout,
                patience_s=patience,
                record=recorder,
                on_bound=bound,
                on_stray=log,
            )
    except (Interrupted, Terminated, HungUp):
        if conversation.messages:
            log(WAITS)
        raise
    except PeerGone as error:
        raise InputError(f"{error}; {conversation.standing()}") from None
    session = conversation.session
    assert session is not None  # the session has ended
    _report(session, spans, conversation.n_probes)
    warn_of_missing_jobs(session)
    return session


PATIENCE_S = 30.0
"""Time for a new start of Batsim, in seconds, after a Batsim connected and ended."""


def _conversation(
    policy: str, options: dict[str, Any], protocol: int | None, probes: bool
) -> Conversation:
    """Return a conversation whose session uses these options and those that Batsim sends."""
    from rebat.policies.options import parse_options
    from rebat.wire.conversation import Conversation, session_for

    def make(config: str) -> Session:
        where = "Batsim's --sched-cfg"
        if conversation.protocol == 5:
            where = "the text after Batsim's -s"
            if config and not config.lstrip().startswith("{"):
                log(f"warning: {where} is not a JSON object of options and has no effect")
                config = ""
        return session_for(policy, options | parse_options(config, where))

    conversation = Conversation(make, probes=probes, protocol=protocol)
    return conversation


def _write(
    policies: tuple[str, ...], sessions: list[Session], cores_per_node: int, folder: Path
) -> Result:
    """Write the results of all sessions, the comparison and its page."""
    from rebat.library.served import served

    result = served(policies, sessions, cores_per_node)
    result.write_into(folder)
    result.to_html(folder / "report.html")
    return result


def _warn_of_missing_flags(conversation: Conversation, probes: bool) -> None:
    """Warn if options of Batsim 4 are missing. Batsim 5 does not have these options."""
    session = conversation.session
    began = session.began if session else None
    if began is None or conversation.protocol != 4:
        return
    if not began.config.get("dynamic-jobs-enabled"):
        log(
            "warning: Batsim runs without --enable-dynamic-jobs: interrupted jobs cannot be "
            "resubmitted"
        )
    elif probes and not began.config.get("dynamic-jobs-acknowledged"):
        log(
            "warning: Batsim runs without --acknowledge-dynamic-jobs: if nodes fail at the same "
            "time, a job can start on one of them in between, and Batsim aborts"
        )


def _report(session: Session, spans: list[float], n_probes: int) -> None:
    ledger = session.ledger
    cuts = statistics.quantiles(spans, n=100, method="inclusive") if len(spans) > 1 else spans * 99
    log(
        f"{counted(len(spans), 'message')}, {counted(n_probes, 'probe')}, {counted(len(ledger.attempts), 'attempt')} ended, "
        f"{counted(len(ledger.refusals), 'proposal')} refused{rejected(ledger)}; decision time p50 {cuts[49] * 1e6:.0f} us, "
        f"p99 {cuts[98] * 1e6:.0f} us, total {format_duration(sum(spans))}"
    )
