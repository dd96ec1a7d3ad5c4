# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP as exceptions, so that all cleanup code runs when they arrive."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
