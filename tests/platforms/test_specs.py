# SPDX-License-Identifier: Apache-2.0
"""Names of platforms, and SimGrid's units."""

from __future__ import annotations

import pytest

from rebat.core.errors import InputError
from rebat.platforms.specs import parse_quantity, parse_spec


@pytest.mark.parametrize(
    ("text", "name", "n_nodes"),
    [
        ("mira", "mira", 49_152),
        ("Intrepid", "intrepid", 40_960),
        ("torus:8,8,8,8", "torus-8x8x8x8", 4096),
        ("torus: 3, 2", "torus-3x2", 6),
        ("flat:1", "flat-1", 1),
        ("flat:128", "flat-128", 128),
    ],
)
def test_a_spec_names_a_machine(text: str, name: str, n_nodes: int) -> None:
    spec = parse_spec(text)
    assert (spec.name, spec.n_nodes) == (name, n_nodes)
    assert (spec.torus is None) == name.startswith("flat")


@pytest.mark.parametrize(
    "text",
    ["", "sequoia", "mira:8", "torus", "torus:", "torus:8,1", "torus:8,0", "torus:8,a", "flat",
     "flat:0", "flat:-4", "flat:4.5", "flat:99999999", "torus:9999,9999,9999"],
)  # fmt: skip
def test_a_bad_spec_is_told(text: str) -> None:
    with pytest.raises(InputError):
        parse_spec(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("speed", "1Gf", 1e9),
        ("speed", "2.5gigaflops", 2.5e9),
        ("speed", "100", 100.0),
        ("bandwidth", "125MBps", 1.25e8),
        ("bandwidth", "1Gbps", 1.25e8),
        ("bandwidth", "1KiBps", 1024.0),
        ("latency", "50us", 5e-5),
        ("latency", "0", 0.0),
        ("latency", "1m", 60.0),
    ],
)
def test_units_are_simgrids(kind: str, text: str, value: float) -> None:
    assert parse_quantity(kind, text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("speed", "0Gf"), ("speed", "-1Gf"), ("speed", "fast"), ("speed", "1GBps"),
        ("bandwidth", "0"), ("bandwidth", "1us"), ("latency", "-1s"), ("latency", "nan"),
        ("latency", ""), ("speed", "1e999f"),
    ],
)  # fmt: skip
def test_bad_quantities_are_told(kind: str, text: str) -> None:
    with pytest.raises(InputError, match=kind):
        parse_quantity(kind, text)
