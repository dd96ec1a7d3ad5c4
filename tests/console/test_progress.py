# SPDX-License-Identifier: Apache-2.0
"""Progress lines: the first after two seconds, then one every ten seconds."""

from __future__ import annotations

from rebat.console import progress


def test_the_first_line_is_early_and_others_are_rare(monkeypatch, capsys) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.counting_bar("runs", 40) as on_progress:
        for second in range(30):
            now[0] = float(second)
            on_progress(second)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"rebat: runs: {second} of 40" for second in (2, 12, 22)]
