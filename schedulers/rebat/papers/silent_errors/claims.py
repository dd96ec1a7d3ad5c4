# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5, judged by rules that are stated beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rebat.papers.common.parts import Judgement
from rebat.papers.silent_errors.evidence import Evidence
from rebat.papers.silent_errors.over_days import judge_days
from rebat.papers.silent_errors.over_procs import judge_over_procs
from rebat.papers.silent_errors.over_q import judge_over_q

__all__ = ["judge_days", "judge_synthetic"]


def judge_synthetic(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """Section 5.2."""
    yield from judge_over_q(evidence, source)
    yield from judge_over_procs(evidence, source)
