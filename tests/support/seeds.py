# SPDX-License-Identifier: Apache-2.0
"""Random cases, one for each seed of a range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable


def play_all(
    play: Callable[[int], Iterable[str]],
    policy: Callable[[int], str],
    count: int,
    first: int = 0,
    *,
    excepts: bool = False,
) -> None:
    """Play cases; stop at the first that fails, and print its policy.

    ``play`` compares the case of a seed, and returns the kinds of what was compared. Their numbers
    are printed at the end. With ``excepts``, some kinds are cases that need not agree.
    """
    kinds: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            kinds.update(play(seed))
        except BaseException:
            print(f"case {seed}: {policy(seed)}")
            raise
    print(f"{count} cases{'' if excepts else ' agree'}: {dict(sorted(kinds.items()))}")
