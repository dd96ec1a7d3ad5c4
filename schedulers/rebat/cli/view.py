# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: an interactive page of runs, as a file or served on this machine.

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
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from rebat.cli.command import command
from rebat.cli.options import AnyPath, File
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.results.measures.timeline import Timeline


@command()
def view(
    out: AnyPath,
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy to show; may be repeated up to six times, from top to bottom (default: the first two).",
    ] = (),
    html: Annotated[File | None, "Write the page to this file instead of serving it."] = None,
    window: Annotated[str, "Time window shown first: START:END, like 10d:12d, or all."] = "all",
    port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)], "Port of the server (default: a free port)."
    ] = 0,
    no_browser: Annotated[bool, "Only print the address; do not open a browser."] = False,
) -> None:
    """Explore runs in the browser. OUT is the folder of 'rebat run --out', or of one policy.

    The page shows which jobs ran on which nodes, failures, downtime, stolen nodes, moves and
    checkpoints. The curves below show the nodes in use, the queue and the free nodes. All policies
    zoom together. The page shows recorded runs and simulates nothing.

    The page is served at 127.0.0.1 until Ctrl-C. Its address contains a secret token. With --html,
    the page is written to a file that needs no network.

    \b
    Examples:
      rebat view out/june
      rebat view out/june -p sfsj --window 10d:12d --html june.html
    """
    from rebat.core.errors import InputError
    from rebat.core.files import write_text
    from rebat.figures.explore.page import explorer_page
    from rebat.library.checks import error_at
    from rebat.library.workloads import names_in
    from rebat.results.files.run_folder import node_list_of, run_folders
    from rebat.results.measures.summary import parse_window

    if html and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"is {html.name!r}", "--html", "a name ending in .html")
    with error_at("--window"):
        span = None if window == "all" else parse_window(window)
    timelines = _timelines(out, policies)
    with error_at("--window"):
        _check_window(span, timelines)
    names = names_in(node_list_of(run_folders(out, policies)[0]))
    stories = [_stories(folder) for folder in run_folders(out, policies)]
    page = explorer_page(timelines, f"rebat: {out.resolve().name}", span, names, stories)
    size_mb = len(page.encode()) / 1e6
    if html:
        write_text(html, page)
        click.echo(f"{html}: {size_mb:.1f} MB")
        return
    from rebat.cli.view import serve_page

    serve_page(page, port, open_browser=not no_browser)


def _timelines(out: Path, policies: tuple[str, ...]) -> list[Timeline]:
    from rebat.console.progress import counting_bar
    from rebat.core.errors import InputError
    from rebat.figures.explore.page import MOST_TOGETHER
    from rebat.results.files.run_folder import read_timeline, run_folders

    timelines = []
    if len(policies) > MOST_TOGETHER:
        raise InputError(f"names {len(policies)} policies", "--policy", f"at most {MOST_TOGETHER}")
    for folder in run_folders(out, policies):
        with counting_bar(f"reading {folder.name}", 1) as on_rows:
            timelines.append(read_timeline(folder, on_rows))
    return timelines


def _stories(folder: Path) -> dict[str, str] | None:
    """Return the story of each job as text, or None if the run did not record its plans."""
    from rebat.console.progress import counting_bar
    from rebat.results.explain.book import RunBook
    from rebat.results.explain.sentences import lines
    from rebat.results.explain.story import story
    from rebat.results.files.run_folder import PLANS

    if not (folder / PLANS).exists():
        return None
    book, texts = RunBook(folder), {}
    with counting_bar(f"explaining {folder.name}", len(book.jobs)) as on_jobs:
        for number, job in enumerate(book.jobs, 1):
            texts[job] = "\n".join(filter(None, lines(story(book, job))))
            on_jobs(number)
    return texts


def _check_window(span: tuple[int, int] | None, timelines: list[Timeline]) -> None:
    """Raise an error if all runs end before the window begins."""
    from rebat.core.errors import InputError
    from rebat.core.units import format_duration, to_s

    end_us = max(timeline.makespan_us for timeline in timelines)
    if span and span[0] >= end_us:
        raise InputError(
            "begins after the last job has ended",
            expected=f"before {format_duration(to_s(end_us))}",
        )


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
