# SPDX-License-Identifier: Apache-2.0
"""``rebat whatif`` without a browser: questions, answers, the map, downloads, and the server."""

from __future__ import annotations

import csv
import time
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

import rebat
from rebat.api.sweep import sweep
from rebat.api.workloads import load_workload
from rebat.campaign.opening import campaign_of
from rebat.cli.main import cli
from rebat.core.errors import InputError
from rebat.models.failures.laws import text_of
from rebat.models.failures.recorded import Recorded
from rebat.results.comparison import by_name, rows
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.whatif import answers as module
from rebat.studies.whatif.answers import Answer, Answers, MapPlan, node_use
from rebat.studies.whatif.question import (
    CONTROLS,
    LIVE_ATTEMPTS,
    Question,
    geometric,
    started,
    takes_spares,
)
from rebat.studies.whatif.saved import tables_of, toml

REPLACING = "baseline:react=replacement"
USEFUL = ("useful_utilisation", None)


def asked(*policies: str, **options: Any) -> Question:
    """Return a question about the toy workload."""
    chosen = ScenarioOptions(**{"mtbf": 30.0, "downtime": 5.0, **options})
    return started(load_workload("toy"), "toy", chosen, policies or ("baseline", "sfsj"))


@pytest.fixture
def answers() -> Iterator[Answers]:
    made = Answers(workers=2)
    yield made
    made.close()


