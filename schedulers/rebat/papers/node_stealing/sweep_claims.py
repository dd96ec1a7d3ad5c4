# SPDX-License-Identifier: Apache-2.0
"""Claims of the node-stealing paper on other MTBFs and downtimes (section 6.2)."""

from __future__ import annotations

from collections.abc import Callable

from rebat.papers.common.claims import ABOVE, Claim, Rule, below, between, extreme
from rebat.papers.node_stealing.published import JUNE
from rebat.papers.node_stealing.subjects import OverMtbf
from rebat.results.intervals import BySeed, Interval, interval, minus

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
NEGLIGIBLE = between(0.99, 1.01)
"""Ratios of utilisation whose difference from 1 counts as negligible."""

CLOSE = between(0.95, 1.05)
"""Ratios of flows whose difference from 1 counts as close to zero."""

Number = Callable[[OverMtbf], Interval | None]


def _gained(on: OverMtbf) -> Interval | None:
    first, last = (on.each()[i].ratios("useful_utilisation") for i in (0, -1))
    return interval(minus(first, last))


def _at(downtime_s: float, number: Number, workload: str = "") -> Number:
    """Return a function that calls ``number`` only for this downtime and this workload.

    Otherwise, it returns None. An empty ``workload`` allows all workloads.
    """

    def restricted(on: OverMtbf) -> Interval | None:
        here = on.downtime_s == downtime_s and workload in ("", on.settings[0].workload)
        return number(on) if here else None

    return restricted


def _below_a_day(number: Number) -> Number:
    """Return a function that calls ``number`` only if the downtime is below a day.

    Otherwise, it returns None. At a downtime of one day, the gain is close to zero.
    """
    return lambda on: number(on) if (on.downtime_s or 0.0) < DAY else None


def _samples(
    on: OverMtbf, metric: str, of: str | None, mtbf: Callable[[float], bool]
) -> list[BySeed]:
    return [
        item.ratios(metric, of) for item in on.each() if mtbf(item.setting.scenario.mtbf_s or 0.0)
    ]


def _pick(
    pick: Callable[..., Interval], metric: str, of: str | None = None,
    mtbf: Callable[[float], bool] = lambda mtbf_s: True, distance_from: float | None = None,
) -> Number:  # fmt: skip
    """Return a function that picks the largest or smallest ratio at MTBFs allowed by ``mtbf``."""
    return lambda on: extreme(pick, _samples(on, metric, of, mtbf), distance_from)


def _frequent(mtbf_s: float) -> bool:
    return mtbf_s < 5 * HOUR


def _rare(mtbf_s: float) -> bool:
    return mtbf_s == 10 * HOUR


_USED, _LARGEST, _WEIGHTED = "useful_utilisation", "flow_max_s", "flow_weighted_mean_s"
_RATIO = "SFSJ / Baseline"

SWEEPS = (
    Claim("downtime {downtime}: SFSJ gains more if failures are frequent",
          "utilisation ratio at an MTBF of {least} minus the ratio at {most}", ABOVE,
          "the smaller the MTBF, the higher the utilization (section 6.2.1)", _gained),
    Claim("downtime {downtime}: SFSJ raises the utilisation at every MTBF below 5 h",
          f"smallest ratio {_RATIO}", Rule("above 1", 1),
          "between 2 and 4 % (section 6.2.1)", _at(10 * MINUTE, _pick(min, _USED, mtbf=_frequent)),
          published=(1.02, 1.04)),
    Claim("downtime {downtime}: SFSJ lowers the utilisation at an MTBF of 10 h",
          _RATIO, below(1), "a 1 % loss, on June (section 6.2.1)",
          _at(10 * MINUTE, _pick(min, _USED, mtbf=_rare), JUNE), published=0.99),
    Claim("downtime {downtime}: SFSJ hardly changes the utilisation",
          f"ratio {_RATIO} farthest from 1 over the MTBFs", NEGLIGIBLE,
          "its gain is negligible (section 6.2.1)",
          _at(DAY, _pick(max, _USED, distance_from=1.0)), published=1.0),
    Claim("downtime {downtime}: SFSJ lowers the largest flow of the largest jobs ({largest}) at "
          "every MTBF", f"largest ratio {_RATIO}", below(1),
          "positive impact over all scenarios (section 6.2.2)",
          _below_a_day(_pick(max, _LARGEST, "largest"))),
    Claim("downtime {downtime}: SFSJ lowers the weighted mean flow at every MTBF",
          f"largest ratio {_RATIO}", below(1),
          "positive impact over all scenarios (section 6.2.2)",
          _below_a_day(_pick(max, _WEIGHTED))),
    Claim("downtime {downtime}: SFSJ lowers the largest flow of the largest jobs ({largest}) most "
          "at an MTBF below 5 h", f"smallest ratio {_RATIO}", below(1),
          "up to 10 to 20 % (section 6.2.2)",
          _at(10 * MINUTE, _pick(min, _LARGEST, "largest", _frequent)), published=(0.8, 0.9)),
    Claim("downtime {downtime}: SFSJ hardly changes the largest flow of the largest jobs "
          "({largest})", f"ratio {_RATIO} farthest from 1 over the MTBFs", CLOSE,
          "close to zero (section 6.2.2)",
          _at(DAY, _pick(max, _LARGEST, "largest", distance_from=1.0)), published=1.0),
)  # fmt: skip
"""Section 6.2: the gain grows with the number of failures and with shorter downtimes."""
