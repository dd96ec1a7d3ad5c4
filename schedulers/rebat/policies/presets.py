# SPDX-License-Identifier: Apache-2.0
"""Schedulers by name or from a file, and the table of the presets.

A preset is a combination of a planning, a placement and reactions. The presets come from papers and
programs, and have their original names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.contract import Policy
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import file_hash
from rebat.core.options import SessionOptions
from rebat.models.boxes import Allotment, TorusBlocks
from rebat.models.formula import MULTIFACTOR, NAMED
from rebat.models.power import NodePower, read_power
from rebat.models.remaining import RJMS_DELAY_S
from rebat.policies.choosing import OPTIONS, changed, point
from rebat.policies.own import OwnCode, is_own, source_of
from rebat.policies.own_policy import OwnPolicy, own_policy, without_class
from rebat.policies.partitions import Partition, partitions_on
from rebat.policies.placement.cores import ClusterOptions
from rebat.policies.placement.hazards import Hazards, believed, is_file
from rebat.policies.placement.plans import AnyOptions, NamedOptions
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.point import Point
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.policies.site_rules import rules_of
from rebat.policies.windows import ANNOUNCED

__all__ = ["ALIASES", "PRESETS", "Preset", "is_preset", "preset", "scheduler", "schedulers"]


def preset(spec: str, folder: Path | None = None) -> Preset:
    """Return a preset by its name or alias, with the changes in the text (``axis=value``).

    Names are case-insensitive. A value without an axis sets the queue order. Relative paths of
    user-defined rules start from ``folder`` (default: the working directory).

    >>> preset("baseline:depth=easy,react=stealing").point == preset("easy-sfsj").point
    True
    >>> preset("r-list-q:la").point == preset("r-list-q:order=la").point
    True
    """
    typed, _, texts = spec.strip().partition(":")
    name = ALIASES.get(typed.lower(), typed.lower())
    if name not in PRESETS:
        if typed.endswith(".py"):
            raise without_class(typed, folder)
        raise unknown_name("policy", name, [*PRESETS, *ALIASES], "rebat policies")
    row = PRESETS[name]
    if not texts:
        return row
    words = split_changes(texts)
    pairs = [_change(text) for text in words]
    if not all(axis and value for axis, value in pairs):
        raise InputError(f"invalid policy {spec!r}", expected="name:axis=choice,axis=choice")
    repeated = [axis for axis, n in Counter(axis for axis, _ in pairs).items() if n > 1]
    if repeated:
        error = f"policy {spec!r} has two values for {repeated[0]}"
        raise InputError(error, expected="one value per axis")
    point = changed(row.point, dict(pairs), folder)
    changes = ",".join(map(_plain, words))
    return Preset(f"{name}:{changes}", f"{row.summary}; with {changes}", row.source, point)


def split_changes(texts: str) -> list[str]:
    """Split changes at commas, except within parentheses and between factors of an order.

    >>> split_changes("order=multifactor:age=1,size=2,depth=easy")
    ['order=multifactor:age=1,size=2', 'depth=easy']
    """
    words = [""]
    for text in texts.split(","):
        last = words[-1]
        factors = MULTIFACTOR in last and text.partition("=")[0].strip().lower() not in OPTIONS
        if last and (factors or last.count("(") > last.count(")")):
            words[-1] += f",{text}"
        else:
            words.append(text)
    return words[1:]


def _change(text: str) -> tuple[str, str]:
    """Return the axis and the choice in a text, in lower case except for names."""
    axis, equals, value = text.partition("=")
    if not equals and (is_own(text) or text.lower() in {*QUEUE_ORDERS, *NAMED}):
        axis, value = "order", text
    axis = axis.lower()
    return axis, value if axis in _WITH_NAMES else _plain(value)


def _plain(text: str) -> str:
    """Return a text in lower case, unless it contains names of files or users."""
    names = text.partition("=")[0].strip().lower() in _WITH_NAMES
    return text if names or is_own(text) or is_file(text) else text.lower()


_WITH_NAMES = frozenset(("shares", "limits", "reservations"))
"""Options whose values contain names of users."""


def is_preset(spec: str) -> bool:
    """Return whether the text begins with the name or alias of a preset, up to the first colon."""
    return spec.strip().partition(":")[0].lower() in {*PRESETS, *ALIASES}


def scheduler(spec: str, folder: Path | None = None) -> Preset | OwnPolicy:
    """Return a preset by its name (see `preset`), or a custom policy ``FILE.py:CLASS``."""
    if is_own(spec) and not is_preset(spec):
        return own_policy(spec, folder)
    return preset(spec, folder)


def schedulers(specs: Iterable[str]) -> list[Preset | OwnPolicy]:
    """Return the schedulers in order.

    If several custom policies have the same class name, their names consist of file and class.
    """
    rows: dict[Any, Preset | OwnPolicy] = {}
    typed: dict[Any, str] = {}
    for spec in map(str.strip, specs):
        row = scheduler(spec)
        key = row.place if isinstance(row, OwnPolicy) else row.name
        if key in rows:
            other = "" if spec == typed[key] else f" of {typed[key]}"
            raise InputError(f"{spec} is a duplicate{other}", expected="each policy once")
        rows[key], typed[key] = row, spec
    counts = Counter(row.name for row in rows.values())
    return [
        msgspec.structs.replace(row, name=typed[key])
        if isinstance(row, OwnPolicy) and counts[row.name] > 1
        else row
        for key, row in rows.items()
    ]


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: its summary, its source and its parts."""

    name: str
    summary: str
    source: str
    point: Point
    hazards: Hazards | None = None

    def make(self) -> Policy:
        """Return a new policy."""
        return self.point.policy(self.hazards)

    @property
    def draws(self) -> bool:
        """Whether the placement or the recovery is random."""
        recovery = self.point.recovery
        return self.point.placement.random or bool(recovery and recovery.random)

    @property
    def foresees(self) -> bool:
        """Whether the scheduler uses predictions of failures (the option ``foresight``)."""
        return "foresight" in self.point.effective

    @property
    def foresight(self) -> str:
        """The option ``foresight`` without its factor, for example 'law' or a file."""
        return believed(self.point.values.get("foresight", "law"))[0]

    def reseeded(self, seed: int) -> Preset:
        """Return the preset with another seed, computed from its present seed and ``seed``."""
        return self._with(seed=(self.point.common.seed + seed) % 2**63)

    def knowing(self, hazards: Hazards | None) -> Preset:
        """Return the preset with ``hazards`` as the failure law of the run."""
        return msgspec.structs.replace(self, hazards=hazards)

    @property
    def on_torus(self) -> bool:
        """Whether the scheduler allocates blocks of a torus."""
        return "torus" in self.point.values

    def blocks(self, n_nodes: int) -> TorusBlocks | None:
        """Return the blocks that the scheduler allocates on a torus.

        Return None if it allocates nodes.
        """
        return self.point.placement.blocks(n_nodes)

    def allotted(self, n_nodes: int) -> Allotment | None:
        """Return a function from the requested to the allocated number of nodes.

        Return None if both numbers are always equal.
        """
        return self.point.placement.allotted(n_nodes)

    def carrying_out(self) -> Preset:
        """Return a preset that carries out operations.

        If the option ``drain`` is set, return the preset itself.
        """
        return self._with(drain="migrate") if self.point.common.drain == "auto" else self

    def with_rules(self, declared: Mapping[str, Any]) -> Preset:
        """Return the preset with those rules of a site that the option ``rules`` names.

        Raises
        ------
        InputError
            If the site states none of these rules, or if the scheduler does not support them.
        """
        chosen = rules_of(self.point.common.rules, declared)
        return msgspec.structs.replace(self, point=changed(self._with(rules="").point, chosen))

    def awaiting_announcements(self) -> Preset:
        """Return a preset that respects announced maintenance.

        If the option ``reservations`` is set, return the preset itself.

        Raises
        ------
        InputError
            If the scheduler does not support reservations of nodes.
        """
        if self.point.common.reservations:
            return self
        preset = self._with(reservations=ANNOUNCED)
        preset.point.check()
        return preset

    def _with(self, **common: Any) -> Preset:
        changed = msgspec.structs.replace(self.point.common, **common)
        return msgspec.structs.replace(
            self, point=msgspec.structs.replace(self.point, common=changed)
        )

    def partitions(self, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
        """Return the partitions of a machine.

        The tuple is empty if the option ``partitions`` is not set.
        """
        return partitions_on(self.point.partitions, n_nodes, cores_per_node)

    @property
    def parted(self) -> bool:
        """Whether each partition has a plan, so that each job runs in only one partition."""
        return self.point.parted and not isinstance(self.point.planning, FifoOptions)

    @property
    def takes_partitions(self) -> bool:
        """Whether the scheduler can have partitions, and its options do not set any."""
        point = self.point
        possible = isinstance(point.placement, AnyOptions | NamedOptions | ClusterOptions)
        return possible and getattr(point.planning, "partitions", None) == ""

    def on_partitions(self, text: str) -> Preset:
        """Return the preset on a machine with these partitions, if it takes any."""
        if not (text and self.takes_partitions):
            return self
        planning: Any = msgspec.structs.replace(self.point.planning, partitions=text)
        point = msgspec.structs.replace(self.point, planning=planning)
        return msgspec.structs.replace(self, point=point)

    @property
    def power(self) -> NodePower | None:
        """Power of a node, or None if the option ``power`` is not set."""
        watts = self.point.common.power
        return read_power(watts) if watts else None

    @property
    def session(self) -> SessionOptions:
        """The options of the session."""
        return self.point.session

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """Names and hashes of the files with user-defined rules, to record with the results."""
        return tuple(self.point.own_sources)


LATER = {
    "expected": "jobs+repairs",
    "wait": "requeue",
    "restarts": "beginning",
    "lenders": "rule",
    "detect": "0",
    "diagnose": "0",
    "reschedule": "0",
    "init": "0",
    "order_period": 0.0,
    "shares": "",
    "fairshare_rule": "tree",
    "half_life": "7d",
    "limits": "",
    "reservations": "",
    "rules": "",
    "predict": "walltime",
}
"""Defaults of options that earlier versions did not have. `identity` leaves out options with these
defaults, so that results of earlier versions stay valid.
"""


def identity(chosen: Preset | OwnPolicy) -> Any:
    """Return everything that determines a scheduler's results: options and file contents."""
    if isinstance(chosen, OwnPolicy):
        return _content(chosen.sources[0]) if chosen.sources else {"class": chosen.name}
    options = chosen.point.effective
    options = {name: value for name, value in options.items() if LATER.get(name) != value}
    if is_file(str(options.get("foresight", ""))):
        options["foresight"] = {"sha256": file_hash(Path(options["foresight"]))}
    own: dict[str, Any] = {
        name: _content(source_of(place)) for name, place in chosen.point.own_rules.items()
    }
    if chosen.point.own_reactions:
        names = [part.name for part in chosen.point.reactions]
        own["react"] = [_content(source_of(name)) if is_own(name) else name for name in names]
    if options["planning"] == "list" and ("placement" in own or options["placement"] == "cluster"):
        options["compression"] = "in place"  # earlier versions chose other nodes
    return options | own


def _content(source: OwnCode) -> dict[str, str]:
    return {"name": source.name, "sha256": source.sha256}


_STEALING_PAPER = "Du, Marchal, Pallez, Robert 2024"
_BATSCHED = "Batsched 1.4"
_PARTITIONS = "Vardas, Ploumidis, Marazakis 2022"
_REPLACEMENT = "Prabhakaran, Neumann, Wolf 2018"
_MIGRATION = "Rodríguez-Pascual, Cao, Moríñigo, Cooperman, Mayo-García 2019"
_RESILIENT_LISTS = "Benoit, Le Fèvre, Raghavan, Robert, Sun 2020"

_RSC = "Kokolis et al. 2025 (RSC)"
_STAGES = {"detect": "5min", "init": "30s"}

_CLUSTER = point(planning="fifo", placement="cluster", drain="migrate")


_ROWS = [
    Preset(
        "baseline",
        "conservative backfilling; failed jobs are requeued first",
        f"{_STEALING_PAPER}, section 4.1",
        point(),
    ),
    Preset(
        "sfsj",
        "baseline; steals a node from the smallest job when no node is free (H111)",
        f"{_STEALING_PAPER}, section 4.2",
        point(react="stealing"),
    ),
    Preset(
        "easy",
        "EASY backfilling; failed jobs are requeued first",
        "Mu'alem and Feitelson 2001",
        point(depth="easy"),
    ),
    Preset(
        "easy-sfsj",
        "EASY backfilling with the node stealing of SFSJ (not in any paper)",
        f"{_STEALING_PAPER}, section 9 (future work)",
        point(depth="easy", react="stealing"),
    ),
    Preset(
        "greedy",
        "list scheduling without reservations: starts every job that fits",
        "Benoit et al. 2020, R-LIST-0",
        point(depth="greedy"),
    ),
    Preset(
        "greedy-sfsj",
        "list scheduling without reservations, with the node stealing of SFSJ",
        f"{_STEALING_PAPER}, section 9 (future work)",
        point(depth="greedy", react="stealing"),
    ),
    Preset(
        "batsched-conservative",
        "conservative backfilling on named nodes, with walltimes extended by 5 s",
        f"{_BATSCHED}, conservative_bf",
        point(placement="named", margin=RJMS_DELAY_S, walltimes="required"),
    ),
    Preset(
        "batsched-easy",
        "EASY backfilling on named nodes, with walltimes extended by 5 s",
        f"{_BATSCHED}, easy_bf",
        point(depth="easy", placement="named", margin=RJMS_DELAY_S, walltimes="required"),
    ),
    Preset(
        "batsched-fcfs",
        "first come, first served, without backfilling",
        f"{_BATSCHED}, fcfs",
        point(planning="fifo"),
    ),
    Preset(
        "r-list-0",
        "list scheduling without reservations, longest jobs first; jobs with errors run again",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        point(depth="greedy", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-list-1",
        "r-list-0 with a reservation for the first job of the queue, or the first m jobs (depth=m)",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        point(depth="easy", reserve="first", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-list-q",
        "r-list-0 with a reservation for every job, recomputed whenever a job ends",
        f"{_RESILIENT_LISTS}, section 4.1, algorithm 1",
        point(depth="all", maintenance="rebuild", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-shelf-b",
        "shelves (jobs that start together), longest first, backfilled; jobs with errors run again",
        f"{_RESILIENT_LISTS}, section 4.3, algorithm 2",
        point(planning="shelf", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "r-shelf-nb",
        "r-shelf-b without backfilling: the first job that does not fit closes the shelf",
        f"{_RESILIENT_LISTS}, section 4.3, algorithm 2",
        point(planning="shelf-nb", order="lpt", silent_errors="retry"),
    ),
    Preset(
        "slurm-linear",
        "baseline; chooses the first free blocks in a line, like Slurm's linear plugin",
        f"{_PARTITIONS}, section 2.2",
        point(placement="slurm-linear"),
    ),
    Preset(
        "torus-first",
        "baseline on boxes of a torus; chooses the box with the lowest corner",
        f"{_PARTITIONS}, section 2.2 (contiguous and rectangular partitions)",
        point(placement="torus-first"),
    ),
    Preset(
        "rps",
        "baseline on boxes of a torus; chooses a random box",
        f"{_PARTITIONS}, section 2.2",
        point(placement="rps"),
    ),
    Preset(
        "faps",
        "baseline on boxes of a torus; chooses the box with the lowest failure probability",
        f"{_PARTITIONS}, section 2.2, equations 1 and 2",
        point(placement="faps"),
    ),
    Preset(
        "sa",
        "baseline; moldable jobs get the size that ends first; malleable jobs keep their size",
        f"{_REPLACEMENT}, section III (SA of Cirne and Berman 2002)",
        point(planning="flexible", malleable="asked"),
    ),
    Preset(
        "pra",
        "sa, but malleable jobs start on their minimum, and grow before queued jobs start",
        f"{_REPLACEMENT}, section V (PRA of Buisson et al. 2007)",
        point(planning="flexible", malleable="pra"),
    ),
    Preset(
        "pwa",
        "sa, but malleable jobs start small, grow on idle nodes, shrink for the first queued job",
        f"{_REPLACEMENT}, section V (PWA of Buisson et al. 2007)",
        point(planning="flexible", malleable="pwa"),
    ),
    Preset(
        "dbes",
        "pwa, but jobs on which most reservations depend grow first, then all jobs equally",
        f"{_REPLACEMENT}, section III (DBES of Prabhakaran et al. 2015)",
        point(planning="flexible"),
    ),
    Preset(
        "cluster",
        "first come, first served on cores; uses few nodes per job; no backfilling",
        f"{_MIGRATION}, section 4",
        _CLUSTER,
    ),
    Preset(
        "compaction",
        "cluster; while the queue is empty, moves jobs together until nodes are full or empty",
        f"{_MIGRATION}, section 3.3.4, algorithm 1",
        changed(_CLUSTER, {"react": "compaction"}),
    ),
    Preset(
        "priorities",
        "cluster with two partitions; moves jobs to the better one, which has 25 % of the nodes",
        f"{_MIGRATION}, section 3.3.4, algorithm 2",
        changed(_CLUSTER, {"partitions": "high:0%-25%+low:25%-100%", "react": "priorities"}),
    ),
    Preset(
        "tiers",
        "cluster; eternal jobs use idle cores; a checkpoint stops them when normal jobs need cores",
        f"{_MIGRATION}, sections 3.3.2 and 4.3",
        changed(_CLUSTER, {"fit": "first", "partitions": "normal:all:2+eternal:all:1:reversed"}),
    ),
    Preset(
        "training-requeue",
        "largest job first; a failed job is detected after 5 min, and requeued first",
        f"{_RSC}: health checks every 5 min, priority rises with size",
        point(depth="easy", order="largest", **_STAGES),
    ),
    Preset(
        "training-preempt",
        "training-requeue; preempts smaller jobs after two hours, excludes lemon nodes",
        f"{_RSC}: preemption after two hours, exclusion of lemon nodes",
        point(depth="easy", order="largest", react="exclude+preempt", **_STAGES),
    ),
    Preset(
        "training-swap",
        "training-requeue; idle nodes replace failed nodes (spares=N reserves spare nodes)",
        "warm standbys of ByteRobust (Wan et al. 2025); Prabhakaran, Neumann, Wolf 2018",
        point(depth="easy", order="largest", react="replacement", steps="idle+wait", **_STAGES),
    ),
    Preset(
        "training-stealing",
        "training-requeue; a failed job steals a node from the smallest job",
        f"{_STEALING_PAPER}, section 4.2, with the stages of RSC",
        point(depth="easy", order="largest", react="stealing", **_STAGES),
    ),
    Preset(
        "training-shrinking",
        "a failed malleable job continues without its failed nodes, and grows back later",
        "replicas that leave and return, as in FT-HSDP; Prabhakaran, Neumann, Wolf 2018",
        point(planning="flexible", react="replacement", **_STAGES),
    ),
]

_TIMINGS = {
    "now": "immediately",
    "proactive": "after a checkpoint",
    "next": "at its next checkpoint",
}
_VICTIMS = {"fewest-nodes": "the smallest job", "latest-release": "the job submitted last"}
_CRITERIA = {
    "fewer-nodes": "if it is smaller than the failed job",
    "later-release": "if it was submitted after the failed job",
    "smaller-flow": "if this shortens the longer of the two flows",
}


def _variants() -> Iterator[Preset]:
    """Yield the variants H_xyz of node stealing (section 7.1), except H111.

    The digits x, y and z are the numbers of the timing, the victim rule and the criterion.
    """
    for x, (timing, when) in enumerate(_TIMINGS.items(), 1):
        for y, (victim, source) in enumerate(_VICTIMS.items(), 1):
            for z, (criterion, worth) in enumerate(_CRITERIA.items(), 1):
                own = {"timing": timing, "victim": victim, "criterion": criterion}
                if (x, y, z) != (1, 1, 1):
                    yield Preset(
                        f"h{x}{y}{z}",
                        f"baseline; steals a node from {source} {when}, {worth}",
                        f"{_STEALING_PAPER}, section 7.1",
                        point(react="stealing", **own),
                    )


def _as_the_program(row: Preset) -> Preset:
    """Return the variant of a preset that behaves like the program of the paper's authors.

    The paper is the node-stealing paper (Du et al. 2024).
    """
    changes = {
        "semantics": "authors",
        "order": "fcfs-by-id",
        "placement": "named",
        "maintenance": "authors",
        "margin": RJMS_DELAY_S,
    }
    name = "h111" if row.name == "sfsj" else row.name
    summary = f"{name} as in the authors' program, on named nodes"
    return Preset(
        f"authors-{name}", summary, f"program of {_STEALING_PAPER}", changed(row.point, changes)
    )


_PROGRAM = [_as_the_program(row) for row in (*_ROWS[:2], *_variants())]

PRESETS: dict[str, Preset] = {row.name: row for row in (*_ROWS, *_variants(), *_PROGRAM)}
ALIASES = {"conservative": "baseline", "h111": "sfsj"}
