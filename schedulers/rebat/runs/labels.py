# SPDX-License-Identifier: Apache-2.0
"""The results table of a campaign: the columns that identify a run, labels, and a reader.

The scenario of a row is everything except workload and policy. Results are combined or compared
only if all its columns are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rebat.core.declared import Declared, declared
from rebat.core.errors import InputError
from rebat.core.numbers import exact, exactly, rounded
from rebat.models.failures.laws import name_of
from rebat.runs.scenario import (
    Conditions,
    PerfectCheckpoints,
    Scenario,
    TierCheckpoints,
    option,
)
from rebat.runs.unit import RunSpec

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
    return rounded(float(seconds[0].removesuffix(" s")))


class ScenarioLabel(Conditions, frozen=True):
    """The scenario of a run as columns of the results table.

    Its own fields describe failures, checkpoints, silent errors and operations. They are None if
    the run has none. Times are in seconds. ``checkpoint``, ``silent_errors`` and ``law`` are texts.
    ``law`` contains the parameters of the failure model except MTBF and downtime.
    """

    failure_model: Annotated[str | None, option("law", "", added=0)] = None
    mtbf_s: Annotated[float | None, option("law", "", added=0)] = None
    downtime_s: Annotated[float | None, option("law", "", added=0)] = None
    horizon_s: Annotated[float | None, option("draw", "", added=0)] = None
    checkpoint: Annotated[str | None, option("preparation", "", added=0)] = None
    law: Annotated[str | None, option("law", "", added=1)] = None
    silent_errors: Annotated[
        str | None, option("preparation", "", label="silent errors, {}", added=2)
    ] = None
    operations: Annotated[str | None, option("run", "", label="operations {}", added=3)] = None

    @staticmethod
    def of_cells(cells: Mapping[str, Any]) -> ScenarioLabel:
        """Return the scenario of a row.

        Whole numbers may be floats, because a Parquet column with missing values has floats.
        """
        values = dict(cells)
        for name, column in _COLUMNS.items():
            if values[name] is None and column.extra["blank"]:
                values[name] = column.default
            elif values[name] is not None and column.kind is int:
                values[name] = int(values[name])
        return ScenarioLabel(**values)

    @property
    def cells(self) -> dict[str, Any]:
        """The columns of the results table."""
        return {
            name: None if column.extra["blank"] and value == column.default else value
            for name, column in _COLUMNS.items()
            for value in [getattr(self, name)]
        }

    @property
    def family(self) -> ScenarioLabel:
        """The scenario without MTBF and downtime. All scenarios of a sweep over both share it."""
        return self.replaced(mtbf_s=None, downtime_s=None)

    @property
    def failure_free(self) -> tuple[ScenarioLabel, ...]:
        """The same scenario without failures, once with checkpoints and once without them."""
        calm, text = ScenarioLabel(**self.conditions), self.checkpoint
        if text and text.endswith(")") and FOR_MTBF not in text and self.mtbf_s is not None:
            text = f"{text[:-1]}{FOR_MTBF}{exact(self.mtbf_s)})"
        return calm.replaced(checkpoint=text), calm

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
        if self.failure_model is None:
            return ["no failures", *self._rest()]
        spans = (("MTBF", self.mtbf_s), ("downtime", self.downtime_s))
        texts = [f"{name} {exact(span)}" for name, span in spans if span is not None]
        return [*texts, *self._rest()]

    @property
    def family_label(self) -> str:
        """The label of a sweep over MTBF and downtime."""
        return ", ".join(self._rest())

    def _rest(self) -> Iterator[str]:
        if self.checkpoint == USUAL_CHECKPOINTS:
            yield "Young/Daly checkpoints"
        else:
            yield f"checkpoints: {_MANY_DIGITS.sub(_rounded, self.checkpoint or 'none')}"
        if self.failure_model not in (None, "authors") or self.law:
            yield f"failures {self.failure_model}" + (f":{self.law}" if self.law else "")
        if self.horizon_s not in USUAL_HORIZONS_S:
            yield f"failures up to {exact(self.horizon_s)}"
        for name, column in _LABELLED:
            value, label = getattr(self, name), column.extra["label"]
            if value not in (None, column.default):
                yield label.format(value) if isinstance(label, str) else label(value)

    def replaced(self, **changes: Any) -> ScenarioLabel:
        """Return the scenario with other values in some columns."""
        return ScenarioLabel.of_cells(self.cells | changes)


_COLUMNS: dict[str, Declared] = dict(
    sorted(declared(ScenarioLabel).items(), key=lambda item: item[1].extra["added"])
)
"""The columns of the table that describe the scenario, in the order in which they were added."""

_LABELLED = sorted(
    ((name, column) for name, column in _COLUMNS.items() if column.extra["label"]),
    key=lambda item: item[1].extra["label_last"],
)

COLUMNS: dict[str, type] = {
    "workload": str,
    "policy": str,
    **{
        name: column.kind if column.kind in (int, float) else str
        for name, column in _COLUMNS.items()
    },
    "seed": int,
}
DETAILS: dict[str, type] = {"size_class": str}

SCENARIO_COLUMNS = tuple(_COLUMNS)
"""Names of the columns that describe the scenario."""


def labels(spec: RunSpec) -> dict[str, Any]:
    """Return the values of the columns that identify a run."""
    named = {"workload": spec.workload, "policy": spec.policy}
    return named | scenario_of(spec).cells | {"seed": _seed(spec.scenario)}


def about(spec: RunSpec) -> str:
    """Return a readable description of the run."""
    seed = _seed(spec.scenario)
    text = "" if seed is None else f", seed {seed}"
    return f"{spec.workload}, {spec.policy}, {scenario_of(spec).label}{text}"


def scenario_of(spec: RunSpec) -> ScenarioLabel:
    """Return the scenario of a run. It contains neither workload nor policy."""
    scenario, failures = spec.scenario, spec.scenario.failures
    return ScenarioLabel(
        failure_model=name_of(failures.law) if failures else None,
        mtbf_s=failures.mtbf_s if failures else None,
        downtime_s=failures.downtime_s if failures else None,
        law=_law_text(spec),
        horizon_s=failures.horizon_s if failures else None,
        checkpoint=_checkpoint_text(scenario),
        silent_errors=_silent_text(scenario),
        operations=scenario.operations.file if scenario.operations else None,
        **scenario.conditions,
    )


def _law_text(spec: RunSpec) -> str | None:
    """Return the start time, and the parameters of the law that have no separate column.

    Paths are relative to the folder of the campaign.
    """
    failures = spec.scenario.failures
    if failures is None:
        return None
    text = (failures.law.label() or "").replace(f"{spec.folder}/", "")
    begin = f"begin={failures.begin_s / 3600:.12g}h" if failures.begin_s else ""
    return ",".join(filter(None, (text, begin))) or None


def _seed(scenario: Scenario) -> int | None:
    """Return the common seed of failures and silent errors, or None if the run has neither."""
    drawn = scenario.silent_errors or scenario.failures
    return drawn.seed if drawn else None


def _checkpoint_text(scenario: Scenario) -> str | None:
    """Return the checkpoints as text. Add their MTBF if it differs from that of the failures."""
    model, failures = scenario.checkpoint, scenario.failures
    if model is None:
        return None
    if isinstance(model, PerfectCheckpoints):
        return "perfect"
    if isinstance(model, TierCheckpoints):
        return f"tiers {model.tiers}{FOR_MTBF}{exact(model.mtbf_s)}"
    costs = f"cost {exact(model.cost_s)}, recovery {exact(model.recovery_s)}"
    text = f"Young/Daly ({costs}, {model.rounding}"
    follows = failures is not None and failures.mtbf_s == model.mtbf_s
    return text + (")" if follows else f"{FOR_MTBF}{exact(model.mtbf_s)})")


def _silent_text(scenario: Scenario) -> str | None:
    errors = scenario.silent_errors
    if errors is None:
        return None
    if errors.probability is not None:
        return f"probability {errors.probability!r}"
    return f"rate {errors.rate!r}"


# ---- the reader


OLDEST = 4
"""Tables may lack columns with a higher rank (see `option`)."""

_LATER = ("begin_s", "trace_end_s")
"""Columns of other kinds of units that tables may lack."""


def read_results(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a kind of unit in the order of the file. Empty cells are None.

    If the table lacks a column because an earlier version wrote it, its cells are None.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"is not a table of results: {error}", str(path)) from None
    later = {name for name, column in _COLUMNS.items() if column.extra["added"] > OLDEST}
    for name in {*later, *_LATER} & {*columns} - {*table.columns}:
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
    runs, count = exactly(len(jobs), "run"), exactly(int(sum(jobs.values())), "job")
    return f"{runs} rejected {count} in total; flows do not include rejected jobs"
