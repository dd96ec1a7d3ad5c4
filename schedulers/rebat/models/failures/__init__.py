"""Failure models: generators of (date in seconds, node), by name, and machine events from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us
from rebat.models.failures.authors import authors_failures
from rebat.models.failures.events import MachineEvent
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


class DrawnEvents(msgspec.Struct, frozen=True):
    """The failures of a model and their repairs, drawn as far as they are looked at.

    Every look begins anew and sees the same.

    Parameters
    ----------
    model : str
        A key of ``FAILURE_MODELS``.
    mtbf_s, downtime_s, horizon_s : float
        Platform MTBF, down time of a node, and date of the last failure; seconds. Without a
        horizon failures never end.
    n_nodes, seed : int

    Raises
    ------
    InputError
        For an unknown model and for numbers out of range.
    """

    model: str
    mtbf_s: float
    downtime_s: float
    n_nodes: int
    horizon_s: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        failure_model(self.model)
        spans = {"MTBF": self.mtbf_s, "downtime": self.downtime_s, "horizon": self.horizon_s}
        for name, value in spans.items():
            if value is not None and not (math.isfinite(value) and 1e-6 <= value <= MAX_SECONDS):
                raise InputError(f"{name} is {value:g} s", expected=f"1e-06 to {MAX_SECONDS:.0e} s")
        for name, number, least in (("number of nodes", self.n_nodes, 1), ("seed", self.seed, 0)):
            if number < least:
                raise InputError(f"{name} is {number}", expected=f"at least {least}")

    def __iter__(self) -> Iterator[MachineEvent]:
        draw = failure_model(self.model)
        horizon_s = math.inf if self.horizon_s is None else self.horizon_s
        failures = draw(self.mtbf_s, self.downtime_s, self.n_nodes, horizon_s, self.seed)
        return events_of(failures, self.downtime_s)


def generate_events(
    model: str,
    mtbf_s: float,
    downtime_s: float,
    n_nodes: int,
    *,
    horizon_s: float = 5e6,
    seed: int = 0,
) -> list[MachineEvent]:
    """The failures of a model up to a horizon and their repairs, for a file; see `DrawnEvents`."""
    return list(DrawnEvents(model, mtbf_s, downtime_s, n_nodes, horizon_s, seed))


def events_of(failures: Iterable[tuple[float, int]], downtime_s: float) -> Iterator[MachineEvent]:
    """Two events per failure, by date: the node goes, and is back after its down time."""
    repairs: deque[MachineEvent] = deque()
    for t_s, node in failures:
        at_us, nodes = to_us(t_s), NodeSet.of([node])
        while repairs and repairs[0].at_us <= at_us:
            yield repairs.popleft()
        yield MachineEvent(at_us, False, nodes)
        repairs.append(MachineEvent(at_us + to_us(downtime_s), True, nodes))
    yield from repairs
