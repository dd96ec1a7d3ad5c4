# SPDX-License-Identifier: Apache-2.0
"""Advice for a site with rules: all policies have them, and today's policy runs without each."""

from __future__ import annotations

import pytest

from rebat.api.workloads import as_file
from rebat.core.jobs import Job, Workload
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.advice.design import AdvisedSite, with_options
from rebat.studies.advice.evidence import title_of

RULES = {"order": "multifactor:age=1,size=2", "limits": "user:jobs=2"}


def site(folder, policy: str, machine: dict) -> AdvisedSite:
    jobs = (Job("1", 1, 0, 9_000_000, "d", {"user": "ann"}),)
    made = Workload("w", 8, jobs, {"d": {"type": "delay", "delay": 5}}, machine=machine)
    return AdvisedSite(
        workload=as_file(made, folder), policy=policy, options=ScenarioOptions(), n_nodes=8,
        mtbf_s=1e6, down_nodes=0.1,
    )  # fmt: skip


def test_the_compared_policies_have_the_rules(tmp_path) -> None:
    advised = site(tmp_path, "easy:rules=all", {"rules": RULES})
    assert advised.rules == [
        "easy:rules=all", "baseline:rules=all", "easy-sfsj:rules=all", "sfsj:rules=all",
        "easy:react=replacement,rules=all", "easy:order=shortest,rules=all",
        "easy:rules=limits", "easy:rules=order",
    ]  # fmt: skip
    assert advised.spares == [0, 1]
    assert site(tmp_path, "easy", {"rules": RULES}).rules[1:3] == ["baseline", "easy-sfsj"]


def test_policies_that_cannot_have_the_rules_are_left_out(tmp_path) -> None:
    reserved = {"rules": {"reservations": "m:0-3:begin=5:length=9"}}
    advised = site(tmp_path, "easy:rules=all", reserved)
    assert "easy:react=replacement,rules=all" not in advised.rules
    assert "easy-sfsj:rules=all" in advised.rules
    assert advised.rules[-1] == "easy"
    assert advised.spares == []


@pytest.mark.parametrize(
    ("policy", "title"),
    [
        ("easy", "EASY backfilling (easy)"),
        ("easy:rules=all", "EASY backfilling (easy:rules=all)"),
        ("sfsj:rules=order", "conservative backfilling with node stealing (sfsj:rules=order)"),
        ("easy:order=wfp3", "easy:order=wfp3"),
    ],
)  # fmt: skip
def test_titles(policy: str, title: str) -> None:
    assert title_of(policy) == title


def test_options_with_an_empty_value_are_left_out() -> None:
    assert with_options("easy:rules=all", rules="") == "easy"
    assert with_options("easy:order=multifactor:age=1,size=2", spares=3) == (
        "easy:order=multifactor:age=1,size=2,spares=3"
    )
