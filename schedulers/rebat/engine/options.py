# SPDX-License-Identifier: Apache-2.0
"""Options of the engine: Batsim's command-line switches, and additional options for tests."""

from __future__ import annotations

import msgspec


class EngineOptions(msgspec.Struct, frozen=True):
    """Options of the engine. Most have the names of Batsim's command-line switches."""

    dynamic_jobs: bool = True
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = True
    forward_profiles: bool = False
    sched_config: str = ""
    workload_path: str = ""
    forward_unknown_events: bool = False
    list_resources: bool = False
    """Whether to list every host in the first message, as Batsim does.

    Schedulers other than rebat need this list. It is long for a large machine.
    """
    latency_us: int = 0
    """Delay (us) between a decision and its effect, as on a platform with network latency."""
    split_instants: bool = False
    """Whether to send each event in a separate message, even if several have the same time.

    This is for tests of schedulers. Batsim sends events separately if messages take time.
    """
    split_failures: bool = False
    """Whether to send simultaneous lines of an event file in separate messages.

    A line takes effect before the reply to the line before. This is for tests of schedulers. Batsim
    does so when its clock is wrong by the last binary digit.
    """
    speed_flops: float = 1e9
    """Speed of the nodes in flop/s."""