def wait(answers: Answers, until: Callable[[Answer], bool]) -> Answer:
    """Return the answer when a condition holds."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = answers.answer
        if answer is not None and until(answer):
            return answer
        time.sleep(0.02)
    raise AssertionError("the condition did not hold within a minute")


class TestQuestion:
    def test_its_command_and_its_statements_give_the_same_numbers(self, tmp_path: Path) -> None:
        question = asked(checkpoint="young-daly", checkpoint_cost=1.0, load=1.5)
        text = question.command(5).replace("out/whatif", str(tmp_path / "out"))
        cli.main(text.split()[1:], standalone_mode=False)
        with (tmp_path / "out/seeds.csv").open() as file:
            values = [
                float(row["value"])
                for row in csv.DictReader(file)
                if row["metric"] == USEFUL[0] and row["policy"] == "sfsj"
            ]
        scope: dict[str, Any] = {}
        exec(question.python(5).replace("print(result)", ""), scope)
        assert [*scope["result"].seeds.of("sfsj", USEFUL).values()] == values
        assert len(set(values)) > 1

    def test_a_job_that_never_ends_is_given_up_early(self) -> None:
        assert asked().options.max_attempts == LIVE_ATTEMPTS
        assert f"--max-attempts {LIVE_ATTEMPTS}" in asked().command(5)
        assert asked(max_attempts=7).options.max_attempts == 7

    def test_settings_without_effect_are_left_out(self, tmp_path: Path) -> None:
        question = asked(checkpoint="young-daly", checkpoint_cost=3.0, checkpoint_mtbf=60.0)
        without = question.with_value("checkpoint", "none")
        assert "checkpoint" not in without.command(5) + without.python(5)
        tables = tables_of(without, {"mtbf": [30.0, 60.0]})
        campaign_of(tables, tmp_path / "whatif.toml")
        assert without.with_value("checkpoint", "young-daly") == question

    def test_controls_offer_the_values_of_the_scenario(self) -> None:
        question = asked("baseline", REPLACING, checkpoint="young-daly", checkpoint_cost=77.0)
        for control in CONTROLS:
            assert question.value(control.name) in control.offered(question), control.name
            assert control.help.endswith(".")

    def test_the_size_of_the_workloads_machine_is_the_default(self) -> None:
        question = asked()
        assert question.with_value("nodes", 8) == question
        assert question.with_value("nodes", 9).options.nodes == 9

    def test_spare_nodes_are_an_option_of_some_policies(self) -> None:
        question = asked("baseline", REPLACING).with_value("spares", 2)
        assert [takes_spares(policy) for policy in question.policies] == [False, True]
        assert question.cases == {"baseline": "baseline", REPLACING: f"{REPLACING},spares=2"}

    def test_without_failures_the_page_starts_with_some(self) -> None:
        options = ScenarioOptions()
        question = started(load_workload("toy"), "toy", options, ("easy", "baseline"))
        assert question.options.mtbf is not None and question.random

    def test_checkpoints_of_the_workload_have_no_controls(self) -> None:
        loaded = load_workload("synthetic-small")
        question = started(loaded, "synthetic-small", ScenarioOptions(), ("baseline", "sfsj"))
        offered = {control.name for control in CONTROLS if control.offered(question)}
        assert offered == {"mtbf", "downtime", "nodes", "load"}
        with pytest.raises(InputError, match="already has checkpoints"):
            options = ScenarioOptions(checkpoint="perfect")
            started(loaded, "synthetic-small", options, ("baseline", "sfsj"))

    def test_recorded_failures_have_no_downtime(self) -> None:
        assert text_of(Recorded("a/site.events")) == "record:file=a/site.events"

    def test_one_policy_is_an_error(self) -> None:
        with pytest.raises(InputError, match="two or more policies"):
            asked("sfsj", "sfsj")

    def test_values_of_a_slider_are_short_texts_at_about_equal_ratios(self) -> None:
        values = geometric(3600.0, 360.0, 36000.0)
        assert 3600.0 in values and values == sorted(values)
        ratios = [b / a for a, b in pairwise(values)]
        assert max(ratios) < 1.5 and min(ratios) > 1.2


class TestAnswers:
    def test_numbers_are_those_of_seeds_to_the_last_digit(self, answers: Answers) -> None:
        answers.ask(asked())
        answer = wait(answers, lambda answer: answer.n_seeds >= 12)
        n = answer.n_seeds
        expected = rebat.run(
            "toy", ["baseline", "sfsj"], failures=rebat.failures(mtbf=30.0, downtime=5.0), seeds=n,
            max_attempts=LIVE_ATTEMPTS,
        )  # fmt: skip
        assert by_name(rows(answer.runs)) == by_name(rows(expected.seeds))

    def test_a_new_question_cancels_the_old_one(
        self, answers: Answers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        began, go_on, simulated = Event(), Event(), []
        real = module.simulate_run

        def slow(unit: Any) -> Any:
            mtbf_s = unit.spec.scenario.failures.law.mtbf_s
            simulated.append(mtbf_s)
            if mtbf_s == 30.0:
                began.set()
                go_on.wait(30)
            return real(unit)

        monkeypatch.setattr(module, "simulate_run", slow)
        answers.ask(asked())
        assert began.wait(30)
        answers.ask(asked(mtbf=60.0))
        go_on.set()
        answer = wait(answers, lambda answer: answer.complete)
        assert answer.question.options.mtbf == 60.0 and answer.n_seeds == module.MOST_SEEDS
        assert simulated.count(30.0) <= 2  # the runs in progress, one per thread

    def test_without_failures_one_run_per_policy_is_complete(self, answers: Answers) -> None:
        calm = asked().with_value("mtbf", None)
        answers.ask(calm)
        assert wait(answers, lambda answer: answer.complete).n_seeds == 1

    def test_an_invalid_setting_is_told_and_the_next_one_is_answered(
        self, answers: Answers
    ) -> None:
        torus = msgspec.structs.replace(asked(), policies=("rps", "baseline"))
        answers.ask(torus)  # the toy machine is no torus
        assert "torus" in wait(answers, lambda answer: bool(answer.error)).error
        answers.ask(asked())
        assert not wait(answers, lambda answer: answer.n_seeds > 1).error

    def test_runs_that_are_too_long_have_few_seeds_and_no_map(
        self, answers: Answers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "LIVE_S", 0.0)
        answers.ask(asked(), PLAN)
        answer = wait(answers, lambda answer: answer.complete)
        assert answer.too_long and answer.n_seeds <= module.FEWEST + 1 and not answer.cells

    def test_use_of_nodes_is_the_node_time_of_the_jobs(self) -> None:
        result = rebat.run("toy", ["easy"])
        line = node_use(result.runs[0], points=50)
        ledger = result.runs[0].ledger
        area = sum((r.end_us - r.start_us) / 1e6 * len(r.nodes or ()) for r in ledger.attempts)
        end_s = max(record.end_us for record in ledger.attempts) / 1e6
        assert sum(line[1]) * end_s / 50 * 8 == pytest.approx(area, rel=1e-3)


PLAN = MapPlan("mtbf", "downtime", (20.0, 30.0, 45.0, 60.0, 90.0), (2.0, 5.0, 10.0), USEFUL)


class TestMap:
    @pytest.mark.parametrize("n_x", [1, 2, 5, 12])
    @pytest.mark.parametrize("n_y", [1, 3, 8])
    def test_passes_have_each_cell_once_and_coarse_blocks_first(self, n_x: int, n_y: int) -> None:
        plan = MapPlan("mtbf", "load", tuple(range(n_x)), tuple(range(n_y)), USEFUL)
        cells = [cell for cells in plan.passes() for cell in cells]
        assert len(cells) == n_x * n_y == len({cell[:2] for cell in cells})
        widths = [width for *_, width in cells]
        assert widths == sorted(widths, reverse=True)

    def test_cells_are_those_of_a_sweep(self, answers: Answers) -> None:
        answers.ask(asked(), PLAN)
        answer = wait(answers, lambda answer: answer.complete)
        swept = sweep("toy", ["baseline", "sfsj"], seeds=module.CELL_SEEDS,
                      mtbf=[*PLAN.x_values], downtime=[*PLAN.y_values])  # fmt: skip
        table = swept.winners().set_index(["mtbf", "downtime"])
        assert len(answer.cells) == len(table) == 15
        few = {at: c.winner for at, c in answer.cells.items() if c.winner.lead.n == 5}
        for (column, row), best in few.items():
            expected = table.loc[(PLAN.x_values[column], PLAN.y_values[row])]
            assert (best.policy, best.lead.mean) == (expected["winner"], expected["lead"])
        undecided = [c.winner for c in answer.cells.values() if not c.winner.decided]
        assert all(best.lead.n == module.MORE_SEEDS for best in undecided)

    def test_a_change_along_an_axis_keeps_the_map(self, answers: Answers) -> None:
        answers.ask(asked(), PLAN)
        known = wait(answers, lambda answer: answer.complete).cells
        answers.ask(asked(mtbf=60.0), PLAN)
        assert answers.answer is not None and answers.answer.cells == known
        answers.ask(asked(load=2.0), PLAN)
        assert answers.answer is not None and not answers.answer.cells


class TestCampaignFile:
    def test_it_has_the_runs_of_the_page(self, tmp_path: Path) -> None:
        question = asked(checkpoint="young-daly", checkpoint_cost=2.0, load=1.5, cascade=0.1)
        over = {"mtbf": [30.0, 60.0], "downtime": [5.0]}
        text = toml(tables_of(question, over), "about\nit")
        campaign = campaign_of(tomllib.loads(text), tmp_path / "whatif.toml")
        keys = {unit.key for unit in campaign.units}
        assert {unit.key for unit in question.units(3)} <= keys
        at_60 = question.with_value("mtbf", 60.0)
        assert {unit.key for unit in at_60.units(0)} <= keys
        assert len(keys) == 2 * 2 * 10

    def test_spares_are_in_the_policies(self, tmp_path: Path) -> None:
        question = asked("baseline", REPLACING)
        text = toml(tables_of(question, {"spares": [0, 1, 2], "mtbf": [30.0]}), "")
        campaign = campaign_of(tomllib.loads(text), tmp_path / "whatif.toml")
        names = {unit.spec.policy for unit in campaign.units}
        assert names == {"baseline", *(f"{REPLACING},spares={n}" for n in range(3))}
