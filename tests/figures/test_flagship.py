# SPDX-License-Identifier: Apache-2.0
"""The time line of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.figures.canvas import content_of
from rebat.figures.flagship import flagship_figure, flagship_svg
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.state.ledger import Ledger
from tests.support.scenarios import fails, machine, run


def ledger(policy: str) -> Ledger:
    """Run a job of 40 s on ten nodes; one node fails at 20 s and is repaired at 40 s."""
    workload = add_tiers(
        machine(10, (10, 40, 0, 100_000)), parse_tiers("remote=2/5@7"),
        n_nodes=10, mtbf_s=100, light_share=0.5, software="",
    )  # fmt: skip
    return run(policy, workload, fails(0, 20, 40)).ledger


def test_the_time_line_shows_nodes_losses_and_ettr() -> None:
    ledgers = {name: ledger(name) for name in ("easy:detect=3", "easy:detect=3,init=2")}
    figure = flagship_figure(ledgers, "1")
    assert content_of(figure).startswith(b"\x89PNG")
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [
        "easy:detect=3: job 1",
        "work not kept, cumulative (s)",
        "easy:detect=3,init=2: job 1",
        "work not kept, cumulative (s)",
        "cumulative ETTR; dashed: with queueing",
    ]
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    seen = ["work kept", "lost work", "detection", "initialisation, loading", "waiting"]
    assert texts == [*seen, *ledgers]
    ettr = figure.axes[-1]
    assert len(ettr.lines) == 2 * len(ledgers)
    for at, line in enumerate(ettr.lines):  # in minutes; the job waits from 23 s to 40 s
        end_s, waits_s = line.get_xdata()[-1] * 60, (17, 0)[at % 2]
        assert line.get_ydata()[-1] == pytest.approx(40 / (end_s - waits_s))


def test_the_same_runs_are_drawn_with_the_same_bytes() -> None:
    ledgers = {"easy": ledger("easy:detect=3")}
    assert flagship_svg(ledgers, "1") == flagship_svg(ledgers, "1")


def test_a_job_that_waits_forever_has_empty_panels() -> None:
    never = run("easy", machine(4, (5, 10), (4, 10))).ledger
    assert content_of(flagship_figure({"easy": never}, "1")).startswith(b"\x89PNG")


OPTIONS = ["run", "toy", "-p", "easy:detect=5s", "--failures", "toy"]


@pytest.mark.slow
def test_figures_of_runs_with_stages_include_the_time_line(tmp_path: Path) -> None:
    main([*OPTIONS, "--figures", "--out", str(tmp_path / "stages")])
    main([*OPTIONS, "--figures", "--flagship", "1", "--out", str(tmp_path / "first")])
    plain = [option.replace(":detect=5s", "") for option in OPTIONS]
    main([*plain, "--figures", "--out", str(tmp_path / "plain")])
    main([*plain, "--figures", "--flagship", "1", "--out", str(tmp_path / "chosen")])
    drawn = {p.parent.name: p.read_bytes() for p in tmp_path.glob("*/flagship.png")}
    assert set(drawn) == {"stages", "first", "chosen"}
    assert drawn["stages"] != drawn["first"]


BAD = {
    "no figures": (["--flagship", "1"], "--flagship: has no effect"),
    "several seeds": (
        ["--figures", "--flagship", "1", "--seeds", "2"], "--flagship: has no effect",
    ),
    "unknown": (["--figures", "--flagship", "nobody"], "--flagship: unknown job 'nobody'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_flagship_without_effect_is_refused(case: str, tmp_path: Path, capsys) -> None:
    options, error = BAD[case]
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as caught:
        main([*OPTIONS, *options, "--out", str(out)])
    assert caught.value.code == 2
    assert error in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_in_python(tmp_path: Path) -> None:
    result = rebat.run("toy", ["easy:detect=5"], failures=rebat.failures(file="toy"))
    largest = result.plot_flagship()
    assert "history of job" in repr(largest)
    with pytest.raises(InputError, match="unknown job"):
        result.plot_flagship("nobody")
    with pytest.raises(InputError, match="flagship: has no effect"):
        result.write(tmp_path / "out", flagship="1")
    result.write(tmp_path / "out", figures=True, flagship="2")
    assert (tmp_path / "out/flagship.png").exists()
