# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests: folders of recorded data, and builders of small scenarios."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rebat.sim import choose
from tests.support.recordings import ABSENT, SHARED, beside

settings.register_profile("rebat", deadline=None)  # the first example may compile kernels
settings.load_profile("rebat")


def pytest_configure() -> None:
    """Prepare the environment for the workers and programs that the tests start later."""
    keep_byte_code()
    hear_signals()


def keep_byte_code() -> None:
    """Compile each module once, not again in every program that the tests start.

    Compiling takes longer than most of these programs run.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def hear_signals() -> None:
    """Restore ignored signals, so that programs can also be interrupted in the background.

    A shell starts background programs with SIGINT ignored, and nohup makes them ignore SIGHUP.
    Child processes inherit both.
    """
    heard = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}
    if threading.current_thread() is threading.main_thread():
        for number, handler in heard.items():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, handler)


@pytest.fixture(scope="module", params=["reference", "loop"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module with the reference, and again with the compiled loop for all covered runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REBAT_ENGINE", "reference" if request.param == "reference" else "auto")
        patch.setattr(choose, "PAYS", 0)
        yield request.param


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the larger recordings and traces. Tests are skipped if it is absent."""
    return beside()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line with the number of tests that were skipped because recordings are absent."""
    skipped = terminalreporter.getreports("skipped")
    absent = sum(ABSENT in str(report.longrepr) for report in skipped)
    if absent:
        text = f"{absent} TESTS SKIPPED: they need recordings and traces in {SHARED}"
        terminalreporter.write_sep("!", text, red=True, bold=True)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the drawing of figures by an empty image, for tests of the text next to figures."""
    monkeypatch.setattr("rebat.figures.charts.svg_of", lambda figure: "<svg></svg>")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A campaign file, and the results of this campaign without interruption."""
    from tests.support.campaigns import campaign_file, contents, run_here

    folder = tmp_path_factory.mktemp("unbroken")
    file = campaign_file(folder)
    run_here(file, folder / "r")
    return file, contents(folder / "r")
