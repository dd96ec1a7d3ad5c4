# SPDX-License-Identifier: Apache-2.0
"""The driver that answers Batsim's messages: the rules, or the session with a policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.events import SimulationBegan
from rebat.core.options import SessionOptions
from rebat.drive.ask import Session
from rebat.drive.eligible import why_not_operations, why_not_policy, why_not_tiers
from rebat.drive.machine import LoopNodes
from rebat.drive.parts import Uncovered, machine_of
from rebat.drive.plan_record import PlanRecorder
from rebat.drive.simulate import places_on
from rebat.drive.wire import Wire
from rebat.models.checkpoint import checkpointing_of
from rebat.policies.own import is_own
from rebat.policies.presets import Preset


def driver_for(
    preset: Any,
    options: SessionOptions,
    began: SimulationBegan,
    uptime_us: npt.NDArray[np.int64] | None = None,
    recorder: PlanRecorder | None = None,
    asks: bool = False,
) -> Wire | Session:
    """Return the driver for a scheduler. The first event that it receives is ``began``.

    Parameters
    ----------
    preset : Preset or another scheduler with ``make``
    options : SessionOptions
    began : SimulationBegan
        It shows whether the rules cover the machine and its profiles.
    uptime_us : int64 array, shape (n,), optional
        Uptime of each node when the simulation begins, in microseconds (default: 0).
    recorder : PlanRecorder, optional
        Recorder of the plans (default: the plans are not recorded).
    asks : bool
        Whether a policy is asked in any case, for example because a job is eternal.
    """
    if isinstance(preset, Preset) and not asks:
        point = preset.point
        asks = bool(why_not_operations(point))
        asks = asks or is_own(point.common.order)  # a guard states the line of an error
        if not (asks or why_not_policy(point)) and _covers(preset, options, began, uptime_us):
            return Wire(point, options, recorder, preset.hazards, uptime_us)
    return Session(preset.make(), options, uptime_us, recorder)


def _covers(
    preset: Preset,
    options: SessionOptions,
    began: SimulationBegan,
    uptime_us: npt.NDArray[np.int64] | None,
) -> bool:
    """Return whether the rules cover a machine and its profiles."""
    if uptime_us is not None and len(uptime_us) != began.n_nodes:
        return False
    point, cores = preset.point, options.cores_per_node
    profiles = [each for of in began.profiles.values() for each in of.values()]
    try:
        kinds = [checkpointing_of(profile) for profile in profiles]
        if any(kind and (kind.never or (kind.light and why_not_tiers(point))) for kind in kinds):
            return False
        partitions = machine_of(point, began.n_nodes, cores).partitions
        if point.chooses_nodes:
            places_on(LoopNodes(began.n_nodes, cores), point, preset.hazards)
    except (InputError, Uncovered):  # the session reports errors later
        return False
    return not any(row.max_time_us or row.default_time_us for row in partitions)
