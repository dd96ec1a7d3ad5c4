# SPDX-License-Identifier: Apache-2.0
"""Both ends of the ZeroMQ link: the scheduler binds and replies, the simulator connects.

Batsim's end is a REQ socket. The scheduler's end is a ROUTER socket. Unlike a REP socket, it can
distinguish the simulator from other peers, and can detect that the simulator has closed its
connection.
"""

from __future__ import annotations

import math
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

SLICE_S = 1.0
"""Maximum time of a system call. A signal just before the call does not interrupt the call."""

_OPENED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_NO_HANDSHAKE = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
"""Events directly before the end of a connection whose peer does not use ZeroMQ."""

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
    """Monitor of a socket. It reports closed connections by their file descriptors.

    Attributes
    ----------
    left : float, optional
        Time at which a peer closed its connection without a message, if no peer has connected
        since. Peers that do not complete ZeroMQ's handshake, such as port scans, do not count.
    patience_s : float
        Maximum time to wait for the next peer after this time. If 0, there is no limit.
    report : callable
        Function that is called with a line of text if a peer leaves without a message.
    """

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._closed: set[int] = set()
        self._heard: set[int] = set()
        self._last_event = 0
        self.left: float | None = None
        self.patience_s = 0.0
        self.report: Report = _ignore
        self._monitor = socket.get_monitor_socket(_OPENED | zmq.EVENT_DISCONNECTED | _NO_HANDSHAKE)
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
            now = time.monotonic()
            if self.left is not None and self.patience_s and now >= self.left + self.patience_s:
                raise PeerGone(f"{_SILENT}, and no other has connected since")
            if until is not None and now >= until:
                raise PeerGone(f"no message from {who} before the timeout: it has ended or hangs")
            left_s = SLICE_S if until is None else min(SLICE_S, until - now)
            self._poller.poll(math.ceil(left_s * 1000))

    def hear(self, fd: int) -> None:
        """Note that a message has arrived through a connection."""
        self._heard.add(fd)
        self.left = None

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
            kind, number = int(event["event"]), int(event["value"])
            if kind == zmq.EVENT_DISCONNECTED:
                self._closed.add(number)
                self._note_end(number)
            elif kind & _OPENED:
                self._closed.discard(number)
                self._heard.discard(number)
                self.left = None
            self._last_event = kind
        return bool(self._closed) if fd is None else fd in self._closed

    def _note_end(self, fd: int) -> None:
        """Report a connection that was closed without a message, unless it is not ZeroMQ's."""
        if self.patience_s and fd not in self._heard and not self._last_event & _NO_HANDSHAKE:
            self.left = time.monotonic()
            self.report(f"{_SILENT}. Waiting {self.patience_s:g} s for the next connection")


_SILENT = (
    "a peer closed its connection without a message. If it was Batsim, its output contains the "
    "error; for example, the folder of its option -e must exist"
)


def _deadline(timeout_s: float) -> float | None:
    return time.monotonic() + timeout_s if timeout_s else None


def serve(
    endpoint: str,
    answer: Answer,
    finished: Callable[[], bool],
    *,
    timeout_s: float = 0.0,
    patience_s: float = 0.0,
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
    patience_s : float
        Maximum time, in seconds, after a ZeroMQ peer has closed its connection without a message,
        until the next peer connects. If 0, there is no limit.
    record : callable, optional
        Function that is called with the direction and the bytes of every message, before the
        message is answered or sent.
    on_bound, on_stray : callable, optional
        ``on_bound`` is called with the bound endpoint, and ``on_stray`` with a line of text for
        each ignored message, and for each peer that closes its connection without a message.

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
        line.patience_s, line.report = patience_s, stray
        while not finished():
            until = _deadline(timeout_s)
            while True:
                line.wait(until, "the simulator", fd if peer else _NO_PEER)
                sender, data, sender_fd = _receive(socket)
                line.hear(sender_fd)
                other = None if sender == peer else _other(sender_fd, bool(peer), local)
                if data is not None and not other:
                    break
                stray(f"a message of {other or 'no simulator'} was ignored")
            note(TO_SCHEDULER, data)
            reply = answer(data)
            peer, fd, line.patience_s = sender, sender_fd, 0.0
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
