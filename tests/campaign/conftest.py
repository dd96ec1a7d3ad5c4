# SPDX-License-Identifier: Apache-2.0
"""What several test modules of campaigns start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import Campaign, open_campaign
from rebat.figures import boxes
from tests.campaign.builders import campaign_file, contents, run_here
from tests.campaign.silent_builders import small


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Path]:
    """A campaign that ran without a break, and its results."""
    folder = tmp_path_factory.mktemp("silent")
    file = small(folder)
    run_here(file, folder / "r")
    return open_campaign(file), folder / "r"


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A campaign file and what its results are when nothing happens."""
    folder = tmp_path_factory.mktemp("unbroken")
    file = campaign_file(folder)
    run_here(file, folder / "r")
    return file, contents(folder / "r")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are put together, but not drawn: for tests of the text beside them."""
    monkeypatch.setattr(boxes, "svg_of", lambda figure: "<svg></svg>")
