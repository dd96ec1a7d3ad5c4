# SPDX-License-Identifier: Apache-2.0
"""The documentation of the included campaigns: their numbers of runs, and no durations."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rebat.campaign.opening import Campaign, open_campaign
from rebat.results.intervals import FEWEST

ROOT = Path(__file__).parents[2]
CAMPAIGNS = ROOT / "campaigns"
ROW = re.compile(r"\| `([\w/-]+)` \| .* \| ([\d,]+)(?: per day|, and .*)? \|")
NEEDS_FILES = {
    "node_stealing/differences", "findings/helps", "real_failures/quick", "real_failures/full",
    "silent_errors/more-failures", "partitions/lanl",
}  # fmt: skip
DURATION = re.compile(
    r"((less than|under|about|half|some|few|one|two|five|six|nine|\d+) (a |an )?"
    r"|[Mm]inutes on |[Hh]ours on )(half )?(seconds?|minutes?|hours?|cores?)\b(?! of)",
)


@cache
def opened(name: str) -> Campaign:
    """Open a campaign once. Some take seconds, because they generate workloads."""
    return open_campaign(CAMPAIGNS / f"{name}.toml")


def counts() -> dict[str, int]:
    """Return the number of runs of each campaign in the table."""
    text = (ROOT / "docs/how-to/campaigns.md").read_text()
    rows = (ROW.fullmatch(line) for line in text.splitlines())
    return {row[1]: int(row[2].replace(",", "")) for row in rows if row}


def test_the_table_has_every_campaign() -> None:
    named = {f"{p.parent.name}/{p.stem}" for p in CAMPAIGNS.glob("*/*.toml")}
    assert named == counts().keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(counts().keys() - NEEDS_FILES))
def test_the_table_says_how_many_runs_there_are(name: str) -> None:
    assert len(opened(name).distinct) == counts()[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in sorted(counts().keys() - NEEDS_FILES) if name.endswith("/quick")]
)
def test_quick_campaigns_have_enough_seeds_for_verdicts(name: str) -> None:
    """The samples are seeds, generated workloads or job sets."""
    samples: dict[tuple[str, ...], set[object]] = {}
    for unit in opened(name).units:
        labels = dict(unit.labels)
        workload, _, draw = str(labels.pop("workload", "")).partition("#")
        sample = labels.pop("seed"), draw, labels.pop("set", None)
        samples.setdefault((unit.grid, workload, *map(str, labels.values())), set()).add(sample)
    once = {(None, "", None)}  # without random numbers
    few = [case for case, found in samples.items() if len(found) < FEWEST and found != once]
    assert samples and few == []


@pytest.mark.parametrize("name", sorted(counts()))
def test_a_campaign_that_says_how_many_runs_it_has_is_right(name: str) -> None:
    about = (CAMPAIGNS / f"{name}.toml").read_text().partition("\nname =")[0].replace("\n# ", " ")
    told = {int(count.replace(",", "")) for count in re.findall(r"\b([\d,]+) runs\b", about)}
    assert told <= {counts()[name]}


def test_no_campaign_says_how_long_it_takes() -> None:
    """A duration depends on the reader's machine."""
    table = (ROOT / "docs/how-to/campaigns.md").read_text().splitlines()
    told = [line for line in table if ROW.match(line)]
    for path in CAMPAIGNS.glob("*/*.toml"):
        about = path.read_text().partition("\nname =")[0]
        told.append(re.sub(r"MTBF is about an hour", "", about))  # of a simulated machine
    assert [match[0] for match in map(DURATION.search, told) if match] == []
