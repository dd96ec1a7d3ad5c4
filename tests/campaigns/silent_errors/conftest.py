# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several test modules of silent errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import Campaign, open_campaign
from tests.support.campaigns import run_here
from tests.support.job_sets import small


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Path]:
    """Run a campaign without interruption; return the campaign and its results."""
    folder = tmp_path_factory.mktemp("silent")
    file = small(folder)
    run_here(file, folder / "r")
    return open_campaign(file), folder / "r"
