"""Rules of the code base: imports point one way; decisions depend on their input alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "schedulers" / "rebat"

# What each part may import, itself apart.
ALLOWED = {
    "core": set(),
    "kernels": {"core"},
    "models": {"core", "kernels"},
    "platforms": {"core", "models"},
    "policies": {"core", "kernels", "models"},
    "session": {"core", "kernels", "models", "policies"},
    "protocol": {"core"},
    "transport": {"core", "protocol"},
    "engine": {"core", "kernels", "models", "protocol"},
    "workloads": {"core", "models"},
    "metrics": {"core", "models", "session"},
    "figures": {"core", "metrics", "session"},
    "report": {"core", "engine", "models", "metrics", "session", "figures"},
    "reports": {"core", "kernels", "figures", "report"},
    "campaign": None,  # wires things up
    "adapters": None,
    "cli": None,
}

PURE = ("core", "kernels", "models", "policies", "session", "engine", "protocol", "metrics")
CLOCKS = {"time", "datetime"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Dotted names that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0]
    allowed = ALLOWED.get(part)
    if allowed is None:
        return
    inner = {name.split(".")[1] for name in imported(path) if name.startswith("rebat.")}
    assert inner - {part} <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_decisions_read_no_clock_and_no_global_random_stream(path: Path) -> None:
    """The same input must give the same bytes, on any day."""
    parts = path.relative_to(PACKAGE).parts
    if parts[0] not in PURE:
        return
    names = imported(path)
    assert "time" not in names
    # The authors' generator is Python's own, seeded; nothing else may use it.
    assert "random" not in names or path.name == "authors.py"
    text = path.read_text()
    for call in ("np.random.seed", "np.random.rand(", "datetime.now", "default_rng()"):
        assert call not in text


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_foreign_data_is_never_unpickled_or_evaluated(path: Path) -> None:
    assert not imported(path) & {"pickle", "marshal", "shelve", "xml.etree.ElementTree"}
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"eval", "exec"}


def test_every_part_is_listed() -> None:
    parts = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert parts <= set(ALLOWED)
