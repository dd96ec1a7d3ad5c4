# SPDX-License-Identifier: Apache-2.0
"""The question of a page: a workload, policies, and the values of its controls.

A control is a row of `CONTROLS`: an option of the scenario and the values that a slider offers. To
add a control, add a row.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from rebat.api.workloads import LoadedWorkload
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.numbers import exact
from rebat.core.options import MAX_ATTEMPTS
from rebat.core.units import to_s
from rebat.policies.presets import Preset, scheduler
from rebat.runs.case import Case, case_with, effective, expand, is_random, lacks, texts_of
from rebat.runs.scenario import OPTIONS, ScenarioOptions
from rebat.runs.simulating import check_inputs, units
from rebat.runs.staging import has_checkpoints, prepared
from rebat.runs.unit import Source, Unit
from rebat.workloads.machine import partitions_in_use

STEPS = 8
"""Number of values of a slider per factor of 10."""


class Question(msgspec.Struct, frozen=True):
    """The question of a page: which policy is better on a workload under these options?

    Attributes
    ----------
    source : Source
        The workload.
    name : str
        The workload as the user wrote it.
    sha256 : str
        Hash of the workload's file.
    n_nodes : int
        Number of nodes of the workload's machine.
    options : ScenarioOptions
    policies : tuple of str
        Policies as the user wrote them. Ratios are relative to the first policy.
    has_checkpoints : bool
        Whether the jobs have checkpoints without the option ``checkpoint``.
    spares : int
        Number of spare nodes of all policies that have the option ``spares``.
    parted : bool
        Whether jobs run in the partitions of the recorded machine.
    """

    source: Source
    name: str
    sha256: str
    n_nodes: int
    options: ScenarioOptions
    policies: tuple[str, ...]
    has_checkpoints: bool = False
    parted: bool = False
    spares: int = 0

    def with_value(self, name: str, value: Any) -> Question:
        """Return the question with another value of a control."""
        if name == "spares":
            return msgspec.structs.replace(self, spares=value)
        if name == "nodes" and value == self.n_nodes:
            value = None
        options = msgspec.structs.replace(self.options, **{name: value})
        return msgspec.structs.replace(self, options=options)

    def value(self, name: str) -> Any:
        """Return the value of a control."""
        if name == "spares":
            return self.spares
        value = getattr(self.options, name)
        return self.n_nodes if name == "nodes" and value is None else value

    @property
    def cases(self) -> dict[str, str]:
        """The name of each policy that is simulated, by the policy as the user wrote it."""
        return {name: _with_spares(name, self.spares) for name in self.policies}

    @property
    def used(self) -> ScenarioOptions:
        """The options, without those that have no effect at present."""
        return effective(self.options)

    def case(self, seeds: Sequence[int]) -> Case:
        """Return the case of the question."""
        case = case_with(
            self.options,
            workloads={"workload": self.source},
            policies=tuple(self.cases.values()),
        )
        return case.changed(seed=seeds)

    def units(self, seed: int) -> list[Unit]:
        """Return the runs of all policies with a seed."""
        return units(expand(self.case([seed]), lambda source: self.n_nodes))

    @property
    def random(self) -> bool:
        """Whether the result depends on the seed."""
        return is_random(self.used)

    def command(self, n_seeds: int) -> str:
        """Return the ``rebat run`` command with the same answer."""
        words = ["rebat", "run", self.name]
        for policy in self.cases.values():
            words += ["-p", policy]
        for name, text in texts_of(self.used).items():
            words += [f"--{name.replace('_', '-')}", text]
        if self.random:
            words += ["--seeds", str(n_seeds)]
        return " ".join(map(shlex.quote, [*words, "--out", "out/whatif"]))

    def python(self, n_seeds: int) -> str:
        """Return the Python statements with the same answer."""
        options = texts_of(self.used)
        if self.random:
            options["seeds"] = str(n_seeds)
        call = ", ".join([f"{self.name!r}", f"{list(self.cases.values())!r}", *_arguments(options)])
        return f"import rebat\n\nresult = rebat.run({call})\nprint(result)\n"


def _arguments(options: dict[str, str]) -> Iterator[str]:
    for name, text in options.items():
        yield f"{name}={text if _is_number(text) else repr(text)}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_spares(policy: str, spares: int) -> str:
    if not spares or not takes_spares(policy):
        return policy
    return f"{policy}{',' if ':' in policy else ':'}spares={spares}"


def takes_spares(policy: str) -> bool:
    """Return whether a policy has the option ``spares``."""
    try:
        return isinstance(scheduler(f"{policy}{',' if ':' in policy else ':'}spares=1"), Preset)
    except InputError:
        return False


# ---- controls


class Control(msgspec.Struct, frozen=True):
    """A control of the page: an option, its title, and the function that returns its values.

    ``offered`` gets the question at the start, and returns the values or an empty list if the
    option has no effect there.
    """

    name: str
    title: str
    offered: Callable[[Question], Sequence[Any]]
    choice: bool = False
    """Whether the control is a list instead of a slider."""

    def needs(self, question: Question) -> bool:
        """Return whether the control has an effect on a question."""
        return self.name not in OPTIONS or not lacks(self.name, question.options)

    @property
    def help(self) -> str:
        """The first clause of the help text of the option."""
        text = OPTIONS[self.name].help if self.name in OPTIONS else SPARES_HELP
        text = re.sub(r"^With --[a-z-]+: ", "", text).partition(";")[0].partition(". ")[0]
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."

    def text(self, value: Any) -> str:
        """Return a value as text."""
        if value is None:
            return "of the failures"
        option = OPTIONS.get(self.name)
        if option is not None and option.is_duration:
            return exact(value)
        return f"{value:g}" if isinstance(value, float) else str(value)


SPARES_HELP = (
    "Number of nodes that no job uses until a node fails, for policies that replace failed nodes."
)


def geometric(value: float, low: float, high: float) -> list[float]:
    """Return rounded values between two limits at equal ratios, among them ``value``.

    >>> geometric(3600.0, 1800.0, 7200.0)
    [2040.0, 2700.0, 3600.0, 4680.0, 6480.0]
    """
    first, last = (round(STEPS * math.log10(limit / value)) for limit in (low, high))
    values = [value * 10 ** (k / STEPS) for k in range(first, last + 1)]
    return sorted({value, *(_nice(v) for v in values if low <= v <= high)})


def _nice(seconds: float) -> float:
    """Round a duration to two digits in its unit, so that texts are short."""
    for unit in (86400.0, 3600.0, 60.0, 1.0):
        if seconds >= unit:
            digits = 1 if seconds < 10 * unit else 0
            return round(round(seconds / unit, digits) * unit, 6)
    return float(f"{seconds:.2g}")


def _around(name: str, down: float, up: float) -> Callable[[Question], Sequence[Any]]:
    """Offer values from the scenario's value / ``down`` to its value * ``up``."""

    def offered(question: Question) -> Sequence[float]:
        value = question.value(name)
        return geometric(value, value / down, value * up) if value else []

    return offered


