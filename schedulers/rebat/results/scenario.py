# SPDX-License-Identifier: Apache-2.0
"""The results table of a campaign: its reader, and the scenario of a row.

The scenario is everything except workload and policy. Its fields are columns of the table. Results
are combined or compared only if all fields are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import exact, format_duration

AUTO = "auto"
USUAL_HORIZONS_S = (None, 5e6)
"""Default times that the simulation continues after the end of the workload.

Labels omit them. The authors of the node-stealing paper use 5e6 s.
"""

FOR_MTBF = ", for an MTBF of "
"""Text before the MTBF from which the checkpoint period is computed.

Labels contain it if this MTBF differs from the MTBF of the failures.
"""

USUAL_CHECKPOINTS = "Young/Daly (cost 5 min, recovery 5 min, ceil)"
"""Checkpoints as in section 5.2 of the node-stealing paper, for the MTBF of the failures."""


_MANY_DIGITS = re.compile(r"\d+\.\d{3,} s\b")
"""Computed durations, which labels round."""


def _rounded(seconds: re.Match[str]) -> str:
    return format_duration(float(seconds[0].removesuffix(" s")))


class ScenarioLabel(NamedTuple):
    """Failures, checkpoints, machine, measures and silent errors of a run.

    Fields are None if the run has no failures, checkpoints, silent errors or operations, or if the
    workload determines the number of nodes. Times are in seconds. ``checkpoint``, ``silent_errors``
    and ``law`` are texts. ``law`` contains the parameters of the failure model except MTBF and
    downtime.
    """

    failure_model: str | None = None
    mtbf_s: float | None = None
    downtime_s: float | None = None
    horizon_s: float | None = None
    checkpoint: str | None = None
    nodes: int | None = None
    cores_per_node: int = 1
    window: str = AUTO
    select: str = AUTO
    law: str | None = None
    silent_errors: str | None = None
    operations: str | None = None
    walltime_kills: str | None = "wasted"
    accounting: str | None = "exact"
    max_attempts: int | None = None
    """Number of interruptions after which a job ends as failed. None is the default."""

    @property
    def family(self) -> ScenarioLabel:
        """The scenario without MTBF and downtime. All scenarios of a sweep over both share it."""
        return self._replace(mtbf_s=None, downtime_s=None)

    @property
    def failure_free(self) -> tuple[ScenarioLabel, ...]:
        """The same scenario without failures, once with checkpoints and once without them."""
        calm = ScenarioLabel(
            nodes=self.nodes,
            cores_per_node=self.cores_per_node,
            window=self.window,
            select=self.select,
            walltime_kills=self.walltime_kills,
            accounting=self.accounting,
            max_attempts=self.max_attempts,
        )
        text = self.checkpoint
        if text and text.endswith(")") and FOR_MTBF not in text and self.mtbf_s is not None:
            text = f"{text[:-1]}{FOR_MTBF}{exact(self.mtbf_s)})"
        return calm._replace(checkpoint=text), calm

    @property
    def label(self) -> str:
        """The scenario as readable text, without default values.

        >>> ScenarioLabel("authors", 3600.0, 1800.0, 5e6).label
        'MTBF 1 h, downtime 30 min, checkpoints: none'
        """
        return ", ".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """The parts of the label."""
        return [*self._failures(), *self._rest()]

    @property
    def family_label(self) -> str:
        """The label of a sweep over MTBF and downtime."""
        return ", ".join(self._rest())

    def _failures(self) -> list[str]:
        if self.failure_model is None:
            return ["no failures"]
        spans = (("MTBF", self.mtbf_s), ("downtime", self.downtime_s))
        return [f"{name} {exact(span)}" for name, span in spans if span is not None]

    def _rest(self) -> list[str]:
        texts = [f"checkpoints: {_MANY_DIGITS.sub(_rounded, self.checkpoint or 'none')}"]
        if self.checkpoint == USUAL_CHECKPOINTS:
            texts = ["Young/Daly checkpoints"]
        if self.failure_model not in (None, "authors") or self.law:
            texts.append(f"failures {self.failure_model}" + (f":{self.law}" if self.law else ""))
        if self.horizon_s not in USUAL_HORIZONS_S:
            texts.append(f"failures up to {exact(self.horizon_s)}")
        texts += [counted(self.nodes, "node")] if self.nodes else []
        cores = self.cores_per_node
        texts += [f"{cores} cores per node"] if cores and cores > 1 else []
        texts += [f"silent errors, {self.silent_errors}"] if self.silent_errors else []
        texts += [f"operations {self.operations}"] if self.operations else []
        useful = self.walltime_kills == "useful"
        texts += ["work of jobs killed at walltime counts as useful"] if useful else []
        texts += ["checkpoint accounting of the program"] if self.accounting == "program" else []
        most = self.max_attempts
        texts += [f"at most {counted(most, 'interruption')} per job"] if most else []
        texts += [f"window {self.window}"] if self.window != AUTO else []
        return texts + ([f"jobs {self.select}"] if self.select != AUTO else [])


def scenario_of_row(about: Sequence[Any]) -> ScenarioLabel:
    """Return the scenario of a row.

    Whole numbers may be floats, because a Parquet column with missing values has floats.
    """
    scenario = ScenarioLabel(*about)
    nodes, most = scenario.nodes, scenario.max_attempts
    return scenario._replace(
        nodes=None if nodes is None else int(nodes),
        max_attempts=None if most is None else int(most),
    )


LATER = ("accounting", "max_attempts", "begin_s", "trace_end_s")
"""Columns that earlier versions did not write. If they are missing, their cells are None."""


def read_results(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a kind of unit in the order of the file. Empty cells are None."""
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"is not a table of results: {error}", str(path)) from None
    for name in {*LATER} & {*columns} - {*table.columns}:
        table[name] = None
    missing = {"kind", *columns} - {*table.columns}
    if missing and not table.empty:
        problem = f"has no column {min(missing)}: another version wrote this file"
        raise InputError(problem, str(path), "a file written again by 'rebat campaign report'")
    if table.empty or not (table["kind"] == kind).any():
        raise InputError("contains no results yet", str(path))
    table = table.loc[table["kind"] == kind, list(columns)]
    plain = table.astype(object).where(table.notna(), None)
    return plain.itertuples(index=False, name=None)


def rejections(path: Path) -> str:
    """Return a text with the numbers of rejected jobs and of runs that rejected them.

    If no run rejected a job, the text is empty.
    """
    import pyarrow.parquet as pq

    selected = [("metric", "==", "rejected"), ("value", ">", 0)]
    table = pq.read_table(path, columns=["key", "value"], filters=selected)
    jobs = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    if not jobs:
        return ""
    runs, count = counted(len(jobs), "run"), counted(int(sum(jobs.values())), "job")
    return f"{runs} rejected {count} in total; flows do not include rejected jobs"
