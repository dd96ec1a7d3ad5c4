# SPDX-License-Identifier: Apache-2.0
"""What to simulate: the options of ``rebat run``, each with one value or several.

A command, a call in Python and a grid of a campaign file are *doors*. Each of them reads a `Case`.
`expand` is the only way from a case to runs. The options are declared in `scenario`, so that all
doors have the same names, types, ranges and errors. Only the spelling differs: ``--mtbf``, ``mtbf``
or ``grid[0].mtbf``.

A value has one of three meanings, tried in this order: a parameter of the failure law that the case
names, an option of a scenario, or a name in braces in a policy.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import FieldInfo, replace

from rebat.core.declared import converted
from rebat.core.errors import InputError, RebatError, error_at, short, unknown_name
from rebat.core.files import located
from rebat.core.numbers import exact
from rebat.models.failures.law import Law
from rebat.models.failures.laws import (
    LAWS,
    changed_parameters,
    law_named,
    make_law,
    name_of,
    parameters,
    parse_law,
    read,
    text_of,
)
from rebat.models.failures.recorded import Trace
from rebat.runs.reading import nonempty
from rebat.runs.scenario import OPTIONS, Conditions, Scenario, ScenarioOptions, grouped
from rebat.runs.unit import RunSpec, Source, n_nodes_of

SHORTEST_S = 1e-6
"""Minimum duration, which is the resolution of simulated time (one microsecond)."""

MOST_RUNS = 1_000_000
"""Maximum number of runs of a case."""


# ---- doors

_SPELLED = re.compile(r"'rebat [^']*'|(?<![\w/.-])--([a-z][a-z-]*)")
"""Pattern of an option as the command line spells it. Quoted commands do not change."""


class Door(msgspec.Struct, frozen=True):
    """How a door spells options.

    Attributes
    ----------
    places : dict of str to str
        The spelling of options as the user gave them, by name.
    prefix : str
        ``--``: the options have dashes. Otherwise, the text in front of their names.
    """

    places: Mapping[str, str] = {}
    prefix: str = "--"

    def place(self, name: str) -> str:
        """Return the place of an option for an error."""
        dashed = name.replace("_", "-") if self.prefix == "--" else name
        return self.places.get(name, f"{self.prefix}{dashed}")

    def several(self, name: str) -> str:
        """Return how to set several values of a name in a policy."""
        if self.prefix == "--":
            return f"--over {name}=VALUE,VALUE"
        return f"{name} = [...]" + (" in [grid.sweep]" if self.prefix else "")

    def text(self, text: str) -> str:
        """Return a text with options in the spelling of the door.

        >>> Door(prefix="").text("--checkpoint-cost: see 'rebat run --help'")
        "checkpoint_cost: see 'rebat run --help'"
        """

        def spelled(option: re.Match[str]) -> str:
            name = (option[1] or "").replace("-", "_")
            return name if option[1] and self.prefix != "--" else option[0]

        return _SPELLED.sub(spelled, text)

    def error(self, error: InputError) -> InputError:
        """Return an error whose option is spelled as the user gave it."""
        where = error.where or ""
        option = re.match(r"--([a-z-]+)", where)
        if option and (name := option[1].replace("-", "_")) in {*OPTIONS, *self.places}:
            where = self.place(name) + where[option.end() :]
        expected = error.expected and self.text(error.expected)
        return InputError(self.text(error.problem), self.text(where) or None, expected)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Spell options in errors raised in the block as the user gave them."""
        try:
            yield
        except InputError as error:
            raise self.error(error) from None
        except RebatError as error:
            raise type(error)(self.text(str(error))) from None


COMMAND, PYTHON = Door(), Door(prefix="")


