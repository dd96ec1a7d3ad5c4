# SPDX-License-Identifier: Apache-2.0
"""The rule for numbers in texts for readers: digits, units and signs."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rebat.core import numbers
from rebat.core.numbers import MINUS, Form, exact, exactly, plain, rounded, spread
from rebat.core.units import parse_duration

FORMS = {name: form for name, form in vars(numbers).items() if isinstance(form, Form)}
forms = st.sampled_from(sorted(FORMS)).map(FORMS.__getitem__)
values = st.one_of(
    st.floats(-1e12, 1e12), st.floats(-1e-3, 1e-3), st.integers(-(10**9), 10**9).map(float)
)
widths = st.floats(1e-9, 1e9)


class Estimate(NamedTuple):
    mean: float
    low: float | None = None
    high: float | None = None


def read(text: str) -> tuple[float, float, str]:
    """Return a printed number, half a unit of its last digit, and its unit."""
    text = text.removeprefix("x ")
    digits, _, unit = plain(text).replace(",", "").partition(" ")
    mantissa, _, exponent = digits.replace(f"e{MINUS}", "e-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    return (
        float(digits.replace(f"e{MINUS}", "e-")),
        0.5 * 10.0 ** (int(exponent or 0) - decimals),
        unit,
    )


def size(form: Form, unit: str) -> float:
    return dict(form.units)[unit]


@given(form=forms, value=values)
def test_a_printed_number_is_within_half_a_unit_of_its_last_digit(form: Form, value: float) -> None:
    printed, half, unit = read(form(value))
    true = value / size(form, unit)
    if form.decimals is None and abs(true) >= 1:
        half = max(half, 0.5 * 10.0 ** (len(str(int(abs(true)))) - form.digits))
    assert abs(printed - true) <= half * (1 + 1e-9) + abs(true) * 1e-12


@given(form=forms, mean=values, below=widths, above=widths)
def test_an_interval_has_one_unit_and_one_number_of_decimals(
    form: Form, mean: float, below: float, above: float
) -> None:
    low, high = mean - below, mean + above
    assume(low < mean < high)
    text = spread(Estimate(mean, low, high), form)
    assume("[" in text)
    centre, _, rest = text.removesuffix("]").partition(" [")
    ends = rest.split(", ")
    printed, half, unit = read(centre)
    (first, _, _), (last, _, _) = map(read, ends)
    assert first <= printed <= last
    decimals = {len(part.partition(".")[2]) for part in (centre.removesuffix(unit).strip(), *ends)}
    assert len(decimals) == 1
    for value, shown in ((low, first), (mean, printed), (high, last)):
        true = value / size(form, unit)
        assert abs(true - shown) <= half * (1 + 1e-9) + abs(true) * 1e-12


@given(form=forms, low=values, high=values)
def test_rounding_keeps_the_order(form: Form, low: float, high: float) -> None:
    low, high = sorted((low, high))
    shown = [read(form(value)) for value in (low, high)]
    first, last = (number * size(form, unit) for number, _, unit in shown)
    assert first <= last + abs(last) * 1e-9


@given(form=forms, mean=values, width=widths)
def test_no_hyphen_is_a_minus(form: Form, mean: float, width: float) -> None:
    texts = [form(mean), spread(Estimate(mean, mean - width, mean + width), form)]
    texts.append(form.between(mean, mean + width))
    for text in texts:
        assert "-" not in text.replace("node-hours", "")
        assert MINUS not in plain(text)


@given(seconds=st.floats(1e-5, 8e7))
def test_a_printed_duration_is_an_option(seconds: float) -> None:
    """The text without its space can be given to an option."""
    printed = parse_duration(numbers.duration(seconds).replace(" ", ""))
    assert printed == pytest.approx(seconds, rel=5.1e-3)
    assert parse_duration(exact(seconds).replace(" ", "")) == pytest.approx(seconds, rel=1e-11)


@pytest.mark.parametrize(
    ("form", "estimate", "text"),
    [
        ("duration", (13.4, 13.0, 13.9), "13.4 s [13.0, 13.9]"),
        ("duration", (5400.0, 3600.0, 90000.0), "2 h [1, 25]"),
        ("duration", (0.0, -60.0, 3600.0), "0.0 h [0.0, 1.0]"),
        ("percent", (0.7753, 0.6427, 0.9079), "77.5 % [64.3, 90.8]"),
        ("change", (0.038, -0.003, 0.08), f"+3.8 % [{MINUS}0.3, +8.0]"),
        ("percent", (0.5, 0.5, 0.5), "50.00 %"),
        ("number", (12345.6, 12000.0, 12700.0), "12,346 [12,000, 12,700]"),
        ("factor", (1.7, 1.62, 1.81), "x 1.70 [1.62, 1.81]"),
    ],
)
def test_examples_of_intervals(form: str, estimate: tuple[float, float, float], text: str) -> None:
    assert spread(Estimate(*estimate), FORMS[form]) == text


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("duration", 3599.99, "1 h"),
        ("duration", 0, "0 s"),
        ("duration", 86400, "1 d"),
        ("duration", 5e-5, "50 us"),
        ("duration", 1e8, "1,157 d"),
        ("percent", 0.0002, "0.02 %"),
        ("percent", 0.00002, "0.0020 %"),
        ("percent", 1e-12, "0.00 %"),
        ("change", -1e-9, "+0.0 %"),
        ("change", -0.035, f"{MINUS}3.5 %"),
        ("number", 1234.56, "1,235"),
        ("number", 3e-8, f"3e{MINUS}08"),
        ("number", float("inf"), "inf"),
        ("node_hours", 5400, "1.5 node-hours"),
        ("factor", 1.7, "x 1.70"),
        ("number", None, ""),
    ],
)
def test_examples_of_numbers(form: str, value: float | None, text: str) -> None:
    assert FORMS[form](value) == text


def test_the_mark_of_an_interval_that_contains_no_effect() -> None:
    assert spread(Estimate(1.02, 0.99, 1.05), numbers.ratio, 1.0).startswith("= ")
    assert not spread(Estimate(1.02, 1.01, 1.05), numbers.ratio, 1.0).startswith("=")
    assert spread(Estimate(1.02), numbers.ratio, 1.0) == "1.020"
    assert spread(None, numbers.ratio) == ""


def test_texts_for_programs_are_ascii_without_separators() -> None:
    assert exactly(12_000, "job") == "12000 jobs"
    assert (rounded(1e8), exact(90.0)) == ("1157 d", "1.5 min")
    assert plain(f"easy{MINUS}sfsj, {MINUS}3.5 %") == f"easy{MINUS}sfsj, -3.5 %"
    assert not re.search(r"[^ -~]", exact(0.1))
