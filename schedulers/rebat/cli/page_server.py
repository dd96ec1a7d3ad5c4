# SPDX-License-Identifier: Apache-2.0
"""One page, served on this machine until it is interrupted, to who knows its address.

Every user of the machine reaches 127.0.0.1, and so does every web page that a browser shows, under
a name that it makes point there. The address therefore holds a token that cannot be guessed, and
the request must name this machine as its host.
"""

from __future__ import annotations

import html
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
    """Serve a page at 127.0.0.1; ``port`` 0 is a free one. Ends with what interrupts it.

    Raises
    ------
    InputError
        When the port is taken.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        server = ThreadingHTTPServer((HOST, port), _handler(page.encode(), token))
    except OSError as error:
        raise InputError(
            f"cannot serve: {error.strerror}", f"--port {port}", "a free port"
        ) from None
    address = f"http://{HOST}:{server.server_port}/{token}/"
    with server, _doorway(address) as doorway:
        click.echo(f"{address} shows the page ({len(page.encode()) / 1e6:.1f} MB); Ctrl-C ends")
        if open_browser:
            _open(doorway)
        server.serve_forever()


@contextmanager
def _doorway(address: str) -> Iterator[Path]:
    """A file of this user alone that leads to the address.

    Other users see the arguments with which a browser is started: they must not hold the token.
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
    """Answer with the page where the path is the token and the host is this machine; else 403."""
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
            """Any port will do: it may be that of a tunnel."""
            hosts = [host.partition(":")[0] for host in self.headers.get_all("Host", [])]
            return hosts in ([HOST], ["localhost"])

        def _knows_the_token(self) -> bool:
            return secrets.compare_digest(self.path.encode(), expected)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody asks who asked."""

    return Handler
