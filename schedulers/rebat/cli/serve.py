# SPDX-License-Identifier: Apache-2.0
"""``rebat serve``: the scheduler of a real Batsim. ``rebat wire``: check recorded conversations."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.cli.command import command, group, used_options
from rebat.cli.main import HungUp, Interrupted, Terminated
from rebat.cli.options import File, Folder, ForceFolder, Json, Protocol, print_json
from rebat.core.declared import Count, Seconds, extra
from rebat.core.errors import InputError, RebatError
from rebat.core.numbers import counted, duration
from rebat.core.options import MAX_ATTEMPTS
from rebat.core.units import to_s

if TYPE_CHECKING:
    from rebat.api.result import Result
    from rebat.core.events import SimulationBegan
    from rebat.drive.messages import Messages
    from rebat.state.ledger import Ledger
    from rebat.wire.conversation import Conversation
    from rebat.wire.recording import Checked


@command()
def serve(
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy: NAME (see 'rebat policies') or FILE.py:CLASS. If the option is repeated, each policy schedules one simulation, in this order.",
        extra(values="policy"),
    ] = ("baseline",),
    endpoint: Annotated[
        str, "Address to listen on; tcp://0.0.0.0:28000 accepts connections from the network."
    ] = "tcp://127.0.0.1:28000",
    protocol: Annotated[
        Protocol | None,
        "Version of Batsim, 4 or 5 (default: the version that Batsim's first message shows).",
    ] = None,
    options_json: Annotated[
        str | None,
        "--options",
        "Policy options as JSON (see 'rebat policies --axes'). Options from Batsim override these options. Batsim 4 passes options with --sched-cfg, Batsim 5 in the text after -s.",
    ] = None,
    cores_per_node: Annotated[
        Count, "Treat Batsim's hosts as cores and group every N consecutive hosts into one node."
    ] = 1,
    max_attempts: Annotated[
        Count, "Number of interruptions by failures after which a job ends as failed."
    ] = MAX_ATTEMPTS,
    probes: Annotated[
        bool,
        "--probes/--no-probes",
        "Before a decision on failures, repairs, operations, and jobs submitted at a time that is not a whole second, ask Batsim whether it has reported everything that happens at this time. With Batsim 4, each probe adds a rejected job of the workload 'rebat' to Batsim's output. Without probes, Batsim can abort if it reports simultaneous events in several messages.",
    ] = True,
    timeout: Annotated[Seconds, "Stop if Batsim sends no message for this duration."] = 600.0,
    record: Annotated[
        File | None,
        "Write all messages to this file, one per line. With several policies, file names begin with POLICY-.",
    ] = None,
    as_json: Json = False,
    out: Annotated[
        Folder | None,
        "Folder for the results: comparison.csv, report.html and a folder per policy.",
    ] = None,
    force: ForceFolder = False,
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
    from rebat.api.records import comparison_record
    from rebat.console.output import print_result
    from rebat.core.folders import atomic_folder
    from rebat.policies.options import parse_options
    from rebat.runs.single import folders_of

    options = parse_options("{}" if options_json is None else options_json, "--options")
    used = used_options()
    for name, count in (("cores_per_node", cores_per_node), ("max_attempts", max_attempts)):
        if name in used:
            options[name] = count
    _check(policies, options)
    for name, value in (("--force", force), ("--json", as_json)):
        if value and out is None:
            raise InputError("has no effect", name, "--out FOLDER as well")
    with atomic_folder(out, force) if out else nullcontext() as folder:
        sessions = []
        for number, policy in enumerate(policies):
            file = record
            if record is not None and len(policies) > 1:
                file = record.with_name(f"{folders_of(policies)[number]}-{record.name}")
            # The Batsim of the previous simulation may still connect before it ends.
            patience = 0.0 if number else PATIENCE_S
            sessions.append(
                _serve_one(policy, options, endpoint, protocol, probes, timeout, patience, file)
            )
        if folder is None or out is None:
            return
        result = _write(policies, sessions, folder)
    saved = f"the results are in {out}"
    if as_json:
        print_json(comparison_record(result, (), out), saved)
    else:
        print_result(repr(result), saved)


def _check(policies: tuple[str, ...], options: dict[str, Any]) -> None:
    """Report errors in the policies before a Batsim connects."""
    from rebat.core.errors import error_at
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
) -> Messages:
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
    from rebat.runs.staging import on_machine_of
    from rebat.wire.conversation import Conversation, session_for

    def make(config: str, began: SimulationBegan) -> Messages:
        where = "Batsim's --sched-cfg"
        if conversation.protocol == 5:
            where = "the text after Batsim's -s"
            if config and not config.lstrip().startswith("{"):
                log(f"warning: {where} is not a JSON object of options and has no effect")
                config = ""
        chosen = options | parse_options(config, where)
        return session_for(policy, chosen, began, adapt=on_machine_of(began))

    conversation = Conversation(make, probes=probes, protocol=protocol)
    return conversation


def _write(policies: tuple[str, ...], sessions: list[Messages], folder: Path) -> Result:
    """Write the results of all sessions, the comparison and its page."""
    from rebat.api.served import served

    result = served(policies, sessions)
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


def _report(session: Messages, spans: list[float], n_probes: int) -> None:
    ledger = session.ledger
    cuts = statistics.quantiles(spans, n=100, method="inclusive") if len(spans) > 1 else spans * 99
    log(
        f"{counted(len(spans), 'message')}, {counted(n_probes, 'probe')}, {counted(len(ledger.attempts), 'attempt')} ended, "
        f"{counted(len(ledger.refusals), 'proposal')} refused{rejected(ledger)}; decision time p50 {duration(cuts[49])}, "
        f"p99 {duration(cuts[98])}, total {duration(sum(spans))}"
    )


WAITS = "Batsim waits for a reply and does not end; if it still runs, stop it with Ctrl-C or kill"
"""What the user must do if this process ends before the simulation."""


def log(text: str) -> None:
    """Print a line on standard error."""
    click.echo(f"rebat: {text}", err=True)


class Refusals:
    """Prints the proposals that the session refused."""

    MOST = 20

    def __init__(self) -> None:
        self._printed = 0

    def print_new(self, session: Messages | None) -> None:
        """Print the proposals refused since the last call, at most ``MOST`` in total."""
        refusals = session.refusals if session else []
        for at_us, attempt, reason in refusals[self._printed : self.MOST]:
            log(f"refused at {to_s(at_us):.6f} s: {attempt} {reason}")
        if self._printed < self.MOST < len(refusals):
            log(f"more than {self.MOST} proposals were refused; the others are not printed")
        self._printed = len(refusals)


def launch_commands(address: str, protocol: int | None) -> list[str]:
    """Return the commands that start Batsim: one for each version that can connect."""
    where = address.replace("0.0.0.0", "localhost")
    commands = {
        4: "mkdir -p out && batsim -p PLATFORM.xml -w WORKLOAD.json [--events FAILURES] -e out/run "
        "--enable-dynamic-jobs --acknowledge-dynamic-jobs --enable-profile-reuse "
        f"-s {where}",
        5: "mkdir -p out && batsim -p PLATFORM.xml -w WORKLOAD.json [--ee FAILURES] -e out/ "
        f'-s {where} ""',
    }
    if protocol:
        return [commands[protocol]]
    return [commands[4], f"or, with Batsim 5: {commands[5]}"]


def warn_of_other_machines(session: Messages | None) -> None:
    """Warn if a workload is for another number of hosts than the platform of Batsim."""
    from rebat.wire.conversation import other_machines

    for text in other_machines(session.began) if session and session.began else ():
        log(f"warning: {text}")


def warn_of_missing_jobs(session: Messages) -> None:
    """Warn if the simulation ended without a job, or before all jobs had ended."""
    waiting, running = len([*session.queue]), session.n_running
    if waiting or running:
        log(
            f"warning: the simulation ended while {counted(running, 'job')} ran and {waiting} waited"
        )
    elif not len(session.ledger.attempts):
        log("warning: the simulation ended without a job; check the workload of Batsim")


def rejected(ledger: Ledger) -> str:
    """Return a clause with the number of rejected jobs and the first reason, or ''."""
    if not ledger.rejections:
        return ""
    (job_id, reason), n_jobs = ledger.rejections[0], counted(len(ledger.rejections), "job")
    return f", {n_jobs} rejected (first: {job_id}: {reason})"


MOST = 20
"""Maximum number of problems that are printed."""


@command(name="check")
def check_conversation(
    conversation: File,
    *,
    protocol: Annotated[
        Protocol | None,
        "Version of Batsim, 4 or 5 (default: the version that the first message shows).",
    ] = None,
    as_json: Json = False,
) -> None:
    """Check each message of a recorded conversation.

    This command is for authors of schedulers. It reports messages that rebat does not understand,
    and replies whose form makes Batsim abort. It also reports messages whose meaning changes if
    rebat reads and rewrites them. The exit status is 1 if a message is reported.

    CONVERSATION has one JSON object per line. The objects are those of 'rebat serve --record', or
    have the keys "from" ("batsim" or "edc") and "raw" or "message".

    \b
    Example:
      rebat serve --policy sfsj --record talk.jsonl
      rebat wire check talk.jsonl
    """
    from rebat.wire.recording import check_frames, read_frames

    rows = list(check_frames(read_frames(conversation), protocol))
    if not rows:
        raise InputError("contains no message", str(conversation), "a recorded conversation")
    failed = [row for row in rows if not row.passed]
    if as_json:
        print_json({"messages": [_message_record(row) for row in rows], "failed": len(failed)})
    else:
        click.echo("\n".join(_wire_lines(conversation, rows, failed)))
    if failed:
        raise SystemExit(1)


def _message_record(row: Checked) -> dict[str, object]:
    return {
        "line": row.line,
        "sender": row.sender,
        "content": row.content,
        "understood": row.understood,
        "repeated": row.repeated,
        "problem": row.problem,
    }


def _wire_lines(file: Path, rows: list[Checked], failed: list[Checked]) -> list[str]:
    verdict = f"rebat reads and writes all {len(rows)} messages with the same meaning"
    if failed:
        verdict = f"{len(failed)} of {len(rows)} messages fail"
    lines = [f"{file}: {verdict}"]
    lines += [f"  line {row.line}, {row.sender}: {row.problem}" for row in failed[:MOST]]
    if len(failed) > MOST:
        lines.append(f"  and {len(failed) - MOST} more; --json lists all")
    counts = Counter((row.sender, row.content or "no event") for row in rows)
    lines += [f"  {count:>6}  {sender}: {text}" for (sender, text), count in counts.most_common()]
    return lines


wire = group(
    "wire", "Check recorded conversations between Batsim and a scheduler.", check_conversation
)
