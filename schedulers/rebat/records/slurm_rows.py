# SPDX-License-Identifier: Apache-2.0
"""Rows of parsable Slurm output (``-P``), which does not escape delimiters and line ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, pairwise
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.records.sources import BLOCK_ROWS, Block
from rebat.records.table import Problems

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
"""Columns in which the plausible repairs of a row may differ."""

MAX_EXTRA = 8
"""Maximum number of delimiters in the free text of one row."""

MAX_JOINED = 200
"""Maximum number of lines of one row."""

_HEAD = re.compile(r"\s*[A-Za-z_/ ]*[A-Za-z]([^A-Za-z0-9_/ \r\n]+)")


class Row(NamedTuple):
    """The fields of a row, and the number of its first line."""

    line: int
    fields: list[str]


def header_of(line: str, where: str, expected: str = "column names") -> tuple[str, list[str]]:
    """Return the delimiter and the lower-case column names of a header line."""
    match = _HEAD.match(line)
    if not match:
        raise InputError("is not a header with column names", f"{where}:1", expected)
    delimiter = match[1]
    if len(set(delimiter)) == 1 and delimiter * 2 not in line.replace(delimiter, "", 1):
        delimiter = delimiter[0]  # a column without a name
    names = [_plain(name) for name in line.rstrip("\r\n").split(delimiter)]
    doubled = [name for name, n in Counter(names).items() if n > 1 and name]
    if doubled:
        raise InputError(f"duplicate column {doubled[0][:40]}", f"{where}:1", "each column once")
    return delimiter, names


def exported_header(
    line: str, where: str, export: str, required: Mapping[str, frozenset[str]]
) -> tuple[str, list[str]]:
    """Return the delimiter and the column names of the output of the command ``export``.

    ``required`` contains the name of each required column, and all its names in lower case.
    """
    delimiter, names = header_of(line, where, f"the output of: {export}")
    missing = [label for label, choices in required.items() if choices.isdisjoint(names)]
    if missing:
        problem = f"has no column {', '.join(missing)}; export again with: {export}"
        raise InputError(problem, f"{where}:1")
    return delimiter, names


def slurm_blocks(
    text: Iterator[str],
    delimiter: str,
    names: list[str],
    plausible: Callable[[list[str]], bool],
    problems: Problems,
) -> Iterator[Block]:
    """Yield the rows of parsable output in blocks. Rows that repeat the header are left out.

    Blocks of lines that all have the right number of fields are read together. From the first other
    block on, rows are repaired one by one (see `joined_rows`).
    """
    first, n_names = 2, len(names)
    while lines := list(islice(text, BLOCK_ROWS)):
        if n_names > 1 and all(line.count(delimiter) == n_names - 1 for line in lines):
            cells = delimiter.join([line.rstrip("\r\n") for line in lines]).split(delimiter)
            numbers = range(first, first + len(lines))
            yield _block(numbers, [cells[at::n_names] for at in range(n_names)], names)
            first += len(lines)
            continue
        repaired = joined_rows(chain(lines, text), delimiter, names, plausible, problems, first)
        while part := list(islice(repaired, BLOCK_ROWS)):
            columns = [list(column) for column in zip(*(row.fields for row in part), strict=True)]
            yield _block([row.line for row in part], columns, names)


def _block(lines: Sequence[int], columns: list[list[str]], names: list[str]) -> Block:
    """Return a block without the rows that repeat the header."""
    if any(_plain(cell) == names[0] for cell in set(columns[0])):
        rows = zip(*columns, strict=True)
        places = [at for at, row in enumerate(rows) if [*map(_plain, row)] != names]
        lines = [lines[at] for at in places]
        columns = [[cells[at] for at in places] for cells in columns]
    return Block(list(lines), dict(zip(names, columns, strict=True)))


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "")


def joined_rows(
    lines: Iterable[str],
    delimiter: str,
    names: list[str],
    plausible: Callable[[list[str]], bool],
    problems: Problems,
    first: int = 2,
) -> Iterator[Row]:
    """Yield rows with the number of fields of the header. ``first`` is the first line.

    Lines are joined until the fields are complete, because names may contain line ends. If a row
    has too many fields, surplus delimiters are treated as part of the free-text fields. If not
    exactly one such repair is plausible, the row is omitted and recorded as a problem.
    """
    n_fields = len(names)
    buffer, begin, held, complete = "", 0, 0, False
    for number, raw in enumerate(lines, first):
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
