"""Failure models: generators of (date in seconds, node), by name, and machine events from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from rebat.core.errors import InputError, unknown_name
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us
from rebat.models.failures.authors import authors_failures
from rebat.models.failures.events import MachineEvent, in_order
from rebat.models.failures.poisson import poisson_failures

FailureModel = Callable[[float, float, int, float, int], Iterator[tuple[float, int]]]
"""(mtbf_s, downtime_s, n_nodes, horizon_s, seed) -> failures (t_s, node) by date."""

FAILURE_MODELS: dict[str, FailureModel] = {
    "authors": authors_failures,
    "poisson": poisson_failures,
}


def failure_model(name: str) -> FailureModel:
    """The failure model of that name; an unknown one lists the choices."""
    if name not in FAILURE_MODELS:
        raise unknown_name("failure model", name, FAILURE_MODELS)
    return FAILURE_MODELS[name]


def generate_events(
    model: str,
    mtbf_s: float,
    downtime_s: float,
    n_nodes: int,
    *,
    horizon_s: float = 5e6,
    seed: int = 0,
) -> list[MachineEvent]:
    """The failures of a model and their repairs, as Batsim plays them.

    Parameters
    ----------
    model : str
        A key of ``FAILURE_MODELS``.
    mtbf_s, downtime_s, horizon_s : float
        Platform MTBF, down time of a node, and date of the last failure; seconds.
    n_nodes, seed : int

    Raises
    ------
    InputError
        For an unknown model and for numbers out of range.
    """
    draw = failure_model(model)
    for name, value in (("MTBF", mtbf_s), ("downtime", downtime_s), ("horizon", horizon_s)):
        if not (math.isfinite(value) and 1e-6 <= value <= MAX_SECONDS):
            raise InputError(f"{name} is {value:g} s", expected=f"1e-06 to {MAX_SECONDS:.0e} s")
    for name, number, least in (("number of nodes", n_nodes, 1), ("seed", seed, 0)):
        if number < least:
            raise InputError(f"{name} is {number}", expected=f"at least {least}")
    return events_of(draw(mtbf_s, downtime_s, n_nodes, horizon_s, seed), downtime_s)


def events_of(failures: Iterable[tuple[float, int]], downtime_s: float) -> list[MachineEvent]:
    """Two events per failure: the node goes, and is back after its down time."""
    events = []
    for t_s, node in failures:
        nodes = NodeSet.of([node])
        events.append(MachineEvent(to_us(t_s), False, nodes))
        events.append(MachineEvent(to_us(t_s) + to_us(downtime_s), True, nodes))
    return in_order(events)
