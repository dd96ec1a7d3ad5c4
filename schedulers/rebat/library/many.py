# SPDX-License-Identifier: Apache-2.0
"""How many seeds there are to be."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebat.core.errors import InputError
from rebat.results.metric import name_of
from rebat.runs.seeds import Narrow, check_metric

DEFAULT_SEEDS = 10
"""How many there are at first where only a width is asked for."""


class SeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of seeds; without any there is one run a policy."""

    seeds: int | None = None
    until_width: Annotated[float, msgspec.Meta(gt=0)] | None = None
    until_metric: str | None = None
    workers: Annotated[int, msgspec.Meta(ge=1)] | None = None

    @property
    def many(self) -> bool:
        """Whether there are to be several runs a policy."""
        return self.seeds is not None or self.until_width is not None

    @property
    def n_seeds(self) -> int:
        """With how many to begin."""
        return self.seeds or DEFAULT_SEEDS

    def check(self) -> None:
        """InputError for what has no effect, or is no number of seeds."""
        if self.seeds is not None and self.seeds < 2:
            raise InputError(f"is {self.seeds}", "--seeds", "2 or more")
        if self.workers is not None and not self.many:
            raise InputError("has no effect", "--workers", "--seeds beside it")
        if self.until_metric is not None and self.until_width is None:
            raise InputError("has no effect", "--until-metric", "--until-width beside it")
        if self.until_metric is not None:
            check_metric(name_of(self.until_metric))

    def narrow(self) -> Narrow | None:
        """Until when seeds are added; None: there are as many as asked for."""
        if self.until_width is None:
            return None
        return Narrow(self.until_width, name_of(self.until_metric or "useful_utilisation"))
