# SPDX-License-Identifier: Apache-2.0
"""The engine as a replacement for Batsim 5, for any scheduler."""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.decisions import Reply
from rebat.core.errors import BatsimAbort, InputError
from rebat.core.events import Message
from rebat.engine.aborts import Abort, AbortRule
from rebat.engine.engine import Engine, OnProgress
from rebat.wire.batsim5 import NoEvents, decode_reply, encode_message
from rebat.wire.decisions5 import Unsupported
from rebat.wire.hello5 import Features, HelloCrash, decode_hello, encode_init

Ask = Callable[[bytes], bytes]

ABORTED, CRASHED, DEADLOCKED = 134, 139, 1
"""Exit statuses of Batsim 5 in a shell: after SIGABRT, after SIGSEGV, and without a next event."""


class Batsim5Abort(BatsimAbort):
    """Error: a real Batsim 5 would have ended at this point.

    Attributes
    ----------
    exit_status : int
        Exit status of Batsim 5 in a shell.
    """

    def __init__(self, problem: str, exit_status: int) -> None:
        super().__init__(f"Batsim 5 would end with exit status {exit_status}: {problem}")
        self.exit_status = exit_status


def greet(ask: Ask, text: str = "") -> Features:
    """Send Batsim's text to a scheduler, and return the features that the scheduler requests.

    Raises
    ------
    Batsim5Abort
        If Batsim would abort or crash on the hello.
    """
    data = ask(encode_init(text))
    try:
        return decode_hello(data).requested_simulation_features or Features()
    except Unsupported:
        raise
    except InputError as error:
        status = CRASHED if isinstance(error, HelloCrash | NoEvents) else ABORTED
        raise Batsim5Abort(str(error.at("the scheduler's hello")), status) from None


def run_remote5(engine: Engine, ask: Ask, on_progress: OnProgress | None = None) -> None:
    """Run an engine with the scheduler at the other end of ``ask``.

    Raises
    ------
    Batsim5Abort
        If Batsim would abort on a reply, or could not continue.
    InputError
        If the engine cannot execute a decision.
    """

    def scheduler(message: Message) -> Reply:
        data = ask(encode_message(message))
        try:
            return decode_reply(data)
        except Unsupported:
            raise
        except InputError as error:
            status = CRASHED if isinstance(error, NoEvents) else ABORTED
            raise Batsim5Abort(str(error.at("the scheduler's reply")), status) from None

    try:
        engine.run(scheduler, on_progress)
    except Abort as error:
        status = DEADLOCKED if error.rule is AbortRule.DEADLOCK else ABORTED
        raise Batsim5Abort(f"at {error.now_s:.6f} s: {error.problem}", status) from None
