# SPDX-License-Identifier: Apache-2.0
"""Tiers of checkpoints for a failure law, for the command line and for campaigns."""

from __future__ import annotations

from rebat.models.failures.correlated import Correlated
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import Law
from rebat.models.tiers import SURVIVES, parse_tiers
from rebat.runs.spec import TierCheckpoints


def tier_checkpoints(text: str, mtbf_s: float, law: Law | None) -> TierCheckpoints:
    """Return checkpoints in tiers, and which failures the light tier survives under the law.

    Parameters
    ----------
    text : str
        The tiers, see `models.tiers`.
    mtbf_s : float
        The machine's mean time between failures in seconds.
    law : Law, optional

    Raises
    ------
    InputError
        For invalid tiers.
    """
    light = parse_tiers(text).light
    survives = SURVIVES[light.name] if light else None
    single = law.of if isinstance(law, Correlated) else law
    if isinstance(single, Fleet):
        return TierCheckpoints(mtbf_s, text, single.survived_share(survives), single.software)
    return TierCheckpoints(mtbf_s, text, 0.0 if survives == "process" else 1.0)
