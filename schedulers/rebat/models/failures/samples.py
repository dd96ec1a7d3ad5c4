# SPDX-License-Identifier: Apache-2.0
"""Statistics of a failure record: gaps, lifetimes of nodes and repairs, with fitted laws.

Families of distributions are compared by Akaike's criterion (AIC: twice the number of parameters
minus twice the log-likelihood). The family with the smallest AIC fits best of all families, but it
does not necessarily fit well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.fitting import Parameters, UpTimes, likeliest, log_likelihood, up_times
from rebat.models.failures.outages import outages_of
from rebat.models.failures.per_node import FAMILIES, ExponentialNodes, Floats

FEWEST = 3
"""Minimum number of completed times for a fit."""


class Sample(NamedTuple):
    """Times of one kind in seconds: completed, or still running at the end of the record."""

    name: str
    times: UpTimes


class Fitted(NamedTuple):
    """The maximum-likelihood law of a family for a sample; times are in seconds."""

    family: str
    parameters: Parameters
    mean_s: float
    log_likelihood: float
    aic: float

    def survival(self, times_s: Floats) -> Floats:
        """Return the share of times that are longer than each of ``times_s``."""
        scale_s, shape = (np.array([value]) for value in self.parameters)
        shares: Floats = np.exp(FAMILIES[self.family](scale_s, shape).log_survival(times_s))
        return shares


def samples(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int | None = None
) -> list[Sample]:
    """Return the three samples of a record.

    *Between failures of the machine* contains the times between failures. Nodes that fail at the
    same time, such as a rack, count as one failure. *Lives of nodes* contains the times from time 0
    or a repair to the next failure. Lives that do not end with a failure are censored. *Repairs*
    contains the durations of repairs. Nodes that fail and return at the same times count once. An
    outage at time 0 is left out of all samples, because its beginning is unknown.

    Parameters
    ----------
    events : sequence of MachineEvent
        Events sorted by time. For each node, failures and repairs alternate, beginning with a
        failure: all nodes are up at time 0.
    n_nodes : int
        Size of the machine.
    until_us : int, optional
        End of the record. Default: its last event.
    """
    end_us = until_us if until_us is not None else (events[-1].at_us if events else 0)
    recorded = [event for event in events if event.at_us <= end_us]
    times_us = np.unique([event.at_us for event in recorded if not event.available and event.at_us])
    gaps = UpTimes(np.diff(times_us) / US_PER_S, np.empty(0))
    node_times, _ = up_times(recorded, n_nodes, end_us)
    lives = UpTimes(*(np.concatenate(column) for column in zip(*node_times, strict=True)))
    return [
        Sample("between failures of the machine", gaps),
        Sample("lives of nodes", lives),
        Sample("repairs", _repairs(recorded, end_us)),
    ]


def _repairs(events: Sequence[MachineEvent], end_us: int) -> UpTimes:
    _, down_us, up_us = outages_of(events)
    pairs = np.unique(np.stack([down_us, up_us], axis=1)[down_us > 0], axis=0)
    ended = pairs[:, 1] < FOREVER_US
    open_us = end_us - pairs[~ended, 0]
    return UpTimes(np.diff(pairs[ended])[:, 0] / US_PER_S, open_us[open_us > 0] / US_PER_S)


def fits(times: UpTimes, on_fit: Callable[[], None] = lambda: None) -> list[Fitted]:
    """Return the laws of all families that can be fitted, the lowest AIC first."""
    laws = [] if len(times.failed_s) < FEWEST else list(_fits(times, on_fit))
    return sorted(laws, key=lambda fit: (fit.aic, fit.family))


def _fits(times: UpTimes, on_fit: Callable[[], None]) -> Iterator[Fitted]:
    for family, kind in FAMILIES.items():
        parameters = likeliest(kind, times)
        on_fit()
        if parameters is not None:
            scale_s, shape = (np.array([value]) for value in parameters)
            likelihood = log_likelihood(kind, parameters, times)
            free = 1 if kind is ExponentialNodes else 2
            mean_s = float(kind(scale_s, shape).mean_s()[0])
            yield Fitted(family, parameters, mean_s, likelihood, 2 * (free - likelihood))


def empirical(times: UpTimes) -> tuple[Floats, Floats]:
    """Return times (s), and for each of them the share of longer times (Kaplan-Meier)."""
    from scipy.stats import CensoredData, ecdf

    curve = ecdf(CensoredData(uncensored=times.failed_s, right=times.going_s)).sf
    return curve.quantiles, curve.probabilities
