# SPDX-License-Identifier: Apache-2.0
"""One page, served on this machine alone until it is interrupted."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click

from rebat.core.errors import InputError

HOST = "127.0.0.1"


def serve_page(page: str, port: int, open_browser: bool) -> None:
    """Serve a page at 127.0.0.1; ``port`` 0 is a free one. Ends with what interrupts it.

    Raises
    ------
    InputError
        When the port is taken.
    """
    import webbrowser

    try:
        server = ThreadingHTTPServer((HOST, port), _handler(page.encode()))
    except OSError as error:
        raise InputError(
            f"cannot serve: {error.strerror}", f"--port {port}", "a free port"
        ) from None
    with server:
        address = f"http://{HOST}:{server.server_port}/"
        click.echo(f"{address} shows the page ({len(page.encode()) / 1e6:.1f} MB); Ctrl-C ends")
        if open_browser:
            webbrowser.open(address)
        server.serve_forever()


def _handler(page: bytes) -> type[BaseHTTPRequestHandler]:
    """Answers with the page, whatever its own address is asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody asks who asked."""

    return Handler
