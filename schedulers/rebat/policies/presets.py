"""Schedulers by name: each a point in the product of the axes (see ``axes``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.core.options import SessionOptions
from rebat.models.units import Allotment
from rebat.policies.axes import (
    own_sources,
    policy_of,
    session_options_of,
)
from rebat.policies.base import Policy
from rebat.policies.choosing import changed, effective
from rebat.policies.own import OwnCode, OwnPolicy, is_own, own_policy
from rebat.policies.placement.boxes import Hazards
from rebat.policies.placement.table import PLACEMENTS, allotment, believed, is_file
from rebat.policies.point import Axes
from rebat.policies.queue_order import QUEUE_ORDERS

_STEALING_PAPER = "Du, Marchal, Pallez, Robert 2024"
_BATSCHED = "Batsched 1.4"
_PARTITIONS = "Vardas, Ploumidis, Marazakis 2022"
_REPLACEMENT = "Prabhakaran, Neumann, Wolf 2018"
_MIGRATION = "Rodríguez-Pascual, Cao, Moríñigo, Cooperman, Mayo-García 2019"
_RESILIENT_LISTS = "Benoit, Le Fèvre, Raghavan, Robert, Sun 2020"
RJMS_DELAY_S = 5.0
"""What Batsched adds to every walltime when it plans (its option rjms_delay)."""


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: what it is, where it comes from, and its point in the product."""

    name: str
    summary: str
    source: str
    axes: Axes
    told: Hazards | None = None

    def make(self) -> Policy:
        """A fresh policy."""
        return policy_of(self.axes, self.told)

    @property
    def draws_places(self) -> bool:
        """Whether its placement draws at random."""
        placement = PLACEMENTS.get(self.axes.placement)
        return placement is not None and "seed" in placement.axes

    @property
    def foresees(self) -> bool:
        """Whether it goes by how nodes fail."""
        return "foresight" in effective(self.axes)

    @property
    def foresight(self) -> str:
        """What it goes by, without how it is misjudged: 'law', 'fit', or something else."""
        return believed(self.axes.foresight)[0]

    def reseeded(self, seed: int) -> Preset:
        """The same with another seed, which depends on its own and on this one."""
        mixed = (self.axes.seed + seed) % 2**63
        return msgspec.structs.replace(self, axes=msgspec.structs.replace(self.axes, seed=mixed))

    def knowing(self, told: Hazards | None) -> Preset:
        """The same, told how nodes fail."""
        return msgspec.structs.replace(self, told=told)

    def allotted(self, n_nodes: int) -> Allotment | None:
        """How many nodes of a machine are taken for an attempt that asks for so many; None: as
        many."""
        return allotment(self.axes, n_nodes) if "torus" in effective(self.axes) else None

    @property
    def session(self) -> SessionOptions:
        """The options of the session that it runs in."""
        return session_options_of(self.axes)

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """The files with rules of one's own, for the records."""
        return tuple(own_sources(self.axes).values())


