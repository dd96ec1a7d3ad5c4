# SPDX-License-Identifier: Apache-2.0
"""A server of a page on this machine, with an address that contains a secret token.

Every user of the machine can reach 127.0.0.1. Every web page in a browser can also reach it,
through a host name that resolves to 127.0.0.1. Therefore, the address contains a random token, and
the server accepts only requests whose host is this machine.
"""

from __future__ import annotations

import html
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from rebat.core.errors import InputError

HOST = "127.0.0.1"
TOKEN_BYTES = 32
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def serve_page(page: str, port: int, open_browser: bool) -> None:
    """Serve a page at 127.0.0.1 until an interruption. If ``port`` is 0, select a free port."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        server = _PageServer((HOST, port), _handler(page.encode(), token))
    except OSError as error:
        raise InputError(
            f"cannot serve: {error.strerror}", f"--port {port}", "a free port"
        ) from None
    address = f"http://{HOST}:{server.server_port}/{token}/"
    with server, _doorway(address) as doorway:
        click.echo(
            f"{address} shows the page ({len(page.encode()) / 1e6:.1f} MB); Ctrl-C stops the server"
        )
        if open_browser:
            _open(doorway)
        server.serve_forever()


class _PageServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no error if a browser closes the connection early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def _doorway(address: str) -> Iterator[Path]:
    """Yield a file that redirects to the address. Only this user can read the file.

    The browser opens this file instead of the address: other users can see the arguments of the
    browser, which must not contain the token.
    """
    with tempfile.TemporaryDirectory(prefix="rebat-view-") as folder:
        path = Path(folder) / "index.html"
        path.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(address)}">'
        )
        yield path


def _open(doorway: Path) -> None:
    import webbrowser

    webbrowser.open(doorway.as_uri())


def _handler(page: bytes, token: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that sends the page if token and host are correct, otherwise status 403."""
    expected = f"/{token}/".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not (self._names_this_machine() and self._knows_the_token()):
                self.send_error(403)
                return
            self.send_response(200)
            for name, value in {**HEADERS, "Content-Length": str(len(page))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page)

        def _names_this_machine(self) -> bool:
            """Return whether the host is this machine. Tunnels may change the port."""
            hosts = [host.partition(":")[0] for host in self.headers.get_all("Host", [])]
            return hosts in ([HOST], ["localhost"])

        def _knows_the_token(self) -> bool:
            return secrets.compare_digest(self.path.encode(), expected)

        def log_message(self, format: str, *args: object) -> None:
            """Log no requests."""

    return Handler
