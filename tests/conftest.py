"""What the tests share: where recorded data lies, and builders of small scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings import SHARED


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the larger recordings and traces; tests skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs the recorded data folder 'shared' beside the project")
    return SHARED
