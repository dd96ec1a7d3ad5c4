# SPDX-License-Identifier: Apache-2.0
"""The connection to a simulator."""

from __future__ import annotations

import socket
import subprocess
import sys
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
        link = context.socket(zmq.REQ)
        link.connect(endpoint)
        link.send(b"first")
        link.recv()
        time.sleep(0.5)  # the server waits
        link.send(b"last")
        link.close(linger=1000)
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


def served(visits, *, timeout_s: float, patience_s: float = 0.3) -> tuple[str, list[str]]:
    """Serve while another thread makes visits. Return the error and the reported lines."""
    lines: list[str] = []

    def start(endpoint: str) -> None:
        threading.Thread(target=visits, args=(endpoint,)).start()

    with pytest.raises(PeerGone) as error:
        serve(
            "tcp://127.0.0.1:*", lambda data: b"{}", lambda: False, timeout_s=timeout_s,
            patience_s=patience_s, on_bound=start, on_stray=lines.append,
        )  # fmt: skip
    return str(error.value), lines


def abort_after_connecting(endpoint: str) -> None:
    """Act as a Batsim that aborts before its first message."""
    code = f"import os, zmq; s = zmq.Context().socket(zmq.REQ); s.connect({endpoint!r}); "
    code += "import time; time.sleep(0.1); os._exit(134)"
    subprocess.run([sys.executable, "-c", code], check=False)


@pytest.mark.slow
def test_a_peer_that_connects_and_ends_is_reported_soon() -> None:
    error, lines = served(abort_after_connecting, timeout_s=20)
    assert error.startswith("a peer closed its connection without a message. If it was Batsim,")
    assert len(lines) == 1
    assert lines[0].endswith("must exist. Waiting 0.3 s for the next connection")


def test_the_next_peer_may_come_back() -> None:
    def visits(endpoint: str) -> None:
        abort_after_connecting(endpoint)
        with zmq.Context() as context, context.socket(zmq.REQ) as peer:
            peer.connect(endpoint)
            time.sleep(0.6)
            peer.send(b"first")
            peer.recv()

    error, lines = served(visits, timeout_s=20)
    assert error == "the simulator closed the connection"
    assert len(lines) == 1


def test_a_batsim_that_ends_before_it_connects_is_reported_once() -> None:
    """Batsim 4 aborts before it connects, for example if the folder of its option -e is missing."""
    error, lines = served(lambda endpoint: None, timeout_s=1.2)
    assert "no message from the simulator before the timeout" in error
    assert len(lines) == 1
    assert lines[0].startswith("no peer has connected. If Batsim was started, it has ended")


@pytest.mark.slow
def test_port_scans_do_not_end_the_wait() -> None:
    def visits(endpoint: str) -> None:
        port = int(endpoint.rpartition(":")[2])
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n" * 9, b"\xff\0\0\0\0\0\0\0\1\x7f"):
            with socket.create_connection(("127.0.0.1", port)) as scan:
                scan.sendall(data)
                time.sleep(0.1)

    error, lines = served(visits, timeout_s=2)
    assert "no message from the simulator before the timeout" in error
    assert lines == []


@pytest.mark.slow
def test_a_signal_just_before_the_wait_is_handled(monkeypatch) -> None:
    """The system call does not return for this signal, so the wait must look at it regularly."""
    waits = []

    class Counting(zmq.Poller):
        def poll(self, timeout=None):
            waits.append(timeout)
            return super().poll(timeout)

    monkeypatch.setattr(zmq, "Poller", Counting)
    served(lambda endpoint: None, timeout_s=1.2)
    assert len(waits) >= 2
    assert max(waits) <= 1000
