# SPDX-License-Identifier: Apache-2.0
"""Rows of parsable Slurm output (``-P``), which does not escape delimiters and line ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

from rebat.core.counted import counted
from rebat.core.errors import InputError

FREE_TEXT = frozenset(
    (
        "jobname",
        "comment",
        "admincomment",
        "systemcomment",
        "workdir",
        "submitline",
        "reason",
        "constraints",
    )
)
"""Columns with free text from users and operators."""

_UNREAD = FREE_TEXT | {"reservation", "priority", "ntasks", "flags", "reqnodes"}

MAX_EXTRA = 8
"""Maximum number of delimiters in the free text of one row."""

MAX_JOINED = 200
"""Maximum number of lines of one row."""

_HEAD = re.compile(r"\s*[A-Za-z_/ ]*[A-Za-z]([^A-Za-z0-9_/ \r\n])")


class Row(NamedTuple):
    """The fields of a row, and the number of its first line."""

    line: int
    fields: list[str]


class Problems:
    """Counts of unreadable lines by reason. In strict mode, the first one is an error."""

    def __init__(self, where: str, strict: bool = False) -> None:
        self.where, self.strict = where, strict
        self.counts: Counter[str] = Counter()
        self.first: dict[str, int] = {}

    def add(self, line: int, reason: str, expected: str | None = None) -> None:
        """Count a line, or raise InputError in strict mode."""
        if self.strict:
            raise InputError(reason, f"{self.where}:{line}", expected)
        self.counts[reason] += 1
        self.first.setdefault(reason, line)

    def notes(self) -> list[str]:
        """Return a sentence per reason, with the number of its first line."""
        return dropped_lines(self.reasons())

    def reasons(self) -> Counter[str]:
        """Return the number of lines by reason. Each reason names its first line."""
        return Counter(
            {
                f"{reason} (first: line {self.first[reason]})": n
                for reason, n in sorted(self.counts.items())
            }
        )


def dropped_lines(reasons: Counter[str]) -> list[str]:
    """Return a sentence per reason."""
    return [f"{counted(n, 'line')} dropped: {reason}" for reason, n in reasons.items()]


def header_of(line: str, where: str, expected: str) -> tuple[str, list[str]]:
    """Return the delimiter and the lower-case column names of a header line.

    Raises
    ------
    InputError
        If the line is not the header of parsable output.
    """
    match = _HEAD.match(line)
    if not match:
        raise InputError("is not a header with column names", f"{where}:1", expected)
    names = [name.strip().lower().replace(" ", "") for name in line.rstrip("\r\n").split(match[1])]
    doubled = [name for name, n in Counter(names).items() if n > 1 and name]
    if doubled:
        raise InputError(f"duplicate column {doubled[0][:40]}", f"{where}:1", "each column once")
    return match[1], names


def joined_rows(
    lines: Iterable[str],
    delimiter: str,
    names: list[str],
    plausible: Callable[[list[str]], bool],
    problems: Problems,
) -> Iterator[Row]:
    """Yield rows with the number of fields of the header.

    Lines are joined until the fields are complete, because names may contain line ends. If a row
    has too many fields, surplus delimiters are treated as part of the free-text fields. If not
    exactly one such repair is plausible, the row is omitted and recorded as a problem.
    """
    n_fields = len(names)
    buffer, begin, held, complete = "", 0, 0, False
    for number, raw in enumerate(lines, 2):
        line = raw.rstrip("\r\n")
        fields = line.split(delimiter)
        if len(fields) == n_fields and n_fields > 1:
            if buffer and not (complete and delimiter not in buffer):
                problems.add(begin, "incomplete row")
            yield Row(number, fields)
            buffer, held, complete = "", 0, True
        elif len(fields) > n_fields:
            if buffer and not (complete and delimiter not in buffer):
                problems.add(begin, "incomplete row")
            buffer, held, complete = "", 0, True
            yield from _repaired(number, fields, delimiter, names, plausible, problems)
        elif line or buffer:
            buffer, begin = (f"{buffer}\n{line}", begin) if held else (line, number)
            held += 1
            fields = buffer.split(delimiter)
            if len(fields) == n_fields and plausible(fields):
                yield Row(begin, fields)
                buffer, held, complete = "", 0, True
            elif len(fields) > n_fields or held > MAX_JOINED:
                problems.add(begin, "incomplete row")
                buffer, begin, held, complete = line, number, 1, False
    if buffer and not (complete and delimiter not in buffer):
        problems.add(begin, "incomplete row")


def _repaired(
    number: int,
    fields: list[str],
    delimiter: str,
    names: list[str],
    plausible: Callable[[list[str]], bool],
    problems: Problems,
) -> Iterator[Row]:
    """Treat surplus delimiters as part of the free-text fields.

    If exactly one repair is plausible, yield the repaired row. Otherwise, record a problem.
    """
    reason = "more fields than columns, because a name contains the delimiter"
    extra = len(fields) - len(names)
    texts = [position for position, name in enumerate(names) if name in FREE_TEXT]
    if extra > MAX_EXTRA or not texts:
        problems.add(number, reason)
        return
    candidates: dict[tuple[str, ...], list[str]] = {}
    for shares in _shares(extra, len(texts)):
        merged = _merged(fields, dict(zip(texts, shares, strict=True)), delimiter, len(names))
        if plausible(merged):
            fixed = (text for at, text in enumerate(merged) if names[at] not in _UNREAD)
            candidates.setdefault(tuple(fixed), merged)
        if len(candidates) > 1:
            break
    if len(candidates) == 1:
        yield Row(number, next(iter(candidates.values())))
    else:
        problems.add(number, reason)


def _shares(total: int, parts: int) -> Iterator[list[int]]:
    """Yield the ways to divide a number into ordered parts, but at most 5,000 ways."""
    for count, bars in enumerate(combinations(range(total + parts - 1), parts - 1)):
        if count == 5000:
            return
        ends = [-1, *bars, total + parts - 1]
        yield [after - before - 1 for before, after in pairwise(ends)]


def _merged(fields: list[str], extra: dict[int, int], delimiter: str, count: int) -> list[str]:
    merged, at = [], 0
    for position in range(count):
        width = 1 + extra.get(position, 0)
        merged.append(delimiter.join(fields[at : at + width]))
        at += width
    return merged
