# SPDX-License-Identifier: Apache-2.0
"""Failure models and event files: the numbers of the authors' scenarios, and each error."""

import gzip
import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import (
    MachineEvent,
    check_alternation,
    read_event_file,
    read_events,
    write_events,
)
from rebat.models.failures.law import Outage, events_of, generate_events
from rebat.models.failures.laws import LAWS, law_named, parse_law
from rebat.models.failures.renewal import Authors, Poisson
from rebat.models.failures.statistics import describe_events
from tests.support.recordings import beside

US = 1_000_000
HOUR, MIRA = 3600, 49152
WINDOW = (864_000, 2_592_000)
MODELS = ("authors", "poisson")


def authors(seed):
    return generate_events(LAWS["authors"](HOUR, HOUR), MIRA, seed=seed)


@pytest.mark.parametrize(
    ("seed", "n_all", "n_window"),
    [(0, 1392, 489), (1, 1417, 490), (2, 1401, 485), (3, 1464, 525), (4, 1373, 451)],
)
def test_the_authors_scenarios_have_their_numbers(seed, n_all, n_window):
    events = authors(seed)
    assert sum(not event.available for event in events) == n_all
    assert describe_events(events, MIRA, WINDOW)["failures"] == n_window


def test_the_authors_first_failures():
    outages = parse_law("authors:mtbf=1h,downtime=1h").outages(MIRA, 0)
    found = [(down_us / US, str(nodes)) for down_us, _, nodes, _ in itertools.islice(outages, 3)]
    assert found == [(6698.19, "27562"), (6846.97, "33506"), (9242.38, "19877")]


def test_the_authors_mean_share_of_downtime():
    shares = [describe_events(authors(s), MIRA, WINDOW)["downtime_share"] for s in range(5)]
    assert statistics.mean(shares) == pytest.approx(2.0682e-05, abs=0.5e-9)


def test_the_authors_scenario_is_the_golden_file(tmp_path):
    recorded = beside("golden/node-stealing/failures-mtbf1h-downtime1h-seed0.events.gz")
    assert read_events(recorded) == authors(0)
    write_events(authors(0), tmp_path / "ours.events", decimals=2)
    with gzip.open(recorded, "rt") as golden:
        # they write each repair after its failure; rebat sorts by time
        assert sorted((tmp_path / "ours.events").read_text().splitlines()) == sorted(
            golden.read().splitlines()
        )


@pytest.mark.parametrize("model", MODELS)
@given(
    mtbf=st.floats(20, 1000),  # at most 25 of 60 nodes are down on average, so never all of them
    downtime=st.floats(0.01, 500),
    n=st.integers(60, 99),
    seed=st.integers(0, 99),
)
def test_every_model_alternates_and_is_decided_by_its_seed(model, mtbf, downtime, n, seed):
    events = generate_events(LAWS[model](mtbf, downtime), n, horizon_s=5000, seed=seed)
    check_alternation(events, n)
    assert len(events) % 2 == 0
    assert events == generate_events(LAWS[model](mtbf, downtime), n, horizon_s=5000, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_the_mtbf_asked_for(model):
    summary = describe_events(generate_events(LAWS[model](100, 50), 1000, horizon_s=1e6), 1000)
    assert summary["failures"] == pytest.approx(10_000, rel=0.03)
    assert summary["mtbf_s"] == pytest.approx(100, rel=0.03)
    assert summary["mean_downtime_s"] == pytest.approx(50, rel=1e-6)
    assert summary["downtime_share"] == pytest.approx(50 / 100 / 1000, rel=0.03)


def test_poisson_nodes_that_are_down_do_not_fail():
    """If a node's MTBF equals its downtime, half of the machine is down in the long run."""
    events = generate_events(LAWS["poisson"](1, 50), 50, horizon_s=20_000)
    assert describe_events(events, 50, (1000, 20_000))["downtime_share"] == pytest.approx(
        0.5, abs=0.02
    )


def test_the_authors_model_refuses_where_their_program_hangs():
    with pytest.raises(InputError, match="all 2 nodes are down"):
        generate_events(Authors(10, 1000), 2)


def test_an_unknown_model_lists_the_choices():
    with pytest.raises(InputError, match=r"unknown failure law 'x' .*authors, .*poisson"):
        law_named("x")


@pytest.mark.parametrize(
    "change",
    [{"mtbf_s": 0}, {"mtbf_s": float("nan")}, {"downtime_s": -1}, {"n_nodes": 0},
     {"horizon_s": float("inf")}, {"seed": -1}],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(change):
    numbers = {"mtbf_s": 1, "downtime_s": 1, "n_nodes": 9, "horizon_s": 9, "seed": 0} | change
    with pytest.raises(InputError):
        law = Poisson(numbers.pop("mtbf_s"), numbers.pop("downtime_s"))
        generate_events(law, numbers.pop("n_nodes"), **numbers)


def event(at_s, nodes, *, up=False):
    return MachineEvent(round(at_s * US), up, NodeSet.parse(nodes))


def test_a_repair_comes_before_a_failure_at_the_same_date():
    node = NodeSet.of([1])
    events = events_of([Outage(0, 10 * US, node), Outage(10 * US, 20 * US, node)])
    assert [(e.at_us // US, e.available) for e in events] == [
        (0, False), (10, True), (10, False), (20, True),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, 10**15), st.sets(st.integers(0, 99), min_size=1)), max_size=9
    ),
    st.sampled_from(["e.events", "e.events.gz"]),
)
def test_what_is_written_is_read_back(tmp_path_factory, drawn, name):
    down, events = set(), []
    for at_us, nodes in sorted(drawn, key=lambda pair: pair[0]):
        up = bool(nodes & down)
        chosen = nodes & down if up else nodes
        if not events or at_us > events[-1].at_us:
            down = down - chosen if up else down | chosen
            events.append(MachineEvent(at_us, up, NodeSet.of(chosen)))
    path = tmp_path_factory.mktemp("e") / name
    write_events(events, path)
    assert read_events(path) == events


