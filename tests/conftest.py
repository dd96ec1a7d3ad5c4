# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests: folders of recorded data, and builders of small scenarios."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from rebat.drive import choose
from rebat.policies.presets import scheduler
from tests.support.amount import AMOUNT, few
from tests.support.asked import asked
from tests.support.recordings import ABSENT, beside
from tests.support.scenarios import machine

settings.register_profile("rebat", deadline=None, max_examples=few(100))  # kernels may compile
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


@pytest.fixture(scope="module", params=["asked", "loop"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module with policies that are asked, and again with compiled rules."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if request.param == "asked":
            stack.enter_context(asked())
        patch.setattr(choose, "PAYS", 0)
        yield request.param


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the larger recordings and traces. Tests are skipped if it is absent."""
    return beside()


LEFT: set[str] = set()
"""The tests that were left out, also by worker processes of pytest-xdist."""


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that this part of the suite does not run, and repetitions."""
    items[:] = [item for item in items if not is_repeated(item)]
    LEFT.update(item.nodeid for item in items if not is_run(item))
    items[:] = [item for item in items if item.nodeid not in LEFT]


def is_run(item: pytest.Item) -> bool:
    """Whether a part of the suite runs a test. The rest includes tests with random cases."""
    marks = {mark.name for mark in item.iter_markers()}
    if AMOUNT == "rest":
        return bool(marks & {"slow", "sampled", "hypothesis"})
    return AMOUNT == "all" or "slow" not in marks


def is_repeated(item: pytest.Item) -> bool:
    """Whether a test of the compiled rules repeats the one in which the policy is asked."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    policy = values.get("policy")
    return values.get("both_ways") == "loop" and isinstance(policy, str) and not on_loop(policy)


@cache
def on_loop(policy: str) -> bool:
    """Whether the loop covers a policy, at least for rigid jobs."""
    return choose.covers(machine(4, (1, 1)), scheduler(policy))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the number of tests that a worker process left out to the main process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = sorted(LEFT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Receive the tests that a worker process left out."""
    LEFT.update(getattr(node, "workeroutput", {}).get("left", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason why tests did not run."""
    skipped = terminalreporter.getreports("skipped")
    absent = sum(ABSENT in str(report.longrepr) for report in skipped)
    other = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in skipped
        if isinstance(report.longrepr, tuple) and ABSENT not in str(report.longrepr)
    )
    lines = [f"{n} SKIPPED: {reason}" for reason, n in sorted(other.items())]
    if absent:
        lines.append(
            f"{absent} SKIPPED: they need recordings and traces that are not part of the project"
        )
    for line in lines:
        terminalreporter.write_sep("!", line, red=True, bold=True)
    if AMOUNT == "fast" and LEFT:
        terminalreporter.write_line(
            f"left out: {len(LEFT)} slow tests and nine tenths of the random cases. "
            "All tests: make test-all"
        )


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
