"""Whom to steal from, and whether it is worth it: section 7.1 of the node-stealing paper.

A victim rule orders the running attempts (the smallest key is the victim); a criterion compares
the victim with the failed attempt. Adding one is a function and a table row.
"""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.attempts import Attempt, Running
from rebat.core.options import Semantics

ReleaseOf = Callable[[Attempt], tuple[int, int]]
VictimKey = Callable[[Running, tuple[int, int]], tuple[int, ...]]
Criterion = Callable[[Running, Running, ReleaseOf], bool]


def release_in_paper(attempt: Attempt) -> tuple[int, int]:
    """Release of the original job; equal dates by order in the workload."""
    return attempt.submit_us, attempt.job_serial


def release_in_program(attempt: Attempt) -> tuple[int, int]:
    """In the authors' program a resubmission is released when it is resubmitted."""
    return attempt.queued_us, attempt.serial


RELEASE: dict[Semantics, ReleaseOf] = {
    "paper": release_in_paper,
    "authors": release_in_program,
}


def fewest_nodes(running: Running, release: tuple[int, int]) -> tuple[int, ...]:
    """V1: fewest nodes; among equals the latest released."""
    return (running.attempt.n_nodes, -release[0], -release[1])


def latest_release(running: Running, release: tuple[int, int]) -> tuple[int, ...]:
    """V2: latest released; among equals the fewest nodes."""
    return (-release[0], running.attempt.n_nodes, -release[1])


VICTIMS: dict[str, VictimKey] = {
    "fewest-nodes": fewest_nodes,
    "latest-release": latest_release,
}


def strictly_smaller(victim: Running, failed: Running, release: ReleaseOf) -> bool:
    """K1: the victim uses strictly fewer nodes than the failed job."""
    return victim.attempt.n_nodes < failed.attempt.n_nodes


def released_later(victim: Running, failed: Running, release: ReleaseOf) -> bool:
    """K2: the victim was released strictly later than the failed job."""
    return release(victim.attempt)[0] > release(failed.attempt)[0]


CRITERIA: dict[str, Criterion] = {
    "fewer-nodes": strictly_smaller,
    "later-release": released_later,
}
