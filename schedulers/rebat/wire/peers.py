# SPDX-License-Identifier: Apache-2.0
"""Check of the user at the other end (the peer) of a connection over the loopback interface.

Batsim's protocol has no authentication. On Linux, the kernel lists the user of every local socket
in ``/proc/net/tcp``.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

SOCKETS = Path("/proc/net/tcp")
_ESTABLISHED = "01"
"""State of connections with two open ends. (For closed ends, the kernel lists root.)"""
_ROOT = 0


def refused(fd: int) -> str | None:
    """Return why the peer of a loopback connection must be refused, or None if it is accepted.

    The peer is accepted if it is this user or root, or if the kernel's table cannot be read.

    Parameters
    ----------
    fd : int
        File descriptor of this end of the connection.
    """
    try:
        rows = SOCKETS.read_text().splitlines()[1:]
    except OSError:
        return None
    try:
        with socket.socket(fileno=os.dup(fd)) as connection:
            ends = f"{_hex(connection.getpeername())} {_hex(connection.getsockname())}"
    except OSError:
        return "a peer that has disconnected"
    for row in rows:
        _, theirs, ours, state, _, _, _, user, *_ = row.split()
        if f"{theirs} {ours}" == ends and state == _ESTABLISHED:
            return None if int(user) in (os.getuid(), _ROOT) else f"another user (uid {user})"
    return "a peer that has disconnected"


def _hex(address: tuple[str, int]) -> str:
    """Return an address in the format of the kernel's table."""
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"
