# SPDX-License-Identifier: Apache-2.0
"""What several test modules of campaigns start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.builders import campaign_file, contents, run_here


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A campaign file and what its results are when nothing happens."""
    folder = tmp_path_factory.mktemp("unbroken")
    file = campaign_file(folder)
    run_here(file, folder / "r")
    return file, contents(folder / "r")
