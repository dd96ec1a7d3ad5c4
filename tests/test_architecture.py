# SPDX-License-Identifier: Apache-2.0
"""Rules of the code: imports have one direction; decisions depend only on their input."""

from __future__ import annotations

import ast
import doctest
import importlib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "schedulers" / "rebat"
CAMPAIGNS = PACKAGE.parents[1] / "campaigns"

LAYERS = (
    {"core"},
    {"kernels", "records"},
    {"models"},
    {"workloads", "platforms"},
    {"state"},
    {"rules"},
    {"contract"},
    {"policies", "engine"},
    {"drive"},
    {"wire"},
    {"results"},
    {"console", "executors", "figures", "runs"},
    {"report"},
    {"shipped"},
    {"adapters", "campaign"},
    {"api"},
    {"check", "env", "studies"},
    {"cli"},
)
"""The parts of the package from low to high. A part imports from its own layer and lower ones."""

PURE = (
    "core", "records", "kernels", "models", "contract", "policies", "engine", "state",
    "rules", "drive", "wire", "results",
)  # fmt: skip
LINKS = {"zmq_link.py", "jit.py"}  # timeouts, and the time until a kernel is compiled
CLOCKS = {"time", "datetime"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def syntax(path: Path) -> ast.Module:
    """Return the syntax tree of a module, parsed once for all rules."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a module."""
    return tuple(ast.walk(syntax(path)))


@cache
def imported(path: Path) -> set[str]:
    """Return the dotted names that a module imports anywhere."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_imports_point_down() -> None:
    layer = {part: number for number, parts in enumerate(LAYERS) for part in parts}
    wrong = []
    for path in modules():
        own = layer.get(path.relative_to(PACKAGE).parts[0], len(LAYERS))
        parts = {name.split(".")[1] for name in imported(path) if name.startswith("rebat.")}
        above = {part for part in parts if layer.get(part, 0) > own}
        if above:
            wrong.append((of(path), above))
    assert wrong == []


def test_the_code_of_a_campaign_is_one_folder() -> None:
    """Reports import their own files and the layers up to `report`. No module imports them by name.

    Commands and programs of a campaign can import everything.
    """
    allowed = {
        "rebat",
        "figures",
        *(part for parts in LAYERS[: LAYERS.index({"shipped"})] for part in parts),
    }
    wrong = [
        (path.parent.name, name)
        for path in CAMPAIGNS.glob("*/*.py")
        if path.name != "commands.py" and "__main__" not in path.read_text()
        for name in imported(path)
        if name.startswith("rebat.") and name.split(".")[1] not in allowed
    ]
    named = [
        of(path) for path in modules() for name in imported(path) if "shipped.campaigns" in name
    ]
    assert (wrong, named) == ([], [])


def test_no_module_imports_itself_in_a_circle() -> None:
    """This includes imports within functions, but not imports that only types need."""
    graph = {dotted(path).removesuffix(".__init__"): at_run_time(path) for path in modules()}
    parts = {name: (found & graph.keys()) - {name} for name, found in graph.items()}
    assert list(TopologicalSorter(parts).static_order())


def dotted(path: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(("rebat", *path.relative_to(PACKAGE).with_suffix("").parts))


def at_run_time(path: Path) -> set[str]:
    """Return the modules that a module imports at run time, as dotted names.

    ``from package import module`` counts as an import of both.
    """
    tree = syntax(path)
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and _is_for_types(n.test)]
    unused = {inner for block in blocks for inner in ast.walk(block)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node not in unused:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def test_decisions_read_no_clock_and_no_global_random_stream() -> None:
    """The same input must always result in the same bytes, on any day."""
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] not in PURE or path.name in LINKS:
            continue
        names = imported(path)
        assert "time" not in names, of(path)
        # Only renewal.py may use Python's generator (with a seed), as the authors' program does.
        assert "random" not in names or path.name == "renewal.py", of(path)
        text = path.read_text()
        for call in ("np.random.seed", "np.random.rand(", "datetime.now", "default_rng()"):
            assert call not in text, of(path)


FORBIDDEN = {
    "pickle", "marshal", "shelve", "dill", "joblib", "yaml", "runpy", "code", "tarfile",
    "xml.etree.ElementTree",
}  # fmt: skip
RUNNING = {
    "import_module": {
        "__init__.py", "cli/main.py", "cli/completion.py", "env/__init__.py", "shipped/__init__.py",
    },
    "exec_module": {"policies/own.py"},
    "spec_from_loader": {"policies/own.py", "shipped/__init__.py"},
    "extractall": set(),
    "unpack_archive": set(),
    "read_pickle": set(),
    "system": set(),
    "run_path": set(),
}  # fmt: skip
"""Functions that can run code or write files with foreign names, and the modules that call them.

These modules import tables of the project's own modules, and Python files that a user names.
"""


def called(path: Path) -> list[tuple[str, ast.Call]]:
    """Return the calls of a module with the name of the function or method."""
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    names = {ast.Name: "id", ast.Attribute: "attr"}
    return [
        (getattr(call.func, names[type(call.func)]), call)
        for call in calls
        if type(call.func) in names
    ]


def test_foreign_data_is_never_unpickled_or_evaluated() -> None:
    """SECURITY.md states this."""
    callers: dict[str, set[str]] = {name: set() for name in RUNNING}
    for path in [*modules(), *CAMPAIGNS.rglob("*.py")]:
        assert not imported(path) & FORBIDDEN, path
        assert "cloudpickle" not in imported(path) or path.name == "processes.py", path
        for name, call in called(path):
            assert not (name in ("eval", "exec", "compile") and isinstance(call.func, ast.Name))
            assert name != "__import__", path
            if name == "load" and ast.unparse(call.func) == "np.load":
                assert "allow_pickle=False" in ast.unparse(call), path
            assert "shell=True" not in {ast.unparse(word) for word in call.keywords}, path
            if name in callers and path.is_relative_to(PACKAGE):
                callers[name].add(of(path))
            else:
                assert name not in callers, path
    assert all(callers[name] <= RUNNING[name] for name in callers), callers


LISTENING = {
    "_attach": {"wire/zmq_link.py"},
    "bind": {"campaign/batsched.py", "policies/queue_order.py"},
    "bind_sockets": {"studies/whatif/server.py"},
    "LocalCluster": {"executors/on_dask.py"},
    "SpecCluster": {"executors/cluster.py"},
}
"""Functions that open a port (or have the same name), and the modules that call them."""


def test_few_modules_listen_on_the_network() -> None:
    """SECURITY.md lists them."""
    seen: dict[str, set[str]] = {name: set() for name in LISTENING}
    for path in modules():
        assert not imported(path) & {"http.server", "socketserver", "xmlrpc", "aiohttp", "flask"}
        assert not imported(path) & {"urllib.request", "requests", "httpx", "http.client"}, path
        for name, _ in called(path):
            if name in seen:
                seen[name].add(of(path))
    assert seen == LISTENING


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
    assert parts == set().union(*LAYERS)


def test_no_module_is_too_long() -> None:
    lengths = {of(path): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 900} == {}


def test_classes_have_names_of_their_own() -> None:
    """Within a package."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        for node in syntax(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault((of(path).partition("/")[0], node.name), []).append(of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


KERNELS = {"kernel", "loop", "inner", "step", "inlined", "rule", "inlined_rule", "whole_rule"}


def test_functions_are_short() -> None:
    """The body of a function has at most 80 lines. Kernels may be longer."""
    long = [
        (of(path), node.name)
        for path in modules()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef) and body_lines(node) > 80
        if not KERNELS.intersection(getattr(mark, "id", "") for mark in node.decorator_list)
    ]
    assert long == []


def body_lines(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function after its docstring."""
    first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
    return (function.end_lineno or 0) - first.lineno + 1


def test_a_command_is_declared_by_the_signature_of_a_function() -> None:
    """Only `cli/command.py` creates options and arguments, and `cli/main.py` the root group."""
    makers = {
        (of(path), node.attr)
        for path in (PACKAGE / "cli").glob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "click"
        and node.attr in ("option", "argument", "command", "group", "Option", "Argument")
    }
    assert {name for name, _ in makers} == {"cli/command.py", "cli/main.py"}
    assert ("cli/main.py", "option") not in makers


def test_each_command_is_a_row() -> None:
    from rebat.cli.main import COMMANDS

    for name, (place, _) in COMMANDS.items():
        module, _, function = place.partition(":")
        assert hasattr(importlib.import_module(module), function), name
