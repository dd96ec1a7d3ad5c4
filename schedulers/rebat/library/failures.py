# SPDX-License-Identifier: Apache-2.0
"""``rebat.failures``: how nodes fail, as a value to hand to ``rebat.run``."""

from __future__ import annotations

from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rebat.core.declared import converted
from rebat.core.errors import InputError, short
from rebat.core.shipped import located
from rebat.core.units import FOREVER_US, to_s
from rebat.models.failures.law import Law
from rebat.models.failures.laws import name_of, parse_law
from rebat.runs.options import FailureOptions

if TYPE_CHECKING:
    from pandas import DataFrame

Duration = float | int | str
"""Seconds, or a text in human units: 300, "5min", "1h30min", "2d"."""


class Failures(FailureOptions, frozen=True, kw_only=True):
    """How nodes fail, with a seed; made by `failures`."""

    def outages(self, nodes: int, most: int = 1000) -> DataFrame:
        """The first outages on a machine of so many nodes: ``node``, ``down``, ``up`` in seconds.

        A row per node; ``up`` is NaN for one that never comes back.
        """
        import pandas as pd

        law = self.failure_law()
        found = islice(law.outages(nodes, self.seed), most) if law else ()
        rows = [
            (node, to_s(one.down_us), to_s(one.up_us) if one.up_us < FOREVER_US else None)
            for one in found
            for node in one.nodes
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
    """Say how nodes fail.

    Parameters
    ----------
    law : str, optional
        A law with its parameters, ``"weibull:scale=5800h,shape=8"``; ``rebat run --help`` lists
        them.
    mtbf : duration, optional
        Short for the MTBF of the whole machine, of the law named ``model``. Beside a law without
        one, or a ``file``, it is that of the checkpoint period only.
    downtime : duration
        With ``mtbf``: how long a failed node stays down.
    model : str
        With ``mtbf``: the law's name.
    file : str or Path, optional
        An event file (Batsim's ``--events``), or the name of a shipped one.
    seed : int
        Of what is drawn; of several seeds, the first.
    horizon, begin : duration, optional
        Draw no failure after this date; begin at this date of the law.
    failure_group : int
        A failure takes the whole aligned group of so many nodes down: a rack, or a midplane.
    cascade : float
        The probability that a failure brings a further one within ``cascade_window``, on the
        machine or among the ``cascade_within`` aligned nodes around it.

    Raises
    ------
    InputError
        For a law or a duration that cannot be.

    Examples
    --------
    >>> failures(mtbf="1h", downtime="10min")
    <failures by authors: mtbf_s=3600.0, downtime_s=600.0; seed 0>
    >>> failures(mtbf="1h").outages(nodes=128, most=2).shape
    (2, 3)
    """
    options = {
        "mtbf": mtbf, "downtime": downtime, "model": model, "seed": seed, "horizon": horizon,
        "begin": begin, "failure_group": failure_group, "cascade": cascade,
        "cascade_window": cascade_window, "cascade_within": cascade_within,
        "failures": None if file is None else _file(file),
    }  # fmt: skip
    return msgspec.structs.replace(converted(options, Failures), law=_law(law))


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
