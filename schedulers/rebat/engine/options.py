# SPDX-License-Identifier: Apache-2.0
"""How the engine behaves: Batsim's command-line switches, and instruments of its own."""

from __future__ import annotations

import msgspec


class EngineOptions(msgspec.Struct, frozen=True):
    """Batsim's command-line switches of the same names, and the nodes' speed (flop/s).

    ``list_resources``: name every host in the first message, as Batsim does (schedulers of other
    people need it; for a large machine that message is long).
    ``latency_us``: decisions take effect so much later, as on a platform with network latency.
    ``split_instants``: tell each thing that happens at one instant in a message of its own, as
    Batsim does where its own messages take a little time; a test of the scheduler.
    """

    dynamic_jobs: bool = True
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = True
    forward_profiles: bool = False
    sched_config: str = ""
    workload_path: str = ""
    forward_unknown_events: bool = False
    list_resources: bool = False
    latency_us: int = 0
    split_instants: bool = False
    speed_flops: float = 1e9
