# SPDX-License-Identifier: Apache-2.0
"""Available work in a window, and the shares of node time that can be compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.api.sheets import by_metric, by_metric_of_seeds, by_policy
from rebat.core.units import to_us
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.results.catalogue import NODE_TIME, USUAL, metric
from rebat.results.comparison import Runs, intervals_csv, rows
from rebat.results.measures.platform import (
    NOT_COMPARABLE,
    AtHand,
    backlog,
    comparable,
    platform_time,
)
from rebat.results.measures.summary import Measures
from rebat.runs.single import simulate
from rebat.workloads.generate import synthetic
from tests.support.scenarios import fails, failures, machine, on_ring, run, workloads

S = 10**6


def test_work_at_hand_by_hand() -> None:
    """One node gets 8 s of work at 0, 4 s at 6 and 9 s at 12.

    The window from 5 to 15 begins with 3 s of work and ends with 6 s. A job waits only from 6 to 8.
    """
    result = run("baseline", machine(1, (1, 8), (1, 4, 6), (1, 9, 12)))
    found = backlog(result.ledger, (5 * S, 15 * S))
    assert (found.begin, found.submitted, found.end) == (3, 13, 6)
    assert found.nothing_waits == pytest.approx(0.8)


@given(workloads(), failures(), st.integers(0, 80), st.integers(1, 60))
def test_work_done_is_what_was_at_hand_less_what_is_left(workload, events, first, length) -> None:
    window = (first * S, (first + length) * S)
    result = simulate(workload, on_ring("sfsj", workload.n_nodes), machine_events=events)
    for accounting in ("exact", "program"):
        found = backlog(result.ledger, window, accounting)
        time = platform_time(result.ledger, workload.n_nodes, window, "useful", accounting)
        assert found.begin + found.submitted - found.end == pytest.approx(time.useful, abs=1e-5)


def test_only_where_one_ran_dry_are_two_apart() -> None:
    assert comparable(AtHand(0.80, 0.2), AtHand(0.805, 0.0))
    assert comparable(AtHand(0.80, 0.0), AtHand(0.95, 0.0))
    assert not comparable(AtHand(0.80, 0.2), AtHand(0.82, 0.0))
    assert not comparable(AtHand(0.82, 0.0), AtHand(0.80, 0.2))
    assert comparable(AtHand(0.80, 0.2, 100.0), AtHand(0.40, 0.2, 200.0))  # the same work


def runs():
    """Run EASY without failures, and with three of four nodes down before the window."""
    jobs = machine(4, *((2, 10, at) for at in range(0, 100, 10)))
    dead = [event for node in (0, 1, 2) for event in fails(node, 1, 39)]
    dead.sort(key=lambda event: event.at_us)
    window = Measures(window=(40 * S, 100 * S))
    return {
        name: simulate(jobs, preset("easy"), machine_events=events, measures=window).summary
        for name, events in (("calm", []), ("struck", dead))
    }


def test_the_printed_table_marks_what_is_not_comparable() -> None:
    found = runs()
    assert found["struck"].useful_utilisation > found["calm"].useful_utilisation
    sheet = by_metric(found)
    marked = {row[0] for row in sheet.rows if row[-1].endswith(NOT_COMPARABLE)}
    assert marked
    of_window = {row.title for row in (*NODE_TIME, metric("useful_utilisation"))}
    assert all(title in of_window or "some node idle" in title for title in marked)
    assert "useful utilisation" in marked
    assert NOT_COMPARABLE in sheet.note
    alike = by_metric({"calm": found["calm"], "again": found["calm"]})
    assert NOT_COMPARABLE not in alike.note
    assert not any(NOT_COMPARABLE in cell for row in alike.rows for cell in row)


def test_files_and_tables_of_seeds_mark_it() -> None:
    from rebat.results.measures.summary import as_json
    from rebat.results.metric import flat_metrics

    seeds = Runs(["calm", "struck"])
    for name, summary in runs().items():
        seeds.add(0, name, flat_metrics(as_json(summary)))
    table = list(rows(seeds))
    lines = intervals_csv(table).splitlines()
    assert lines[0].endswith(",comparable")
    assert any(
        line.startswith("useful_utilisation,,struck") and line.endswith(",no") for line in lines
    )
    assert any(line.startswith("flow_max_s,all,struck") and line.endswith(",") for line in lines)
    for sheet in (by_policy(table, seeds, USUAL), by_metric_of_seeds(table, seeds, USUAL)):
        cells = [cell for row in sheet.rows for cell in row if cell.endswith(NOT_COMPARABLE)]
        assert cells
        assert NOT_COMPARABLE in sheet.note


def test_a_window_of_all_begins_and_ends_with_nothing() -> None:
    jobs = add_young_daly(synthetic(0, 100), n_nodes=128, mtbf_s=1800)
    events = generate_events(Authors(1800, 600), 128, horizon_s=1e6)
    summary = simulate(jobs, preset("h311"), machine_events=events).summary
    assert (summary.backlog.begin, summary.backlog.end) == (0, 0)
    assert summary.backlog.submitted == pytest.approx(summary.platform.useful)
    assert summary.platform.held > 0
    assert to_us(summary.window_s[0]) == 0


@pytest.mark.parametrize(
    ("window", "work", "nothing"),
    [
        ((0, 6), (0, 8, 2), 1.0),  # a job submitted at the beginning is new, one at the end is not
        ((6, 12), (2, 4, 0), 4 / 6),
        ((6, 13), (2, 13, 8), 5 / 7),
        ((8, 12), (4, 0, 0), 1.0),
        ((9, 9), (3, 0, 3), 0.0),
    ],
)
def test_the_ends_of_a_window(window, work, nothing: float) -> None:
    """The jobs of `test_work_at_hand_by_hand`."""
    result = run("baseline", machine(1, (1, 8), (1, 4, 6), (1, 9, 12)))
    found = backlog(result.ledger, (window[0] * S, window[1] * S))
    assert (found.begin, found.submitted, found.end) == work
    assert found.nothing_waits == pytest.approx(nothing)


def test_times_at_which_one_or_several_jobs_wait() -> None:
    result = run("baseline", machine(1, (1, 8), (1, 4, 6), (1, 9, 7)))
    assert backlog(result.ledger, (0, 20 * S)).nothing_waits == pytest.approx((6 + 8) / 20)