def _nodes(question: Question) -> Sequence[int]:
    """Return numbers of nodes from half to twice the nodes of the machine.

    A machine with partitions cannot have other numbers of nodes.
    """
    if question.parted:
        return []
    n_nodes = question.value("nodes")
    step = max(1, n_nodes // 20)
    return sorted({n_nodes, *range(max(1, n_nodes // 2), 2 * n_nodes + 1, step)})


def _spares(question: Question) -> Sequence[int]:
    if not any(takes_spares(policy) for policy in question.policies):
        return []
    most = max(1, question.value("nodes") // 20)
    return sorted({question.spares, *(round(most * k / 16) for k in range(17))})


def _loads(question: Question) -> Sequence[float]:
    value = question.options.load
    return sorted({value, *(round(0.5 + 0.05 * k, 2) for k in range(31))})


def _fails(question: Question) -> bool:
    return question.options.mtbf is not None and question.options.failures is None


def _of_law(name: str, down: float, up: float) -> Callable[[Question], Sequence[Any]]:
    """Offer values of the short form of a law, if the scenario has it."""
    around = _around(name, down, up)
    return lambda question: around(question) if _fails(question) else []


def _periods(question: Question) -> Sequence[float | None]:
    """Return MTBFs for the period. None: that of the failures."""
    mtbfs = _of_law("mtbf", 10, 10)(question)
    return [None, *sorted({*mtbfs, *filter(None, [question.options.checkpoint_mtbf])})]


def _offering(offered: Callable[[Question], Sequence[Any]]) -> Callable[[Question], Sequence[Any]]:
    """Offer values only if the page can add checkpoints."""
    return lambda question: () if question.has_checkpoints else offered(question)


def _cost(name: str) -> Callable[[Question], Sequence[Any]]:
    return _offering(_around(name, 10, 10))


def _models(question: Question) -> Sequence[str]:
    return ("none", "young-daly", "perfect")


CONTROLS = (
    Control("mtbf", "MTBF of the machine", _of_law("mtbf", 3, 10)),
    Control("downtime", "Downtime of a node", _of_law("downtime", 6, 24)),
    Control("checkpoint", "Checkpoints", _offering(_models), choice=True),
    Control("checkpoint_cost", "Checkpoint cost", _cost("checkpoint_cost")),
    Control("recovery_cost", "Recovery cost", _cost("recovery_cost")),
    Control("checkpoint_mtbf", "MTBF for the period", _offering(_periods)),
    Control("spares", "Spare nodes", _spares),
    Control("nodes", "Nodes of the machine", _nodes),
    Control("load", "Load", _loads),
)
"""The controls in the order of the page."""


LIVE_ATTEMPTS = 100
"""Maximum number of interruptions of a job, if the user sets no maximum.

With the usual maximum of a run, a setting under which jobs never end would need all memory.
"""

FAILURES = 500
"""Number of failures in the time of the submissions, if the user sets no failures."""


def with_stealing(policy: str) -> tuple[str, str]:
    """Return a policy, and the same policy with node stealing (or EASY, if it already steals)."""
    if "react=" in policy:
        return policy, "easy"
    return policy, f"{policy}{',' if ':' in policy else ':'}react=stealing"


def started(
    workload: LoadedWorkload, name: str, options: ScenarioOptions, policies: Sequence[str]
) -> Question:
    """Return the question with which a page starts, after checks. By default, nodes fail."""
    if options.max_attempts == MAX_ATTEMPTS:
        options = msgspec.structs.replace(options, max_attempts=LIVE_ATTEMPTS)
    if len({*policies}) < 2:
        raise InputError(f"is {', '.join(policies)}", "--policy", "two or more policies")
    if options.failure_law() is None:
        submit_us = Jobs.of(workload.jobs).submit_us
        walltime_us = Jobs.of(workload.jobs).walltime_us
        span_us = int(np.ptp(submit_us)) or int(walltime_us.max(initial=1_000_000))
        mtbf_s = _nice(to_s(span_us) / FAILURES)
        options = msgspec.structs.replace(options, mtbf=mtbf_s, downtime=mtbf_s)
    question = Question(
        source=workload.origin,
        name=name,
        sha256=workload.sha256,
        n_nodes=workload.n_nodes,
        options=options,
        policies=tuple(policies),
        has_checkpoints=has_checkpoints(workload),
        parted=bool(partitions_in_use(workload)),
    )
    runs = question.units(0)
    check_inputs(runs)
    prepared(workload, runs[0].spec.scenario)
    return question
