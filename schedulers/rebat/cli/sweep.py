# SPDX-License-Identifier: Apache-2.0
"""``rebat sweep``: the best policy for each combination of values of one or two parameters."""

from __future__ import annotations

from typing import Annotated

from rebat.api.figure_files import FigureWidth, file_forms
from rebat.cli.command import Values, command, used_options
from rebat.cli.options import Folder, WorkloadFile
from rebat.cli.scenario_options import LAW, PREPARATION, RUN, laws, scenario_options
from rebat.console.output import print_result
from rebat.core.declared import Count, extra
from rebat.core.errors import InputError


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
    scenario: Annotated[Values, scenario_options("failures", *LAW)],
    others: Annotated[Values, scenario_options("horizon", "begin", *PREPARATION, *RUN)],
    seeds: Annotated[
        Count, "Number of seeds of the failures. All policies and values have the same seeds."
    ] = 10,
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
    from rebat.api.over import arguments_of, checked_options, values_of
    from rebat.api.site import failures_of, policies_of, site_in
    from rebat.api.sweep import FORMS, sweep

    file_forms(",".join(FORMS), figure_width)
    values = dict(map(values_of, over))
    if len(values) != len(over) or len(values) > 2:
        raise InputError(f"is {', '.join(over)}", "--over", "one or two different parameters")
    site = site_in(workload)
    options = failures_of(site, checked_options(scenario | others, used_options(), values), True)
    arguments = arguments_of(options, values)
    result = sweep(
        workload,
        list(policies_of(site, policies)),
        seeds=seeds,
        workers=workers,
        out=out,
        **arguments,
    )
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
