# SPDX-License-Identifier: Apache-2.0
"""Free boxes found with sets of units, compared with a test of each box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.kernels.box_free import LOWEST, RANDOM, any_choice, free_box, put_box
from rebat.kernels.box_sums import mix
from rebat.models.boxes import LISTS, packed
from rebat.models.failures.per_node import FAMILIES
from rebat.models.topology import Torus
from rebat.policies.placement.boxed import Volumes
from rebat.policies.placement.boxes import Division, Site


@given(st.data())
def test_the_box_found_is_the_first_free_one_or_draws_the_least(data: st.DataObject) -> None:
    """The rule holds for any torus, for more than 64 units, and for any nodes in use."""
    sizes = data.draw(st.sampled_from([(4, 4), (5, 3, 2), (9, 8), (2, 3, 4, 4, 1), (65,), (1, 7)]))
    torus = Torus(sizes)
    site = Site(str(torus), "x".join("1" * len(sizes)), data.draw(st.sampled_from(LISTS)))
    division = Division(site, torus.n_nodes)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    taken = rng.random(torus.n_nodes) < data.draw(st.sampled_from([0.0, 0.1, 0.4, 0.8]))
    asked = np.array(data.draw(st.lists(st.integers(1, torus.n_nodes), min_size=1, max_size=4)))
    seed, serial = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    for rule in (LOWEST, RANDOM):
        volumes = Volumes(division, rule)
        for wanted, v in zip(asked.tolist(), volumes.of(asked).tolist(), strict=True):
            boxes = division.boxes(division.blocks.count_for(wanted))
            nodes = [boxes.box(i).nodes(torus) for i in range(len(boxes))]
            free = [i for i in range(len(boxes)) if not taken[nodes[i]].any()]
            words, catalogue = packed(taken[None])[0], volumes.catalogue
            assert any_choice(catalogue, v, words) == (len(free) > 1)
            shape, corner = free_box(catalogue, v, words, rule, seed, serial)
            assert (shape >= 0) == bool(free)
            if free:
                first = free[0]
                if rule == RANDOM:
                    first = min(free, key=lambda i: mix(seed, serial, i))
                found = np.zeros_like(words)
                put_box(catalogue.sizes, catalogue.shapes[shape], corner, found)
                of_box = np.zeros((1, torus.n_nodes), dtype=np.bool_)
                of_box[0, nodes[first]] = True
                assert found.tolist() == packed(of_box)[0].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_hazards_of_some_nodes_are_those_of_all(family: str) -> None:
    """All bits are equal: the choice of the safest box must not depend on which others are free."""
    rng = np.random.default_rng(5)
    shape = np.ones(999) if family == "exponential" else rng.uniform(0.7, 9, 999)
    laws, ages_s = FAMILIES[family](rng.uniform(1e3, 1e6, 999), shape), rng.uniform(0, 1e7, 999)
    for some in (np.array([7]), np.arange(3, 990, 11), np.arange(500, 999)):
        found = laws.of(some).hazard(ages_s[some], 3600.0)
        assert found.tolist() == laws.hazard(ages_s, 3600.0)[some].tolist()
