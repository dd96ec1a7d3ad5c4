# SPDX-License-Identifier: Apache-2.0
"""Queue orders by formula: the attempt with the largest value is first.

A formula consists of numbers, the columns of `COLUMNS`, the units of `UNITS`, the operators
``+ - * / **`` and the functions of `FUNCTIONS`, for example ``1000*age/week + 10*size``. An
exponent is a whole number from 1 to 9. A formula is arithmetic only: no part of its text is
executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.numbers import exactly
from rebat.kernels import formula as kernel
from rebat.kernels.formula import DEEPEST

Floats = npt.NDArray[np.float64]

COLUMNS: dict[str, str] = {
    "age": "time since the attempt entered the queue, in seconds",
    "size": "number of nodes",
    "walltime": "walltime in seconds",
    "expansion": "expansion factor: (age + walltime) / walltime",
    "class": "priority class of the job",
    "submitted": "time of the submission in seconds, at least 1",
    "nodes": "number of nodes of the machine",
    "partition": "weight of the job's partition, divided by the largest weight",
    "usage": "node time of the user in this account, in s; older time counts less (`half_life`)",
    "fairshare": "fair-share factor of the job's user and account, 0 to 1 (`shares`)",
}
"""The columns of a formula, in the order of the table that a formula reads."""

UNITS = {"minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
"""Names of numbers of seconds."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "min": (kernel.LESSER, 2),
    "max": (kernel.GREATER, 2),
    "sqrt": (kernel.ROOT, 1),
    "log": (kernel.LOG, 1),
    "log2": (kernel.LOG2, 1),
    "log10": (kernel.LOG10, 1),
    "floor": (kernel.FLOOR, 1),
}
"""Functions: operation and number of arguments. ``log`` is the natural logarithm."""

_OPERATORS: dict[type[ast.operator], int] = {
    ast.Add: kernel.ADD,
    ast.Sub: kernel.SUBTRACT,
    ast.Mult: kernel.MULTIPLY,
    ast.Div: kernel.DIVIDE,
}

NAMED: dict[str, str] = {
    "wfp3": "(age/walltime)**3 * size",
    "unicef": "age / (log2(size) * walltime)",
    "f1": "-(log10(walltime)*size + 870*log10(submitted))",
    "f2": "-(sqrt(walltime)*size + 25600*log10(submitted))",
    "f3": "-(walltime*size + 6860000*log10(submitted))",
    "f4": "-(walltime*sqrt(size) + 530000*log10(submitted))",
}
"""Formulas by name.

wfp3, unicef: Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue
Gene/P systems", CLUSTER 2009. Jobs of one node are first under unicef, because log2(1) = 0.

f1 to f4: Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and
machine learning", SC 2017. The smallest score is first there, so the sign is the opposite here.
"""

MULTIFACTOR = "multifactor"
"""Prefix of an order with the weights of Slurm's plugin priority/multifactor."""

_FACTORS = {
    "age": "min(age/{max_age}, 1)",
    "fairshare": "fairshare",
    "size": "{size}",
    "partition": "partition",
}
"""The factors of Slurm's priority/multifactor, from 0 to 1. The weight of other factors is 0."""

_EXPECTED = "arithmetic of columns, like 1000*age/week + 10*size"
_MOST_TEXT = 1000
_CLASS = re.compile(r"\bclass\b")
"""The column ``class``, which is a keyword of Python."""

_ARITHMETIC = re.compile(r"[\w .,+*/()-]*", re.ASCII)
"""The characters of a formula."""


class Formula(msgspec.Struct, frozen=True, eq=False):
    """A formula in postfix notation.

    Attributes
    ----------
    operations : int64 array, shape (m,)
    arguments : float64 array, shape (m,)
    columns : frozenset of str
        The columns that the formula uses.
    """

    operations: npt.NDArray[np.int64]
    arguments: Floats
    columns: frozenset[str]

    @property
    def varies(self) -> bool:
        """Whether the value of a queued attempt changes over time."""
        return bool(self.columns & {"age", "expansion", "usage", "fairshare"})

    def values(self, table: Floats) -> Floats:
        """Return the value of each row of a table with the columns of `COLUMNS`."""
        out = np.empty(len(table))
        stack = np.empty(DEEPEST)
        kernel.evaluate(self.operations, self.arguments, table, len(table), stack, out)
        return out


def is_formula(text: str) -> bool:
    """Return whether the text of an order is a formula, not the name of an order.

    >>> is_formula("10*size"), is_formula("-age"), is_formula("wfp3"), is_formula("shortest")
    (True, True, True, False)
    """
    words = {*re.findall(r"[a-z_]\w*", text)}
    other = not re.fullmatch(r"[\w-]*", text) or not words
    return text in NAMED or text.startswith(MULTIFACTOR) or bool(words & {*COLUMNS}) or other


