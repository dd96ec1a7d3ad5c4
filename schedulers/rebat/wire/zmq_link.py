# SPDX-License-Identifier: Apache-2.0
"""Both ends of the ZeroMQ link: the scheduler binds and replies, the simulator connects.

Batsim's end is a REQ socket. The scheduler's end is a ROUTER socket. Unlike a REP socket, it can
distinguish the simulator from other peers, and can detect that the simulator has closed its
connection.
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
"""Maximum time (ms) to send the last message after the socket is closed."""

Answer = Callable[[bytes], bytes]
Record = Callable[[str, bytes], None]
Report = Callable[[str], None]


class PeerGone(InputError):
    """Error: the peer closed the connection, or did not answer in time."""


@contextmanager
def _socket(kind: int) -> Iterator[tuple[Any, _Line]]:
    """Yield a socket. After the block, terminate its context; otherwise, Batsim would hang."""
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
    """Monitor of a socket. It reports closed connections by their file descriptors."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._closed: set[int] = set()
        opened = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
        self._monitor = socket.get_monitor_socket(opened | zmq.EVENT_DISCONNECTED)
        self._poller = zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def wait(self, until: float | None, who: str, fd: int | None = None) -> None:
        """Wait for a message. If no message will arrive, raise `PeerGone`.

        ``until`` is a time of the monotonic clock, or None if there is no limit. ``fd`` is the
        connection of the peer, or None for any connection.
        """
        while not self._socket.poll(0):
            if self._is_closed(fd) and not self._socket.poll(0):
                raise PeerGone(f"{who} closed the connection")
            left_ms = None if until is None else max(0, round((until - time.monotonic()) * 1000))
            if not self._poller.poll(left_ms):
                raise PeerGone(f"no message from {who} before the timeout: it has ended or hangs")

    def close(self) -> None:
        """Stop monitoring. Otherwise, the context of the socket could not terminate."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)

    def _is_closed(self, fd: int | None) -> bool:
        """Return whether a connection is closed. A new connection can have an earlier descriptor.

        A peer can close its connection directly after a message, so that the message is received
        later than the event. Therefore, the events are kept.
        """
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)
            if event["event"] == zmq.EVENT_DISCONNECTED:
                self._closed.add(int(event["value"]))
            else:
                self._closed.discard(int(event["value"]))
        return bool(self._closed) if fd is None else fd in self._closed


def _deadline(timeout_s: float) -> float | None:
    return time.monotonic() + timeout_s if timeout_s else None


def serve(
    endpoint: str,
    answer: Answer,
    finished: Callable[[], bool],
    *,
    timeout_s: float = 0.0,
    record: Record | None = None,
    on_bound: Report | None = None,
    on_stray: Report | None = None,
) -> None:
    """Answer the messages of a simulator until ``finished`` returns True.

    The peer of the first answered message is the simulator. Messages of other peers are ignored. At
    a loopback address, messages of other users of this machine are ignored too
    (`rebat.wire.peers`).

    Parameters
    ----------
    endpoint : str
        Address to bind, like ``tcp://127.0.0.1:28000``. The port ``*`` selects a free port.
    answer : callable
        Function that receives a message and returns the reply, both as bytes.
    timeout_s : float
        Maximum time without a message of the peer, in seconds. If 0, there is no limit.
    record : callable, optional
        Function that is called with the direction and the bytes of every message, before the
        message is answered or sent.
    on_bound, on_stray : callable, optional
        ``on_bound`` is called with the bound endpoint, and ``on_stray`` with a line of text for
        each ignored message.

    Raises
    ------
    InputError
        If the port is in use, or ``answer`` raises.
    PeerGone
        If the simulator closes its connection, or sends no message for too long.
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
                stray(f"a message of {other or 'no simulator'} was ignored")
            note(TO_SCHEDULER, data)
            reply = answer(data)
            peer, fd = sender, sender_fd
            note(TO_SIMULATOR, reply)
            socket.send_multipart([peer, b"", reply])


def _other(fd: int, has_peer: bool, local: bool) -> str | None:
    """Return a description of a peer to ignore, or None if the peer can be the simulator."""
    if has_peer:
        return "another peer than the simulator"
    return refused(fd) if local else None


_LOOPBACK = "tcp://127."
_NO_PEER = -1
"""Descriptor that matches no connection.

Before the first message, closed connections are ignored.
"""


def _attach(attach: Callable[[str], None], verb: str, endpoint: str, expected: str) -> None:
    """Bind or connect. Reject ports above 65535, because ZeroMQ takes them modulo 65536."""
    port = endpoint.rpartition(":")[2]
    try:
        if port.isdecimal() and int(port) > 65535:
            raise InputError(f"port {port} does not exist", endpoint, "a port up to 65535")
        attach(endpoint)
    except zmq.ZMQError as error:
        raise InputError(f"cannot {verb}: {error.strerror}", endpoint, expected) from None


def _receive(socket: Any) -> tuple[bytes, bytes | None, int]:
    """Return sender, data and connection of the next message.

    If the message is not from a REQ socket, the data is None.
    """
    frames = socket.recv_multipart(copy=False)
    complete = len(frames) == 3 and not frames[1].bytes
    try:
        fd = frames[-1].get(zmq.SRCFD)
    except zmq.ZMQError:  # other protocols can look like an old ZeroMQ
        fd = _NO_PEER
    return frames[0].bytes, frames[2].bytes if complete else None, fd


def _forget(direction: str, data: bytes) -> None:
    """Record nothing."""


def _ignore(text: str) -> None:
    """Report nothing."""


@contextmanager
def connect(endpoint: str, *, timeout_s: float = 0.0) -> Iterator[Answer]:
    """Yield a function that sends a message to the scheduler and returns its reply.

    Raises
    ------
    InputError
        If the endpoint is malformed.
    PeerGone
        If the scheduler ends before its reply, or does not reply in time.
    """
    with _socket(zmq.REQ) as (socket, line):
        socket.setsockopt(zmq.LINGER, 0)  # discard unsent messages
        _attach(socket.connect, "connect", endpoint, "tcp://ADDRESS:PORT")

        def ask(data: bytes) -> bytes:
            socket.send(data)
            line.wait(_deadline(timeout_s), "the scheduler")
            reply: bytes = socket.recv()
            return reply

        yield ask
