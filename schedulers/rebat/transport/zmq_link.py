"""Both ends of Batsim's ZeroMQ link: the scheduler binds and replies, the simulator connects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zmq

from rebat.core.errors import InputError
from rebat.transport.recording import TO_SCHEDULER, TO_SIMULATOR

DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"
FLUSH_MS = 2_000
"""How long closing waits for the last message to leave."""

Answer = Callable[[bytes], bytes]
Record = Callable[[str, bytes], None]


@contextmanager
def _socket(kind: int) -> Iterator[Any]:
    """A socket whose context is terminated with it: Batsim hangs on one left open."""
    context: Any = zmq.Context()
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, FLUSH_MS)
    try:
        yield socket
    finally:
        socket.close()
        context.term()


def _receive(socket: Any, timeout_s: float, who: str) -> bytes:
    """The next message; InputError when the peer stays silent (0: wait for ever)."""
    if timeout_s and not socket.poll(round(timeout_s * 1000)):
        raise InputError(f"no message from {who} for {timeout_s:g} s: it vanished, or is stuck")
    data: bytes = socket.recv()
    return data


def serve(
    endpoint: str,
    answer: Answer,
    finished: Callable[[], bool],
    *,
    timeout_s: float = 0.0,
    record: Record | None = None,
    on_bound: Callable[[str], None] | None = None,
) -> None:
    """Answer a simulator's messages until ``finished`` says that the last one was answered.

    Parameters
    ----------
    endpoint : str
        Where to bind, as ``tcp://127.0.0.1:28000``; port ``*`` takes a free one.
    answer : callable
        A message's bytes to the reply's.
    timeout_s : float
        Give up when the peer is silent for so long; 0: never.
    record : callable, optional
        Gets (direction, bytes) of every message, before it is answered or sent.
    on_bound : callable, optional
        Gets the endpoint really bound.

    Raises
    ------
    InputError
        For a port in use, a peer that vanished, and whatever ``answer`` refuses.
    """
    note = record or _forget
    with _socket(zmq.REP) as socket:
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise InputError(
                f"cannot bind: {error.strerror}", endpoint, "a free port, tcp://ADDRESS:PORT"
            ) from None
        if on_bound:
            on_bound(socket.getsockopt(zmq.LAST_ENDPOINT).decode())
        while not finished():
            data = _receive(socket, timeout_s, "the simulator")
            note(TO_SCHEDULER, data)
            reply = answer(data)
            note(TO_SIMULATOR, reply)
            socket.send(reply)


def _forget(direction: str, data: bytes) -> None:
    """Record nothing."""


@contextmanager
def connect(endpoint: str, *, timeout_s: float = 0.0) -> Iterator[Answer]:
    """The simulator's end: a callable that sends a message and gives the scheduler's reply.

    Raises
    ------
    InputError
        For a malformed endpoint, and a scheduler that does not answer in time.
    """
    with _socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)  # a message that nobody took is not worth waiting for
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise InputError(
                f"cannot connect: {error.strerror}", endpoint, "tcp://ADDRESS:PORT"
            ) from None

        def ask(data: bytes) -> bytes:
            socket.send(data)
            return _receive(socket, timeout_s, "the scheduler")

        yield ask
