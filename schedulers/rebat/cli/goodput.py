# SPDX-License-Identifier: Apache-2.0
"""``rebat goodput``: effective training time of one job."""

from __future__ import annotations

from typing import Annotated

from rebat.cli.command import Values, command, options_of
from rebat.cli.options import Json, NewFile
from rebat.console.output import print_result
from rebat.studies.goodput import goodput as computed_goodput


@command()
def goodput(
    *,
    case: Annotated[Values, options_of(computed_goodput)],
    as_json: Json = False,
    out: Annotated[
        NewFile | None,
        "-o",
        "--out",
        "Also simulate other intervals and numbers of spare nodes, and write a page (HTML).",
    ] = None,
) -> None:
    """Compute the effective training time (ETTR) of one job on many nodes.

    ETTR is the productive time divided by the wall-clock time. The command computes it with a
    formula, and also simulates it on the engine, with a 95 % interval. While a failure is being
    detected, the job does not run, so no other failure can hit it. While the job writes or loads a
    checkpoint, a failure can hit it.

    \b
    Examples:
      rebat goodput --nodes 128 --rate 6.5 --detect 5min --load 10min --interval 1h --write 30s
      rebat goodput --nodes 2048 --model llama3 --detect 2min --load 6min --write 10s --spares 16
    """
    result = computed_goodput(**case)
    page = ""
    if out is not None:
        result.write(out)
        page = "" if as_json else f"\n\npage in {out}"
    print_result((result.json if as_json else result.text) + page, saved=f"the page is in {out}")
