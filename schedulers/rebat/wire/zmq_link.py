# SPDX-License-Identifier: Apache-2.0
"""Both ends of Batsim's ZeroMQ link: the scheduler binds and replies, the simulator connects.

Batsim's end is a REQ socket. The scheduler's is a ROUTER, which can do what a REP cannot: tell its
simulator from any other peer that finds the port, and see that this one's connection is closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from rebat.core.errors import InputError
from rebat.wire.peers import refused
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR

FLUSH_MS = 2_000
"""How long closing waits for the last message to leave."""

Answer = Callable[[bytes], bytes]
Record = Callable[[str, bytes], None]
Tell = Callable[[str], None]


class PeerGone(InputError):
    """The other end closed the connection, or stays silent for too long."""


@contextmanager
def _socket(kind: int) -> Iterator[tuple[Any, _Line]]:
    """A socket whose context is terminated with it: Batsim hangs on one left open."""
    context: Any = zmq.Context()
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, FLUSH_MS)
    line = _Line(socket)
    try:
        yield socket, line
    finally:
        line.close()
        socket.close()
        context.term()


class _Line:
    """What a socket's monitor tells: which connections were closed, by their file descriptors."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._poller = zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def wait(self, until: float | None, who: str, fd: int | None = None) -> None:
        """Come back when there is a message; `PeerGone` when there will be none.

        ``until`` is a date of the monotonic clock (None: for ever); ``fd`` the connection that
        counts (None: any).
        """
        while not self._socket.poll(0):
            rest_ms = None if until is None else max(0, round((until - time.monotonic()) * 1000))
            if not self._poller.poll(rest_ms):
                raise PeerGone(f"no message from {who} in time: it vanished, or is stuck")
            closed = self._closed()
            if closed and (fd is None or fd in closed) and not self._socket.poll(0):
                raise PeerGone(f"{who} closed the connection")

    def close(self) -> None:
        """Stop watching; a context does not end before its monitors."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)

    def _closed(self) -> set[int]:
        closed = set()
        while self._monitor.poll(0):
            closed.add(int(recv_monitor_message(self._monitor)["value"]))
        return closed


def _deadline(timeout_s: float) -> float | None:
    return time.monotonic() + timeout_s if timeout_s else None


def serve(
    endpoint: str,
    answer: Answer,
    finished: Callable[[], bool],
    *,
    timeout_s: float = 0.0,
    record: Record | None = None,
    on_bound: Tell | None = None,
    on_stray: Tell | None = None,
) -> None:
    """Answer a simulator's messages until ``finished`` says that the last one was answered.

    The peer whose first message is answered is the simulator; what others send is passed over. At
    a loopback address, so is what other users of this machine send (`rebat.wire.peers`).

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
    on_bound, on_stray : callable, optional
        Get the endpoint really bound; a line for each message that is passed over.

    Raises
    ------
    InputError
        For a port in use, and whatever ``answer`` refuses.
    PeerGone
        For a simulator that closed its connection or is silent.
    """
    note, stray = record or _forget, on_stray or _ignore
    local = endpoint.startswith(_LOOPBACK)
    with _socket(zmq.ROUTER) as (socket, line):
        _attach(socket.bind, "bind", endpoint, "a free port, tcp://ADDRESS:PORT")
        if on_bound:
            on_bound(socket.getsockopt(zmq.LAST_ENDPOINT).decode())
        peer, fd = b"", None
        while not finished():
            until = _deadline(timeout_s)
            while True:
                line.wait(until, "the simulator", fd if peer else _NO_PEER)
                sender, data, sender_fd = _receive(socket)
                other = None if sender == peer else _other(sender_fd, bool(peer), local)
                if data is not None and not other:
                    break
                stray(f"a message of {other or 'no simulator'} was passed over")
            note(TO_SCHEDULER, data)
            reply = answer(data)
            peer, fd = sender, sender_fd
            note(TO_SIMULATOR, reply)
            socket.send_multipart([peer, b"", reply])


def _other(fd: int, has_peer: bool, local: bool) -> str | None:
    """Whose a message is that the simulator did not send; None: it is the simulator's first."""
    if has_peer:
        return "another peer than the simulator"
    return refused(fd) if local else None


_LOOPBACK = "tcp://127."
_NO_PEER = -1
"""No connection has this descriptor: until the simulator speaks, anybody may come and go."""


def _attach(how: Callable[[str], None], verb: str, endpoint: str, expected: str) -> None:
    """Bind or connect; a port that is too large would be taken modulo 65536."""
    port = endpoint.rpartition(":")[2]
    try:
        if port.isdecimal() and int(port) > 65535:
            raise InputError(f"port {port}", endpoint, "a port up to 65535")
        how(endpoint)
    except zmq.ZMQError as error:
        raise InputError(f"cannot {verb}: {error.strerror}", endpoint, expected) from None


def _receive(socket: Any) -> tuple[bytes, bytes | None, int]:
    """Who sent the next message, what (None: not as a REQ socket sends), and its connection."""
    frames = socket.recv_multipart(copy=False)
    whole = len(frames) == 3 and not frames[1].bytes
    try:
        fd = frames[-1].get(zmq.SRCFD)
    except zmq.ZMQError:  # what is no ZeroMQ at all may still look like an old version of it
        fd = _NO_PEER
    return frames[0].bytes, frames[2].bytes if whole else None, fd


def _forget(direction: str, data: bytes) -> None:
    """Record nothing."""


def _ignore(text: str) -> None:
    """Tell nobody."""


@contextmanager
def connect(endpoint: str, *, timeout_s: float = 0.0) -> Iterator[Answer]:
    """The simulator's end: a callable that sends a message and gives the scheduler's reply.

    Raises
    ------
    InputError
        For a malformed endpoint.
    PeerGone
        For a scheduler that ends before it answers, or does not answer in time.
    """
    with _socket(zmq.REQ) as (socket, line):
        socket.setsockopt(zmq.LINGER, 0)  # a message that nobody took is not worth waiting for
        _attach(socket.connect, "connect", endpoint, "tcp://ADDRESS:PORT")

        def ask(data: bytes) -> bytes:
            socket.send(data)
            line.wait(_deadline(timeout_s), "the scheduler")
            reply: bytes = socket.recv()
            return reply

        yield ask
