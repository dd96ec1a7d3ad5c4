# SPDX-License-Identifier: Apache-2.0
"""Victim rules, criteria and ties of node stealing: section 7.1 of the node-stealing paper.

A victim rule returns a whole number for each candidate. The candidate with the smallest number is
the victim. Of candidates with equal numbers, it is the one with the fewest nodes, then the one that
a tie rule prefers. A criterion accepts or rejects the steal.

To add a rule, write a function and a row of its table. The name, the number of the rule in machine
code, and the choice between machine code and Python follow from the row. Machine code computes with
64 bits. Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rebat.kernels.jit import chosen, inlined_rule, reads


class Candidate(NamedTuple):
    """What victim rules read of a running attempt. Only rules of a file read the last fields."""

    n_nodes: int
    start_us: int
    release_us: int
    """Release time (submission time) by the option ``release``."""
    lost_us: int
    """Work that an immediate interruption would lose on each node."""
    left_us: int
    """Time until the end of its walltime."""
    running: Any = None
    """The attempt (`rebat.core.attempts.Running`)."""
    release: Any = ()
    """Release time, and position in the order of releases."""
    tie: Any = ()
    """Key that decides between victims of equal size. The victim with the smallest key is first."""


class VictimRule(NamedTuple):
    """A victim rule.

    If ``fits`` is set, it skips candidates whose nodes do not help (not in the paper): the failed
    job must fit on the candidate's nodes, its own surviving nodes and the free nodes. On a torus,
    the nodes of most candidates do not complete a box.
    """

    key: Callable[[Any], int]
    fits: bool = False

    def __call__(self, candidate: Any) -> tuple[Any, ...]:
        """Return the key of a candidate. The candidate with the smallest key is the victim."""
        return (self.key(candidate), candidate.n_nodes, *candidate.tie)


@inlined_rule
def fewest_nodes(candidate: Any) -> int:
    """V1: fewest nodes. All rules order candidates with equal numbers by their nodes."""
    return 0


@inlined_rule
def latest_release(candidate: Any) -> int:
    """V2: latest release."""
    return -candidate.release_us


@inlined_rule
def least_lost_work(candidate: Any) -> int:
    """Least node time lost since the last checkpoint (not in the paper)."""
    return candidate.lost_us * candidate.n_nodes


VICTIMS: dict[str, VictimRule] = {
    "fewest-nodes": VictimRule(fewest_nodes),
    "latest-release": VictimRule(latest_release),
    "least-lost-work": VictimRule(least_lost_work),
    "fits": VictimRule(fewest_nodes, fits=True),
}

victim_key = chosen([rule.key for rule in VICTIMS.values()])
"""Rule that returns the number of a candidate, given the number of the victim rule."""


class Steal(NamedTuple):
    """What criteria read of a possible steal. Only criteria of a file read the last fields."""

    failed_nodes: int
    victim_nodes: int
    failed_release_us: int
    victim_release_us: int
    kill_us: int
    """When the victim would be interrupted."""
    failed_left_us: int
    """Walltime of the failed job's resubmission."""
    victim_left_us: int
    """Walltime of the victim's resubmission."""
    victim_end_us: int
    """Planned end of the victim without the steal."""
    next_end_us: int
    """Earliest planned end of the running attempts other than the failed job."""
    next_end_besides_us: int
    """Earliest planned end of the running attempts other than the failed job and the victim."""
    failed: Any = None
    victim: Any = None


@inlined_rule
def strictly_smaller(steal: Any) -> bool:
    """K1: the victim uses strictly fewer nodes than the failed job."""
    return steal.victim_nodes < steal.failed_nodes


@inlined_rule
def released_later(steal: Any) -> bool:
    """K2: the victim was released strictly later than the failed job."""
    return steal.victim_release_us > steal.failed_release_us


@inlined_rule
def smaller_maximum_flow(steal: Any) -> bool:
    """K3: the steal strictly reduces the longer of the two jobs' flows, computed from walltimes.

    Without the steal, the failed job waits for the earliest planned end of another attempt. With
    the steal, the victim waits for the earlier of this end and the end of the failed job.
    """
    failed_end = steal.next_end_us + steal.failed_left_us
    stolen_failed_end = steal.kill_us + steal.failed_left_us
    stolen_victim_end = min(steal.next_end_besides_us, stolen_failed_end) + steal.victim_left_us
    with_steal = max(
        stolen_failed_end - steal.failed_release_us, stolen_victim_end - steal.victim_release_us
    )
    without = max(
        failed_end - steal.failed_release_us, steal.victim_end_us - steal.victim_release_us
    )
    return with_steal < without


CRITERIA: dict[str, Callable[[Any], bool]] = {
    "fewer-nodes": strictly_smaller,
    "later-release": released_later,
    "smaller-flow": smaller_maximum_flow,
}

is_accepted = chosen([*CRITERIA.values()])
"""Rule that returns whether a steal is accepted, given the number of the criterion."""


class Tie(NamedTuple):
    """A tie rule, which orders candidates of equal size.

    The candidate with the smallest number of ``key`` is first, then the one with the latest
    release, then the first id as text (``by_text``), or the last in the order of releases.
    """

    key: Callable[[Any], int]
    by_text: bool = False


@inlined_rule
def latest_start(candidate: Any) -> int:
    """Shortest time since the start (section 1)."""
    return -candidate.start_us


@inlined_rule
def latest_release_first(candidate: Any) -> int:
    """Latest release, which is the next in the order of all tie rules."""
    return 0


TIES: dict[str, Tie] = {
    "order": Tie(latest_release_first),
    "id": Tie(latest_release_first, by_text=True),
    "run-time": Tie(latest_start),
}
"""Tie rules. order: section 4.2 of the paper. id: as in the program."""

tie_key = chosen([tie.key for tie in TIES.values()])
"""Rule that returns the number of a candidate, given the number of the tie rule."""

FLOWS = frozenset(Steal._fields[4:])
"""What criteria read that needs the walltimes of all running attempts."""


def reads_lost_work(victim: str, tie: str) -> bool:
    """Return whether a rule reads how much work is lost. Otherwise, it is not computed."""
    return reads(VICTIMS[victim].key, {"lost_us"}) or reads(TIES[tie].key, {"lost_us"})


def judges_flows(criterion: str) -> bool:
    """Return whether a criterion reads planned ends. Otherwise, they are not computed."""
    return reads(CRITERIA[criterion], FLOWS)


def needs_walltimes(victim: str, criterion: str) -> str:
    """Return which rule computes with walltimes, which some jobs do not have, or an empty text."""
    if reads(VICTIMS[victim].key, {"left_us"}):
        return f"victim={victim}"
    return f"criterion={criterion}" if judges_flows(criterion) else ""
