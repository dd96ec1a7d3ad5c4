# SPDX-License-Identifier: Apache-2.0
"""The gain of node stealing under each difference between the paper and its program.

The gain is the ratio of a stealing policy to Baseline with the same axes, paired by seed; the
effect of a difference is how much it changes that ratio, again seed by seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rebat.figures.ratios import ratios_svg
from rebat.papers.common.parts import Picture, Report, Table, marked
from rebat.papers.common.runs import METRICS, Metric, n_of
from rebat.papers.common.runs_evidence import Evidence
from rebat.papers.common.runs_index import Setting
from rebat.papers.node_stealing.evidence import PROGRAM
from rebat.papers.node_stealing.pairs import counterpart, parsed
from rebat.results.intervals import Interval, interval

SHOWN = METRICS[:4]
ENDS = {"": "from the paper", PROGRAM: "from the program"}


def report(
    path: Path, tables: Sequence[Table], pictures: Sequence[Picture], provenance: Sequence[str]
) -> Report:
    """What a campaign's ``results.parquet`` shows.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    evidence = Evidence(path)
    return Report(
        title="What drives the gain of node stealing",
        lead=(
            "The ratio of node stealing to Baseline with the same axes, as the paper of Du, "
            "Marchal, Pallez and Robert (CCPE 2024) says and as its program does, and with each "
            "difference between them alone. Ratios and effects are paired by seed; = marks what "
            "the seeds do not tell from no gain (1) or no effect (0)."
        ),
        judgements=[],
        tables=[*_tables(evidence), *tables],
        pictures=[*_pictures(evidence), *pictures],
        provenance=provenance,
        figures_note="A point is a mean over seeds, a line its 95 % interval.",
        claims=False,
    )


def gain(evidence: Evidence, setting: Setting, policy: str, metric: Metric) -> dict[int, float]:
    """The ratio to its Baseline, by seed."""
    base = counterpart(policy, evidence.cases(setting))
    if base is None:
        return {}
    ours, theirs = evidence.paired(setting, policy, base, metric.name, metric.of)
    return {seed: ours[seed] / theirs[seed] for seed in sorted(ours) if theirs.get(seed)}


def _stealing(evidence: Evidence, setting: Setting, end: str) -> list[str]:
    """The stealing policies of an end, itself first."""
    found = [name for name in evidence.cases(setting) if parsed(name).end == end]
    return [name for name in found if parsed(name).name != "baseline"]


def _tables(evidence: Evidence) -> Iterator[Table]:
    for setting in evidence.settings:
        for end, title in ENDS.items():
            names = _stealing(evidence, setting, end)
            if names:
                yield _table(evidence, setting, title, names)


def _table(evidence: Evidence, setting: Setting, end: str, names: Sequence[str]) -> Table:
    first, *_ = names
    rows = []
    for name in names:
        row = [parsed(name).difference if name != first else "the end itself"]
        for metric in SHOWN:
            ours = gain(evidence, setting, name, metric)
            row.append(marked(interval(list(ours.values()))))
            if len(names) > 1:
                base = gain(evidence, setting, first, metric)
                both = sorted(ours.keys() & base.keys())
                row.append("" if name == first else _effect([ours[s] - base[s] for s in both]))
        rows.append(row)
    columns = [end]
    for metric in SHOWN:
        columns += [f"{metric.heading}: ratio", *(["effect"] if len(names) > 1 else [])]
    note = f"means over {n_of(evidence, setting)}, 95 % intervals in brackets"
    return Table("", f"{setting.label} ({setting.grid}), {end}", columns, rows, note)


def _effect(values: Sequence[float]) -> str:
    return marked(interval(values), 0.0, "{:+.3f}".format)


def _pictures(evidence: Evidence) -> Iterator[Picture]:
    for setting in evidence.settings:
        names = [name for end in ENDS for name in _stealing(evidence, setting, end)]
        shown: dict[str, dict[str, Interval]] = {}
        for metric in SHOWN:
            for name in names:
                found = interval(list(gain(evidence, setting, name, metric).values()))
                if found is not None:
                    label = f"{ENDS[parsed(name).end]}: {parsed(name).difference}"
                    shown.setdefault(metric.heading, {})[label] = found
        if shown:
            title = f"{setting.label} ({setting.grid}): the gain under each difference"
            over = n_of(evidence, setting)
            svg = ratios_svg(shown, "Baseline with the same axes", over)
            yield Picture("", title, svg, over)
