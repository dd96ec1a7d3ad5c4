# SPDX-License-Identifier: Apache-2.0
"""Rules of the code base: imports point one way; decisions depend on their input alone."""

from __future__ import annotations

import ast
import doctest
import importlib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "schedulers" / "rebat"

# What each part may import, itself apart.
ALLOWED = {
    "core": set(),
    "kernels": {"core"},
    "models": {"core", "kernels"},
    "platforms": {"core", "models"},
    "policies": {"core", "kernels", "models"},
    "session": {"core", "kernels", "models", "policies"},
    "engine": {"core", "kernels", "models"},
    "wire": {"core", "policies", "session", "engine"},
    "workloads": {"core", "models"},
    "metrics": {"core", "models", "session"},
    "figures": {"core", "metrics", "session"},
    "report": {"core", "engine", "models", "metrics", "session", "figures"},
    "reports": {"core", "kernels", "metrics", "figures", "report"},
    "console": {"core", "campaign", "engine", "kernels"},
    "campaign": None,  # wires things up
    "library": None,
    "adapters": None,
    "cli": None,
}

PURE = ("core", "kernels", "models", "policies", "session", "engine", "wire", "metrics")
LINKS = {"zmq_link.py"}  # a peer's silence is measured by the clock
CLOCKS = {"time", "datetime"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a module, parsed once for all rules."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of that tree."""
    return tuple(ast.walk(syntax(path)))


@cache
def imported(path: Path) -> set[str]:
    """Dotted names that a module imports, wherever in it."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        part = path.relative_to(PACKAGE).parts[0]
        allowed = ALLOWED.get(part)
        inner = {name.split(".")[1] for name in imported(path) if name.startswith("rebat.")}
        if allowed is not None and inner - {part} - allowed:
            wrong.append((of(path), inner - {part} - allowed))
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """At the top of modules; what is imported within a function cannot lock up."""
    graph = {dotted(path): at_the_top(path) for path in modules()}
    known = graph.keys()
    parts = {name: {other for other in found if other in known} for name, found in graph.items()}
    assert list(TopologicalSorter(parts).static_order())


def dotted(path: Path) -> str:
    """A module's name."""
    return ".".join(("rebat", *path.relative_to(PACKAGE).with_suffix("").parts))


def at_the_top(path: Path) -> set[str]:
    """What a module imports when it is imported itself."""
    names = set()
    for node in syntax(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_decisions_read_no_clock_and_no_global_random_stream() -> None:
    """The same input must give the same bytes, on any day."""
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] not in PURE or path.name in LINKS:
            continue
        names = imported(path)
        assert "time" not in names, of(path)
        # The authors' generator is Python's own, seeded; nothing else may use it.
        assert "random" not in names or path.name == "authors.py", of(path)
        text = path.read_text()
        for call in ("np.random.seed", "np.random.rand(", "datetime.now", "default_rng()"):
            assert call not in text, of(path)


def test_foreign_data_is_never_unpickled_or_evaluated() -> None:
    for path in modules():
        forbidden = {"pickle", "marshal", "shelve", "xml.etree.ElementTree"}
        assert not imported(path) & forbidden, of(path)
        calls = {
            node.func.id
            for node in nodes(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"eval", "exec"}, of(path)


def test_the_examples_in_docstrings_hold() -> None:
    tried = 0
    for path in modules():
        if ">>>" in path.read_text():
            result = doctest.testmod(importlib.import_module(dotted(path)))
            assert result.failed == 0, of(path)
            tried += result.attempted
    assert tried >= 30


def test_every_part_is_listed() -> None:
    parts = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert parts <= set(ALLOWED)


def test_no_module_is_longer_than_a_newcomer_reads_at_once() -> None:
    lengths = {of(path): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 350} == {}
