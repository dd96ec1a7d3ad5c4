# SPDX-License-Identifier: Apache-2.0
"""Merged node events and NODE_FAIL attempts of Slurm, compared with a count of every second."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.failures.records.slurm import EventOptions, read_merged
from tests.support.amount import few
from tests.support.outages import down_intervals

ZERO = 1_700_000_000
END = 400
"""Length of the oracle's time in seconds; nothing happens after it."""

TIMEOUT_S = 30
KEEP = EventOptions(stale="keep")
TOGETHER_S = 5

Event = tuple[int, int, int | None]
"""Node, down, up (None: still down); seconds after ``ZERO``."""

Attempt = tuple[tuple[int, ...], int, int, bool]
"""Nodes, start, end, and whether a node ended it."""


def written(folder: Path, events: list[Event], attempts: list[Attempt]) -> tuple[Path, Path]:
    """Write the two files that Slurm would write."""
    lines = ["NodeName|TimeStart|TimeEnd|StateRaw|State|Reason"]
    for node, down, up in events:
        end = "Unknown" if up is None else str(ZERO + up)
        lines.append(f"n{node}|{ZERO + down}|{end}|1|DOWN|broken")
    (folder / "events.psv").write_text("\n".join(lines) + "\n")
    lines = ["JobIDRaw|JobID|Submit|Start|End|State|NNodes|NodeList|Priority"]
    for number, (nodes, start, end_s, failed) in enumerate(attempts):
        state, hosts = "NODE_FAIL" if failed else "COMPLETED", ",".join(f"n{n}" for n in nodes)
        times = f"{ZERO}|{ZERO + start}|{ZERO + end_s}"
        lines.append(f"{number}|{number}|{times}|{state}|{len(nodes)}|{hosts}|1")
    (folder / "jobs.psv").write_text("\n".join(lines) + "\n")
    return folder / "events.psv", folder / "jobs.psv"


def seconds(event: Event) -> set[int]:
    return set(range(event[1], END if event[2] is None else event[2]))


Times = dict[int, set[int]]
"""The seconds in which each node is down."""


def oracle(events: list[Event], attempts: list[Attempt]) -> tuple[Times, Counter[str]]:
    """Return the seconds in which each node is down, and the counts of outages."""
    down: Times = {node: set() for node in range(4)}
    for event in events:
        down[event[0]] |= seconds(event)
    in_events = {node: set(times) for node, times in down.items()}
    failed = [attempt for attempt in attempts if attempt[3]]

    def during(attempt: Attempt) -> set[int]:
        return set(range(attempt[1], attempt[2] + TOGETHER_S + 1))

    unexplained = [
        attempt for attempt in failed
        if not any(during(attempt) & in_events[node] for node in attempt[0])
    ]  # fmt: skip
    unexplained.sort(key=lambda attempt: attempt[2])
    while unexplained:
        first = unexplained[0][2]
        group = [a for a in unexplained if a[2] <= first + TOGETHER_S]
        unexplained = [a for a in unexplained if a not in group]
        common = set(group[0][0]).intersection(*(a[0] for a in group))
        if len(common) == 1:
            (node,) = common
            starts = [a[1] for a in attempts if node in a[0] and a[1] >= first]
            down[node] |= set(range(first, max(first + 1, min([*starts, first + TIMEOUT_S]))))
    return down, sources(down, in_events, failed, during)


def sources(down: Times, in_events: Times, failed: list[Attempt], during) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node, times in down.items():
        for begin in sorted(t for t in times if t - 1 not in times):
            end = next(t for t in range(begin, END + TIMEOUT_S + 1) if t not in times)
            outage = set(range(begin, end))
            if not outage & in_events[node]:
                counts["only in attempts"] += 1
            elif any(node in a[0] and during(a) & outage for a in failed):
                counts["in both"] += 1
            else:
                counts["only in events"] += 1
    return counts


EVENTS = st.lists(
    st.builds(
        lambda node, down, length: (node, down, None if length is None else down + length),
        st.integers(0, 3), st.integers(0, 200), st.none() | st.integers(1, 60),
    ),
    max_size=5,
)  # fmt: skip
ATTEMPTS = st.lists(
    st.builds(
        lambda nodes, start, length, failed: (tuple(sorted(nodes)), start, start + length, failed),
        st.sets(st.integers(0, 3), min_size=1, max_size=3), st.integers(0, 200),
        st.integers(1, 60), st.booleans(),
    ),
    min_size=1, max_size=8, unique=True,
)  # fmt: skip


