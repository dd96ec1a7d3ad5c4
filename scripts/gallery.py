# SPDX-License-Identifier: Apache-2.0
"""Simulate the questions of the gallery, and write their tables, pictures and page.

    python scripts/gallery.py           # all questions (about ten minutes on two cores)
    python scripts/gallery.py stealing  # one question
    python scripts/gallery.py --page    # only the page, from the tables

The tables and pictures are in docs/gallery/, the page is docs/gallery.md. The commands of the page
are those that were run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rebat.api.sweep import SweepResult
from rebat.campaign.store import TABLE
from rebat.cli.main import cli
from rebat.core.numbers import exact, share
from rebat.figures.canvas import save
from rebat.figures.winner_map import Axis, winner_map
from rebat.results.comparison import Runs, winner

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/gallery"
PAGE = ROOT / "docs/gallery.md"
USEFUL = ("useful_utilisation", None)


class Question(NamedTuple):
    """A question of the gallery: its title, its commands, and the paragraph after the answer."""

    name: str
    title: str
    commands: tuple[str, ...]
    text: str


MONTH = "rebat sweep mira-like-june-2017 --checkpoint young-daly"
SMALL = "rebat sweep small.json.gz"
MADE = "rebat workload prepare synthetic-small --drop-checkpoints -o small.json.gz"

QUESTIONS = (
    Question(
        "stealing",
        "When does node stealing pay?",
        (f"{MONTH} -p baseline -p sfsj --over mtbf=20min..10h:8 --over downtime=10min..1d:6 "
         "--out out/stealing",),
        "Under Baseline, an interrupted job waits in the queue. Under SFSJ, the job takes a "
        "node from the smallest running job if no node is free. Stealing pays most where "
        "failures are frequent and nodes return soon.",
    ),
    Question(
        "spares",
        "How many spare nodes?",
        ("rebat sweep synthetic-small -p baseline -p baseline:react=replacement,spares={spares} "
         "--downtime 2h --over mtbf=30min..16h:6 --over spares=0..16:5 --seeds 20 "
         "--out out/spares",),
        "Baseline reserves no nodes. The other policy reserves spare nodes, which do no work "
        "until a node fails. The jobs of this workload need more node time than the machine "
        "has while they arrive, so a reserved node costs more than it saves. With 0 spare "
        "nodes, the other policy replaces a failed node with a free node.",
    ),
    Question(
        "period",
        "Which checkpoint period?",
        (f"{MONTH} -p baseline -p sfsj --mtbf 1h --downtime 1h "
         "--over checkpoint-mtbf=6min..10h:9 --out out/period",),
        "The failures have an MTBF of 1 h. Here, the Young/Daly period uses other MTBFs. "
        "Checkpoints that are too frequent cost node time, and so do checkpoints that are too "
        "rare. Around 1 h, the curves are flat.",
    ),
    Question(
        "easy",
        "What does EASY cost against conservative backfilling under failures?",
        (f"{MONTH} -p baseline -p easy --downtime 1h --over mtbf=20min..10h:6 "
         "--over load=0.7..1.3:5 --out out/easy",),
        "Baseline is conservative backfilling: each job in the queue has a reservation. Under "
        "EASY, only the first job has one.",
    ),
    Question(
        "torus",
        "How much does a torus cost?",
        (f"{MONTH} -p baseline -p torus-first --downtime 1h --over mtbf=1h..16h:3 "
         "--over load=0.8,1,1.2 --seeds 5 --out out/torus",),
        "torus-first allocates a box of the torus to each job. A box is often larger than its "
        "job, and all nodes of a box have to be up.",
    ),
    Question(
        "spare-or-checkpoint",
        "When is a hot spare better than a checkpoint?",
        (MADE,
         f"{SMALL} -p baseline --downtime 2h --checkpoint young-daly --over mtbf=30min..16h:6 "
         "--over checkpoint-cost=10s..10min:5 --seeds 20 --out out/checkpoints",
         f"{SMALL} -p baseline:react=replacement,spares=8 --downtime 2h "
         "--over mtbf=30min..16h:6 --seeds 20 --out out/hot-spares"),
        "A spare node replaces a failed node immediately, but the work of the interrupted job "
        "is lost. Without checkpoints, the job starts again from the beginning.",
    ),
)  # fmt: skip


def answer(question: Question) -> None:
    """Run the commands of a question in an empty folder, and keep their table and picture."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for command in question.commands:
                cli.main(shlex.split(command)[1:], standalone_mode=False)
            out = [
                Path(folder) / path
                for path in re.findall(r"--out (\S+)", " ".join(question.commands))
            ]
            if len(out) == 1:
                table = pd.read_csv(out[0] / "sweep.csv")
                picture = next(iter(sorted(out[0].glob("*.png"))))
                shutil.copy(picture, FOLDER / f"{question.name}.png")
            else:
                table = joined(*out, FOLDER / f"{question.name}.png")
            table.to_csv(FOLDER / f"{question.name}.csv", index=False, float_format="%.6g")
        finally:
            os.chdir(ROOT)


