# SPDX-License-Identifier: Apache-2.0
"""How numbers are written. Texts for readers have one rule, texts for programs another.

*For readers* (terminal, pages, Markdown, LaTeX, figures):

- The minus sign is U+2212, and a change has a sign. Thousands are separated by commas.
- A space separates a number from its unit, also from the percent sign (ISO 80000-1).
- A duration has the largest unit in which it is at least 1: ``90 s`` is ``1.5 min``. Units are
  abbreviated as options accept them.
- An interval has one unit. The mean and both ends have the same number of decimals. The width
  decides how many (the rule of the Particle Data Group): half of it has one digit or, if its first
  three digits are below 355, two digits.
- Without an interval, a number has three significant digits, and whole numbers have all digits.
  Columns whose numbers are compared with each other (percent, changes) have fixed decimals.
- Percentages and ratios have at least one or two decimals, also with a wide interval: the reader
  sees whether the interval contains 0 or 1.

*For programs* (keys, labels, names of files, command lines, notes in data files): `exact`,
`rounded` and `exactly` write plain ASCII without separators, as `parse_duration` reads it.

References
----------
Particle Data Group, "Review of Particle Physics", introduction, section 5.3 (rounding).
"""

from __future__ import annotations

import re
from math import floor, isfinite, log10
from typing import Any, NamedTuple, Protocol

from rebat.core.units import UNITS, parse_duration

MINUS = "\N{MINUS SIGN}"

MOST_DECIMALS = 4
"""Maximum number of decimals of an interval, unless its mean needs more for its first digits."""


