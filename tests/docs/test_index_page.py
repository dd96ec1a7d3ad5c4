# SPDX-License-Identifier: Apache-2.0
"""The README on a package index: no broken link, no broken picture, and no markup that fails."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from types import ModuleType

import pytest
from readme_renderer import markdown

from tests.support.pages import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
REPOSITORY = "https://example.org/owner/rebat"
TARGET = re.compile(r'(?:href|src)="([^"#][^"]*)"')
"""Target of a link or a picture, except anchors of headings."""


def _script() -> ModuleType:
    """Load `scripts/index_page.py`."""
    spec = importlib.util.spec_from_file_location("index_page", ROOT / "scripts/index_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


def _rendered(repository: str, version: str = "1.0.0") -> str:
    html = markdown.render(SCRIPT.index_page(README, repository, version))
    assert html is not None
    return str(html)


def test_the_readme_itself_would_be_broken() -> None:
    html = markdown.render(README)
    assert html is not None
    assert any(not target.startswith("http") for target in TARGET.findall(html))


@pytest.mark.parametrize("repository", ["", REPOSITORY, REPOSITORY + "/"])
def test_all_links_and_pictures_are_absolute(repository: str) -> None:
    targets = TARGET.findall(_rendered(repository))
    assert targets
    for target in targets:
        assert target.startswith("https://"), target
        if target.startswith(REPOSITORY):
            kind, tag, path = target.removeprefix(REPOSITORY + "/").split("/", 2)
            assert (kind, tag) in {("blob", "v1.0.0"), ("raw", "v1.0.0")}
            assert (ROOT / path.partition("#")[0]).exists()


def test_the_picture_is_on_the_page_only_with_a_repository() -> None:
    assert "<img" in _rendered(REPOSITORY)
    assert "<img" not in _rendered("")
    assert "make run" not in _rendered("")


def test_no_comment_and_no_markdown_remains() -> None:
    for repository in ("", REPOSITORY):
        html = _rendered(repository)
        for markup in ("&lt;!--", "](", "```", "<!--"):
            assert markup not in html


def test_development_versions_link_to_the_main_branch() -> None:
    page = SCRIPT.index_page(README, REPOSITORY, "1.0.1.dev3")
    assert f"{REPOSITORY}/blob/main/docs/quickstart.md" in page
    assert "/v1" not in page


def test_the_hook_sets_the_dynamic_fields() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version", "readme", "urls"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SCRIPT.REPOSITORY, REPOSITORY)
        fields = {"version": "1.0.0"}
        SCRIPT.IndexPage(str(ROOT), {}).update(fields)
    assert fields["readme"]["text"] == SCRIPT.index_page(README, REPOSITORY, "1.0.0")
    for url in fields["urls"].values():
        assert url.startswith(REPOSITORY)
        _, _, path = url.partition("/blob/v1.0.0/")
        assert not path or (ROOT / path).exists(), path