def joined(checkpoints: Path, spares: Path, picture: Path) -> pd.DataFrame:
    """Compare checkpoints of any cost with spares, cell by cell, and draw the map."""
    frames = {
        "checkpoints": SweepResult(checkpoints / TABLE).frame,
        "8 spare nodes": SweepResult(spares / TABLE).frame,
    }
    rows, cells = [], {}
    costs = sorted(frames["checkpoints"]["checkpoint_cost"].unique())
    mtbfs = sorted(frames["checkpoints"]["mtbf"].unique())
    for mtbf in mtbfs:
        for cost in costs:
            runs: Runs[str] = Runs([*frames])
            for name, frame in frames.items():
                of = frame[(frame["mtbf"] == mtbf) & (frame["metric"] == USEFUL[0])]
                if "checkpoint_cost" in of:
                    of = of[of["checkpoint_cost"] == cost]
                for seed, value in zip(of["seed"], of["value"], strict=True):
                    runs.add(seed, name, [(*USEFUL, value)])
            best = winner(runs, USEFUL)
            assert best is not None
            cells[mtbf, cost] = best
            lead = best.lead
            rows.append((mtbf, cost, best.policy, best.second, lead.mean, lead.low, lead.high,
                         best.decided, lead.n))  # fmt: skip
    title = "better by useful utilisation, lead in %"
    axes = Axis.of("MTBF", mtbfs, True), Axis.of("checkpoint cost", costs, True)
    save(winner_map(cells, *axes, [*frames], title), picture)
    names = ["mtbf", "checkpoint_cost", "winner", "second", "lead", "low", "high", "decided", "n"]
    return pd.DataFrame(rows, columns=names)


def page() -> str:
    """Return the page, from the tables."""
    parts = [HEAD]
    for question in QUESTIONS:
        table = pd.read_csv(FOLDER / f"{question.name}.csv")
        commands = "\n".join(folded(command) for command in question.commands)
        parts += [
            f"## {question.title}\n",
            f"![{question.title}](gallery/{question.name}.png)\n",
            textwrap.fill(f"{facts(table)} {question.text}", 120) + "\n",
            f"<!-- needs: minutes -->\n```sh\n{commands}\n```\n",
        ]
    return "\n".join(parts)


def folded(command: str) -> str:
    """Break a long command before options."""
    lines = [""]
    for word in re.split(r" (?=--?\w)", command):
        if lines[-1] and len(lines[-1]) + len(word) > 90:
            lines.append("   ")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return " \\\n".join(lines)


def facts(table: pd.DataFrame) -> str:
    """Return sentences on a table: in how many combinations each policy is decided to be best."""
    if "winner" not in table:
        best = table.loc[table.groupby("policy")["mean"].idxmax()].to_dict("records")
        axis = table.columns[2]
        return " ".join(
            f"The highest useful utilisation of {row['policy']} is {share(row['mean'])}, at "
            f"{axis.replace('_', ' ')} {exact(row[axis])}."
            for row in best
        )
    decided = table[table["decided"]]
    counts = decided["winner"].value_counts()
    parts = [
        f"{n} of {len(table)} combinations are decided for {name}" for name, n in counts.items()
    ]
    text = f"{', '.join(parts)}, and {len(table) - len(decided)} are not decided."
    if decided.empty:
        return text
    top = decided.loc[decided["lead"].idxmax()]
    x, y = table.columns[:2]
    where = ", ".join(f"{name.replace('_', ' ')} {value_text(name, top[name])}" for name in (x, y))
    return f"{text} The largest decided lead is {share(top['lead'])} ({top['winner']}, {where})."


def value_text(name: str, value: float) -> str:
    """Return a value of a parameter as text."""
    return exact(value) if name in ("mtbf", "downtime", "checkpoint_cost") else f"{value:g}"


HEAD = """# Gallery: six questions and their pictures

Each picture answers a question about a workload that rebat includes. In the maps, the colour of a
cell is the policy with the higher useful utilisation. The number is its lead over the other policy
in per cent of the latter. Hatched cells are not decided: the 95 % interval of the lead contains 0,
or the policies had different work in the measured time. To use other values, change the command, or
open the page of [`rebat whatif`](how-to/whatif.md) and move the sliders.

The script `python scripts/gallery.py` runs the commands below and draws the pictures.
"""


def main() -> None:
    """Answer the questions that the arguments name (default: all), and write the page."""
    names = [argument for argument in sys.argv[1:] if argument != "--page"]
    FOLDER.mkdir(exist_ok=True)
    for question in QUESTIONS:
        if "--page" not in sys.argv and (not names or question.name in names):
            answer(question)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
