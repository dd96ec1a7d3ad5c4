# SPDX-License-Identifier: Apache-2.0
"""The tables of operations of an administrator (see `rebat.rules.operations`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from rebat.state.rows import Short


class OperationRow(msgspec.Struct, gc=False):
    """An operation: its time, its kind (`codes.DRAIN` and others), and its nodes.

    ``may`` is whether its user may request operations, and ``user`` the number of the user (0:
    none, -1: one without jobs). The jobs that it can mean are ``n_named`` consecutive numbers of
    `Operations.named`. ``anywhere`` is whether a migrated job is requeued, and ``spanning`` whether
    jobs on several nodes may be moved.
    """

    at: int = 0
    kind: Short = 0
    may: Short = 0
    user: Short = 0
    nodes_at: int = 0
    n_nodes_at: int = 0
    named_at: int = 0
    n_named: int = 0
    anywhere: Short = 0
    spanning: Short = 0


class NoteRow(msgspec.Struct, gc=False):
    """Why an operation is not carried out: its number (-1: none), when, a code of `rebat.state`,
    and an attempt. NOT_MOVABLE: why (`codes.SPANS` and others). NOT_MOVED: a node that is not free.
    """

    at: int = 0
    operation: Short = 0
    why: Short = 0
    attempt: Short = 0
    detail: Short = 0


N_RECEIVED, N_DONE, N_EMPTYING, N_NOTES, N_STARTS, N_READ = range(6)
"""Columns of `Operations.own`."""

WHY_NOT, PRICE = range(2)
"""Columns of `Operations.jobs`."""


class Operations(NamedTuple):
    """The operations of an administrator, in their order (see `rebat.rules.operations`).

    Attributes
    ----------
    own : int64 array, shape (6,)
        How many operations were received, and how many of them were considered; the numbers of
        nodes to empty, of notes, and of starts of attempts; how many operations were read for
        announcements.
    rows : rows of OperationRow
    nodes : int64 array, shape (l, 2)
        Intervals of the nodes of operations.
    named : int64 array
        Rows of the jobs that operations name.
    jobs : int64 array, shape (jobs, 2)
        Why no image of a job can be written (`codes.UNWILLING`, `codes.NO_DELAY` or 0), and the
        cost of an image and a restart, in microseconds.
    drained, emptying, chosen : bool arrays, shape (n,)
        The nodes that operations drained, those whose jobs are to leave, and scratch.
    image, started : int64 arrays, shape (attempts,)
        For each attempt, the cost to restart from the image with which it began plus 1 (0: it began
        with no image), and its place among all starts.
    notes : rows of NoteRow
    """

    own: Any
    rows: Any
    nodes: Any
    named: Any
    jobs: Any
    drained: Any
    emptying: Any
    chosen: Any
    image: Any
    started: Any
    notes: Any
