# SPDX-License-Identifier: Apache-2.0
"""Completion of the command line: the values that shells propose after TAB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from rebat.cli.completion import SHELLS, script
from rebat.cli.main import COMMANDS, COMPLETE, cli, main
from rebat.core.errors import InputError
from rebat.models.failures.laws import LAWS, form_of, prefabs
from rebat.policies.choosing import OPTIONS
from rebat.policies.presets import ALIASES, PRESETS, preset

ROOT = Path(__file__).parents[2]
HEAVY = {"numba", "pandas", "scipy", "pyarrow", "matplotlib", "bokeh", "rich"}


def candidates(*words: str) -> list[str]:
    """Return the values that complete the last word."""
    *args, incomplete = words
    shell = ShellComplete(cli, {}, "rebat", COMPLETE)
    return [item.value for item in shell.get_completions(list(args), incomplete)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["com"], ["compare", "completion"]),
        (["workload", "de"], ["describe"]),
        (["run", "toy", "-p", "sfs"], ["sfsj"]),
        (["run", "toy", "-p", "baseline:dep"], ["baseline:depth="]),
        (["run", "toy", "-p", "baseline:depth=e"], ["baseline:depth=easy"]),
        (["run", "toy", "-p", "easy:depth=easy,reac"], ["easy:depth=easy,react="]),
        (["run", "toy", "-p", "easy:react=stealing,vict"], ["easy:react=stealing,victim="]),
        (["run", "toy", "-p", "easy:vict"], []),  # no effect without stealing
        (["run", "toy", "-p", "easy:react=replacement+stea"], ["easy:react=replacement+stealing"]),
        (["run", "toy", "--policy=h11"], ["h112", "h113", "h111"]),
        (["run", "toy", "-p", "mine"], ["mine"]),  # may be a file
        (["run", "mira-"], ["mira-like-june-2017", "mira-"]),
        (["compare", "--batsched", "syn"], ["synthetic-small", "syn"]),
        (["run", "toy", "--failures", "to"], ["toy", "to"]),
        (["run", "toy", "--law", "weibull:scale=1h,shape"], ["weibull:scale=1h,shape=",
                                                            "weibull:scale=1h,shape_sigma="]),
        (["run", "toy", "--law", "gam"], ["gamma"]),
        (["run", "toy", "--law", "nonsense:"], []),
        (["run", "toy", "--model", "p"], ["poisson"]),
        (["run", "toy", "--columns", "flow_max_s:all,useful_u"],
         ["flow_max_s:all,useful_utilisation"]),
        (["run", "toy", "--until-metric", "flow_mean"], ["flow_mean_s:all"]),
        (["campaign", "run", "node_stealing/q"], ["node_stealing/quick", "node_stealing/q"]),
        (["platform", "describe", "mira-z"], ["mira-zero-latency", "mira-z"]),
        (["workload", "generate", "june-2017:order="],
         ["june-2017:order=random", "june-2017:order=sessions"]),
        (["policies", "authors-b"], ["authors-baseline"]),
        (["failures", "nodes", "expo"], ["exponential"]),
        (["completion", ""], list(SHELLS)),
        (["run", "toy", "--out", "a", "--out", "b", "-p", "sfs"], ["sfsj"]),  # is not an error
    ],
)  # fmt: skip
def test_a_word_is_completed(words, expected) -> None:
    assert candidates(*words) == expected


def test_all_names_are_offered() -> None:
    assert candidates("") == list(COMMANDS)
    assert candidates("run", "toy", "-p", "") == [*PRESETS, *ALIASES]
    assert candidates("run", "toy", "--law", "") == [*LAWS, *prefabs()]
    assert "--checkpoint-cost" in candidates("run", "--che")


@pytest.mark.parametrize("name", PRESETS)
def test_the_axes_of_a_policy_are_those_with_an_effect(name: str) -> None:
    offered = [text.removesuffix("=") for text in candidates("run", "-p", f"{name}:")]
    assert offered == [f"{name}:{axis}" for axis in preset(name).point.effective]


@pytest.mark.parametrize("axis", OPTIONS)
def test_the_choices_of_an_axis_are_valid(axis: str) -> None:
    values = candidates("run", "-p", f"baseline:{axis}=")
    assert values or not OPTIONS[axis].names
    for text in values:
        OPTIONS[axis].convert(text.partition("=")[2])


@pytest.mark.parametrize("name", LAWS)
def test_the_parameters_of_a_law_are_those_of_its_form(name: str) -> None:
    offered = candidates("run", "--law", f"{name}:")
    assert all(text.partition(":")[2] in form_of(name) for text in offered)
    assert len(offered) == form_of(name).count("=")


def test_candidates_have_help() -> None:
    shell = ShellComplete(cli, {}, "rebat", COMPLETE)
    (item,) = shell.get_completions(["run", "-p"], "baseline:react")
    assert item.help == OPTIONS["react"].meta.description
    (item,) = shell.get_completions([], "toy")
    assert item.help == COMMANDS["toy"][1]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell(shell, capsys) -> None:
    main(["completion", shell])
    text = capsys.readouterr().out
    assert text == script(shell, cli, COMPLETE)
    assert f"{COMPLETE}={shell}_complete" in text


def test_an_unknown_shell_is_an_error(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a shell that has this rebat in its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **more}


CALL = """
source <(rebat completion bash)
COMP_LINE=$1; COMP_POINT=${#1}
COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_rebat_completion rebat
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "replies"),
    [
        (["rebat", " ", "run", " ", "toy", " ", "-p", " ", "sfs"], ["sfsj"]),
        # readline replaces only the text after the last colon or equals sign
        (["rebat", " ", "run", " ", "-p", " ", "baseline", ":", "dep"], ["depth="]),
        (["rebat", " ", "run", " ", "-p", " ", "baseline", ":", "depth", "=", "gr"], ["greedy"]),
        (["rebat", " ", "run", " ", "-p", " ", "easy", ":", "depth", "=", "easy,reac"],
         ["easy,react="]),
        (["rebat", " ", "run", " ", "--policy", "=", "sfs"], ["sfsj"]),
        (["rebat", " ", "run", " ", "small inp"], []),
        (["rebat", " ", "run", " ", "mir"], ["mira-like-june-2017", "mirror.swf"]),
    ],
)  # fmt: skip
def test_bash_calls_the_function(words, replies, tmp_path) -> None:
    (tmp_path / "mirror.swf").touch()
    split = [word for word in words if word != " "]
    done = subprocess.run(
        ["bash", "-c", CALL, "bash", "".join(words), *split], cwd=tmp_path, check=True,
        env=environment(PYTHONPATH=str(ROOT / "schedulers")), capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.split() == replies, done.stderr


COMPLETED = f"""
import sys
from rebat.cli.main import main
try:
    main([])
except SystemExit:
    print()
print(sorted({HEAVY} & set(sys.modules)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("rebat run toy -p sfs", "plain,sfsj"),
        ("rebat run toy -p baseline:depth=ea", "plain,easy"),
        ("rebat policie", "plain,policies"),
        ("rebat run toy --columns useful_u", "plain,useful_utilisation"),
        ("rebat run mira-", "plain,mira-like-june-2017"),
    ],
)
def test_a_completion_imports_nothing_heavy(line, first) -> None:
    variables = {COMPLETE: "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line)),
                 "COMP_BREAKS": ":="}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", COMPLETED], env=environment(**variables), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.split("\n")
    assert lines[0] == first
    assert lines[-2] == "[]"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_their_script(shell) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    subprocess.run([program, "-n"], input=script(shell, cli, COMPLETE), text=True, check=True)


def test_only_completion_leaves_kernels_uncompiled(monkeypatch) -> None:
    """NUMBA_DISABLE_JIT is not set for other commands."""
    monkeypatch.delenv(COMPLETE, raising=False)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    main(["policies", "sfsj"])
    assert "NUMBA_DISABLE_JIT" not in os.environ


@pytest.mark.slow
def test_a_completion_without_a_valid_value_is_no_error() -> None:
    """If rebat rejects the combination, the axes of the preset are proposed."""
    with pytest.raises(InputError):
        preset("baseline:depth=nonsense")
    assert "baseline:depth=nonsense,react=" in candidates("run", "-p", "baseline:depth=nonsense,re")
