# SPDX-License-Identifier: Apache-2.0
"""What our runs say of foresight, by rules that are stated beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebat.papers.common.parts import Judgement
from rebat.papers.node_stealing.evidence import Evidence
from rebat.papers.torus.load_tables import difference, named, scenarios, written

_ONE_AT_A_TIME = "for one job at a time: fewer aborts, earlier completion (section 3)"
_NOT_TRIED = "not in the paper: there the law is known exactly"


class Claim(NamedTuple):
    """Of two policies, that a metric of the first is less (or more) than that of the second."""

    text: str
    ours: str
    base: str
    metric: str
    size_class: str = ""
    less: bool = True
    paper: str = _ONE_AT_A_TIME


_HITS = "failures_hit"
CLAIMS = (
    Claim("FAPS: fewer failures hit a job than under RPS", "faps", "rps", _HITS),
    Claim("FAPS: fewer than under Slurm-linear", "faps", "slurm-linear", _HITS),
    Claim("FAPS: higher utilisation than RPS", "faps", "rps", "useful_utilisation", less=False),
    Claim("FAPS: higher utilisation than Slurm-linear", "faps", "slurm-linear",
          "useful_utilisation", less=False),
    Claim("FAPS: shorter weighted mean flow than RPS", "faps", "rps",
          "flow_weighted_mean_s", "all"),
    Claim("FAPS by a law fitted to the history: fewer failures hit a job than under RPS",
          "faps:foresight=fit", "rps", _HITS, paper=_NOT_TRIED),
    Claim("FAPS by times taken for twice as long: fewer than under RPS",
          "faps:foresight=law*2", "rps", _HITS, paper=_NOT_TRIED),
    Claim("FAPS by times taken for half as long: fewer than under RPS",
          "faps:foresight=law*0.5", "rps", _HITS, paper=_NOT_TRIED),
    Claim("FAPS by uptimes alone, the youngest nodes: fewer than under RPS",
          "faps:foresight=youngest", "rps", _HITS, paper=_NOT_TRIED),
    Claim("FAPS by uptimes alone, the oldest nodes: fewer than under RPS",
          "faps:foresight=oldest", "rps", _HITS, paper=_NOT_TRIED),
)  # fmt: skip
"""Each is judged wherever both policies ran."""


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """Every claim under every workload and scenario."""
    for workload, scenario in scenarios(evidence):
        policies = evidence.policies(workload, scenario)
        for claim in CLAIMS:
            ours, base = named(policies, claim.ours), named(policies, claim.base)
            if ours is None or base is None:
                continue
            who = ours, base
            found = difference(evidence, (workload, scenario), who, claim.metric, claim.size_class)
            if found is None:
                continue
            interval = written(found, "{:+.4g}".format)
            sure = "" if found.differs else ", which holds 0"
            rule = f"mean difference by seed {'below' if claim.less else 'above'} 0: {interval}"
            holds = found.mean < 0 if claim.less else found.mean > 0
            subject = f"{workload}, {scenario.label}"
            yield Judgement(subject, claim.text, rule + sure, found.mean, holds, claim.paper)
