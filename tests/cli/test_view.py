# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: the page is one file, which a browser shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.numbers import file_size
from rebat.results.files.run_folder import read_timeline

ROOT = Path(__file__).parents[2]
PATH = str(ROOT / "schedulers")


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
    size = html.stat().st_size
    assert capsys.readouterr().out == f"{html}: {file_size(size)}\n"
    assert size < 2e6


def test_policies_are_picked(toy: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    main(["view", str(toy), "-p", "easy", "-p", "sfsj", "--html", str(html)])
    assert headings(html.read_text()) == ["easy", "sfsj"]
    main(["view", str(toy / "easy"), "--html", str(html)])
    assert headings(html.read_text()) == ["easy"]


def test_the_verdict_counts_the_failures_of_the_page(tmp_path: Path) -> None:
    """Metrics of a window name the window. The page shows all failures, and all are counted."""
    out, html = tmp_path / "out", tmp_path / "page.html"
    main(["run", "toy", "-p", "baseline", "--mtbf", "4s", "--downtime", "1s", "--out", str(out)])
    for folder, part in ((out, ""), (tmp_path / "part", "from 2 s to 6 s, ")):
        if part:
            main(["run", "toy", "-p", "baseline", "--mtbf", "4s", "--downtime", "1s",
                  "--window", "2s:6s", "--out", str(folder)])  # fmt: skip
        main(["view", str(folder), "--html", str(html)])
        shown = len(read_timeline(folder / "baseline").failures[0])
        assert shown > 2
        text = re.search(r'class="verdict">(.*?)</p>', html.read_text())[1]
        assert re.fullmatch(
            rf"baseline: 5 jobs, {shown} failures of nodes; {part}[0-9.]+ % of the node time is "
            r"useful work, and failures destroyed [0-9.]+ node-hours of work\.", text
        ), text  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["absent"], "absent: is not a folder"),
        ([str(ROOT / "workloads")], "contains no summary.json"),
        (["OUT", "-p", "easi"], "unknown policy 'easi'; did you mean easy?"),
        (["OUT", "--window", "3d"], "--window"),
        (["OUT", "--window", "5d:6d"], "--window"),
        (["OUT", "--html", "/proc/none/page.html"], "/proc/none"),
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


@pytest.mark.slow
def test_a_browser_shows_the_page_in_the_working_folder(toy: Path, tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part\nmv {seen}.part {seen}\n')
    browser.chmod(0o755)
    for more, opens in ((["--no-browser"], False), ([], True)):
        done = subprocess.run(
            [sys.executable, "-m", "rebat", "view", str(toy), *more], cwd=tmp_path,
            capture_output=True, text=True, check=True, timeout=60,
            env=os.environ | {"BROWSER": f"{browser} %s", "PYTHONPATH": PATH},
        )  # fmt: skip
        assert (done.stdout.startswith("out.html: "), done.stderr) == (True, "")
        assert headings((tmp_path / "out.html").read_text()) == ["sfsj", "baseline"]
        assert seen.exists() is opens
    assert seen.read_text().strip() == (tmp_path / "out.html").as_uri()
