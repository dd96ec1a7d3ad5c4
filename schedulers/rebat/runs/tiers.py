# SPDX-License-Identifier: Apache-2.0
"""Checkpoint tiers for a failure law, as used by the command line and campaigns."""

from __future__ import annotations

import msgspec

from rebat.models.checkpoint import Survives
from rebat.models.failures.correlated import Correlated
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import Law
from rebat.models.tiers import SURVIVES, parse_tiers
from rebat.runs.spec import TierCheckpoints


def tier_checkpoints(text: str, mtbf_s: float, law: Law | None) -> TierCheckpoints:
    """Return checkpoints in storage tiers, with the failures of the law that light tiers survive.

    Parameters
    ----------
    text : str
        The tiers as text (see `models.tiers`).
    mtbf_s : float
        Mean time between failures of the machine, in seconds.
    """
    survives = [SURVIVES[tier.name] for tier in parse_tiers(text).lights] or [None]
    shares = tuple(_survived_share(law, failures) for failures in survives)
    single = law.of if isinstance(law, Correlated) else law
    software = single.software if isinstance(single, Fleet) else ""
    group = _group(law) if "group" in survives else msgspec.UNSET
    return TierCheckpoints(mtbf_s, text, shares if shares[1:] else shares[0], software, group)


def _survived_share(law: Law | None, survives: Survives | None) -> float:
    single = law.of if isinstance(law, Correlated) else law
    if survives == "node" and isinstance(law, Correlated) and law.correlation.group > 1:
        return 0.0
    if isinstance(single, Fleet):
        return single.survived_share(survives)
    return 0.0 if survives == "process" else 1.0


def _group(law: Law | None) -> int:
    """Return the number of nodes in a group of nodes that fail together under the law."""
    if isinstance(law, Correlated):
        return max(law.correlation.group, _group(law.of))
    return law.group if isinstance(law, Fleet) else 1
