# SPDX-License-Identifier: Apache-2.0
"""Random workloads, outages and operations, with times that are small whole numbers of seconds."""

from __future__ import annotations

import random
from typing import Any

from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.tiers import add_tiers, parse_tiers

TIERS = (
    "peer=1/1@2+remote=1/2@4", "memory=1/0@1+remote=2/1@3", "memory=0/1@1+peer=1/1@2+remote=1/2@4",
)  # fmt: skip
"""Storage tiers of checkpoints, from which a workload chooses."""


def workload(rng: random.Random, n_nodes: int) -> Workload:
    """Return random jobs. Often several jobs have the same times.

    Some jobs are composed of two delays, and some exceed their walltime.
    """
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in range(1, 13)}
    profiles |= {
        f"c{a}{b}": {"type": "composed", "seq": [f"d{a}", f"d{b}"]} for a in (1, 4) for b in (2, 6)
    }
    composed = rng.random() < 0.3
    names = list(profiles) if composed else [name for name in profiles if name[0] == "d"]
    rigid = rng.random() < 0.5
    jobs: list[Job] = []
    for number in range(rng.randint(1, 12)):
        size = rng.randint(1, n_nodes)
        jobs.append(
            Job(
                str(number),
                size,
                to_us(rng.randint(0, 20)),
                rng.choice([None, to_us(rng.randint(1, 20))]),
                rng.choice(names),
                {} if rigid else shape(rng, size, n_nodes),
            )
        )
    made = Workload("random", n_nodes, tuple(jobs), profiles)
    if composed or rng.random() < 0.5:
        return made
    if rng.random() < 0.5:
        return add_perfect(made)
    if rng.random() < 0.5:
        tiers = parse_tiers(rng.choice(TIERS))
        shares = (0.3, 0.6)[: len(tiers.lights)] if tiers.lights[1:] else 0.6
        return add_tiers(made, tiers, n_nodes=n_nodes, mtbf_s=8, light_share=shares, software="gpu")
    return add_young_daly(made, n_nodes=n_nodes, mtbf_s=8, cost_s=1.0, recovery_s=2.0)


def shape(rng: random.Random, size: int, n_nodes: int) -> dict[str, Any]:
    """Choose at random fields that make a job of this size rigid, moldable or malleable."""
    sizes = sorted(rng.sample(range(1, n_nodes + 1), rng.randint(1, min(3, n_nodes))))
    ends = {"min": rng.randint(1, size), "max": rng.randint(size, n_nodes)}
    return rng.choice(
        [
            {},
            {"shape": {"kind": "moldable", "sizes": sizes}},
            {"shape": {"kind": "malleable"} | ends},
        ]
    )


def outages(rng: random.Random, n_nodes: int) -> list[MachineEvent]:
    """Return failures and repairs of nodes, often at equal times.

    Every node is repaired in the end.
    """
    events: list[MachineEvent] = []
    group = rng.choice([1, 1, 2])
    for node in range(0, n_nodes, group):
        at = 0
        for _ in range(rng.randint(0, 3)):
            down = at + rng.choice([0, rng.randint(0, 25)]) + (at == 0)
            at = down + rng.randint(1, 12)
            nodes = NodeSet.of(range(node, node + group))
            cause = rng.choice([None, None, "gpu", "nic"])
            events.append(MachineEvent(to_us(down), False, nodes, cause))
            events.append(MachineEvent(to_us(at), True, nodes))
    rng.shuffle(events)
    return events


def operations(rng: random.Random, n_nodes: int, jobs: Workload) -> list[GenericEvent]:
    """Return drains, undrains and migrations. No node stays drained in the end."""
    rows: list[GenericEvent] = []
    drained, at = set[int](), 0
    for _ in range(rng.choice([0, 0, 6])):
        at += rng.randint(0, 6)
        node = rng.randrange(n_nodes)
        data: dict[str, Any] = {
            "type": "undrain" if node in drained else "drain",
            "nodes": str(node),
        }
        if rng.random() < 0.3:
            data = {"type": "migrate", "job": rng.choice(jobs.jobs).id}
            if rng.random() < 0.5:
                data["nodes"] = str(node)
        elif node in drained:
            drained.remove(node)
        else:
            drained.add(node)
            data["spanning"] = rng.random() < 0.7
        rows.append(GenericEvent(to_us(at), data))
    if drained:
        nodes = str(NodeSet.of(drained))
        rows.append(GenericEvent(to_us(at + 5), {"type": "undrain", "nodes": nodes}))
    return rows
