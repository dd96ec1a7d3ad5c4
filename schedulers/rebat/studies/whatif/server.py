# SPDX-License-Identifier: Apache-2.0
"""The server of the page. It accepts requests of this machine with the token.

The token is the first part of each address, also of scripts and of the web socket. A request
without it is refused, and so is a request for another host name (DNS rebinding). The token stays
secret: a browser reads it from a file of the user, because other users can see the arguments of
programs, and it sends no address of the page to other sites.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import signal
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from bokeh.util.token import get_session_id, get_token_payload
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, OutputTransform, RequestHandler

from rebat.core.errors import InputError, RebatError
from rebat.studies.whatif.answers import Answers
from rebat.studies.whatif.page import Page
from rebat.studies.whatif.question import Question

HOST = "127.0.0.1"
NAMES = {HOST, "localhost"}
"""Host names of requests. The port may differ from that of the server (``ssh -L``)."""
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of all answers."""

Saved = dict[str, tuple[str, Callable[[Page], str]]]
"""Downloads by address: content type, and function that returns the content."""


class Refused(RequestHandler):
    """The answer to a request without the token, or for another host."""

    def prepare(self) -> None:
        self.set_status(403)
        self.finish("Open the address that 'rebat whatif' printed.\n")

    def check_xsrf_cookie(self) -> None:
        """Skip the check: the request is refused in any case."""


class Download(RequestHandler):
    """A file with the content of a page."""

    def initialize(self, server: Server, kind: str, make: Callable[[Page], str]) -> None:
        self._server, self._kind, self._make = server, kind, make

    def get(self) -> None:
        """Write the file."""
        page = self._server.pages.get(self.get_argument("page", ""))
        if page is None:
            raise HTTPError(404)
        try:
            content = self._make(page)
        except RebatError as error:
            self.set_status(409)
            self.finish(f"{error}\n")
            return
        self.set_header("Content-Type", self._kind)
        self.finish(content)


_SESSION = "bokeh-token"
"""Argument of a request with a session token. A web socket has it in a header."""


class _Headers(OutputTransform):
    """Adds `HEADERS` to an answer."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers."""
        headers.update(HEADERS)
        return status_code, headers, chunk


def _are_tokens(tokens: Iterable[str]) -> bool:
    """Return whether these are session tokens. Bokeh prints a traceback for other texts."""
    try:
        return all(
            isinstance(get_session_id(token), str)
            and isinstance(get_token_payload(token)["session_expiry"], int | float)
            for token in tokens
        )
    except Exception:  # texts that are not base64, JSON or a mapping raise different errors
        return False


class _Application(BokehTornado):  # type: ignore[misc]
    """Bokeh's application, behind the token."""

    def __init__(self, token: str, pages: Any, patterns: Any) -> None:
        super().__init__(
            {"/": pages}, prefix=token, extra_websocket_origins=sorted(NAMES),
            extra_patterns=patterns, use_index=False,
            check_unused_sessions_milliseconds=1000, unused_session_lifetime_milliseconds=3000,
        )  # fmt: skip
        self._token = token
        self.add_transform(_Headers)

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """Find the handler of a request, after checks of its host, its token and its session."""
        first, _, rest = request.path.lstrip("/").partition("/")
        sessions = [each.decode(errors="replace") for each in request.arguments.get(_SESSION, ())]
        protocol, _, session = request.headers.get("Sec-WebSocket-Protocol", "").partition(",")
        sessions += [session.strip()] if rest == "ws" else []
        allowed = (
            request.host_name in NAMES
            and hmac.compare_digest(first.encode(), self._token.encode())
            and (protocol == "bokeh" or rest != "ws")
            and _are_tokens(sessions)
        )
        if not allowed:
            return self.get_handler_delegate(request, Refused)
        return super().find_handler(request, **kwargs)


class Server:
    """A server for a question. It does not run until `run` is called.

    Parameters
    ----------
    question : Question
        The question with which pages start.
    port : int
        Port, or 0 for any free port.
    pages : int
        Number of pages at a time. A further page replaces the oldest.
    workers : int, optional
        Number of threads that simulate for a page (default: one per core).
    saved : dict
        Downloads, see `Saved`.
    """

    def __init__(
        self, question: Question, port: int = 0, pages: int = 1, workers: int | None = None,
        saved: Saved | None = None,
    ) -> None:  # fmt: skip
        self._question, self._most, self._workers = question, pages, workers
        self.pages: dict[str, Page] = {}
        for name in ("tornado.access", "tornado.general", "bokeh.server.views.ws"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # closed pages, refused requests
        token = secrets.token_urlsafe(16)
        try:
            sockets, self.port = bind_sockets(HOST, port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(reason, f"--port {port}", "a free port") from None
        patterns = [
            (f"/{path}", Download, {"server": self, "kind": kind, "make": make})
            for path, (kind, make) in (saved or {}).items()
        ]
        application = _Application(token, self._open, patterns)
        http = HTTPServer(application)
        http.add_sockets(sockets)
        self._server = BaseServer(IOLoop.current(), application, http)
        self.url = f"http://{HOST}:{self.port}/{token}/"

    def _open(self, document: Any) -> None:
        """Build a page in a new document."""
        while len(self.pages) >= self._most:
            self.pages.pop(next(iter(self.pages))).retire()
        key = secrets.token_urlsafe(8)
        self.pages[key] = Page(self._question, Answers(self._workers), document, key)
        document.on_session_destroyed(lambda context: self.pages.pop(key, None))

    @contextmanager
    def open_in_browser(self) -> Iterator[None]:
        """Open the page in a browser, without the token in the arguments of the browser.

        The browser opens a file that only this user can read. The file exists within the block.
        """
        with tempfile.TemporaryDirectory(prefix="rebat-whatif-") as folder:
            file = Path(folder) / "page.html"
            file.write_text(
                f'<!DOCTYPE html><meta charset="utf-8"><title>rebat whatif</title>'
                f'<meta name="referrer" content="no-referrer">'
                f'<meta http-equiv="refresh" content="0; url={self.url}">'
                f'<a href="{self.url}">Open the page</a>\n'
            )
            webbrowser.open(file.as_uri())
            yield

    def run(self) -> None:
        """Serve until the process is interrupted.

        The event loop drops exceptions of signal handlers. Therefore signals end the loop, and the
        handler of the process runs afterwards.
        """
        loop, arrived = self._server.io_loop, list[tuple[int, Any]]()

        def end(number: int, frame: Any) -> None:
            arrived.append((number, frame))
            loop.add_callback_from_signal(loop.stop)

        handlers = {n: of for n in SIGNALS if callable(of := signal.getsignal(n))}
        for each in handlers:
            signal.signal(each, end)
        try:
            self._server.start()
            loop.start()
        finally:
            for each, handler in handlers.items():
                signal.signal(each, handler)
            self.close()
        for number, frame in arrived[:1]:
            handlers[signal.Signals(number)](number, frame)

    def close(self) -> None:
        """Stop all simulations, and close the sockets."""
        for page in self.pages.values():
            page.close()
        self.pages.clear()
        self._server.stop()
