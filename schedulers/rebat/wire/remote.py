# SPDX-License-Identifier: Apache-2.0
"""The engine as a replacement for Batsim 4, for any scheduler."""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import Message
from rebat.engine.engine import Engine, OnProgress
from rebat.wire import batsim4


def run_remote(
    engine: Engine, ask: Callable[[bytes], bytes], on_progress: OnProgress | None = None
) -> None:
    """Run an engine with the scheduler at the other end of ``ask``.

    Raises
    ------
    InputError
        If Batsim could not read the reply of the scheduler.
    Abort
        If Batsim would abort on a decision.
    """

    def scheduler(message: Message) -> Reply:
        data = ask(batsim4.encode_message(message))
        try:
            return batsim4.decode_reply(data)
        except InputError as error:
            raise error.at("the scheduler's reply") from None

    engine.run(scheduler, on_progress)
