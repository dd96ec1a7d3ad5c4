# SPDX-License-Identifier: Apache-2.0
"""``rebat.check_policy``: test a policy with random cases."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated

from rebat.core.declared import Count, Seconds, extra

if TYPE_CHECKING:
    from rebat.check.verdict import PolicyCheck


def check_policy(
    policy: str,
    *,
    seeds: Annotated[
        Count, "Number of seeds. Each has two random cases and a stream of jobs."
    ] = 20,
    skip: Annotated[
        Collection[str] | tuple[str, ...],
        "Leave out this check, for example starvation. The option can be repeated.",
        extra(metavar="CHECK"),
    ] = (),
    timeout_s: Annotated[Seconds, "--timeout", "Time limit for one run of a case."] = 30.0,
    on_progress: Callable[[int], None] | None = None,
) -> PolicyCheck:
    """Test a policy with random cases, and return the result of each check.

    The cases are the same in every call. The policy runs in other processes.

    Parameters
    ----------
    policy : str
        A name, as for `rebat.run`: ``FILE.py:CLASS``, a preset, or a preset with changed axes.
    seeds : int
        Number of seeds. Each seed has three cases: a random case, a case in which most nodes are
        busy, and a stream of jobs.
    skip : collection of str
        Names of checks to leave out.
    timeout_s : float
        Time limit for a run of a case, in seconds.
    on_progress : callable, optional
        Called with the number of finished seeds.

    Raises
    ------
    InputError
        If the policy cannot be loaded, or a check is unknown.
    """
    from rebat.check.verdict import checked_policy

    return checked_policy(policy, seeds, skip, timeout_s, on_progress)
