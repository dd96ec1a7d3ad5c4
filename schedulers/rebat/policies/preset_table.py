# SPDX-License-Identifier: Apache-2.0
"""Table of the presets: schedulers from papers and programs, with their original names."""

from __future__ import annotations

from collections.abc import Iterator

from rebat.models.six_digits import RJMS_DELAY_S
from rebat.policies.choosing import changed, point
from rebat.policies.preset import Preset

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
