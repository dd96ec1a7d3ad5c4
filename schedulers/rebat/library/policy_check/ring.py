# SPDX-License-Identifier: Apache-2.0
"""Presets for a torus, adapted to the small machines of policy checks."""

from __future__ import annotations

from rebat.policies.presets import Preset, preset


def on_ring(policy: str, n_nodes: int) -> Preset:
    """Return the preset of this name, adapted to a machine of ``n_nodes`` nodes.

    If the preset needs a torus, use a ring of all nodes. If it predicts failures, set its foresight
    to 'oldest'.
    """
    chosen = preset(policy)
    ring = {"torus": str(n_nodes), "foresight": "oldest"}
    own = [f"{axis}={value}" for axis, value in ring.items() if axis in chosen.point.effective]
    return preset(policy + (":" if ":" not in policy else ",") + ",".join(own)) if own else chosen
