# SPDX-License-Identifier: Apache-2.0
"""The lower bounds of dependencies are the versions that `scripts/check_wheel.py` tests."""

from __future__ import annotations

import tomllib

from packaging.requirements import Requirement
from packaging.version import Version

from tests.test_architecture import PACKAGE

ROOT = PACKAGE.parents[1]


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["campaign"]]
    bounds = {
        required.name: Version(bound.version)
        for required in map(Requirement, texts)
        for bound in required.specifier
        if bound.operator == ">="
    }
    lines = (ROOT / "tests/wheel/oldest.txt").read_text().splitlines()
    rows = [Requirement(line) for line in lines if not line.startswith("#")]
    pinned = {}
    for row in rows:
        (exact,) = row.specifier
        assert exact.operator == "=="
        pinned[row.name] = Version(exact.version)
    assert pinned == bounds
    assert len(bounds) == len(texts)


def test_the_documentation_installs_what_the_public_modules_need() -> None:
    """The reference imports all public modules, also `rebat.env`, which needs the extra `rl`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: [*map(Requirement, of)] for name, of in project["optional-dependencies"].items()
    }
    assert {"rl"} <= {extra for each in extras["docs"] for extra in each.extras}
