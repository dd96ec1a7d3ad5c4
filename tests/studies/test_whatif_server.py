# SPDX-License-Identifier: Apache-2.0
"""The server of what if: hosts, session tokens, headers, and the secret of the address."""

from __future__ import annotations

import asyncio
import http.client
import re
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from rebat.studies.whatif.server import HEADERS, Server


@pytest.fixture(scope="module")
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "rebat", "whatif", "toy", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        yield running
        running.terminate()


@pytest.fixture(scope="module")
def url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def response(url: str, host: str = "", query: str = "") -> tuple[int, dict[str, str], str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", parts.path + query, headers={"Host": host or parts.netloc})
    reply = connection.getresponse()
    return reply.status, dict(reply.getheaders()), reply.read().decode()


def first_message(url: str, host: str, origin: str, protocols: list[str]) -> str:
    """Return the first message of a web socket, or the error."""
    parts = urlsplit(url)
    headers = {"Host": host, "Origin": origin}

    async def connect() -> str:
        request = HTTPRequest(f"ws://{parts.netloc}{parts.path}ws", headers=headers)
        try:
            socket = await websocket_connect(request, subprotocols=protocols)
        except HTTPClientError as error:
            return str(error.code)
        message = await socket.read_message()
        socket.close()
        return str(message)

    return asyncio.run(connect())


@pytest.mark.slow
@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1:80", "localhost"])
def test_the_page_works_behind_another_port(url: str, host: str) -> None:
    """``ssh -L 9999:localhost:PORT`` forwards a port."""
    status, _, text = response(url, host)
    assert status == 200
    assert str(urlsplit(url).port) not in text  # links are relative
    found = re.search(r'"token":"([^"]+)"', text)
    assert found
    token = found[1]
    assert '"ACK"' in first_message(url, host, f"http://{host}", ["bokeh", token])
    assert first_message(url, host, "http://evil.example", ["bokeh", token]) == "403"


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "0.0.0.0:80"])
def test_other_hosts_are_refused(url: str, host: str) -> None:
    assert response(url, host)[0] == 403


@pytest.mark.slow
def test_all_answers_have_the_headers(url: str) -> None:
    for query in ("", "static/js/bokeh.min.js", "nothing", "?bokeh-token=x"):
        headers = response(url, query=query)[1]
        assert headers.items() >= HEADERS.items()
    assert HEADERS["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in HEADERS["Content-Security-Policy"]


@pytest.mark.slow
def test_malformed_session_tokens_are_refused_without_a_traceback(
    process: subprocess.Popen[str], url: str
) -> None:
    tokens = ["abc", "", "a.b.c", "eyJ", "e30", "eyJzZXNzaW9uX2lkIjogMX0", "%ff"]
    for token in tokens:
        assert first_message(url, "localhost", "http://localhost", ["bokeh", token]) == "403"
        assert response(url, query=f"?bokeh-token={token}")[0] == 403
    for protocols in (["bokeh"], ["other", "abc"], []):
        assert first_message(url, "localhost", "http://localhost", protocols) == "403"
    assert response(url)[0] == 200
    process.terminate()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_the_browser_does_not_get_the_secret_as_an_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    server = Server.__new__(Server)
    server.url = "http://127.0.0.1:1234/secret/"
    with server.open_in_browser():
        (address,) = opened
        assert "secret" not in address
        file = Path(unquote(urlsplit(address).path))
        assert f"url={server.url}" in file.read_text()
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not file.exists()