# ---- cases


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate.

    Attributes
    ----------
    grid : str
        Name of the case in tables.
    workloads : dict of str to Source
        The workloads by name.
    policies : sequence of str
        ``{name}`` is replaced by each of its values.
    values : dict of str to sequence
        The values of each name that the user gave.
    law : str
        Name of the failure law whose parameters are in ``values``, or an empty text.
    own_seeds : bool
        Whether the seed of each generated workload is also the seed of its failures.
    failure_free : sequence of str
        Policies to run without failures and silent errors, once with each checkpoint model.
    failure_free_checkpoints : bool
        Whether these runs have checkpoints.
    folder : str
        Folder to which the names of files in policies are relative.
    door : Door
    """

    grid: str = "run"
    workloads: Mapping[str, Source] = {}
    policies: Sequence[str] = ()
    values: Mapping[str, Sequence[Any]] = {}
    law: str = ""
    own_seeds: bool = False
    failure_free: Sequence[str] = ()
    failure_free_checkpoints: bool = True
    folder: str = ""
    door: Door = Door()

    def changed(self, **values: Any) -> Case:
        """Return the case with other values of some options. None: the default."""
        given = {name: value for name, value in values.items() if value is not None}
        rest = {name: of for name, of in self.values.items() if name not in values}
        return replace(self, values=rest | {name: _several(of) for name, of in given.items()})


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple | range) else (value,)


def case_of(
    given: Mapping[str, Any],
    policies: Sequence[str],
    door: Door,
    *,
    folder: Path | None = None,
    **others: Any,
) -> Case:
    """Return the case that a user describes. Check all names, types and ranges.

    Parameters
    ----------
    given : mapping
        A value or a list of values by name.
    policies : sequence of str
    door : Door
    folder : Path, optional
        Folder to which the names of files are relative.
    **others
        The other attributes of the case.

    Raises
    ------
    InputError
        If a name or a value is invalid, or if there are too many runs.
    """
    _check_count(given, len(policies), door)
    given, law = dict(given), ""
    named = given.get("law")
    if isinstance(named, str) and ":" not in named:
        law = given.pop("law")
    elif isinstance(named, Law) and name_of(named) in LAWS:
        own = changed_parameters(named)
        if {*own} & {*given} - {*OPTIONS}:
            law, given = name_of(named), own | given
            del given["law"]
    with door.errors(), error_at("--law"):
        of_law = parameters(law) if law else {}
    used = [*policies, *others.get("failure_free", ())]
    places = {name for policy in used for name in _PLACE.findall(policy)}
    values: dict[str, Sequence[Any]] = {}
    for name, value in given.items():
        listed, where = _several(value), door.place(name)
        if name in of_law:
            paths = name in law_named(law).paths
            listed = [
                _of_law(of_law[name], each, where, folder if paths else None) for each in listed
            ]
        elif name in OPTIONS:
            listed = [one_value(name, each, door, folder) for each in listed]
        elif name in places:
            _check_plain(listed, where)
        else:
            names = [*of_law, *(name for name in OPTIONS if name not in of_law), *places]
            raise unknown_name("parameter", name, names).at(where)
        nonempty(listed, where)
        values[name] = listed
    for name in sorted(places - values.keys()):
        raise InputError(f"{name!r} has no values", door.place("policies"), door.several(name))
    return Case(
        policies=policies, values=values, law=law, door=door,
        folder=str(folder.absolute()) if folder else "", **others,
    )  # fmt: skip


def _check_count(given: Mapping[str, Any], n_policies: int, door: Door) -> None:
    """Raise InputError if a case has more than `MOST_RUNS` runs."""
    counts = {name: len(_several(value)) for name, value in given.items()}
    runs = math.prod(counts.values()) * max(1, n_policies)
    if runs > MOST_RUNS:
        longest = max(counts, key=counts.__getitem__)
        problem, expected = f"{runs:,} runs are too many", f"at most {MOST_RUNS:,} runs"
        raise InputError(problem, door.place(longest), expected)


def _check_plain(values: Sequence[Any], where: str) -> None:
    """Raise InputError if a value for a policy is neither a number nor a text."""
    for value in values:
        if not isinstance(value, int | float | str):
            raise InputError(f"is {short(value)}", where, "numbers or texts")


def _of_law(field: FieldInfo, value: Any, where: str, folder: Path | None) -> Any:
    parsed = read(field, value, where)
    return parsed if folder is None else str(folder / parsed)


def one_value(name: str, value: Any, door: Door, folder: Path | None = None) -> Any:
    """Return a value of an option, after a check of its type and range.

    Durations and laws may be texts. A file is relative to ``folder``, or has the name of a file
    that rebat includes.
    """
    option = OPTIONS[name]
    if name == "law":
        if value is None or isinstance(value, Law):
            return value
        if not isinstance(value, str):
            raise InputError(
                f"is {short(value)}", door.place(name), "a text like 'poisson:mtbf=1h'"
            )
        with door.errors(), error_at("--law"):
            return parse_law(value)
    try:
        read_one = getattr(converted({name: value}, ScenarioOptions), name)
        if (check := option.extra.get("read")) is not None:
            check(read_one)
    except InputError as error:
        raise InputError(error.problem, door.place(name), error.expected) from None
    if isinstance(read_one, float) and not math.isfinite(read_one):
        raise InputError(f"is {read_one}", door.place(name), "a finite number")
    if isinstance(read_one, Path):
        here = read_one if folder is None else folder / read_one
        included = option.extra.get("file")
        if included and not here.exists():
            with door.errors(), error_at(f"--{name}"):
                return located(read_one, included, ".events")
        return here
    return read_one


# ---- runs


def expand(case: Case, n_nodes: Callable[[Source], int] = n_nodes_of) -> Iterator[RunSpec]:
    """Yield the runs of a case: all combinations of its values.

    The loops are, from the outermost: workloads, conditions, laws, seeds, checkpoints and silent
    errors, policies. If an option has no effect in some combinations, these are simulated once.

    Parameters
    ----------
    case : Case
    n_nodes : callable
        Function that returns the number of nodes of a workload. It is called only if the period of
        checkpoints depends on this number.

    Raises
    ------
    InputError
        If a value is invalid, or an option has no effect in any run.
    """
    for _, spec in described(case, n_nodes):
        yield spec


def described(
    case: Case, n_nodes: Callable[[Source], int] = n_nodes_of
) -> Iterator[tuple[ScenarioOptions, RunSpec]]:
    """Yield the runs of `expand` with their options."""
    policies, calm = (swept(of, case.values) for of in (case.policies, case.failure_free))
    groups = [] if case.own_seeds else combinations(case)
    for workload, source in case.workloads.items():
        if case.own_seeds:
            groups = combinations(case.changed(seed=source.seed))
        base = RunSpec(
            grid=case.grid, workload=workload, policy="", source=source, folder=case.folder
        )
        every = [row for _, group in groups for row in group]
        depends = any(row.uses_law_mtbf and row.nodes is None for row in every)
        nodes = n_nodes(source) if depends else 0  # reading a workload takes time
        for machine, group in groups:
            with case.door.errors():
                free = scenario_of(machine, 0)
                rows = [
                    (row, replace(scenario_of(row, nodes), operations=free.operations))
                    for row in group
                ]
            kinds = dict.fromkeys(scenario.checkpoint for _, scenario in rows)
            if not case.failure_free_checkpoints:
                kinds = {None: None}
            without = [(machine, replace(free, checkpoint=kind)) for kind in kinds]
            runs = *itertools.product(without, calm), *itertools.product(rows, policies)
            for (options, scenario), policy in runs:
                yield options, replace(base, policy=policy, scenario=scenario)


def numbers_in(case: Case, options: ScenarioOptions) -> dict[str, float]:
    """Return the values of the names with several values, among options of the case."""
    of_law = parameters(case.law) if case.law else {}
    numbers = {}
    for name, values in case.values.items():
        if len(values) > 1 and name != "seed" and (name in of_law or name in OPTIONS):
            of = options.law if name in of_law else options
            value = getattr(of, of_law[name].name if name in of_law else name)
            if value is not None:
                numbers[name] = float(value)
    return numbers


def scenario_of(options: ScenarioOptions, n_nodes: int) -> Scenario:
    """Return the scenario of options on a workload for a machine with this number of nodes."""
    return options.with_law_mtbf(options.nodes or n_nodes).scenario()


_OUTER = tuple(dict.fromkeys(("nodes", "load", *Conditions.__struct_fields__, "operations")))
"""Options of the outer loops: a run without failures has them too."""

_INNER = (
    "law",
    *grouped("law", "draw", "correlation"),
    "seed",
    "checkpoint",
    "checkpoint_mtbf",
    *grouped("preparation"),
)
"""Options of the inner loops, in their order. Parameters of the law follow ``law``."""


def combinations(case: Case) -> list[tuple[ScenarioOptions, list[ScenarioOptions]]]:
    """Return the options of all combinations of values, as groups.

    The options of a group differ only in failures, seeds, checkpoints and silent errors, and have
    no operations. The first item of a pair has the other options of the group.

    Raises
    ------
    InputError
        If a value is invalid, or if an option has no effect in any combination.
    """
    of_law = [*parameters(case.law)] if case.law else []
    outer = [name for name in _OUTER if name in case.values and name not in of_law]
    inner = [*of_law, *(name for name in dict.fromkeys(_INNER) if name not in (*of_law, *outer))]
    given = {*case.values} & {*OPTIONS} - {*of_law}
    unused, used = dict[str, str](), set[str]()
    groups = []
    with case.door.errors():
        for machine in _product(case, outer):
            shared = {name: value for name, value in machine.items() if name != "operations"}
            group = dict[ScenarioOptions, None]()
            for failing in _product(case, [name for name in inner if name in case.values]):
                options, without = _effective(_with_law(case, shared | failing, of_law), given)
                unused |= without
                used |= given - without.keys()
                check_values(options)
                group[options if is_random(options) else replace(options, seed=_first(case))] = None
            groups.append((ScenarioOptions(**machine), list(group)))
        for name in OPTIONS:
            if name in unused.keys() - used:
                raise InputError("has no effect", COMMAND.place(name), unused[name])
        every = [options for _, group in groups for options in group]
        _check_seeds(case, every)
    return groups


def _product(case: Case, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    names = list(names)
    for chosen in itertools.product(*(case.values[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def _with_law(case: Case, chosen: dict[str, Any], of_law: Sequence[str]) -> dict[str, Any]:
    """Return the values of options. Parameters of the law are in the law."""
    if not case.law:
        return chosen
    own = {name: chosen[name] for name in of_law if name in chosen}
    with error_at("--law"):
        law = make_law(case.law, own)
    return {name: value for name, value in chosen.items() if name not in own} | {"law": law}


def _effective(
    chosen: Mapping[str, Any], given: Collection[str]
) -> tuple[ScenarioOptions, dict[str, str]]:
    """Return the options, without those that have no effect.

    Of these, return what each would need to have an effect.
    """
    values, unused = {**chosen}, dict[str, str]()
    while True:
        options = ScenarioOptions(**values)
        lacking = {
            name: need for name in given if name in values and (need := lacks(name, options))
        }
        if not lacking:
            return options, unused
        unused |= lacking
        values = {name: value for name, value in values.items() if name not in lacking}


def lacks(name: str, options: ScenarioOptions, preparing: bool = False) -> str:
    """Return what an option needs to have an effect, or an empty text if it has one.

    With ``preparing``, the workload is only prepared with these options, and not run.
    """
    extra = OPTIONS[name].extra
    needs = (*extra["needs"], *(extra["prepares"] if preparing else ()))
    return next((need.expected for need in needs if not need.holds(options)), "")


def effective(options: ScenarioOptions) -> ScenarioOptions:
    """Return the options, with the default of each that has no effect."""
    values = set_in(options)
    return _effective(values, values)[0]


def set_in(options: ScenarioOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    values = {name: getattr(options, name) for name in OPTIONS}
    return {name: value for name, value in values.items() if value != OPTIONS[name].default}


def case_with(options: ScenarioOptions, **others: Any) -> Case:
    """Return the case of options that are valid. Those without effect are left out.

    ``others`` are the other attributes of the case.
    """
    values = {name: (value,) for name, value in set_in(effective(options)).items()}
    return Case(values={**values, "seed": (options.seed,)}, **others)


def texts_of(options: ScenarioOptions) -> dict[str, str]:
    """Return the options that differ from their defaults, without the seed, as texts.

    All doors read them.
    """
    texts = {}
    for name, value in set_in(options).items():
        if OPTIONS[name].is_duration:
            texts[name] = exact(value).replace(" ", "")
        elif name != "seed":
            texts[name] = text_of(value) if isinstance(value, Law) else str(value)
    return texts


def check_options(
    options: ScenarioOptions, used: Mapping[str, str], preparing: bool = False
) -> None:
    """Reject options that have no effect, and invalid values.

    ``used`` contains the options that the user set, with their spelling. For ``preparing``, see
    `lacks`.
    """
    with Door(used).errors():
        for name in OPTIONS:
            if name in used and (expected := lacks(name, options, preparing)):
                raise InputError("has no effect", used[name], expected)
        check_values(options)


def check_values(options: ScenarioOptions) -> None:
    """Raise InputError if the law of failures is invalid, or a duration below a microsecond."""
    with error_at("--model"):
        law_named(options.model)
    for name in ("mtbf", "downtime"):
        seconds = getattr(options, name)
        if seconds is not None and seconds < SHORTEST_S:
            raise InputError(f"is {seconds:g} s", f"--{name}", "a microsecond or longer")
    with error_at("--model"):
        options.single_law()
    options.failure_law()


# ---- seeds


def is_random(options: ScenarioOptions) -> bool:
    """Return whether the runs of different seeds are different runs."""
    law = options.failure_law()
    return options.is_silent or (law is not None and law.seeded)


def _first(case: Case) -> int:
    seeds: Sequence[int] = case.values.get("seed", (0,))
    return seeds[0]


def _check_seeds(case: Case, every: Sequence[ScenarioOptions]) -> None:
    """Raise InputError if the user set several seeds, but nothing is random."""
    several = len(case.values.get("seed", ())) > 1 and "seeds" in case.door.places
    if several and not any(map(is_random, every)):
        problem = "has no effect: nothing is random"
        raise InputError(problem, "--seeds", _what_is_random(every[0]))


def _what_is_random(options: ScenarioOptions) -> str:
    """Return which options would make a run random that does not depend on the seed."""
    law = options.failure_law()
    if law is None:
        return "--mtbf, --law or --silent-errors as well"
    if isinstance(law, Trace):
        cores = options.cores_per_node
        numbers = " (the file must contain numbers of nodes)" if cores > 1 else ""
        turned = f"--law record:file={law.file},turn=true{numbers} in place of these failures"
        return f"{turned}, or --silent-errors as well"
    return "turn=true in the law of recorded failures, or --silent-errors as well"


# ---- policies

_PLACE = re.compile(r"\{(\w+)\}")


def swept(policies: Sequence[str], values: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a policy for each combination of the values of the names in braces.

    >>> swept(["easy", "easy:spares={n}"], {"n": [0, 2]})
    ['easy', 'easy:spares=0', 'easy:spares=2']
    """
    texts: dict[str, None] = {}
    for policy in policies:
        parts = _PLACE.split(policy)  # texts and, at odd places, names
        names = list(dict.fromkeys(parts[1::2]))
        for chosen in itertools.product(*(values[name] for name in names)):
            filled = dict(zip(names, map(str, chosen), strict=True))
            text = (filled[part] if place % 2 else part for place, part in enumerate(parts))
            texts["".join(text)] = None
    return list(texts)