class Estimate(Protocol):
    """A number with an interval. The ends are None if it has no interval."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Form(NamedTuple):
    """A kind of number, such as `percent` or `duration`: its units, digits and sign.

    A form is a function that returns a number as text for readers.

    Attributes
    ----------
    units : tuple
        Pairs of a unit and its size, the largest first. The unit of size 1 is used for 0.
    decimals : int, optional
        Number of decimals without an interval. By default, `digits` decides.
    least : int
        Minimum number of decimals with an interval.
    digits : int
        Number of significant digits without an interval.
    signed : bool
        Whether positive numbers have a plus sign.
    before : str
        Text before the number.
    """

    units: tuple[tuple[str, float], ...] = (("", 1.0),)
    decimals: int | None = None
    least: int = 0
    digits: int = 3
    signed: bool = False
    before: str = ""

    def __call__(self, value: float | None) -> str:
        """Return a number as text, or an empty text for None."""
        if value is None:
            return ""
        unit, size = self.fitting(value)
        return self._with_unit(self._written(value / size, self._decimals(value / size)), unit)

    def within(self, mean: float, low: float, high: float) -> str:
        """Return a number with an interval as text. All numbers have the unit of ``mean``.

        If the interval is so narrow that all numbers are equal, the text is the number alone.
        """
        unit, size = self.fitting(mean or max(abs(low), abs(high)))
        decimals = max(_decimals_of_width((high - low) / size, mean / size), self.least)
        centre, *ends = (self._written(value / size, decimals) for value in (mean, low, high))
        if {centre} == {*ends}:  # the ends differ only because of the rounding of floats
            return self(mean)
        return f"{self._with_unit(centre, unit)} [{', '.join(ends)}]"

    def between(self, first: float, last: float) -> str:
        """Return the range of two numbers as text, with one unit: that of the larger number.

        >>> share.between(0.1, 0.25), percent.between(0.5, 0.5)
        ('10.0 to 25.0 %', '50.00 %')
        """
        unit, size = self.fitting(max(abs(first), abs(last)))
        texts = [self._written(v / size, self._decimals(v / size)) for v in (first, last)]
        return self._with_unit(" to ".join(dict.fromkeys(texts)), unit)

    @property
    def unit(self) -> str:
        """The largest unit."""
        return self.units[0][0]

    @property
    def bare(self) -> Form:
        """The form without its unit, for columns whose heading states it."""
        return self._replace(units=tuple(("", size) for _, size in self.units))

    def in_unit(self, unit: str, size: float = 1.0) -> Form:
        """Return the form with another unit."""
        return self._replace(units=((unit, size),))

    def with_digits(self, digits: int) -> Form:
        """Return the form with another number of significant digits."""
        return self._replace(digits=digits)

    def with_decimals(self, decimals: int) -> Form:
        """Return the form with another number of decimals."""
        return self._replace(decimals=decimals)

    def fitting(self, value: float) -> tuple[str, float]:
        """Return the largest unit in which the rounded number is at least 1."""
        if not value and len(self.units) > 1:
            return next(row for row in self.units if row[1] == 1.0)
        fitting = (row for row in self.units if float(f"{abs(value) / row[1]:.2e}") >= 1)
        return next(fitting, self.units[-1])

    def _decimals(self, number: float) -> int | None:
        """Return the fixed decimals, or None if the significant digits decide.

        A small number has two digits, if `MOST_DECIMALS` decimals are enough for them.
        """
        if self.decimals is None or self.signed or not 0 < abs(number) < 10**-self.decimals:
            return self.decimals
        wanted = 1 - _magnitude(number, 2)
        return wanted if wanted <= MOST_DECIMALS else self.decimals

    def _written(self, number: float, decimals: int | None) -> str:
        sign = "+" if self.signed else ""
        if decimals is None:
            text = _significant(number, self.digits, sign)
        else:
            text = f"{number:{sign}z,.{decimals}f}"
        return text.replace("-", MINUS)

    def _with_unit(self, text: str, unit: str) -> str:
        return f"{self.before}{text} {unit}" if unit else f"{self.before}{text}"


def _significant(number: float, digits: int, sign: str) -> str:
    """Return a number with significant digits, without zeros at the end of its decimals."""
    if not number or not isfinite(number):
        return f"{number:{sign}zg}"
    magnitude = _magnitude(number, digits)
    if magnitude < -6:
        return f"{number:{sign}.{digits}g}"
    text = f"{number:{sign},.{max(digits - 1 - magnitude, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _magnitude(number: float, digits: int) -> int:
    """Return the exponent of the first digit, after rounding to ``digits`` digits."""
    return int(f"{abs(number):.{digits - 1}e}".partition("e")[2])


def _decimals_of_width(width: float, mean: float) -> int:
    """Return the number of decimals of an interval and its mean.

    >>> [_decimals_of_width(width, 10.0) for width in (0.9, 0.7, 27.1, 1e-9)]
    [1, 2, 0, 4]
    """
    if not isfinite(width) or width <= 0:
        return 0
    magnitude = floor(log10(width / 2))
    leading = width / 2 / 10.0**magnitude
    wanted = (1 if leading < 3.55 else 0) - magnitude
    least = 3 - _magnitude(mean, 3) if mean and isfinite(mean) else 0
    return min(max(wanted, 0), max(MOST_DECIMALS, least))


number = Form(digits=4)
"""A number without a unit: ``1.37``, ``12,345``."""

decimal = Form(decimals=1)
"""A number with one decimal, such as a mean number of failures."""

signed = Form(decimals=1, signed=True)
"""A difference of such numbers."""

hundredths = Form(decimals=2)
"""A number with two decimals, such as a correlation."""

factor = Form(decimals=2, before="x ")
"""A factor: ``x 1.70``."""

ratio = Form(decimals=3, least=2)
"""A ratio: ``0.968``."""

probability = Form(digits=2)
"""A p-value."""

percent = Form((("%", 0.01),), decimals=2, least=1)
"""A share: ``52.98 %``."""

share = percent.with_decimals(1)
"""A share with one decimal."""

about_percent = percent.with_decimals(0)._replace(least=0)
"""A share without decimals: ``95 %``."""

change = Form((("%", 0.01),), decimals=1, least=1, signed=True)
"""A relative difference: ``+3.5 %``."""

points = Form((("", 0.01),), decimals=2, least=1, signed=True)
"""A difference of shares in percentage points. The heading or the sentence states the unit."""

_TIMES = tuple((unit, UNITS[unit]) for unit in ("d", "h", "min", "s", "ms", "us"))

duration = Form(_TIMES)
"""A duration in seconds: ``1.5 h``."""

hours = Form((("", 3600.0),), decimals=1)
"""Seconds as hours, for columns whose heading states the unit."""

minutes = Form((("", 60.0),), decimals=1)
"""Seconds as minutes, for columns whose heading states the unit."""

node_hours = Form((("node-hours", 3600.0),))
"""A node time in node-seconds: ``10,000 node-hours``."""

node_h = node_hours.in_unit("node-hours")
"""The same for a node time that is computed in node-hours."""

file_size = Form((("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)))
"""A number of bytes: ``1.25 MB``."""

whole = Form(decimals=0)
"""A number without decimals: ``10,000``."""


def spread(estimate: Estimate | None, form: Form, neutral: float | None = None) -> str:
    """Return a mean or median with its interval as text, or an empty text for None.

    If the interval contains ``neutral`` (no effect), the text begins with ``=``.

    >>> from types import SimpleNamespace as Interval
    >>> spread(Interval(mean=0.531, low=0.512, high=0.543), percent)
    '53.1 % [51.2, 54.3]'
    >>> spread(Interval(mean=1.25 * 86400, low=82800, high=1.5 * 86400), duration)
    '1.25 d [0.96, 1.50]'
    >>> spread(Interval(mean=1.02, low=0.99, high=1.05), ratio, 1.0)
    '= 1.020 [0.990, 1.050]'
    """
    if estimate is None:
        return ""
    mean, low, high = estimate.mean, estimate.low, estimate.high
    if low is None or high is None:
        return form(mean)
    unsure = "= " if neutral is not None and low <= neutral <= high else ""
    return unsure + form.within(mean, low, high)


def counted(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun. The plural is ``several``, by default the noun with an "s".

    >>> counted(1, "job"), counted(12_000, "job"), counted(0, "policy", "policies")
    ('1 job', '12,000 jobs', '0 policies')
    """
    return f"{count:,} {_noun(count, noun, several)}"


