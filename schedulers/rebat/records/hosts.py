# SPDX-License-Identifier: Apache-2.0
"""Lists of node names such as ``n[001-003,007]``. ClusterShell sorts and folds the names.

As in Slurm, each number has at least the width of the first number of its range: ``n[001-1000]`` is
n001 to n999, and n1000.

The lists of node names in a column. Each distinct list is expanded once.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.errors import InputError

MAX_NAMES = 500_000
"""Maximum number of names in a list."""

MAX_BRACKETS = 4
"""Maximum number of brackets in a name."""

_PLAIN = r"[A-Za-z0-9._-]"
_ITEM = re.compile(rf"(?=[A-Za-z0-9\[]){_PLAIN}*(?:\[[0-9,-]+\]{_PLAIN}*)*\Z")
_SPLIT = re.compile(r",(?![^\[]*\])")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_NUMBERED = re.compile(r"(.*?)(\d{1,15})\Z")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?\Z")


def check_list(text: str) -> int:
    """Return an upper bound on the number of names in a list."""
    total = 0
    for item in _SPLIT.split(text.strip(",")):
        if not _ITEM.match(item):
            raise _bad(text)
        count = 1
        brackets = _BRACKET.findall(item)
        if len(brackets) > MAX_BRACKETS:
            raise _bad(text)
        for inner in brackets:
            count *= sum(last - first + 1 for first, last, _ in _ranges(inner, text))
        total += count
        if total > MAX_NAMES:
            raise InputError("the node list has too many names", expected=f"at most {MAX_NAMES}")
    return total


def _ranges(inner: str, text: str) -> list[tuple[int, int, int]]:
    """Return the ranges in a bracket, each with the minimum width of its numbers."""
    ranges = []
    for part in inner.split(","):
        match = _RANGE.match(part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise _bad(text)
        ranges.append((int(match[1]), int(match[2] or match[1]), len(match[1])))
    return ranges


def _bad(text: str) -> InputError:
    return InputError(f"invalid node list {text[:40]!r}", expected="names such as n[001-003,007]")


def expanded(text: str) -> list[str]:
    """Return the names in a list, in the order of the list. A valid list never fails.

    >>> expanded("n[8-10],m[099-100]")
    ['n8', 'n9', 'n10', 'm099', 'm100']
    """
    names: list[str] = []
    for item in _SPLIT.split(text):
        if "[" not in item:
            if item:
                names.append(item)
            continue
        pieces = _BRACKET.split(item)
        choices = [
            [piece] if at % 2 == 0 else _numbers(piece, text) for at, piece in enumerate(pieces)
        ]
        names += map("".join, itertools.product(*choices))
    return names


def _numbers(inner: str, text: str) -> list[str]:
    if "-" not in inner:
        return inner.split(",")
    return [
        str(number).zfill(width)
        for first, last, width in _ranges(inner, text)
        for number in range(first, last + 1)
    ]


@lru_cache(maxsize=65_536)
def names_of(text: str) -> frozenset[str]:
    """Return the names in a list, or an empty set if the list is unset."""
    return frozenset(expanded(text))


def number_of(text: str) -> int:
    """Return the number of distinct names in a list."""
    return len(set(expanded(text)))


def sorted_names(lists: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in all lists, in natural order (n2 before n10)."""
    return tuple(_node_set(lists))


def folded(names: Iterable[str]) -> str:
    """Return names as a list in short form.

    >>> folded(["n001", "n002", "n007"])
    'n[001-002,007]'
    """
    return str(_node_set(names))


def _node_set(lists: Iterable[str]):  # type: ignore[no-untyped-def]
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    names = {name for text in set(lists) for name in expanded(text)}
    return NodeSet(",".join(_ranges_of(names)), resolver=RESOLVER_NOGROUP)


def _ranges_of(names: Iterable[str]) -> Iterator[str]:
    """Yield names as ranges of numbers with equal width, which ClusterShell reads fast."""
    numbers: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for name in sorted(names):
        match = _NUMBERED.match(name)
        if match:
            numbers[match[1], len(match[2])].append(int(match[2]))
        else:
            yield name
    for (prefix, width), group in numbers.items():
        group.sort()
        firsts = [at for at in range(len(group)) if not at or group[at] != group[at - 1] + 1]
        for first, after in itertools.pairwise([*firsts, len(group)]):
            low, high = str(group[first]).zfill(width), str(group[after - 1]).zfill(width)
            yield f"{prefix}[{low}-{high}]" if low != high else f"{prefix}{low}"


class HostLists:
    """The node names of each row of a column.

    Parameters
    ----------
    hosts : array of str
        A list of node names per row. Empty texts are rows without nodes.

    Attributes
    ----------
    names : list of str
        All names, in order of first use. A node is a position in this list.
    codes : array
        The distinct list of each row.
    sizes : array
        Number of names of each distinct list.
    nodes : array
        The nodes of all distinct lists, one list after the other.
    """

    def __init__(self, hosts: npt.NDArray[Any]) -> None:
        distinct: dict[str, int] = {}
        number = distinct.setdefault
        self.codes = np.fromiter(
            (number(text, len(distinct)) for text in hosts.tolist()), np.int64, len(hosts)
        )
        numbers: dict[str, int] = {}
        number_of = numbers.setdefault
        flat: list[int] = []
        sizes = []
        for text in distinct:
            names = expanded(text)
            flat.extend([number_of(name, len(numbers)) for name in names])
            sizes.append(len(names))
        self.names = list(numbers)
        self.sizes = np.array(sizes, dtype=np.int64)
        self.nodes = np.array(flat, dtype=np.int64)

    @property
    def owners(self) -> Ints:
        """The distinct list of each element of ``nodes``."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def names_in(self, rows: npt.NDArray[Any]) -> list[str]:
        """Return the distinct names in some rows."""
        used = np.zeros(len(self.sizes), dtype=np.bool_)
        used[self.codes[rows]] = True
        return [self.names[node] for node in np.unique(self.nodes[used[self.owners]]).tolist()]
