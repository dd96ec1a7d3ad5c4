# SPDX-License-Identifier: Apache-2.0
"""Simultaneous failures: aligned groups and cascades; everything else is unchanged."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.campaign.opening import open_campaign
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.failures.correlated import Correlated, Correlation, correlated
from rebat.models.failures.events import check_alternation, read_events
from rebat.models.failures.law import Law, generate_events
from rebat.models.failures.per_node_laws import Weibull
from rebat.models.failures.renewal import Authors, Poisson, Renewal
from tests.support.campaigns import GRID, campaign_file
from tests.support.outages import down_intervals
from tests.support.paired import Paired

N = 70
LAWS: tuple[Law, ...] = (
    Authors(300.0, 400.0), Poisson(300.0, 400.0), Renewal(300.0, 400.0), Paired(20_000.0, 0.8),
    Weibull(20_000.0, 0.9),
)  # fmt: skip
laws = st.sampled_from(LAWS)
correlations = st.builds(
    lambda group, cascade, window, blocks: Correlation(
        group=group, cascade=cascade, cascade_window_s=window, cascade_within=blocks * group
    ),
    st.sampled_from([1, 4, 16, 100]), st.floats(0, 0.8), st.floats(1, 5000),
    st.sampled_from([0, 2, 3]),
)  # fmt: skip


def drawn(law: Law, seed: int) -> list:
    return generate_events(law, N, horizon_s=20_000, seed=seed)


@given(laws, correlations, st.integers(0, 5))
def test_no_node_fails_while_it_is_down_and_seeds_repeat(law, correlation, seed) -> None:
    together = Correlated(law, correlation)
    events = drawn(together, seed)
    check_alternation(events, N)
    assert events == drawn(together, seed)


@given(laws, correlations, st.integers(0, 5))
def test_groups_are_aligned_and_whole(law, correlation, seed) -> None:
    """Each event has all nodes of a group or none of them."""
    size = correlation.group
    for event in drawn(Correlated(law, correlation), seed):
        nodes = set(event.nodes)
        groups = {node // size for node in nodes}
        assert nodes == {node for node in range(N) if node // size in groups}


@given(laws, st.integers(0, 5))
def test_with_probability_0_and_groups_of_one_it_is_the_law(law, seed) -> None:
    together = Correlated(law, Correlation(cascade_window_s=60.0))
    assert flat(drawn(together, seed)) == flat(drawn(law, seed))
    assert correlated(law, Correlation()) is law


def flat(events: list) -> list:
    """Return sorted (date, available, node), with one element for each node of an event."""
    return sorted((e.at_us, not e.available, node) for e in events for node in e.nodes)


@given(laws, st.integers(0, 5))
def test_a_group_as_large_as_the_machine_takes_all_of_it(law, seed) -> None:
    events = drawn(Correlated(law, Correlation(group=N)), seed)
    assert {len(event.nodes) for event in events} == {N}


def test_outages_of_a_group_are_joined_by_hand() -> None:
    """Single nodes fail; a group of two nodes is down as long as one of its nodes is down."""

    class Told(Law, frozen=True):
        def outages(self, n_nodes: int, seed: int):
            from rebat.core.nodes import NodeSet
            from rebat.models.failures.law import Outage

            for at, up, node in ((10, 20, 0), (15, 18, 1), (17, 30, 1), (40, 50, 2), (45, 47, 3)):
                yield Outage(at, up, NodeSet.of([node]))

    events = list(Correlated(Told(), Correlation(group=2)).events(5))
    assert set(down_intervals(events)) == {(0, 10, 30), (1, 10, 30), (2, 40, 50), (3, 40, 50)}


def test_a_cascade_stays_in_its_block_and_window() -> None:
    law = Poisson(1e5, 10.0)
    apart = Correlation(group=4, cascade=0.6, cascade_window_s=50.0, cascade_within=16)
    outages = list(itertools.islice(Correlated(law, apart).outages(640, 1), 3000))
    followed = [
        b for a, b in itertools.pairwise(outages)
        if b.down_us - a.down_us <= 50e6 and b.nodes.lowest // 16 == a.nodes.lowest // 16
    ]  # fmt: skip
    assert all(
        b.nodes.lowest != a.nodes.lowest
        for a, b in itertools.pairwise(outages)
        if b.down_us - a.down_us <= 50e6 and b.nodes.lowest // 16 == a.nodes.lowest // 16
    )
    # the share of failures that another failure caused is the probability of a cascade
    assert len(followed) / 3000 == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / 3000))


def test_the_last_group_may_be_smaller_and_alone_has_no_neighbour() -> None:
    events = generate_events(
        Correlated(Poisson(10.0, 1.0), Correlation(cascade=0.9, cascade_within=3)), 1, horizon_s=1e4
    )
    check_alternation(events, 1)


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"group": 0}, "failure group: is 0"),
        ({"cascade": 1.0}, "cascade: is 1"),
        ({"cascade": -0.1}, "cascade: is -0.1"),
        ({"cascade_window_s": 0.0}, "cascade window: is 0 s"),
        ({"group": 4, "cascade_within": 6}, "cascade within: is 6"),
        ({"group": 4, "cascade_within": 4}, "cascade within: is 4"),
    ],
)
def test_what_cannot_be(told, match) -> None:
    with pytest.raises(InputError, match=match):
        Correlation(**told)


def test_the_identity_and_the_label_say_so() -> None:
    law = Poisson(1800.0, 600.0)
    group = correlated(law, Correlation(group=512, cascade=0.25, cascade_window_s=60.0))
    assert group.label() == "group=512,cascade=0.25,cascade_window=60s"
    assert group.identity() != law.identity()
    assert law.identity().items() <= group.identity().items()
    assert correlated(Weibull(100.0, 2.0), Correlation(group=2)).label() == (
        f"{Weibull(100.0, 2.0).label()},group=2"
    )


def test_survival_is_refused() -> None:
    with pytest.raises(InputError, match="correlated failures"):
        Correlated(LAWS[0], Correlation(group=2)).survival(0.0, 1.0, N)


def told(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_the_command(tmp_path: Path, capsys) -> None:
    out = tmp_path / "f.events"
    base = ["failures", "generate", "--nodes", "64", "--horizon", "10d", "--force", "-o", str(out)]
    main([*base, "--mtbf", "1h", "--failure-group", "16"])
    assert {len(event.nodes) for event in read_events(out)} == {16}
    again = out.read_bytes()
    main([*base, "--law", "authors:mtbf=1h", "--failure-group", "16"])
    assert out.read_bytes() == again
    alone = [
        "failures",
        "generate",
        "--nodes",
        "64",
        "--force",
        "-o",
        str(out),
        "--failure-group",
        "2",
    ]
    assert "--failure-group: has no effect" in told(capsys, *alone)
    error = told(capsys, *base, "--mtbf", "1h", "--cascade-window", "1h")
    assert "--cascade-window: has no effect (expected --cascade" in error
    assert "groups and cascades are not possible with recorded failures" in told(
        capsys, *alone, "--law", f"trace:file={out}"
    )


def test_in_a_campaign(tmp_path: Path) -> None:
    plain = open_campaign(campaign_file(tmp_path, GRID)).units
    grid = GRID.replace('mtbf = "30min"', 'mtbf = "30min"\ngroup = 16\ncascade = 0.1')
    units = open_campaign(campaign_file(tmp_path, grid)).units
    failing = [unit for unit in units if unit.spec.scenario.failures]
    assert {unit.labels["law"] for unit in failing} == {"group=16,cascade=0.1"}
    assert {unit.labels["mtbf_s"] for unit in failing} == {1800.0}
    same = {unit.key for unit in plain} & {unit.key for unit in units}
    assert len(same) == len(units) - len(failing)
    assert all(unit.spec.scenario.failures is None for unit in units if unit.key in same)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("group = 0", "failures.group: is 0"),
        ("cascade = 1.5", "failures.cascade: is 1.5"),
        ('cascade_window = "1h"', "cascade_window: has no effect"),
    ],
)
def test_a_campaign_that_cannot_be(tmp_path: Path, line: str, match: str) -> None:
    grid = GRID.replace('mtbf = "30min"', f'mtbf = "30min"\n{line}')
    with pytest.raises(InputError, match=match):
        open_campaign(campaign_file(tmp_path, grid))


def test_nobody_foresees_what_comes_together(tmp_path: Path) -> None:
    grid = GRID.replace('mtbf = "30min"', 'mtbf = "30min"\ngroup = 16')
    grid = grid.replace('"baseline", "sfsj"', '"faps:torus=8x8"')
    with pytest.raises(InputError, match="failures are correlated"):
        open_campaign(campaign_file(tmp_path, grid))
