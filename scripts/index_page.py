# SPDX-License-Identifier: Apache-2.0
"""Page of rebat on a package index, and the URLs of the project, as a hook of hatchling.

An index shows the README without the files next to it. The environment variable `REBAT_REPOSITORY`
contains the address of the repository while a release is built, for example
``https://github.com/OWNER/rebat``. Then links and pictures of the page point into the repository,
at the tag of the version. Without this variable, the page has no links to other files, and leaves
out the parts of the README that are marked with ``<!-- in the repository -->``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface as Hook
except ImportError:  # only the functions are used
    Hook = object

REPOSITORY = "REBAT_REPOSITORY"
"""Environment variable with the address of the repository."""

_PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!https?:)([^)]+\))")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)]+)\)")
_COMMENT = re.compile(r"<!--.*?-->\n?")
_CHECKOUT = re.compile(r"<!-- in the repository -->\n.*?<!-- end -->\n+", re.DOTALL)
"""A part of the README that needs the files next to it."""


def index_page(readme: str, repository: str = "", version: str = "") -> str:
    """Return the README as an index shows it.

    Parameters
    ----------
    readme : str
        The README, with relative links.
    repository : str
        Address of the repository. If empty, links are removed and their texts stay.
    version : str
        Version of the package. Links point to its tag, or to the branch ``main`` if it is a
        development version.

    >>> index_page("See [docs](docs/a.md).")
    'See docs.'
    >>> index_page("See [docs](docs/a.md).", "https://example.org/rebat", "1.0.0")
    'See [docs](https://example.org/rebat/blob/v1.0.0/docs/a.md).'
    """
    if not repository:
        return _LINK.sub(r"\1", _COMMENT.sub("", _CHECKOUT.sub("", readme)))
    text = _COMMENT.sub("", readme)
    base, tag = repository.rstrip("/"), _tag(version)
    text = _PICTURE.sub(rf"\1{base}/raw/{tag}/\2", text)
    return _LINK.sub(rf"[\1]({base}/blob/{tag}/\2)", text)


def urls(repository: str, version: str = "") -> dict[str, str]:
    """Return the URLs of the project by name, none if the address of the repository is empty."""
    if not repository:
        return {}
    base, tag = repository.rstrip("/"), _tag(version)
    return {
        "Repository": base,
        "Documentation": f"{base}/blob/{tag}/docs/index.md",
        "Release notes": f"{base}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{base}/issues",
        "Security": f"{base}/blob/{tag}/SECURITY.md",
    }


def _tag(version: str) -> str:
    return "main" if not version or "dev" in version else f"v{version}"


class IndexPage(Hook):  # type: ignore[misc, valid-type]
    """Sets the fields `readme` and `urls` of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields. hatchling calls this when it builds the package."""
        repository, version = os.environ.get(REPOSITORY, ""), str(metadata.get("version", ""))
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = index_page(readme, repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(repository, version)
