# SPDX-License-Identifier: Apache-2.0
"""Sentences of the tutorials about their examples, checked against the data of the examples.

`test_commands` compares what the commands print. The sentences around the commands are here: each
row contains a page, a sentence, and the fact in the data that the sentence states.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import rebat
from rebat.api.result import Result
from tests.support.pages import ROOT, blocks


@cache
def toy() -> Result:
    return rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy"))


@cache
def june() -> Result:
    failures = rebat.failures(mtbf="1h", downtime="1h", seed=0)
    return rebat.run(
        "mira-like-june-2017", ["baseline", "sfsj"], failures=failures, checkpoint="young-daly"
    )


@cache
def tutorial() -> Result:
    """The last run of docs/tutorial.md, with the policies as the page defines them."""
    policies = []
    for name in ("Eager", "Patient"):
        titled = [b for b in blocks(ROOT / "docs/tutorial.md") if b.title == f"{name.lower()}.py"]
        space: dict[str, Any] = {}
        exec(titled[-1].text, space)
        policies.append(space[name])
    failures = rebat.failures(mtbf="30min", downtime="10min")
    return rebat.run("synthetic-small", policies, failures=failures)


def attempt(result: Result, policy: str, job: str, number: int = 0) -> Any:
    rows = result.attempts
    own = (rows["policy"] == policy) & (rows["job_id"] == job) & (rows["attempt"] == number)
    (row,) = rows[own].itertuples()
    return row


def metric(result: Result, policy: str, name: str) -> float:
    rows = result.metrics
    own = (rows["policy"] == policy) & (rows["metric"] == name)
    value = rows[own & (rows["size_class"].isna() | (rows["size_class"] == "all"))]["value"].item()
    return float(value)


def grows(result: Result, name: str) -> bool:
    return metric(result, "sfsj", name) > metric(result, "baseline", name)


def flows(result: Result, policy: str, sizes: tuple[int, int]) -> float:
    rows = result.jobs
    own = (rows["policy"] == policy) & rows["size"].between(*sizes)
    return float(rows[own]["flow"].mean())


def baseline_restarts_when_job_2_ends() -> bool:
    down = toy().nodes.query("policy == 'baseline'").iloc[0]
    first, again = (attempt(toy(), "baseline", "3", number) for number in (0, 1))
    job_2 = attempt(toy(), "baseline", "2")
    return (
        first.finish_time == down["down"] == 1
        and again.start_time == job_2.finish_time == 1 + 4
        and down["up"] == again.start_time + 1
        and set(again.nodes.split()) & set(job_2.nodes.split()) != set()
    )


def sfsj_steals_the_node_of_job_2() -> bool:
    first, again = (attempt(toy(), "sfsj", "3", number) for number in (0, 1))
    victim = attempt(toy(), "sfsj", "2")
    return (
        again.start_time == first.finish_time == victim.finish_time == 1
        and (victim.cause, victim.why) == ("stolen", "for 3")
        and victim.nodes in again.nodes.split()
    )


def large_jobs_end_sooner_and_small_jobs_later() -> bool:
    small, large = (0, 1023), (16_384, 50_000)
    return flows(june(), "sfsj", large) < flows(june(), "baseline", large) and flows(
        june(), "sfsj", small
    ) > flows(june(), "baseline", small)


def four_nodes_are_free_and_eager_starts_two_jobs() -> bool:
    rows, at = tutorial().attempts.query("policy == 'Eager'"), 2.1630244 * 3600
    started = rows[(rows["start_time"] - at).abs() < 0.1]
    after = rows[(rows["start_time"] <= at + 0.1) & (rows["finish_time"] > at + 0.1)]
    return sorted(started["size"]) == [2, 2] and 128 - int(after["size"].sum()) == 0


def job_25_starts_at_the_same_time() -> bool:
    starts = {attempt(tutorial(), policy, "25").start_time for policy in ("Eager", "Patient")}
    return len(starts) == 1 and clock(starts.pop()) == "02:13:12"


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


STATEMENTS: list[tuple[str, str, Callable[[], bool]]] = [
    (
        "docs/quickstart.md",
        "restarts the large job four seconds after the failure, when another job ends. The failed "
        "node is repaired one second later.",
        baseline_restarts_when_job_2_ends,
    ),
    (
        "docs/quickstart.md",
        "takes a node from a small job, so that the large job restarts immediately.",
        sfsj_steals_the_node_of_job_2,
    ),
    (
        "docs/quickstart.md",
        "Under Baseline, job 3 starts again when job 2 ends. Under SFSJ, it starts again "
        "immediately, on the node of job 2.",
        lambda: baseline_restarts_when_job_2_ends() and sfsj_steals_the_node_of_job_2(),
    ),
    (
        "schedulers/rebat/cli/run.py",
        "Under Baseline the large job restarts when another job ends. Under SFSJ the large job "
        "takes a node from a small job and restarts immediately.",
        lambda: baseline_restarts_when_job_2_ends() and sfsj_steals_the_node_of_job_2(),
    ),
    (
        "docs/quickstart.md",
        "Under SFSJ, useful utilisation is higher than under Baseline. The largest flow is "
        "smaller, but the mean flow is larger.",
        lambda: (
            grows(june(), "useful_utilisation")
            and grows(june(), "flow_mean_s")
            and not grows(june(), "flow_max_s")
        ),
    ),
    (
        "docs/quickstart.md",
        "under SFSJ large jobs end sooner, and small jobs end later.",
        large_jobs_end_sooner_and_small_jobs_later,
    ),
    (
        "docs/quickstart.md",
        "Under SFSJ the largest jobs end sooner and small jobs end later.",
        large_jobs_end_sooner_and_small_jobs_later,
    ),
    (
        "README.md",
        "SFSJ leaves fewer nodes free than Baseline.",
        lambda: not grows(june(), "platform_idle"),
    ),
    (
        "docs/tutorial.md",
        "At 2.16 h four nodes are free. Eager starts two jobs of two nodes.",
        four_nodes_are_free_and_eager_starts_two_jobs,
    ),
    (
        "docs/tutorial.md",
        "Job 37 is one of the two jobs that Patient does not start at 2.16 h:",
        lambda: (
            attempt(tutorial(), "Patient", "37").start_time
            > attempt(tutorial(), "Eager", "37").start_time
        ),
    ),
    (
        "docs/tutorial.md",
        "job 25 starts at 02:13:12 under both policies, because enough nodes are free only then.",
        job_25_starts_at_the_same_time,
    ),
    (
        "docs/tutorial.md",
        "Job 37 starts at 02:09:46 under Eager.",
        lambda: clock(attempt(tutorial(), "Eager", "37").start_time) == "02:09:46",
    ),
    (
        "docs/tutorial.md",
        "in this run the largest flow is 20.7 % longer with Patient than with Eager.",
        lambda: (
            round(
                metric(tutorial(), "Patient", "flow_max_s")
                / metric(tutorial(), "Eager", "flow_max_s")
                - 1,
                3,
            )
            == 0.207
        ),
    ),
]


@pytest.mark.parametrize(("page", "sentence", "fact"), STATEMENTS)
def test_a_sentence_about_an_example_is_true(
    page: str, sentence: str, fact: Callable[[], bool]
) -> None:
    text = " ".join((ROOT / page).read_text().split())
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    assert sentence in plain
    assert fact()


def test_the_table_of_the_notebook_shows_what_it_says() -> None:
    """The sentences are in docs/notebooks/your-own-policy.ipynb, above this table."""
    cells = json.loads((ROOT / "docs/notebooks/your-own-policy.ipynb").read_text())["cells"]
    said = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert "small jobs end sooner, but the largest job ends later." in said.replace("\n", " ")
    (table,) = [
        "".join(output["data"]["text/html"])
        for cell in cells
        if "result.compare(" in "".join(cell["source"])
        for output in cell["outputs"]
        if "data" in output
    ]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("</tr>")]
    columns = rows[0]
    largest, mean = (columns.index(f"flow_{name}_s:all") for name in ("max", "mean"))
    by_policy = {row[0]: row for row in rows[1:] if row}
    own, baseline = by_policy["SmallestFirst"], by_policy["baseline"]
    assert float(own[largest]) > float(baseline[largest])
    assert float(own[mean]) < float(baseline[mean])
