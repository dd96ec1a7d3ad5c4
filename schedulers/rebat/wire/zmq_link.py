# SPDX-License-Identifier: Apache-2.0
"""Both ends of the ZeroMQ link: the scheduler binds and replies, the simulator connects.

Batsim's end is a REQ socket. The scheduler's end is a ROUTER socket. Unlike a REP socket, it can
distinguish the simulator from other peers, and can detect that the simulator has closed its
connection. Batsim's protocol has no authentication. On Linux, the kernel lists the user of every
local socket in ``/proc/net/tcp``; this link checks the user of each peer on this machine.
"""

from __future__ import annotations

import math
import os
import socket as sockets
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from rebat.core.errors import InputError
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR

FLUSH_MS = 2_000
"""Maximum time (ms) to send the last message after the socket is closed."""

MOST_BYTES = 2**28
"""Maximum length of a message (256 MiB). ZeroMQ closes the connection of a peer that sends more."""

SLICE_S = 1.0
"""Maximum time of a system call. A signal just before the call does not interrupt the call."""

_OPENED = zmq.EVENT_ACCEPTED | zmq.EVENT_CONNECTED
_NO_HANDSHAKE = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
"""Events directly before the end of a connection whose peer does not use ZeroMQ."""

_SILENT = (
    "a peer closed its connection without a message. If it was Batsim, its output contains the "
    "error; for example, the folder of its option -e must exist"
)

_NOBODY = (
    "no peer has connected. If Batsim was started, it has ended before it connects, and its output "
    "contains the error. Waiting until --timeout"
)

_NO_PEER = -1
"""Descriptor that matches no connection.

Before the first message, closed connections are ignored.
"""

Answer = Callable[[bytes], bytes]
Record = Callable[[str, bytes], None]
Report = Callable[[str], None]


class PeerGone(InputError):
    """Error: the peer closed the connection, or did not answer in time."""


@contextmanager
def _socket(kind: int) -> Iterator[tuple[Any, _Monitor]]:
    """Yield a socket. After the block, terminate its context; otherwise, Batsim would hang."""
    context: Any = zmq.Context()
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, FLUSH_MS)
    socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
    monitor = _Monitor(socket)
    try:
        yield socket, monitor
    finally:
        monitor.close()
        socket.close()
        context.term()


class _Monitor:
    """Monitor of a socket. It reports closed connections by their file descriptors.

    ``left`` is the time at which a peer closed its connection without a message, if no peer has
    connected since. Peers that do not complete ZeroMQ's handshake, such as port scans, do not
    count. ``patience_s`` is the maximum time to wait for the next peer after ``left``. If it is 0,
    there is no limit. ``report`` is called with a line of text if a peer leaves without a message,
    and if no peer has connected for ``patience_s``.
    """

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._closed: set[int] = set()
        self._heard: set[int] = set()
        self._last_event = 0
        self.left: float | None = None
        self.patience_s = 0.0
        self.report: Report = _ignore
        self._begin: float | None = time.monotonic()
        """Time at which the wait for the first peer began, or None if nothing is left to report."""
        self._monitor = socket.get_monitor_socket(_OPENED | zmq.EVENT_DISCONNECTED | _NO_HANDSHAKE)
        self._poller = zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def wait(self, until: float, who: str, fd: int | None = None) -> None:
        """Wait for a message until a time. If no message will arrive, raise `PeerGone`.

        ``fd`` is the connection of the peer, or None for any connection.
        """
        while not self._socket.poll(0):
            if self._is_closed(fd) and not self._socket.poll(0):
                raise PeerGone(f"{who} closed the connection")
            now = time.monotonic()
            if self._begin and self.patience_s and now >= self._begin + self.patience_s:
                self._begin = None
                self.report(_NOBODY)
            if self.left is not None and self.patience_s and now >= self.left + self.patience_s:
                raise PeerGone(f"{_SILENT}, and no other has connected since")
            if now >= until:
                raise PeerGone(f"no message from {who} before the timeout: it has ended or hangs")
            self._poller.poll(math.ceil(min(SLICE_S, until - now) * 1000))

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
                unknown = number not in self._heard and not self._last_event & _NO_HANDSHAKE
                if self.patience_s and unknown:
                    self.left = time.monotonic()
                    limit = f"Waiting {self.patience_s:g} s for the next connection"
                    self.report(f"{_SILENT}. {limit}")
            elif kind & _OPENED:
                self._begin = None
                self._closed.discard(number)
                self._heard.discard(number)
                self.left = None
            self._last_event = kind
        return bool(self._closed) if fd is None else fd in self._closed


def _ignore(text: str) -> None:
    """Report nothing."""


def _deadline(timeout_s: float) -> float:
    """Return a time of the monotonic clock. A timeout of 0 has no limit."""
    return time.monotonic() + (timeout_s or math.inf)


