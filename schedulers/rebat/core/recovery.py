# SPDX-License-Identifier: Apache-2.0
"""Recovery of a failed job in stages, whose durations are random and depend on the cause.

After a failure, the job first hangs: it keeps its nodes while the failure is detected and
diagnosed, and the job is rescheduled. During this time, failures of its nodes have no effect. Then
a policy decides, and the job continues on other nodes: it initialises, then loads its checkpoint.
If a failure hits the job in one of these two stages, both begin again.
"""

from __future__ import annotations

import msgspec

from rebat.core.durations import RandomDuration, parse_random
from rebat.core.errors import InputError
from rebat.core.streams import stream
from rebat.core.units import to_us

HUNG = ("detect", "diagnose", "reschedule")
"""The stages in which the job hangs on its nodes, in order."""

STAGES = (*HUNG, "init")

ANY = ""
"""Key of the durations for all causes that have no key."""


class StageDurations(msgspec.Struct, frozen=True):
    """Random durations of a stage, by cause of the failure."""

    by_cause: tuple[tuple[str, RandomDuration], ...]

    def of(self, cause: str) -> RandomDuration:
        """Return the random duration for a cause of failures."""
        durations = dict(self.by_cause)
        return durations.get(cause, durations[ANY])


class Recovery(msgspec.Struct, frozen=True):
    """The durations of the stages before the checkpoint is loaded, and the seed of the draws."""

    detect: str = "0"
    diagnose: str = "0"
    reschedule: str = "0"
    init: str = "0"
    seed: int = 0

    @property
    def stages(self) -> dict[str, StageDurations]:
        """The stages that take time, with their durations, by name."""
        texts = {name: getattr(self, name) for name in STAGES}
        return {name: parse_stage(text) for name, text in texts.items() if text not in ("0", "0s")}

    @property
    def random(self) -> bool:
        """Whether any duration is random."""
        stages = self.stages.values()
        return not all(duration.constant for stage in stages for _, duration in stage.by_cause)

    def drawn_us(
        self, stages: dict[str, StageDurations], cause: str, *key: str | int
    ) -> dict[str, int]:
        """Draw the duration of each stage in microseconds.

        Equal arguments ``key`` always yield equal durations.
        """
        durations = {}
        for name, stage in stages.items():
            duration = stage.of(cause)
            rng = stream(0 if duration.constant else self.seed, "recovery", name, *key)
            durations[name] = to_us(duration.draw_s(rng))
        return durations


def parse_stage(text: str | float) -> StageDurations:
    """Return the durations of a stage.

    ``30s`` applies to all causes. ``nccl=10min/30s`` means 10 min after a failure with the cause
    nccl, and 30 s after all other failures.
    """
    by_cause = {}
    for part in str(text).split("/"):
        cause, equals, duration = part.rpartition("=")
        if cause in by_cause or (equals and not cause):
            problem = f"cause {cause!r} is a duplicate" if cause else "a cause has no name"
            raise InputError(f"{text!r}: {problem}", expected="each cause once, like gpu=10min")
        by_cause[cause] = parse_random(duration)
    if ANY not in by_cause:
        expected = "a duration without a cause, for all other causes: hang=10min/30s"
        raise InputError(f"{text!r} has no duration for other causes", expected=expected)
    return StageDurations(tuple(by_cause.items()))
