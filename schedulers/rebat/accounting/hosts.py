# SPDX-License-Identifier: Apache-2.0
"""Lists of node names such as ``n[001-003,007]``, expanded with ClusterShell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rebat.core.errors import InputError

MAX_NAMES = 500_000
"""Maximum number of names in a list."""

_LIST = re.compile(r"[A-Za-z0-9._\-\[\],]+\Z")
_ITEM = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?\Z")


def check_list(text: str) -> int:
    """Return an upper bound on the number of names in a list.

    Raises
    ------
    InputError
        If the text is not a list of node names, or if the list has too many names.
    """
    if not _LIST.match(text) or _ITEM.sub("", text).strip(","):
        raise _bad(text)
    total = 0
    for item in _ITEM.findall(text):
        count = 1
        for inner in _BRACKET.findall(item):
            count *= sum(_width(part, text) for part in inner.split(","))
        total += count
        if total > MAX_NAMES:
            raise InputError("the node list has too many names", expected=f"at most {MAX_NAMES}")
    return total


def _width(part: str, text: str) -> int:
    match = _RANGE.match(part)
    if not match or int(match[2] or match[1]) < int(match[1]):
        raise _bad(text)
    return int(match[2] or match[1]) - int(match[1]) + 1


def _bad(text: str) -> InputError:
    return InputError(f"invalid node list {text[:40]!r}", expected="names such as n[001-003,007]")


@lru_cache(maxsize=4096)
def names_of(text: str) -> frozenset[str]:
    """Return the names in a list, or an empty set if the list is unset."""
    return frozenset(sorted_names([text])) if text else frozenset()


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
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    text = ",".join(sorted(_pieces(lists)))
    if not text:
        return NodeSet()
    try:
        return NodeSet(text, resolver=RESOLVER_NOGROUP)
    except NodeSetException:
        raise _bad(text) from None


def _pieces(lists: Iterable[str]) -> set[str]:
    """Return the distinct parts of lists. All lists of a machine have only few distinct parts."""
    pieces: set[str] = set()
    for text in lists:
        if "[" not in text:
            pieces.update(text.split(","))
            continue
        for item in _ITEM.findall(text):
            inner = _BRACKET.findall(item)
            if len(inner) == 1:
                before, after = item.split("[", 1)[0], item.split("]", 1)[1]
                pieces.update(f"{before}[{part}]{after}" for part in inner[0].split(","))
            else:
                pieces.add(item)
    return pieces - {""}