def serve(
    endpoint: str,
    answer: Answer,
    finished: Callable[[], bool],
    *,
    timeout_s: float = 0.0,
    patience_s: float = 0.0,
    record: Record | None = None,
    on_bound: Report = _ignore,
    on_stray: Report = _ignore,
) -> None:
    """Answer the messages of a simulator until ``finished`` returns True.

    The peer of the first answered message is the simulator. Messages of other peers are ignored,
    and messages of other users of this machine too. A peer that sends more than `MOST_BYTES` bytes
    loses its connection. If the port is in use, an InputError is raised.

    Parameters
    ----------
    endpoint : str
        Address to bind, like ``tcp://127.0.0.1:28000``. The port ``*`` selects a free port.
    answer : callable
        Function that receives a message and returns the reply, both as bytes.
    timeout_s : float
        Maximum time without a message of the peer, in seconds. If 0, there is no limit. After this
        time, or if the simulator closes its connection, `PeerGone` is raised.
    patience_s : float
        Maximum time, in seconds, after a ZeroMQ peer has closed its connection without a message,
        until the next peer connects. If 0, there is no limit.
    record : callable, optional
        Function that is called with the direction and the bytes of every message, before the
        message is answered or sent.
    on_bound, on_stray : callable, optional
        ``on_bound`` is called with the bound endpoint, and ``on_stray`` with a line of text for
        each ignored message, and for each peer that closes its connection without a message.
    """
    with _socket(zmq.ROUTER) as (socket, monitor):
        _attach(socket.bind, "bind", endpoint, "a free port, tcp://ADDRESS:PORT")
        on_bound(socket.getsockopt(zmq.LAST_ENDPOINT).decode())
        peer, fd = b"", _NO_PEER
        monitor.patience_s, monitor.report = patience_s, on_stray
        while not finished():
            until = _deadline(timeout_s)
            while True:
                monitor.wait(until, "the simulator", fd)
                sender, data, sender_fd = _receive(socket)
                monitor.hear(sender_fd)
                other = None
                if sender != peer and peer:
                    other = "another peer than the simulator"
                elif sender != peer:
                    other = refused(sender_fd)
                if data is not None and not other:
                    break
                on_stray(f"a message of {other or 'no simulator'} was ignored")
            if record:
                record(TO_SCHEDULER, data)
            reply = answer(data)
            peer, fd, monitor.patience_s = sender, sender_fd, 0.0
            if record:
                record(TO_SIMULATOR, reply)
            socket.send_multipart([peer, b"", reply])


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


@contextmanager
def connect(endpoint: str, *, timeout_s: float = 0.0) -> Iterator[Answer]:
    """Yield a function that sends a message to the scheduler and returns its reply.

    If the endpoint is malformed, an InputError is raised. The function raises `PeerGone` if the
    scheduler ends before its reply, or does not reply in time.
    """
    with _socket(zmq.REQ) as (socket, monitor):
        socket.setsockopt(zmq.LINGER, 0)  # discard unsent messages
        _attach(socket.connect, "connect", endpoint, "tcp://ADDRESS:PORT")

        def ask(data: bytes) -> bytes:
            socket.send(data)
            monitor.wait(_deadline(timeout_s), "the scheduler")
            reply: bytes = socket.recv()
            return reply

        yield ask


# ---- the user at the other end of a connection over the loopback interface

SOCKETS = Path("/proc/net/tcp")
_MAPPED = "0000000000000000FFFF0000"
"""Prefix of IPv4 addresses in the table of IPv6."""
_ESTABLISHED = "01"
"""State of connections with two open ends. (For closed ends, the kernel lists root.)"""
_ROOT = 0
_GONE = "a peer that has disconnected"


def refused(fd: int) -> str | None:
    """Return why a peer must be refused, or None if it is accepted.

    ``fd`` is the file descriptor of this end of the connection. A peer on this machine is accepted
    if it is this user or root, or if the kernel's table cannot be read. Peers on other machines are
    accepted: only a bound address that they can reach lets them connect.
    """
    try:
        rows = SOCKETS.read_text().splitlines()[1:]
    except OSError:
        return None
    try:
        with sockets.socket(fileno=os.dup(fd)) as connection:
            if connection.family == sockets.AF_UNIX:
                peer = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12)
                return _refused_user(struct.unpack("3i", peer)[1])
            theirs, ours = connection.getpeername(), connection.getsockname()
    except OSError:
        return _GONE
    with suppress(OSError):
        rows += SOCKETS.with_name("tcp6").read_text().splitlines()[1:]
    if theirs[0] != ours[0] and not theirs[0].startswith("127."):
        return None
    ends = _hex(theirs), _hex(ours)
    for row in rows:
        _, *addresses, state, _, _, _, user = row.split()[:8]
        if (
            tuple(each.removeprefix(_MAPPED) for each in addresses) == ends
            and state == _ESTABLISHED
        ):
            return _refused_user(int(user))
    return _GONE


def _refused_user(user: int) -> str | None:
    return None if user in (os.getuid(), _ROOT) else f"another user (uid {user})"


def _hex(address: tuple[str, int]) -> str:
    """Return an address in the format of the kernel's table."""
    host, port = address
    (number,) = struct.unpack("=I", sockets.inet_aton(host))
    return f"{number:08X}:{port:04X}"
