# SPDX-License-Identifier: Apache-2.0
"""The connection to a simulator."""

from __future__ import annotations

import threading
import time

import pytest
import zmq

from rebat.wire.zmq_link import PeerGone, serve


class LatePoller(zmq.Poller):
    """A poller that returns late, when further events have arrived."""

    def poll(self, timeout=None):
        ready = super().poll(timeout)
        time.sleep(0.3)
        return ready


def test_a_peer_that_closes_directly_after_its_message_is_gone(monkeypatch) -> None:
    """The message and the end of the connection arrive while the server wakes up."""
    monkeypatch.setattr(zmq, "Poller", LatePoller)

    def peer(endpoint: str) -> None:
        context = zmq.Context()
        socket = context.socket(zmq.REQ)
        socket.connect(endpoint)
        socket.send(b"first")
        socket.recv()
        time.sleep(0.5)  # the server waits
        socket.send(b"last")
        socket.close(linger=1000)
        context.term()

    def start(endpoint: str) -> None:
        threading.Thread(target=peer, args=(endpoint,)).start()

    answers: list[bytes] = []

    def answer(data: bytes) -> bytes:
        answers.append(data)
        return b"{}"

    with pytest.raises(PeerGone, match="closed the connection"):
        serve("tcp://127.0.0.1:*", answer, lambda: False, timeout_s=3, on_bound=start)
    assert answers == [b"first", b"last"]