@lru_cache(maxsize=64)
def formula_of(text: str) -> Formula:
    """Return the formula of an order: a name of `NAMED`, weights of Slurm, or arithmetic.

    Raises
    ------
    InputError
        If the text is not a formula.

    Examples
    --------
    >>> float(formula_of("size*2 + 1").values(np.full((1, len(COLUMNS)), 3.0))[0])
    7.0
    """
    where, source = f"order {short(text)}", NAMED.get(text, text)
    if len(source) > _MOST_TEXT:
        raise InputError("the formula is too long", where, f"at most {_MOST_TEXT} characters")
    try:
        if source.partition(":")[0] == MULTIFACTOR:
            source = _multifactor(source)
        if not _ARITHMETIC.fullmatch(source):  # such as #, which would begin a comment
            raise InputError("is not a formula", expected=_EXPECTED)
        tree = ast.parse(_CLASS.sub("class_", source.strip()), mode="eval").body
        rows = list(islice(_postfix(tree), _MOST_TEXT + 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError("is not a formula", where, _EXPECTED) from None
    except InputError as error:
        raise error.at(where) from None
    if len(rows) > _MOST_TEXT or _depth(rows) > DEEPEST:
        raise InputError("the formula is too long", where, "fewer operations")
    names = [*COLUMNS]
    used = [names[int(value)] for operation, value in rows if operation == kernel.COLUMN]
    return Formula(
        np.array([operation for operation, _ in rows], dtype=np.int64),
        np.array([value for _, value in rows], dtype=np.float64),
        frozenset(used),
    )


def _postfix(node: ast.expr) -> Iterable[tuple[int, float]]:
    """Yield the operations of an expression and their arguments, in postfix notation."""
    if isinstance(node, ast.Constant) and (number := _number(node.value)) is not None:
        yield kernel.NUMBER, number
    elif isinstance(node, ast.Name):
        yield _name(node.id)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        yield from _postfix(node.operand)
        if isinstance(node.op, ast.USub):
            yield kernel.NEGATE, 0.0
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        for k in range(_exponent(node.right)):
            yield from _postfix(node.left)
            if k:
                yield kernel.MULTIPLY, 0.0
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield from _postfix(node.left)
        yield from _postfix(node.right)
        yield _OPERATORS[type(node.op)], 0.0
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        for argument in node.args:
            yield from _postfix(argument)
        yield _function(node.func.id, len(node.args)), 0.0
    else:
        raise InputError("contains code other than arithmetic", expected=_EXPECTED)


def _number(value: object) -> float | None:
    """Return a constant as a number, or None if it is another constant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(min(value, kernel.MOST))


def _name(name: str) -> tuple[int, float]:
    name = name.removesuffix("_") if name == "class_" else name
    if name in UNITS:
        return kernel.NUMBER, UNITS[name]
    if name not in COLUMNS:
        raise unknown_name("column", name, [*COLUMNS, *UNITS])
    return kernel.COLUMN, float([*COLUMNS].index(name))


def _function(name: str, n_arguments: int) -> int:
    if name not in FUNCTIONS:
        raise unknown_name("function", name, FUNCTIONS)
    operation, count = FUNCTIONS[name]
    if n_arguments != count:
        problem = f"{name} has {exactly(n_arguments, 'argument')}"
        raise InputError(problem, expected=str(count))
    return operation


def _exponent(node: ast.expr) -> int:
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) is not int or not 1 <= value <= 9:
        raise InputError("invalid exponent", expected="a whole number from 1 to 9")
    return value


def _depth(rows: Iterable[tuple[int, float]]) -> int:
    """Return the largest number of values on the stack."""
    unary = {kernel.NEGATE, *(operation for operation, count in FUNCTIONS.values() if count == 1)}
    depth = most = 0
    for operation, _ in rows:
        if operation in (kernel.NUMBER, kernel.COLUMN):
            depth += 1
        elif operation not in unary:
            depth -= 1
        most = max(most, depth)
    return most


def _multifactor(text: str) -> str:
    """Return the formula of Slurm's priority/multifactor for ``multifactor:age=1000,size=10``.

    The priority is rounded down, as in Slurm. Options: ``max_age`` (seconds, default 7 days), and
    ``favor_small=yes``: small jobs have a large size factor.
    Source: Slurm, "Multifactor Priority Plugin", section "Job Priority Factors".
    """
    weights, options = {}, {"max_age": "604800", "favor_small": "no"}
    words = text.partition(":")[2].replace(":", ",").split(",")
    for word in filter(None, words):
        key, _, value = word.partition("=")
        if key in options:
            options[key] = value
        elif key in _FACTORS:
            weights[key] = value
        else:
            raise unknown_name("factor", key, [*_FACTORS, *options])
    if options["favor_small"] not in ("yes", "no"):
        raise InputError(f"favor_small is {options['favor_small']!r}", expected="yes or no")
    for key, value in [*weights.items(), ("max_age", options["max_age"])]:
        if not value.replace(".", "", 1).isdecimal():
            raise InputError(f"{key} is {value!r}", expected="a number")
    size = "1 - size/nodes" if options["favor_small"] == "yes" else "size/nodes"
    terms = [
        f"{value} * ({_FACTORS[key].format(max_age=options['max_age'], size=size)})"
        for key, value in weights.items()
    ]
    if not terms:
        raise InputError("has no weights", expected=f"{MULTIFACTOR}:age=1000,size=10")
    return f"floor({' + '.join(terms)})"