def _noun(count: int, noun: str, several: str) -> str:
    return noun if count == 1 else several or f"{noun}s"


def clock(seconds: float, fractions: bool = False) -> str:
    """Return a time since the start of the run as text. Round it down to seconds.

    If ``fractions`` is set, round it down to microseconds instead.

    >>> clock(0.7), clock(97_205), clock(0.7, fractions=True)
    ('00:00:00', '1 d 03:00:05', '00:00:00.700000')
    """
    days, rest = divmod(int(seconds), 86_400)
    text = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    if fractions:
        text += f".{round(seconds * 1e6) % 1_000_000:06}"
    return f"{days} d {text}" if days else text


def span(seconds: float) -> str:
    """Return a duration between two times of `clock`, in its two largest units, rounded down.

    >>> span(12_000), span(90_000), span(59), span(0.25)
    ('3 h 20 min', '1 d 1 h', '59 s', '0.25 s')
    """
    if seconds < 1:
        return rounded(seconds)
    rest, parts = int(seconds), []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
        elif parts:
            parts.append("")
    return " ".join(filter(None, parts[:2]))


def plain(text: str) -> str:
    """Return text for readers with ASCII signs, for CSV and JSON.

    >>> plain(change(-0.035))
    '-3.5 %'
    """
    return _MINUS.sub("-", text)


_MINUS = re.compile(rf"{MINUS}(?=[\d.])")


# ---- for programs


def exactly(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, without separators.

    >>> exactly(12_000, "job")
    '12000 jobs'
    """
    return f"{count} {_noun(count, noun, several)}"


def exact(seconds: Any) -> str:
    """Return a duration as text, in the largest unit that needs no rounding.

    >>> exact(5400), exact(3600.25)
    ('1.5 h', '3600.25 s')
    """
    text = rounded(seconds)
    return text if parse_duration(text) == seconds else f"{seconds:.12g} s"


def rounded(seconds: float) -> str:
    """Return a duration with three significant digits, in the largest unit that fits.

    >>> rounded(0.25), rounded(5400), rounded(180000), rounded(1e8)
    ('0.25 s', '1.5 h', '2.08 d', '1157 d')
    """
    for unit, size in _TIMES:
        if abs(seconds) >= size or unit == "s":
            break
    value = seconds / size
    return f"{value:.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"
