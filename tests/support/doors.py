# SPDX-License-Identifier: Apache-2.0
"""The doors to a simulation give equal numbers, or the same error at the same place.

A draw is a set of options with their values as texts. All names and values follow from the
declarations of the options, so that a new option is drawn without a change here. Each door gets the
same texts in its own form.

``python -m tests.support.doors 500`` compares 500 draws, ``... 500 1000`` those from seed 1000 on.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import click
import pandas as pd

import rebat
from rebat.api.cases import single_options
from rebat.api.sweep import SweepResult
from rebat.campaign import run as campaign_run
from rebat.campaign.grid import ALIASES
from rebat.campaign.opening import open_campaign
from rebat.campaign.store import Store
from rebat.campaign.tables import failures
from rebat.cli.main import cli
from rebat.cli.run import run as run_command
from rebat.core.declared import Declared
from rebat.core.errors import InputError, PolicyError
from rebat.core.jobs import Job, Workload
from rebat.models.failures.laws import LAWS, law_named, parameters
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from rebat.runs.case import PYTHON, case_of, combinations
from rebat.runs.scenario import OPTIONS
from rebat.runs.simulating import simulate_run
from rebat.studies.whatif.question import started
from rebat.studies.whatif.saved import tables_of, toml
from rebat.workloads.batsim_json import write_workload

N_NODES = 8
POLICIES = ("baseline", "sfsj")
ALWAYS = {"max_attempts": "20"}
"""An option of all draws. Without it, what if has another default."""


# ---- draws


class Draw(NamedTuple):
    """Options with their values as texts, and an option with a second value."""

    given: dict[str, str]
    swept: str
    second: str


def drawn(rng: random.Random, folder: Path) -> Draw:
    """Return random options. Two thirds of the draws contain what most options need."""
    given = dict(ALWAYS)
    base: list[dict[str, str]] = [
        {},
        {"mtbf": "40s", "downtime": "5s"},
        {"mtbf": "40s", "downtime": "5s", "checkpoint": "young-daly", "checkpoint_cost": "1s"},
        {"law": law(rng, folder)},
    ]
    given |= rng.choices(base, weights=(1, 2, 2, 1))[0]
    for name in rng.sample(sorted(OPTIONS), rng.randint(1, 4)):
        given[name] = text(rng, OPTIONS[name], folder)
    if "mtbf" in given or "law" in given:
        given.setdefault("horizon", "3min")  # otherwise, large jobs might never complete
    swept = rng.choice([name for name in given if is_number(OPTIONS[name])])
    second = given[swept]
    while value(OPTIONS[swept], second) == value(OPTIONS[swept], given[swept]):
        second = text(rng, OPTIONS[swept], folder)
    return Draw(given, swept, second)


def is_number(option: Declared) -> bool:
    """Return whether the values of an option are numbers or durations, of which none is a seed."""
    return option.kind in (int, float) and option.name != "seed"


def text(rng: random.Random, option: Declared, folder: Path) -> str:
    """Return a valid value of an option as text."""
    if option.choices:
        return str(rng.choice(option.choices))
    if examples := option.extra.get("examples"):
        return str(rng.choice(examples))
    if option.is_duration:
        return rng.choice(["2s", "7s", "20s", "1min", "3min"])
    if option.kind is int:
        low = int(option.limits.get("ge", 0))
        return str(rng.randint(low, low + 3) + (N_NODES if option.extra.get("machine") else 0))
    if option.kind is float:
        low, high = option.limits.get("gt", option.limits.get("ge", 0.0)), option.limits.get("lt")
        if high is None and "le" not in option.limits:
            return f"{10 ** rng.uniform(-5, -3):.3g}"
        return f"{rng.uniform(low + 0.05, min(high or 2.0, 2.0)):.3g}"
    if option.name == "law":
        return law(rng, folder)
    return str(file(rng, option.extra.get("file", option.name), folder))


def file(rng: random.Random, kind: str, folder: Path) -> Path:
    """Return a file of failures or of operations."""
    path = folder / f"{kind}-{rng.randrange(10**6)}.events"
    lines, at_s = [], 0
    for _ in range(rng.randint(1, 4)):
        node, at_s = rng.randrange(N_NODES), at_s + rng.randint(1, 9)
        names = ("drain", "undrain") if kind == "operations" else (
            "machine_unavailable", "machine_available"
        )  # fmt: skip
        key = "nodes" if kind == "operations" else "resources"
        lines += [{"timestamp": at_s, "type": names[0], key: str(node)}]
        at_s += rng.randint(1, 9)
        lines += [{"timestamp": at_s, "type": names[1], key: str(node)}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def law(rng: random.Random, folder: Path) -> str:
    """Return a law with its required parameters."""
    name = rng.choice([*LAWS, "rsc-1"])
    values = {}
    for key, field in parameters(name).items():
        if field.required and name in LAWS:
            kinds = {int: lambda: "2", float: lambda: f"{rng.uniform(1, 3):.2g}"}
            times = rng.choice(["30s", "1min", "5min"])
            files = key in law_named(name).paths
            values[key] = (
                str(file(rng, "failures", folder)) if files
                else times if field.name.endswith("_s")
                else kinds.get(field.type, lambda: "2")()
            )  # fmt: skip
    if name == "record":
        values["format"] = "events"
    return f"{name}:" + ",".join(f"{k}={v}" for k, v in values.items()) if values else name


def workload(folder: Path) -> Path:
    """Write a workload of twelve jobs."""
    jobs = [
        Job(f"j{n}", 1 + (5 * n) % 6, n * 3_000_000, (20 + 3 * n) * 1_000_000, f"d{n % 4}")
        for n in range(12)
    ]
    profiles = {f"d{n}": {"type": "delay", "delay": 10 + 5 * n} for n in range(4)}
    path = folder / "jobs.json"
    write_workload(Workload("jobs", N_NODES, tuple(jobs), profiles), path)
    return path


# ---- outcomes

Numbers = dict[tuple[str, int, str, str], float]
"""Values by policy, seed, metric and size class."""


class Refusal(NamedTuple):
    """An error: its option, if it names one, and the problem."""

    option: str
    problem: str


Outcome = Numbers | Refusal

RANDOM = "has no effect: nothing is random"

NAMES = {
    flag: option.name
    for option in run_command.params
    for flag in option.opts
    if option.name in OPTIONS
}
"""The name of each option by its spelling on the command line."""


def outcome(door: Callable[[], Numbers]) -> Outcome:
    """Return the numbers of a door, or its refusal."""
    told, shown = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(told):
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(shown):
                return door()
    except InputError as error:
        where = re.sub(r"^.*?\.toml: ", "", error.where or "")
        where = re.sub(r"^grid\[0\]\.?|^--over ", "", where).split(" ")[0]
        table, _, key = where.partition(".")
        where = ALIASES.get(table, {}).get(key, where)
        where = NAMES.get(where, where)
        return Refusal(where if where in OPTIONS else "", PYTHON.text(error.problem))
    except click.UsageError as error:
        option = getattr(getattr(error, "param", None), "name", "") or ""
        return Refusal(option, error.message)
    except PolicyError as error:
        return Refusal("", str(error))
    except SystemExit:
        return Refusal("", told.getvalue())


def flat(policy: str, seed: int, metrics: dict[str, Any]) -> Numbers:
    """Return the metrics of a run."""
    return {(policy, seed, name, of or ""): v for name, of, v in flat_metrics(metrics)}


# ---- doors


class Doors:
    """The doors, for one draw. Each method returns the numbers of ``n_seeds`` seeds."""

    def __init__(self, draw: Draw, workload: Path, folder: Path, n_seeds: int = 2) -> None:
        self.draw, self.workload, self.folder, self.n_seeds = draw, workload, folder, n_seeds
        folder.mkdir()

    def _flags(self, *without: str) -> list[str]:
        words = ["-p", POLICIES[0], "-p", POLICIES[1]]
        for name, value in self.draw.given.items():
            if name not in without:
                words += [f"--{name.replace('_', '-')}", value]
        return words

    def _keywords(self, *without: str) -> dict[str, Any]:
        """Return the options as keywords: numbers as numbers, all others as texts."""
        return {
            name: value(OPTIONS[name], text)
            for name, text in self.draw.given.items()
            if name not in without
        }

    @property
    def first(self) -> int:
        """The first seed."""
        return int(self.draw.given.get("seed", 0))

    def run(self) -> Numbers:
        """``rebat run``, once for each seed."""
        numbers: Numbers = {}
        for seed in range(self.n_seeds):
            out = self.folder / f"run-{seed}"
            seeds = ["--seed", str(self.first + seed)] if self.first + seed else []
            words = [str(self.workload), *self._flags("seed"), *seeds, "--out", str(out)]
            cli.main(["run", *words], standalone_mode=False)
            for policy in POLICIES:
                text = (out / policy / "summary.json").read_text()
                numbers |= flat(policy, self.first + seed, json.loads(text)["metrics"])
        return numbers

    def run_seeds(self) -> Numbers:
        """``rebat run --seeds``."""
        out = self.folder / "seeds"
        if self.n_seeds == 1:
            raise Skipped
        words = [str(self.workload), *self._flags(), "--seeds", str(self.n_seeds), "--workers", "1"]
        cli.main(["run", *words, "--out", str(out)], standalone_mode=False)
        rows = csv.DictReader((out / "seeds.csv").open())
        return {
            (row["policy"], int(row["seed"]), row["metric"], row["size_class"]): float(row["value"])
            for row in rows
        }

    def python_run(self) -> Numbers:
        """``rebat.run`` with a number of seeds."""
        return self._called(**self._keywords())

    def _called(self, **keywords: Any) -> Numbers:
        if self.n_seeds > 1:
            keywords |= {"seeds": self.n_seeds, "workers": 1}
        result = rebat.run(self.workload, POLICIES, **keywords)
        return {(p, seed, name, of or ""): v for seed, p, name, of, v in result.seeds}

    def with_failures(self) -> Numbers:
        """``rebat.run`` with the result of ``rebat.failures``."""
        keywords = self._keywords()
        if any(value == OPTIONS[name].default for name, value in keywords.items()):
            raise Skipped  # the function does not know whether a default was given
        names = [name for name in keywords if OPTIONS[name].extra["group"] in (
            "law", "draw", "correlation"
        )]  # fmt: skip
        of_failures = {"file" if n == "failures" else n: keywords.pop(n) for n in names}
        failures = rebat.failures(**of_failures) if of_failures else None
        return self._called(failures=failures, **keywords)

    def sweep(self) -> Numbers:
        """``rebat sweep`` over one of the options."""
        out, name = self.folder / "sweep", self.draw.swept
        over = f"{name.replace('_', '-')}={self.draw.given[name]},{self.draw.second}"
        words = [str(self.workload), *self._flags(name), "--over", over]
        seeds = ["--seeds", str(self.n_seeds)] if self.n_seeds > 1 else []
        words += [*seeds, "--workers", "1", "--out", str(out)]
        plot = mock.Mock()
        with mock.patch.object(SweepResult, "plot", plot), self._inline():
            cli.main(["sweep", *words], standalone_mode=False)
        return self._of_table(out / "results.parquet")

    def python_sweep(self) -> Numbers:
        """``rebat.sweep`` over one of the options."""
        out, name = self.folder / "python-sweep", self.draw.swept
        keywords = self._keywords()
        keywords[name] = [keywords[name], value(OPTIONS[name], self.draw.second)]
        with self._inline():
            rebat.sweep(
                self.workload, POLICIES, out=out, seeds=self.n_seeds if self.n_seeds > 1 else None,
                **keywords,
            )  # fmt: skip
        return self._of_table(out / "results.parquet")

    def campaign(self) -> Numbers:
        """A campaign file with the options as keys of its grid."""
        return self._campaign("campaign", {**self._keywords("seed"), "seeds": self._seeds})

    @property
    def _seeds(self) -> list[int]:
        return [self.first + seed for seed in range(self.n_seeds)]

    def tables(self) -> Numbers:
        """A campaign file with the older tables of a grid."""
        given = self._keywords("seed")
        if {"law", "model", "failures"} & {*given} or not {"mtbf", "checkpoint"} <= {*given}:
            raise Skipped  # the tables have other defaults
        places = {
            option: (table, key)
            for table, aliases in ALIASES.items()
            for key, option in aliases.items()
        }
        keys: dict[str, Any] = {}
        tables: dict[str, dict[str, Any]] = {}
        for name, of in given.items():
            if name in places:
                table, key = places[name]
                tables.setdefault(table, {})[key] = of
            else:
                keys[name] = of
        for name in {"mtbf", "downtime"} & {*keys}:
            tables.setdefault("failures", {})[name] = keys.pop(name)
        return self._campaign("tables", {**keys, "seeds": self._seeds, **tables})

    def saved(self) -> Numbers:
        """The campaign file that what if saves."""
        question = self._question()
        tables = tables_of(question, {})
        tables["grid"][0]["seeds"] = self._seeds
        return self._performed("saved", toml(tables, "saved"))

    def whatif(self) -> Numbers:
        """The numbers of what if."""
        question, numbers = self._question(), Numbers()
        if not question.random and self.n_seeds > 1:
            raise InputError(RANDOM, "--seeds")
        for seed in self._seeds:
            for unit in question.units(seed):
                metrics = as_json(simulate_run(unit).summary)
                numbers |= flat(unit.spec.policy, seed, metrics)
        return numbers

    def _question(self) -> Any:
        options = single_options(case_of(self._keywords(), (), PYTHON))
        if options.failure_law() is None:
            raise Skipped
        return started(rebat.load_workload(self.workload), str(self.workload), options, POLICIES)

    def _campaign(self, name: str, keys: dict[str, Any]) -> Numbers:
        grid = {"name": name, "workloads": ["jobs"], "policies": [*POLICIES], **keys}
        workloads = {"jobs": {"file": str(self.workload)}}
        return self._performed(name, toml({"workloads": workloads, "grid": [grid]}, name))

    def _performed(self, name: str, text: str) -> Numbers:
        file, out = self.folder / f"{name}.toml", self.folder / name
        file.write_text(text)
        campaign = open_campaign(file)
        status = campaign_run.run_campaign(campaign, out, executor="inline")
        if status.failed:
            raise PolicyError(failures(campaign, Store(out))[0][1])
        return self._of_table(out / "results.parquet")

    @staticmethod
    def _inline() -> Any:
        inline = partial(campaign_run.run_campaign, executor="inline")
        return mock.patch("rebat.api.sweep.run_campaign", inline)

    def _of_table(self, path: Path) -> Numbers:
        """Return the numbers of the first value of a swept option. Its rows are first."""
        numbers: Numbers = {}
        firsts: dict[tuple[str, int], str] = {}
        for row in pd.read_parquet(path).itertuples():
            seed = self.first if pd.isna(row.seed) else int(row.seed)
            of = "" if pd.isna(row.size_class) else row.size_class
            if firsts.setdefault((row.policy, seed), row.key) == row.key:
                numbers[row.policy, seed, row.metric, of] = row.value
        return numbers


class Skipped(Exception):
    """A door that a draw cannot use."""


def value(option: Declared, text: str) -> Any:
    """Return a text as a value of Python or TOML: a number if it is one, otherwise the text."""
    if option.is_duration or option.kind not in (int, float):
        return text
    return option.kind(text)


DOORS: dict[str, Callable[[Doors], Numbers]] = {
    name: door for name, door in vars(Doors).items() if callable(door) and not name.startswith("_")
}


# ---- comparison


def difference(seed: int, tried: Counter[str] | None = None) -> str:
    """Return how the doors differ for a random draw, or an empty text.

    ``tried`` counts the options of draws that were simulated.
    """
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw, jobs = drawn(rng, folder), workload(folder)
        found = outcomes(Doors(draw, jobs, folder / "two"))
        if found["run_seeds"] == Refusal("", RANDOM):
            others = {n: of for n, of in found.items() if n not in ("run", "saved", "whatif")}
            if text := _differ(others, "run_seeds"):
                return f"seed {seed}: {draw}: {text}"
            found = outcomes(Doors(draw, jobs, folder / "one", 1))
        if isinstance(found["run"], dict) and tried is not None:
            tried.update([*draw.given])
        sweeps = {name: found[name] for name in ("sweep", "python_sweep")}
        if isinstance(found["run"], dict) and isinstance(sweeps["sweep"], Refusal):
            # then the second value has to be refused
            given = {**draw.given, draw.swept: draw.second}
            second = Doors(draw._replace(given=given), jobs, folder / "second")
            text = _differ({"run": outcome(second.run), **sweeps}, "run")
            if text:
                return f"seed {seed}: {draw}: second value: {text}"
            found = {name: of for name, of in found.items() if name not in sweeps}
        text = _differ(found, "run")
        return f"seed {seed}: {draw}: {text}" if text else ""


@cache
def seed_with(name: str) -> int:
    """Return the first seed of a draw in which an option has an effect, and all are legal."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(100_000):
            given = drawn(random.Random(seed), Path(folder)).given
            if name in given and _is_legal(given):
                return seed
    raise AssertionError(f"{name} has no effect in any draw")


