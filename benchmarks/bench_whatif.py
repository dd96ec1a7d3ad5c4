# SPDX-License-Identifier: Apache-2.0
"""Times of `rebat whatif` for a month of Mira: first answer, hundred seeds, and a map.

    python -m benchmarks.bench_whatif

The loop has to be compiled (`rebat warmup`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rebat.api.workloads import load_workload
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.whatif.answers import MOST_SEEDS, Answer, Answers, MapPlan
from rebat.studies.whatif.question import CONTROLS, started

MONTH = "mira-like-june-2017"


def waited(answers: Answers, until: Callable[[Answer], bool]) -> float:
    """Return the time in seconds until a condition holds."""
    began = time.perf_counter()
    while (answer := answers.answer) is None or not until(answer):
        time.sleep(0.01)
    return time.perf_counter() - began


def main() -> None:
    """Print the times."""
    options = ScenarioOptions(mtbf=3600.0, downtime=3600.0, checkpoint="young-daly")
    question = started(load_workload(MONTH), MONTH, options, ("baseline", "sfsj"))
    answers = Answers()
    answers.ask(question)
    print(f"first answer of a new page  {waited(answers, lambda a: a.n_seeds >= 1):6.2f} s")
    for setting in (2 * 3600.0, 1800.0):
        answers.ask(question.with_value("mtbf", setting))
        seconds = waited(answers, lambda a: a.n_seeds >= 1)
        print(f"first answer after a change {seconds:6.2f} s")
    seconds = waited(answers, lambda a: a.complete)
    print(f"{MOST_SEEDS} seeds of two policies   {seconds:6.2f} s")
    mtbf, downtime = (
        next(control.offered(question) for control in CONTROLS if control.name == name)
        for name in ("mtbf", "downtime")
    )
    plan = MapPlan(
        "mtbf", "downtime", tuple(mtbf[:12]), tuple(downtime[::2][:8]), ("useful_utilisation", None)
    )
    answers.ask(question.with_value("mtbf", 1800.0), plan)
    coarse = waited(answers, lambda a: len(a.cells) >= 6)
    filled = waited(answers, lambda a: len(a.cells) == len(plan.x_values) * len(plan.y_values))
    ended = waited(answers, lambda a: a.complete)
    print(f"map of {len(plan.x_values)} x {len(plan.y_values)}: coarse {coarse:.1f} s, all cells "
          f"{coarse + filled:.1f} s, complete {coarse + filled + ended:.1f} s")  # fmt: skip
    answers.close()


if __name__ == "__main__":
    main()
