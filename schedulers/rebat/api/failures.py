# SPDX-License-Identifier: Apache-2.0
"""``rebat.failures``: how nodes fail, as an argument for ``rebat.run``."""

from __future__ import annotations

from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rebat.core.declared import converted
from rebat.core.errors import InputError, short
from rebat.core.files import located
from rebat.core.units import FOREVER_US, to_s
from rebat.models.failures.law import Law
from rebat.models.failures.laws import name_of, parse_law
from rebat.runs.scenario import OF_FAILURES, ScenarioOptions

if TYPE_CHECKING:
    from pandas import DataFrame

Duration = float | int | str
"""A duration: a number of seconds (300), or a text with units ("5min", "1h30min", "2d")."""


class Failures(ScenarioOptions, frozen=True):
    """A failure law with a seed, created by `failures`."""

    def outages(self, nodes: int, most: int = 1000) -> DataFrame:
        """Return the first ``most`` outages on a machine of ``nodes`` nodes.

        The table has a row for each node of each outage. Its columns are ``node``, ``down`` and
        ``up`` (seconds). For a node that is never repaired, ``up`` is NaN.
        """
        import pandas as pd

        law = self.failure_law()
        outages = islice(law.outages(nodes, self.seed), most) if law else ()
        rows = [
            (node, to_s(outage.down_us), to_s(outage.up_us) if outage.up_us < FOREVER_US else None)
            for outage in outages
            for node in outage.nodes
        ]
        return pd.DataFrame(rows, columns=["node", "down", "up"])

    def __repr__(self) -> str:
        law = self.failure_law()
        if law is None:
            return "<no failures>"
        parameters = ", ".join(f"{key}={value}" for key, value in law.identity().items())
        return f"<failures by {name_of(law)}: {parameters}; seed {self.seed}>"


def failures(
    law: str | Law | None = None,
    *,
    mtbf: Duration | None = None,
    downtime: Duration = "1h",
    model: str = "authors",
    file: str | Path | None = None,
    seed: int = 0,
    horizon: Duration | None = None,
    begin: Duration | None = None,
    failure_group: int = 1,
    cascade: float = 0.0,
    cascade_window: Duration = "1h",
    cascade_within: int | None = None,
) -> Failures:
    """Define how nodes fail.

    Parameters
    ----------
    law : str, optional
        Failure law with parameters, like ``"weibull:scale=5800h,shape=8"``. ``rebat run --help``
        lists the laws.
    mtbf : duration, optional
        Mean time between failures of the entire machine, for the law ``model``. If ``file`` is set,
        or ``law`` is a law without MTBF, this value only determines the checkpoint period.
    downtime : duration
        Time that a failed node stays down (if ``mtbf`` is set).
    model : str
        Name of the failure law (if ``mtbf`` is set).
    file : str or Path, optional
        Event file (Batsim's ``--events``), or the name of an event file included in rebat.
    seed : int
        Seed of the failures, or the first of several seeds.
    horizon : duration, optional
        Time after which no failures occur.
    begin : duration, optional
        Start the simulation at this time of the failure law.
    failure_group : int
        Number of nodes in each aligned group of consecutive nodes that fail together, like a rack.
    cascade : float
        Probability that a failure causes another failure.
    cascade_window : duration
        Maximum delay between a failure and the failure it causes.
    cascade_within : int, optional
        Number of nodes in the aligned group within which a failure can cause another failure
        (default: the entire machine).

    Raises
    ------
    InputError
        If a law or a duration is invalid.

    Examples
    --------
    >>> failures(mtbf="1h", downtime="10min")
    <failures by authors: mtbf_s=3600.0, downtime_s=600.0; seed 0>
    >>> failures(mtbf="1h").outages(nodes=128, most=2).shape
    (2, 3)
    """
    values = {name: value for name, value in locals().items() if name in OF_FAILURES}
    del values["law"]
    values["failures"] = None if file is None else _file(file)
    return msgspec.structs.replace(converted(values, Failures), law=_law(law))


def _law(law: str | Law | None) -> Law | None:
    if law is None or isinstance(law, Law):
        return law
    if not isinstance(law, str):
        raise InputError(f"is {short(law)}", "law", "a text like 'poisson:mtbf=1h', or a Law")
    return parse_law(law)


def _file(name: object) -> Path:
    if not isinstance(name, str | PathLike):
        raise InputError(f"is {short(name)}", "file", "the name of an event file")
    return located(Path(name), "failure_events", ".events")