_ROWS = [
    Preset(
        "baseline",
        "conservative backfilling; a failed job goes first in the queue",
        f"{_STEALING_PAPER}, section 4.1",
        Axes(),
    ),
    Preset(
        "sfsj",
        "baseline, and steals a node from the smallest job when none is free (H111)",
        f"{_STEALING_PAPER}, section 4.2",
        Axes(react="stealing"),
    ),
    Preset(
        "easy",
        "EASY backfilling; a failed job goes first in the queue",
        "Mu'alem and Feitelson 2001",
        Axes(depth="easy"),
    ),
    Preset(
        "easy-sfsj",
        "EASY backfilling with SFSJ's node stealing (no paper tried it)",
        f"{_STEALING_PAPER}, section 9 (future work)",
        Axes(depth="easy", react="stealing"),
    ),
    Preset(
        "greedy",
        "list scheduling without reservations: whatever fits starts",
        "Benoit et al. 2020, R-LIST-0",
        Axes(depth="greedy"),
    ),
    Preset(
        "greedy-sfsj",
        "list scheduling without reservations, with SFSJ's node stealing",
        f"{_STEALING_PAPER}, section 9 (future work)",
        Axes(depth="greedy", react="stealing"),
    ),
    Preset(
        "batsched-conservative",
        "conservative backfilling on named machines, walltimes 5 s longer",
        f"{_BATSCHED}, conservative_bf",
        Axes(placement="named", margin=RJMS_DELAY_S, walltimes="required"),
    ),
    Preset(
        "batsched-easy",
        "EASY backfilling on named machines, walltimes 5 s longer",
        f"{_BATSCHED}, easy_bf",
        Axes(depth="easy", placement="named", margin=RJMS_DELAY_S, walltimes="required"),
    ),
    Preset(
        "batsched-fcfs",
        "first come, first served, without backfilling",
        f"{_BATSCHED}, fcfs",
        Axes(planning="fifo"),
    ),
    Preset(
        "r-list-0",
        "greedy list scheduling in a priority order (LPT); jobs with errors run again",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        Axes(depth="greedy", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-list-1",
        "as r-list-0, with a reservation for the first job of the queue (any m: depth=m)",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        Axes(depth="easy", reserve="first", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-list-q",
        "as r-list-0, with a reservation for every job, made anew at every end",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        Axes(depth="all", maintenance="rebuild", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-shelf-b",
        "shelves in a priority order (LPT), with backfilling; jobs with errors run again",
        f"{_RESILIENT_LISTS}, section 4.3, algorithm 2",
        Axes(planning="shelf", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-shelf-nb",
        "as r-shelf-b, but the first job that does not fit closes the shelf",
        f"{_RESILIENT_LISTS}, section 4.3, algorithm 2",
        Axes(planning="shelf-nb", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "slurm-linear",
        "baseline on the first units that are free in a line, as Slurm's linear plugin",
        f"{_PARTITIONS}, section 2.2",
        Axes(placement="slurm-linear"),
    ),
    Preset(
        "torus-first",
        "baseline on boxes of a torus, the one with the lowest corner",
        f"{_PARTITIONS}, section 2.2 (contiguous and rectangular partitions)",
        Axes(placement="torus-first"),
    ),
    Preset(
        "rps",
        "baseline on boxes of a torus, each drawn at random",
        f"{_PARTITIONS}, section 2.2",
        Axes(placement="rps"),
    ),
    Preset(
        "faps",
        "baseline on boxes of a torus, the one least likely to fail while the job runs",
        f"{_PARTITIONS}, section 2.2, equations 1 and 2",
        Axes(placement="faps"),
    ),
    Preset(
        "sa",
        "baseline; a moldable job gets the size that ends first; malleable jobs as they asked",
        f"{_REPLACEMENT}, section III (SA of Cirne and Berman 2002)",
        Axes(planning="flexible", malleable="asked"),
    ),
    Preset(
        "pra",
        "as sa; malleable jobs start small, and grow before anything starts",
        f"{_REPLACEMENT}, section V (PRA of Buisson et al. 2007)",
        Axes(planning="flexible", malleable="pra"),
    ),
    Preset(
        "pwa",
        "as sa; malleable jobs start small, grow on what is left, and shrink for the queue's head",
        f"{_REPLACEMENT}, section V (PWA of Buisson et al. 2007)",
        Axes(planning="flexible", malleable="pwa"),
    ),
    Preset(
        "dbes",
        "as pwa; those grow first that most reservations wait for, then all equally",
        f"{_REPLACEMENT}, section III (DBES of Prabhakaran et al. 2015)",
        Axes(planning="flexible"),
    ),
    Preset(
        "cluster",
        "first come, first served on cores of nodes, few nodes for each job; no backfilling",
        f"{_MIGRATION}, section 4",
        Axes(planning="fifo", placement="cluster"),
    ),
    Preset(
        "compaction",
        "cluster; while nothing waits, jobs are moved together until nodes are full or empty",
        f"{_MIGRATION}, section 3.3.4, algorithm 1",
        Axes(planning="fifo", placement="cluster", react="compaction"),
    ),
    Preset(
        "priorities",
        "cluster in two partitions; jobs are moved up into the better one, a quarter of the nodes",
        f"{_MIGRATION}, section 3.3.4, algorithm 2",
        Axes(
            planning="fifo",
            placement="cluster",
            partitions="high:0%-25%+low:25%-100%",
            react="priorities",
        ),
    ),
    Preset(
        "tiers",
        "cluster; normal jobs have eternal ones checkpointed, which fill what is left",
        f"{_MIGRATION}, sections 3.3.2 and 4.3",
        Axes(
            planning="fifo",
            placement="cluster",
            fit="first",
            partitions="normal:all:2+eternal:all:1:reversed",
            react="horizon",
        ),
    ),
]

_TIMINGS = {"now": "at once", "proactive": "after a checkpoint", "next": "at its next checkpoint"}
_VICTIMS = {"fewest-nodes": "the smallest job", "latest-release": "the latest released job"}
_CRITERIA = {
    "fewer-nodes": "if smaller than the failed one",
    "later-release": "if released later than the failed one",
    "smaller-flow": "if that lowers the larger flow of the two",
}


def _variants() -> Iterator[Preset]:
    """H_xyz of section 7.1 but H111: x timing, y victim, z criterion, each in the paper's order."""
    for x, (timing, when) in enumerate(_TIMINGS.items(), 1):
        for y, (victim, whom) in enumerate(_VICTIMS.items(), 1):
            for z, (criterion, worth) in enumerate(_CRITERIA.items(), 1):
                axes = Axes(react="stealing", timing=timing, victim=victim, criterion=criterion)
                if (x, y, z) != (1, 1, 1):
                    yield Preset(
                        f"h{x}{y}{z}",
                        f"baseline, and steals from {whom} {when}, {worth}",
                        f"{_STEALING_PAPER}, section 7.1",
                        axes,
                    )


def _as_the_program(row: Preset) -> Preset:
    """A node-stealing scheduler as the authors' Batsched variant runs it."""
    axes = msgspec.structs.replace(
        row.axes,
        semantics="authors",
        placement="named",
        maintenance="authors",
        margin=RJMS_DELAY_S,
    )
    name = "h111" if row.name == "sfsj" else row.name
    summary = f"{name} as the authors' program does it, on named machines"
    return Preset(f"authors-{name}", summary, f"program of {_STEALING_PAPER}", axes)


_PROGRAM = [_as_the_program(row) for row in (*_ROWS[:2], *_variants())]

PRESETS: dict[str, Preset] = {row.name: row for row in (*_ROWS, *_variants(), *_PROGRAM)}
ALIASES = {"conservative": "baseline", "h111": "sfsj"}


def preset(spec: str, folder: Path | None = None) -> Preset:
    """The scheduler of a name or alias, in any case, with changed axes if it names some.

    A choice without its axis is a queue order. Files with rules of one's own are looked for from
    ``folder`` on, or from here.

    >>> preset("baseline:depth=easy,react=stealing").axes == preset("easy-sfsj").axes
    True
    >>> preset("r-list-q:la").axes == preset("r-list-q:order=la").axes
    True

    Raises
    ------
    InputError
        For an unknown name, axis or choice; the message lists what there is. For an axis with two
        values.
    """
    name, _, texts = spec.strip().partition(":")
    name = ALIASES.get(name.lower(), name.lower())
    if name not in PRESETS:
        raise unknown_name("policy", name, [*PRESETS, *ALIASES])
    found = PRESETS[name]
    if not texts:
        return found
    pairs = [_change(text) for text in texts.split(",")]
    if not all(axis and value for axis, value in pairs):
        raise InputError(f"policy {spec!r}", expected="name:axis=choice,axis=choice")
    twice = [axis for axis, times in Counter(axis for axis, _ in pairs).items() if times > 1]
    if twice:
        raise InputError(f"policy {spec!r} has two values for {twice[0]}", expected="one per axis")
    axes = changed(found.axes, dict(pairs), folder)
    changes = ",".join(
        text if is_own(text) or is_file(text) else text.lower() for text in texts.split(",")
    )
    return Preset(f"{name}:{changes}", f"{found.summary}; but {changes}", found.source, axes)


def _change(text: str) -> tuple[str, str]:
    """An axis and its choice; names in any case, files as they are."""
    axis, equals, value = text.partition("=")
    if not equals and (is_own(text) or text.lower() in QUEUE_ORDERS):
        axis, value = "order", text
    return axis.lower(), value if is_own(value) or is_file(value) else value.lower()


def scheduler(spec: str, folder: Path | None = None) -> Preset | OwnPolicy:
    """A preset by name, or a policy of one's own: ``FILE.py:CLASS``, from ``folder`` on."""
    if is_own(spec) and spec.strip().partition(":")[0].lower() not in {*PRESETS, *ALIASES}:
        return own_policy(spec, folder)
    return preset(spec, folder)


def schedulers(specs: Iterable[str]) -> list[Preset | OwnPolicy]:
    """Schedulers in order, each once; own policies whose name is taken go by file and class."""
    found: dict[Any, Preset | OwnPolicy] = {}
    typed: dict[Any, str] = {}
    for spec in specs:
        one = scheduler(spec)
        key = one.place if isinstance(one, OwnPolicy) else one.name
        found.setdefault(key, one)
        typed.setdefault(key, spec.strip())
    taken = Counter(one.name for one in found.values())
    return [
        msgspec.structs.replace(one, name=typed[key])
        if isinstance(one, OwnPolicy) and taken[one.name] > 1
        else one
        for key, one in found.items()
    ]
