# SPDX-License-Identifier: Apache-2.0
"""Registration of the environment in Gymnasium, by ``import rebat.env``."""

from __future__ import annotations

import gymnasium

ID = "rebat/BatchScheduling-v0"


def register() -> None:
    """Register the environment, unless it is already registered."""
    if ID not in gymnasium.registry:
        gymnasium.register(ID, "rebat.env.environment:BatchScheduling")
