# SPDX-License-Identifier: Apache-2.0
"""Queue orders by formula, evaluated from their text (site-rules.md: orders by formula)."""

from __future__ import annotations

import ast
import math
from typing import Any

FORMULAS = {  # site-rules.md: orders by formula
    "wfp3": "(age/walltime)**3 * size",
    "unicef": "age / (log2(size) * walltime)",
    "f1": "-(log10(walltime)*size + 870*log10(submitted))",
    "f2": "-(sqrt(walltime)*size + 25600*log10(submitted))",
    "f3": "-(walltime*size + 6860000*log10(submitted))",
    "f4": "-(walltime*sqrt(size) + 530000*log10(submitted))",
}


def formula_of(text: str) -> str:
    """Return the formula of a queue order."""
    if not text.startswith("multifactor"):
        return FORMULAS.get(text, text)
    # site-rules.md: Slurm's multifactor priority
    weights = dict(part.split("=") for part in text.split(":")[1:])
    oldest = float(weights.pop("max_age", 604800))
    parts = {"age": f"min(age/{oldest}, 1)", "size": "size/nodes", "partition": "partition"}
    return " + ".join(f"{weights[name]}*{parts[name]}" for name in weights)


def clamped(x: float) -> float:
    return max(-1e30, min(1e30, x))


def divide(x: float, y: float) -> float:
    """Divide (site-rules.md: by zero results in a limit, 0/0 in 0)."""
    if y == 0:
        return 0.0 if x == 0 else math.copysign(1e30, x)
    return clamped(x / y)


def power(x: float, y: float) -> float:
    try:
        result = x**y
    except ZeroDivisionError:
        return 1e30
    except OverflowError:
        return 1e30 if x > 0 or y % 2 == 0 else -1e30
    return 0.0 if isinstance(result, complex) else clamped(result)


def evaluate(text: str, columns: dict[str, float]) -> float:
    """Return the value of a formula for the columns of an attempt."""

    calls: dict[str, Any] = {
        "min": min, "max": max, "floor": math.floor,
        "sqrt": lambda x: math.sqrt(x) if x > 0 else 0.0,
        "log": lambda x: math.log(x) if x > 0 else -1e30,
        "log2": lambda x: math.log2(x) if x > 0 else -1e30,
        "log10": lambda x: math.log10(x) if x > 0 else -1e30,
    }  # fmt: skip
    binary: dict[type, Any] = {
        ast.Add: lambda x, y: clamped(x + y), ast.Sub: lambda x, y: clamped(x - y),
        ast.Mult: lambda x, y: clamped(x * y), ast.Div: divide, ast.Pow: power,
    }  # fmt: skip

    def of(node: Any) -> float:
        if isinstance(node, ast.BinOp):
            return binary[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return -of(node.operand) if isinstance(node.op, ast.USub) else of(node.operand)
        if isinstance(node, ast.Call):
            return clamped(calls[node.func.id](*map(of, node.args)))  # type: ignore[attr-defined]
        return columns[node.id] if isinstance(node, ast.Name) else float(node.value)

    return of(ast.parse(text.strip().replace("class", "class_"), mode="eval").body)
