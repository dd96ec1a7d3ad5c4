# SPDX-License-Identifier: Apache-2.0
"""No public name appears or disappears unnoticed, and each is on the Python page."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.support.pages import DOCS, ROOT

KEPT = ROOT / "tests/data/public-surface.txt"


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


SURFACE = _script("public_surface")
NAMES = [
    (f"{module}.{name}", value)
    for module in SURFACE.MODULES
    for name, value in SURFACE.public_names(module).items()
]


def test_the_public_surface_is_the_kept_list() -> None:
    """After an intended change, write the list again with `scripts/public_surface.py`."""
    kept = KEPT.read_text(encoding="utf-8").splitlines()
    now = list(SURFACE.lines())
    gone = sorted({*kept} - {*now})
    new = sorted({*now} - {*kept})
    assert not gone, "public names that no longer exist (see docs/reference/public.md)"
    assert not new, "new public names: add them to the list"
    assert now == kept


def test_the_list_detects_a_name_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    import rebat

    monkeypatch.setattr(rebat, "__all__", [name for name in rebat.__all__ if name != "goodput"])
    assert "python rebat.Goodput" in SURFACE.lines()
    assert not any(line.startswith("python rebat.goodput(") for line in SURFACE.lines())


@pytest.mark.parametrize(("path", "value"), NAMES, ids=[path for path, _ in NAMES])
def test_public_names_have_docstrings_and_are_on_the_page(path: str, value: Any) -> None:
    module, _, name = path.rpartition(".")
    page = _script("site_hooks").on_page_markdown((DOCS / "reference/api.md").read_text())
    entries = [line for line in page.splitlines() if line.startswith("::: ")]
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value), path
        assert f"::: {value.__module__}.{value.__qualname__}" in entries
    else:
        assert any(entry.endswith((f".{name}", f".{name}.table")) for entry in entries)
    assert f"<!-- python: {module} -->" in (DOCS / "reference/api.md").read_text()


def test_internal_members_exist() -> None:
    for path, members in SURFACE.INTERNAL.items():
        kind = dict(NAMES)[path]
        for member in members:
            assert hasattr(kind, member), f"{path}.{member}"