def _is_legal(given: dict[str, str]) -> bool:
    values = {name: value(OPTIONS[name], text) for name, text in given.items()}
    try:
        combinations(case_of(values, (), PYTHON))
    except InputError:
        return False
    return True


def outcomes(doors: Doors) -> dict[str, Outcome]:
    """Return the outcomes of all doors that a draw can use."""
    found: dict[str, Outcome] = {}
    for name, door in DOORS.items():
        with contextlib.suppress(Skipped):
            found[name] = outcome(partial(door, doors))
    return found


def _differ(found: dict[str, Outcome], first: str) -> str:
    """Return how the outcomes differ from that of the first door."""
    expected = found[first]
    for name, other in found.items():
        if isinstance(expected, Refusal) or isinstance(other, Refusal):
            if not _alike(expected, other):
                shown = (of if isinstance(of, Refusal) else "numbers" for of in (expected, other))
                return f"{first}, {name}: {' against '.join(map(str, shown))}"
        elif expected.keys() != other.keys():
            return f"{first} and {name} have other values: {sorted({*expected} ^ {*other})[:4]}"
        elif wrong := [at for at in expected if not _equal(expected[at], other[at])]:
            at = wrong[0]
            return f"{at} is {expected[at]} by {first}, {other[at]} by {name}"
    return ""


def _alike(ours: Outcome, theirs: Outcome) -> bool:
    """Return whether both are refusals with the same place. Errors of runs contain their run."""
    if not (isinstance(ours, Refusal) and isinstance(theirs, Refusal)):
        return False
    short, long = sorted([ours.problem, theirs.problem], key=len)
    within = short in long if ours.option == "" else short == long
    return ours.option == theirs.option and within


def _equal(ours: float, theirs: float) -> bool:
    return ours == theirs or (math.isnan(ours) and math.isnan(theirs))


if __name__ == "__main__":
    count, start = int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0
    counts: Counter[str] = Counter()
    n_wrong = 0
    for at in range(start, start + count):
        try:
            problem = difference(at, counts)
        except Exception as error:
            raise RuntimeError(f"seed {at}") from error
        if problem:
            n_wrong += 1
            print(problem, flush=True)
    print(f"{count} draws, {n_wrong} differ; simulated with {dict(counts)}")
