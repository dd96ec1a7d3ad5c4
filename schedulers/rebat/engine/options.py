# SPDX-License-Identifier: Apache-2.0
"""Options of the engine: Batsim's command-line switches, and extra options for tests."""

from __future__ import annotations

import msgspec


class EngineOptions(msgspec.Struct, frozen=True):
    """Options of the engine; most have the names of Batsim's command-line switches."""

    dynamic_jobs: bool = True
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = True
    forward_profiles: bool = False
    sched_config: str = ""
    workload_path: str = ""
    forward_unknown_events: bool = False
    list_resources: bool = False
    """List every host in the first message, as Batsim does. Other schedulers need this list. It is
    long for a large machine."""
    latency_us: int = 0
    """Delay of decisions, as on a platform with network latency."""
    split_instants: bool = False
    """Send each event of an instant in a separate message. Batsim does this if messages take time.
    For tests of schedulers."""
    speed_flops: float = 1e9
    """Speed of the nodes in flop/s."""
