# SPDX-License-Identifier: Apache-2.0
"""What a record's times are like: between failures, of nodes' lives, of repairs; laws fitted.

Akaike's criterion (AIC: twice the number of parameters less twice the log-likelihood) compares the
families: the smallest is the best of them, which does not make it a good one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.fitting import Parameters, UpTimes, likeliest, log_likelihood, up_times
from rebat.models.failures.per_node import FAMILIES, ExponentialNodes, Floats
from rebat.models.failures.spans import spans_of

FEWEST = 3
"""Of fewer times no law is fitted."""


class Sample(NamedTuple):
    """Times of a kind, in seconds: those that ended, and those that went on as the record ended."""

    name: str
    times: UpTimes


class Fitted(NamedTuple):
    """A family's likeliest law of a sample; times are in seconds."""

    family: str
    parameters: Parameters
    mean_s: float
    log_likelihood: float
    aic: float

    def survival(self, times_s: Floats) -> Floats:
        """The share of times that are longer."""
        scale_s, shape = (np.array([value]) for value in self.parameters)
        found: Floats = np.exp(FAMILIES[self.family](scale_s, shape).log_survival(times_s))
        return found


def samples(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int | None = None
) -> list[Sample]:
    """The three samples of a record.

    *Between failures of the machine*: what fails at one date, be it a rack, is one failure. *Lives
    of nodes*: from date 0 or a repair to the next failure; what no failure has ended is censored.
    *Repairs*: nodes that fail and come back at the same dates are one. What is down at date 0 may
    have been so for long: it counts as no failure, no life and no repair.

    Parameters
    ----------
    events : sequence of MachineEvent
        Sorted and alternating; nodes are up at 0.
    n_nodes : int
        Size of the machine.
    until_us : int, optional
        End of the record. Default: its last event.
    """
    end_us = until_us if until_us is not None else (events[-1].at_us if events else 0)
    kept = [event for event in events if event.at_us <= end_us]
    dates_us = np.unique([event.at_us for event in kept if not event.available and event.at_us])
    gaps = UpTimes(np.diff(dates_us) / US_PER_S, np.empty(0))
    seen, _ = up_times(kept, n_nodes, end_us)
    lives = UpTimes(*(np.concatenate(column) for column in zip(*seen, strict=True)))
    return [
        Sample("between failures of the machine", gaps),
        Sample("lives of nodes", lives),
        Sample("repairs", _repairs(kept, end_us)),
    ]


def _repairs(events: Sequence[MachineEvent], end_us: int) -> UpTimes:
    dates = {(span.down_us, span.up_us) for span in spans_of(events) if span.down_us}
    ended = [up_us - down_us for down_us, up_us in sorted(dates) if up_us < FOREVER_US]
    going = [end_us - down_us for down_us, up_us in sorted(dates) if up_us == FOREVER_US]
    known = [time_us for time_us in going if time_us > 0]
    return UpTimes(np.array(ended) / US_PER_S, np.array(known) / US_PER_S)


def fits(times: UpTimes, on_fit: Callable[[], None] = lambda: None) -> list[Fitted]:
    """The likeliest law of every family that fits, the best first; `fitting` finds them."""
    found = [] if len(times.failed_s) < FEWEST else list(_fits(times, on_fit))
    return sorted(found, key=lambda fit: (fit.aic, fit.family))


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
    """Times (s), and the share of all that is longer (Kaplan and Meier's estimate)."""
    from scipy.stats import CensoredData, ecdf

    found = ecdf(CensoredData(uncensored=times.failed_s, right=times.going_s)).sf
    return found.quantiles, found.probabilities
