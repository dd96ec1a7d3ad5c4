# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: a file, or a server that only this machine can reach and Ctrl-C ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from rebat.cli.main import main
from rebat.cli.view import _PageServer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("toy") / "out"
    main(
        ["run", str(ROOT / "workloads/toy.json"), "-p", "sfsj", "-p", "baseline", "-p", "easy",
         "--failures", str(ROOT / "failure_events/toy.events"), "--out", str(out)]
    )  # fmt: skip
    return out


def headings(page: str) -> list[str]:
    return [part.partition('"')[0] for part in page.split('class="gantt" aria-label="')[1:]]


def test_the_page_is_written_and_its_size_said(toy: Path, tmp_path: Path, capsys) -> None:
    html = tmp_path / "page.html"
    main(["view", str(toy), "--html", str(html)])
    page = html.read_text()
    assert headings(page) == ["sfsj", "baseline"]
    size_mb = html.stat().st_size / 1e6
    assert capsys.readouterr().out == f"{html}: {size_mb:.1f} MB\n"
    assert size_mb < 2


def test_policies_are_picked(toy: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    main(["view", str(toy), "-p", "easy", "-p", "sfsj", "--html", str(html)])
    assert headings(html.read_text()) == ["easy", "sfsj"]
    main(["view", str(toy / "easy"), "--html", str(html)])
    assert headings(html.read_text()) == ["easy"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["absent"], "absent: is not a folder"),
        ([str(ROOT / "workloads")], "contains no summary.json"),
        (["OUT", "-p", "easi"], "unknown policy 'easi'; did you mean easy?"),
        (["OUT", "--window", "3d"], "--window"),
        (["OUT", "--window", "5d:6d"], "--window"),
        (["OUT", "--html", "/proc/none/page.html"], "/proc/none"),
        (["OUT", "--port", "99999"], "--port"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(toy: Path, arguments, told: str, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["view", *(str(toy) if word == "OUT" else word for word in arguments)])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_an_old_result_is_told_what_it_lacks(toy: Path, tmp_path: Path, capsys) -> None:
    for name in ("summary.json", "node_events.csv"):
        (tmp_path / name).write_bytes((toy / "sfsj" / name).read_bytes())
    with pytest.raises(SystemExit):
        main(["view", str(tmp_path)])
    assert (
        "contains no rebat_attempts.csv (expected results of this version"
        in capsys.readouterr().err
    )


def test_a_taken_port_is_told(toy: Path, capsys) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as stop:
            main(["view", str(toy), "--no-browser", "--port", str(taken.getsockname()[1])])
    assert stop.value.code == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_it_is_served_here_until_interrupted(toy: Path, name: str, status: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "rebat", "view", str(toy), "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        address = process.stdout.readline().split()[0]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert headings(answer.read().decode()) == ["sfsj", "baseline"]
        with pytest.raises(HTTPError, match="403"):
            urllib.request.urlopen(f"{address}../../etc/passwd", timeout=20)
        process.send_signal(getattr(signal, name))
        _, error = process.communicate(timeout=30)
    assert process.returncode == status
    assert error == ("rebat: interrupted\n" if name == "SIGINT" else "rebat: terminated\n")


# ---- other users and programs


@contextmanager
def served(toy: Path, *more: str, **environment: str) -> Iterator[str]:
    """Serve a page while the block lasts, and yield its address."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "rebat", "view", str(toy), *more],
        stdout=subprocess.PIPE, text=True, env=os.environ | environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()


def answered(address: str, path: str, **headers: str) -> tuple[int, int]:
    """Send a request with these headers; return status and length of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=20)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, len(answer.read())


def test_a_browser_that_closes_early_prints_no_error(capfd) -> None:
    """A reset connection is not an error of the server; other errors are printed."""
    with _PageServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        for error, printed in ((ConnectionResetError("reset"), False), (ValueError("odd"), True)):
            try:
                raise error
            except Exception:
                server.handle_error(None, ("127.0.0.1", 1))
            assert (str(error) in capfd.readouterr().err) == printed


def test_the_page_is_for_who_knows_its_address_on_this_machine(toy: Path) -> None:
    with served(toy, "--no-browser") as address:
        path = urlsplit(address).path
        assert re.fullmatch(r"/[\w-]{43}/", path)
        status, length = answered(address, path)
        assert (status, length > 100_000) == (200, True)
        for host in ("127.0.0.1", "localhost:8080"):
            assert answered(address, path, Host=host)[0] == 200
        near = f"/{path[2:]}"
        for wrong in ("/", "/favicon.ico", near, path[:-2] + "/", path + "x", "/%e9"):
            assert answered(address, wrong)[0] == 403, wrong
        for host in ("evil.example", f"evil.example:{urlsplit(address).port}", "127.0.0.1.x", ""):
            assert answered(address, path, Host=host)[0] == 403, host
    with served(toy, "--no-browser") as again:
        assert urlsplit(again).path != path


def test_the_browser_is_started_without_the_token_in_its_arguments(
    toy: Path, tmp_path: Path
) -> None:
    """Every user of the machine can see the arguments of every process."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\n(echo "$@"; cat "${{1#file://}}") > {seen}.part\n'
                       f"mv {seen}.part {seen}\n")  # fmt: skip
    browser.chmod(0o755)
    with served(toy, BROWSER=f"{browser} %s") as address:
        until = time.monotonic() + 20
        while not seen.exists() and time.monotonic() < until:
            time.sleep(0.02)
        arguments, leads_to = seen.read_text().splitlines()
        folder = Path(urlsplit(arguments).path).parent
        assert urlsplit(address).path not in arguments
        assert address in leads_to
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_another_user_gets_no_page(toy: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: only root may become another user")
    with served(toy, "--no-browser") as address:
        parts = urlsplit(address)
        done = subprocess.run(
            ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{parts.port}; id -u >&2;"
             "printf 'GET / HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3; head -1 <&3"],
            capture_output=True, text=True, check=True, user="nobody", timeout=30,
        )  # fmt: skip
    assert done.stderr.strip() != "0"
    assert done.stdout.split()[1] == "403"
