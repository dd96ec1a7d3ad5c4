# SPDX-License-Identifier: Apache-2.0
"""Evaluation of an arithmetic formula over the columns of a table, in postfix notation.

Every value is between -`MOST` and `MOST`. A division by zero and a logarithm of a number that is
not positive have these limits as results, except 0 / 0, which is 0.
"""

from __future__ import annotations

import math
from typing import Any

from rebat.kernels.jit import inlined, loop

NUMBER, COLUMN, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, LESSER, GREATER = range(9)
ROOT, LOG, LOG2, LOG10, FLOOR = range(9, 14)
"""Operations. The argument of NUMBER is a constant, that of COLUMN the position of a column."""

MOST = 1e30
"""Largest value of a formula."""

DEEPEST = 32
"""Maximum number of values on the stack."""


@inlined
def divided(x: float, y: float) -> float:
    """Return a quotient."""
    if y == 0.0:
        return 0.0 if x == 0.0 else math.copysign(MOST, x)
    return x / y


@inlined
def applied(operation: int, x: float, y: float) -> float:
    """Return the result of an operation on two numbers, or on the first number."""
    result = 0.0
    if operation == ADD:
        result = x + y
    elif operation == SUBTRACT:
        result = x - y
    elif operation == MULTIPLY:
        result = x * y
    elif operation == DIVIDE:
        result = divided(x, y)
    elif operation == NEGATE:
        result = -x
    elif operation == LESSER:
        result = min(x, y)
    elif operation == GREATER:
        result = max(x, y)
    elif operation == ROOT:
        result = math.sqrt(max(x, 0.0))
    elif operation == FLOOR:
        result = float(math.floor(x))
    elif x <= 0.0:
        result = -MOST
    elif operation == LOG:
        result = math.log(x)
    elif operation == LOG2:
        result = math.log2(x)
    else:
        result = math.log10(x)
    return min(max(result, -MOST), MOST)


@loop
def evaluate(operations: Any, arguments: Any, columns: Any, n: int, stack: Any, out: Any) -> None:
    """Write the value of a formula for each row.

    Parameters
    ----------
    operations : int64 array, shape (m,)
    arguments : float64 array, shape (m,)
    columns : float64 array, shape (rows, c)
        Only the first ``n`` rows are used.
    stack : float64 array, shape (DEEPEST,)
        Scratch.
    out : float64 array
    """
    for row in range(n):
        top = 0
        for k in range(operations.shape[0]):
            operation = operations[k]
            if operation == NUMBER:
                stack[top] = arguments[k]
                top += 1
            elif operation == COLUMN:
                stack[top] = columns[row, int(arguments[k])]
                top += 1
            elif operation in (NEGATE, ROOT, LOG, LOG2, LOG10, FLOOR):
                stack[top - 1] = applied(operation, stack[top - 1], 0.0)
            else:
                top -= 1
                stack[top - 1] = applied(operation, stack[top - 1], stack[top])
        out[row] = stack[0]
