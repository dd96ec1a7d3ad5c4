# SPDX-License-Identifier: Apache-2.0
"""Options for runs with several seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from rebat.core.declared import Count, extra
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.runs.case import Case
    from rebat.runs.seeds import Narrow

DEFAULT_SEEDS = 10
"""Initial number of seeds if ``until_width`` is set but ``seeds`` is not."""


class SeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for several seeds. If no option is set, each policy runs with one seed."""

    seeds: Annotated[
        Annotated[int, msgspec.Meta(ge=2)] | None,
        "Number of seeds, starting at --seed. For each seed, all policies have the same failures; "
        "results are means with 95 % intervals. With --until-width: the initial number of seeds "
        "(default: 10).",
    ] = None
    until_width: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        "Add seeds (up to 1,000) until the relative width of the confidence interval is at most "
        "this value, like 0.02. With several policies, rebat checks the intervals of the ratios to "
        "the first policy. With one policy, rebat checks the interval of the mean.",
    ] = None
    until_metric: Annotated[
        str | None,
        "With --until-width: metric whose interval must reach this width (default: "
        "useful_utilisation). Use a name from comparison.csv, like flow_mean_s:all.",
        extra(values="metric"),
    ] = None
    workers: Annotated[Count | None, "With --seeds: number of workers (default: one per core)."] = (
        None
    )

    @property
    def many(self) -> bool:
        """Whether each policy runs with several seeds."""
        return self.seeds is not None or self.until_width is not None

    @property
    def n_seeds(self) -> int:
        """Initial number of seeds."""
        return self.seeds or DEFAULT_SEEDS

    def check(self) -> None:
        """Raise InputError if an option has no effect."""
        from rebat.results.catalogue import check_metric
        from rebat.results.metric import name_of

        if self.workers is not None and not self.many:
            raise InputError("has no effect", "--workers", "--seeds as well")
        if self.until_metric is not None and self.until_width is None:
            raise InputError("has no effect", "--until-metric", "--until-width as well")
        if self.until_metric is not None:
            check_metric(name_of(self.until_metric), "--until-metric")

    def of_seeds(self, case: Case) -> Case:
        """Return a case with these seeds, from its seed on."""
        if not self.many:
            return case
        (first,) = case.values.get("seed", (0,))
        door = replace(case.door, places={**case.door.places, "seeds": case.door.place("seeds")})
        return replace(case, door=door).changed(seed=range(first, first + self.n_seeds))

    def narrow(self) -> Narrow | None:
        """Return the target width of the interval at which no more seeds are added.

        Return None if the number of seeds is fixed.
        """
        from rebat.results.metric import name_of
        from rebat.runs.seeds import Narrow

        if self.until_width is None:
            return None
        return Narrow(self.until_width, name_of(self.until_metric or "useful_utilisation"))
