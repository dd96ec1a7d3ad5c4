# SPDX-License-Identifier: Apache-2.0
"""The gain of node stealing for each difference between the paper and its program.

The gain is the value of a stealing policy divided by the value of Baseline with the same axes,
paired by seed. The effect of a difference is the change of this ratio, paired by seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.numbers import ratio, spread
from rebat.report.parts import Picture, Report, ReportMaker, means_note
from rebat.report.runs_index import RunIndex, Setting, simulations
from rebat.report.table import Table, bracketed
from rebat.report.usual import DRAWN, MARK, n_of, ratio_picture
from rebat.results.intervals import BySeed, Interval, interval, minus, ratios

from .runs import PROGRAM

ENDS = {"": "from the paper", PROGRAM: "from the program"}


def report(
    path: Path, tables: Sequence[Table], pictures: Sequence[Picture], provenance: Sequence[str]
) -> Report:
    """Return the report of a campaign's ``results.parquet``."""
    runs = RunIndex(simulations(path, str))
    own = list(_tables(runs))
    intervals = bracketed(row for table in own for row in table.rows)
    mark = f" {MARK} 1 (no gain) or 0 (no effect)." if intervals else ""
    return Report(
        title="What causes the gain of node stealing",
        lead=(
            "The paper of Du, Marchal, Pallez and Robert (CCPE 2024) and the authors' program "
            "differ in several rules. This report shows the ratio of node stealing to baseline "
            "for two versions: with the rules of the paper, and with the rules of the program. "
            "Other rows show the effect of one rule: the change of this ratio if the version "
            f"uses this rule of the other version. Ratios and effects are paired by seed.{mark}"
        ),
        judgements=[],
        tables=[*own, *tables],
        pictures=[*_pictures(runs), *pictures],
        provenance=provenance,
        figures_note="Points are means over seeds.",
        claims=False,
    )


class Named(NamedTuple):
    """The parts of a policy's name: version (a key of `ENDS`), name without version, and axes."""

    end: str
    name: str
    axes: frozenset[str]

    @property
    def difference(self) -> str:
        """The difference from the paper or from the program, as text.

        If an axis sets ``semantics``, the other axes are left out, because they only restore
        defaults that ``semantics`` would change.
        """
        if any(axis.startswith("semantics=") for axis in self.axes):
            return next(axis for axis in self.axes if axis.startswith("semantics="))
        return ", ".join(sorted(self.axes)) or "(none)"


def parsed(policy: str) -> Named:
    """Parse a policy of a campaign.

    >>> parsed("authors-h111:tie=order").name, parsed("h111").difference
    ('h111', '(none)')
    """
    name, _, text = policy.partition(":")
    end = PROGRAM if name.startswith(PROGRAM) else ""
    return Named(end, name.removeprefix(PROGRAM), frozenset(filter(None, text.split(","))))


def counterpart(policy: str, others: Iterable[str]) -> str | None:
    """Return the Baseline to compare a policy with.

    This Baseline has the same version, as many axes of the policy as possible, and no other axes.

    >>> counterpart("h111:margin=5", ["baseline", "baseline:margin=5", "authors-baseline"])
    'baseline:margin=5'
    >>> counterpart("h111:tie=id", ["baseline", "baseline:margin=5"])
    'baseline'
    """
    own = parsed(policy)
    bases = [
        (len(base.axes), name)
        for name in others
        if (base := parsed(name)).name == "baseline"
        and base.end == own.end
        and base.axes <= own.axes
    ]
    return max(bases)[1] if bases else None


def gain(runs: RunIndex[str], setting: Setting, policy: str, metric: str) -> BySeed:
    """Return the gain of a policy by seed: its value divided by that of its Baseline."""
    base = counterpart(policy, runs.cases(setting))
    return {} if base is None else ratios(*runs.paired(setting, policy, base, metric))


def _stealing(runs: RunIndex[str], setting: Setting, end: str) -> list[str]:
    """Return the stealing policies of a version. The policy without differences is first."""
    names = [name for name in runs.cases(setting) if parsed(name).end == end]
    return [name for name in names if parsed(name).name != "baseline"]


def _tables(runs: RunIndex[str]) -> Iterator[Table]:
    for setting in runs.settings:
        for end, title in ENDS.items():
            names = _stealing(runs, setting, end)
            if names:
                yield _table(runs, setting, title, names)


def _table(runs: RunIndex[str], setting: Setting, end: str, names: Sequence[str]) -> Table:
    first, *_ = names
    rows = []
    for name in names:
        row = [parsed(name).difference if name != first else "no difference"]
        for metric in DRAWN:
            ours = gain(runs, setting, name, metric.metric)
            row.append(spread(interval(ours), ratio, 1.0))
            if len(names) > 1:
                effect = interval(minus(ours, gain(runs, setting, first, metric.metric)))
                row.append(
                    "" if name == first else spread(effect, ratio._replace(signed=True), 0.0)
                )
        rows.append(row)
    columns = [end]
    for metric in DRAWN:
        columns += [f"{metric.heading}: ratio", *(["effect"] if len(names) > 1 else [])]
    note = means_note(n_of(runs, setting), rows)
    return Table("", f"{setting.label} ({setting.grid}), {end}", columns, rows, note)


def _pictures(runs: RunIndex[str]) -> Iterator[Picture]:
    for setting in runs.settings:
        names = [name for end in ENDS for name in _stealing(runs, setting, end)]
        shown: dict[str, dict[str, Interval]] = {}
        for metric in DRAWN:
            for name in names:
                ratio = interval(gain(runs, setting, name, metric.metric))
                if ratio is not None:
                    label = f"{ENDS[parsed(name).end]}: {parsed(name).difference}"
                    shown.setdefault(metric.heading, {})[label] = ratio
        if shown:
            title = f"{setting.label} ({setting.grid}): gain with each difference"
            over = n_of(runs, setting)
            yield ratio_picture(title, shown, "baseline with the same axes", over, over)


REPORT = ReportMaker(report, True)