@settings(max_examples=few(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS, attempts=ATTEMPTS)
def test_merged_records_are_those_of_the_oracle(
    tmp_path: Path, events: list[Event], attempts: list[Attempt]
) -> None:
    down, counts = oracle(events, attempts)
    files = written(tmp_path, events, attempts)
    names = tuple(f"n{node}" for node in range(4))
    if not any(down.values()):
        with pytest.raises(InputError, match="no failures"):
            read_merged(
                *files, names=names, origin_s=ZERO, slurmd_timeout_s=TIMEOUT_S, options=KEEP
            )
        return
    record = read_merged(
        *files, names=names, origin_s=ZERO, slurmd_timeout_s=TIMEOUT_S, options=KEEP
    )
    merged: dict[int, set[int]] = {node: set() for node in range(4)}
    n_outages = 0
    for node, down_us, up_us in down_intervals(record.events):
        end = END if up_us is None else up_us // 10**6
        merged[node] |= set(range(down_us // 10**6, end))
        n_outages += 1
    assert merged == down
    assert +record.sources == counts
    assert record.sources.total() == n_outages
    n_failed = sum(attempt[3] for attempt in attempts)
    counted = {**record.taken, **record.dropped}
    assert sum(n for reason, n in counted.items() if "NODE_FAIL" in reason) == n_failed
    assert record.n_lines == len(events) + len(attempts)


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    events: list[Event] = [(0, 100, 160), (1, 100, 200), (2, 250, None)]
    attempts: list[Attempt] = [
        ((0, 1), 50, 100, True), ((3,), 20, 130, True), ((3,), 140, 150, False),
        ((2,), 210, 255, True), ((0, 3), 300, 320, True),
    ]  # fmt: skip
    forwards = read_merged(*written(tmp_path, events, attempts))
    backwards = read_merged(*written(tmp_path, events[::-1], attempts[::-1]))
    assert forwards.events == backwards.events
    assert forwards.sources == backwards.sources == {
        "only in events": 0, "in both": 3, "only in attempts": 1,
    }  # fmt: skip


def test_a_failure_noticed_after_its_event_counts_once(tmp_path: Path) -> None:
    """The attempt ends a minute after its node returned, because Slurm notices lost jobs later."""
    files = written(tmp_path, [(0, 100, 120)], [((0,), 50, 180, True)])
    record = read_merged(*files)
    assert record.n_outages == 1
    assert record.sources["in both"] == 1


def test_an_outage_without_an_event_ends_at_the_timeout(tmp_path: Path) -> None:
    """No other job runs on the node; an event an hour later shows that the node was up again."""
    files = written(tmp_path, [(0, 3700, 3800)], [((0,), 0, 100, True)])
    intervals = down_intervals(read_merged(*files).events)
    assert [(a // 10**6, b and b // 10**6) for _, a, b in intervals] == [(0, 300), (3600, 3700)]


def test_import_prints_what_each_record_shows(tmp_path: Path, capsys) -> None:
    events, jobs = written(
        tmp_path, [(0, 100, 160)], [((0,), 50, 100, True), ((1,), 50, 300, True)]
    )
    out = str(tmp_path / "f.events")
    main(["failures", "import", str(events), "--attempts", str(jobs), "-o", out])
    printed = capsys.readouterr().out
    assert "1 NODE_FAIL attempt with an event, 1 NODE_FAIL attempt without an event" in printed
    assert "outages by source: 0 only in events, 1 in both, 1 only in attempts" in printed


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["jobs.psv", "--attempts", "jobs.psv"], "--attempts: has no effect with --format sacct"),
        (["events.psv", "--slurmd-timeout", "1min"], "--slurmd-timeout: has no effect"),
        (["events.psv", "--attempts", "events.psv"], "events.psv:1: has no column"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], problem: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    written(tmp_path, [(0, 100, 160)], [((0,), 50, 100, True)])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["failures", "import", *options, "-o", "f.events"])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1
