# SPDX-License-Identifier: Apache-2.0
"""``rebat sweep``: the best policy for each combination of values of one or two parameters."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec.structs import replace

from rebat.api.figure_files import FigureWidth, file_forms
from rebat.cli.command import Values, command
from rebat.cli.options import Folder, WorkloadFile
from rebat.cli.scenario_options import LAW, PREPARATION, RUN, given_in, laws, scenario_options
from rebat.console.output import print_result
from rebat.core.declared import Count, extra
from rebat.core.errors import InputError, error_at, short
from rebat.core.units import parse_duration
from rebat.runs.case import MOST_RUNS


@command(laws)
def sweep(
    workload: WorkloadFile,
    *,
    over: Annotated[
        tuple[str, ...],
        "Parameter and its values: NAME=LOW..HIGH:N (N values; durations with a unit at equal ratios, numbers without a unit at equal steps) or NAME=VALUE,VALUE,... NAME is an option (mtbf, downtime, checkpoint-cost, nodes, load, ...), a parameter of --law, or a name in braces in a policy, like baseline:react=replacement,spares={spares}. Repeat the option for a second parameter.",
        extra(metavar="NAME=VALUES"),
    ],
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy to simulate, as in 'rebat run' (default: the policy of the site); repeat the option.",
        extra(values="policy"),
    ] = (),
    scenario: Annotated[Values, scenario_options("failures", *LAW, "seed")],
    others: Annotated[Values, scenario_options("horizon", "begin", *PREPARATION, *RUN)],
    seeds: Annotated[
        Count | None,
        "Number of seeds of the failures. All policies and values have the same seeds (default: 10, or 1 if nothing is random).",
    ] = None,
    metric: Annotated[
        str,
        "Metric that decides which policy is best. Use a name from comparison.csv, like flow_mean_s:all.",
        extra(values="metric"),
    ] = "useful_utilisation",
    workers: Annotated[Count | None, "Number of workers (default: one per core)."] = None,
    figure_width: FigureWidth = None,
    out: Annotated[
        Folder,
        "Folder for the results. To continue after an interruption, run the same command again.",
    ],
) -> None:
    """Simulate policies for all values of one or two parameters, and map the best policy.

    OUT contains sweep.csv, results.parquet (all metrics of all runs), and a picture as PNG, SVG and
    PDF. With two parameters and several policies, sweep.csv has the best policy of each combination
    and its lead over the second best with a 95 % interval, and the picture is a map. Otherwise,
    sweep.csv has the mean of each policy and value, and the picture has a line per policy. The number of runs is the product of the numbers of values, policies and seeds.

    \b
    Example (when does node stealing pay? Figure 9 of Du et al. 2024):
      rebat sweep mira-like-june-2017 -p baseline -p sfsj --checkpoint young-daly \\
          --over mtbf=20min..10h:12 --over downtime=10min..1d:8 --out out/when
    """
    from rebat.api.sweep import FORMS, sweep_case, swept_case
    from rebat.api.workloads import load_workload

    file_forms(",".join(FORMS), figure_width)
    values = dict(map(values_of, over))
    if len(values) != len(over) or len(values) > 2:
        raise InputError(f"is {', '.join(over)}", "--over", "one or two different parameters")
    given, door = given_in(scenario | others)
    for name in values:
        if name in given:
            expected = f"only one of {door.place(name)} and --over {name}"
            raise InputError("has no effect", door.place(name), expected)
    places = {**door.places, **{name: f"--over {name}" for name in values}}
    case = sweep_case(workload, policies, given | values, replace(door, places=places), seeds)
    result = swept_case(case, load_workload(workload).origin, out, workers)
    table = result.winners if result.maps else result.means
    table(metric).to_csv(out / "sweep.csv", index=False)
    plot, name = (result.map(metric), "map") if result.maps else (
        result.plot(metric), "lines"
    )  # fmt: skip
    for form in FORMS:
        plot.save(out / f"{name}.{form}", figure_width)
    print_result(
        f"{result.verdict(metric)}\n\nresults in {out}\npicture: {out / name}.png",
        f"the results are in {out}",
    )


def values_of(text: str) -> tuple[str, list[Any]]:
    """Return the name and the values of ``--over``.

    >>> values_of("mtbf=15min..4h:3"), values_of("spares=0..8:3"), values_of("load=0.8,1,1.2")
    (('mtbf', [900.0, 3600.0, 14400.0]), ('spares', [0, 4, 8]), ('load', [0.8, 1, 1.2]))
    """
    name, equals, listed = text.partition("=")
    span = re.fullmatch(r"(.+)\.\.(.+):(\d+)", listed)
    expected = "NAME=LOW..HIGH:N or NAME=VALUE,VALUE,..."
    name = name.strip().replace("-", "_")
    if not equals or not name or not listed:
        raise InputError(f"is {short(text)}", "--over", expected)
    with error_at("--over"):
        if span is None:
            return name, [_value(each) for each in listed.split(",")]
        low, high, n = _value(span[1]), _value(span[2]), int(span[3])
        if not low < high or not 2 <= n <= MOST_RUNS:
            rest = f"LOW below HIGH, N from 2 to {MOST_RUNS:,}"
            raise InputError(f"is {short(text)}", expected=f"{expected}, {rest}")
        if span[1].strip()[-1].isalpha() and low > 0:
            values = [_rounded(low * (high / low) ** (k / (n - 1))) for k in range(n)]
        else:
            steps = [low + (high - low) * k / (n - 1) for k in range(n)]
            whole = isinstance(low, int) and isinstance(high, int)
            values = [round(step) if whole else round(step, 9) for step in steps]
        return name, list(dict.fromkeys(values))


def _value(text: str) -> Any:
    """Return a number, or a duration in seconds."""
    text = text.strip()
    if text[-1:].isalpha():
        return parse_duration(text)
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise InputError(f"{short(text)} is not a number", expected="like 5, 0.5 or 5min") from None


def _rounded(seconds: float) -> float:
    """Round a duration of at least a minute to whole seconds."""
    return float(round(seconds)) if seconds >= 60 else round(seconds, 6)