def test_the_form_of_the_lines(tmp_path):
    write_events([event(1.23456, "0-2 5"), event(8, "1", up=True)], tmp_path / "e", decimals=2)
    assert (tmp_path / "e").read_text() == (
        '{"type": "machine_unavailable", "resources": "0-2 5", "timestamp": 1.23}\n'
        '{"type": "machine_available", "resources": "1", "timestamp": 8.0}\n'
    )


def line(kind="machine_unavailable", resources='"0"', timestamp="5"):
    return f'{{"type": "{kind}", "resources": {resources}, "timestamp": {timestamp}}}'


def test_generic_events_are_counted_and_blank_lines_ignored(tmp_path):
    path = tmp_path / "e.events"
    path.write_text(f'{line()}\n\n{{"type": "alarm", "timestamp": 7, "x": 1}}\n')
    found = read_event_file(path)
    assert (len(found.machine_events), found.generic_types) == (1, {"alarm": 1})


def test_lines_need_not_be_sorted(tmp_path):
    path = tmp_path / "e.events"
    path.write_text(f"{line('machine_available', timestamp='9')}\n{line(timestamp='2')}\n")
    assert read_events(path) == [event(2, "0"), event(9, "0", up=True)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([line(), "{"], [":2", "broken JSON"]),
        ([line(timestamp="NaN")], [":1", "broken JSON"]),
        (["[1]"], [":1", "not an event"]),
        (['{"resources": "0", "timestamp": 1}'], [":1", "not an event"]),
        (['{"type": "machine_available", "resources": "0"}'], [":1", "timestamp is missing"]),
        (['{"type": "machine_available", "timestamp": 1}'], [":1", "resources is missing"]),
        ([line(timestamp="-1")], [":1", "timestamp is -1", "seconds"]),
        ([line(timestamp="1e300")], [":1", "timestamp is 1e+300"]),
        ([line(timestamp="1" + "0" * 400)], [":1", "timestamp is 1000"]),
        ([line(timestamp='"5"')], [":1", "timestamp is '5'"]),
        ([line(timestamp="true")], [":1", "timestamp is True"]),
        ([line(resources="3")], [":1", "resources is 3"]),
        ([line(resources='"0-"')], [":1", "is not a set of nodes"]),
        ([line(resources='"5-2"')], [":1", "not an interval of nodes"]),
        ([line(resources='""')], [":1", "resources is empty"]),
        ([line(resources='"0-999999999999"')], [":1", "not on the machine"]),
        ([line(), line(resources='"0-3"', timestamp="8")], [":2", "node 0", "while it is down"]),
        ([line("machine_available")], [":1", "node 0", "while it is up"]),
    ],
)
def test_a_bad_event_file_is_refused_with_its_place(tmp_path, lines, words):
    path = tmp_path / "bad.events"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_events(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([event(1, "0"), event(2, "0-1")], ["event 1 at 2 s", "node 0", "while it is down"]),
        ([event(1, "0", up=True)], ["event 0", "while it is up"]),
        ([event(5, "0"), event(1, "1")], ["event 1 at 1 s", "earlier"]),
        ([event(5, "3-4")], ["event 0", "node 4 is not on the machine", "0 to 3"]),
    ],
)
def test_a_bad_list_is_refused(events, words):
    with pytest.raises(InputError) as caught:
        check_alternation(events, 4)
    for word in words:
        assert word in str(caught.value)


def test_describe_events_in_plain_numbers():
    events = [event(10, "0-1"), event(30, "0", up=True), event(50, "0"), event(60, "0", up=True)]
    summary = describe_events(events, 4, (0, 100))
    assert summary == {
        "failures": 3,
        "dates": 2,
        "mtbf_s": 50,
        "node_mtbf_s": pytest.approx(100 / 3),
        "mean_downtime_s": 15,
        "downtime_share": (20 + 10 + 90) / 400,  # node 1 stays down
        "nodes_hit": 2,
        "busiest_nodes": [(0, 2), (1, 1)],
        "window_s": (0, 100),
    }
    assert describe_events([], 4)["mtbf_s"] is None
    assert describe_events([event(10, "0")], 4)["failures"] == 1
