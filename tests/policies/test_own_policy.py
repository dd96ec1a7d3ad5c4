# SPDX-License-Identifier: Apache-2.0
"""User-defined policies and rules: the README's twenty lines run, and errors are reported."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import BatsimAbort, InputError, PolicyError
from rebat.drive.ask import Session
from rebat.models.failures.events import read_events
from rebat.policies.options import configure
from rebat.policies.presets import identity, preset, scheduler, schedulers
from rebat.runs.single import RunResult, simulate
from rebat.workloads.batsim_json import read_workload
from tests.support.scenarios import check_run

ROOT = Path(__file__).parents[2]
OWN_POLICY = r"## Your own policy\n\n```python\n(.*?)```"


def test_the_readmes_policy_runs_under_failures(tmp_path: Path) -> None:
    code = re.search(OWN_POLICY, (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    (tmp_path / "mine.py").write_text(code[1])
    chosen = scheduler(f"{tmp_path}/mine.py:SmallestFirst")
    result = simulate(
        read_workload(ROOT / "workloads/toy.json"),
        chosen,
        machine_events=read_events(ROOT / "failure_events/toy.events"),
    )
    check_run(result)
    # Job 5 starts immediately on node 2, fails at 1, and starts over on another node: 1 + 2.
    assert {row.job_id: row.flow for row in result.rows}["5"] == 3


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:", "SyntaxError"),
        ("Mine = 3", "Mine is not a class"),
        ("def Mine(): pass", "Mine is not a class"),
        ("from rebat.contract import Policy as Mine", "class Policy has no method plan"),
        (
            "from rebat.contract import Policy\nclass Mine(Policy): pass",
            r"class Mine has no method plan \(",
        ),
        ("raise SystemExit(0)", "SystemExit"),
        ("import nowhere", "No module named 'nowhere'"),
        ("class Mine:\n    def plan(self, view, changes): return []", "no method react"),
        ("", "has no 'Mine'"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(InputError, match=told):
        scheduler(f"{tmp_path}/mine.py:Mine")


def test_a_file_without_a_class_is_told_with_its_policies(tmp_path: Path) -> None:
    text = POLICY.format(code="return []") + "class Other(Mine): pass\nclass Empty(Policy): pass\n"
    file = tmp_path / "mine.py"
    file.write_text(text)
    told = re.escape(f"{file}: the class is missing (expected {file}:Mine or {file}:Other)")
    with pytest.raises(InputError, match=f"^{told}$"):
        scheduler(str(file))
    file.write_text("")
    with pytest.raises(InputError, match=re.escape("missing (expected FILE.py:CLASS)")):
        scheduler(str(file))


def test_jobs_that_a_policy_never_starts_are_told(tmp_path: Path) -> None:
    fits = "yield from (Start(a.id) for a in view.queue.values() if a.n_nodes <= view.n_nodes)"
    (tmp_path / "mine.py").write_text(POLICY.format(code=fits))
    workload = read_workload(ROOT / "workloads/toy.json")
    told = (
        "jobs that have not ended: 2; waiting: w0!3 (6 nodes), w0!4 (6 nodes); the machine has 4 "
        "nodes; can never start, so the policy must reject: w0!3 (6 nodes), w0!4 (6 nodes)"
    )
    with pytest.raises(BatsimAbort, match=re.escape(told)):
        simulate(workload, scheduler(f"{tmp_path}/mine.py:Mine"), n_nodes=4)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(InputError, match="no such file"):
        scheduler("absent.py:Mine")


# ---- errors in a policy: one line with the policy, the time and the line of code

POLICY = """from __future__ import annotations
from dataclasses import dataclass
from rebat.contract import NodeSet, Policy, Reject, Start, Stop, Wake

@dataclass
class Seen:
    starts: int = 0

class Mine(Policy):
    def __init__(self):
        self.seen = Seen()

    def plan(self, view, changes):
        {code}
"""
WRONG = {
    "returns nothing": ("pass", r"mine\.py:13: Mine\.plan at 0 s: returned None"),
    "returns a number": ("return 7", r"mine\.py:13: Mine\.plan at 0 s: returned 7"),
    "yields a number": ("yield 7", r"mine\.py:13: Mine\.plan at 0 s: proposed 7"),
    "stops for no cause": ("yield Stop('a', 'b')", r"mine\.py:13: .*Stop whose cause is 'b'"),
    "starts no id": ("yield Start(next(iter(view.queue.values())))", "whose attempt_id is Attempt"),
    "names no nodes": (
        "yield Start(next(iter(view.queue)), [0])",
        r"whose nodes is \[0\] \(expected a NodeSet, like NodeSet\.parse\('0-3'\), or None\)",
    ),
    "wakes at a fraction": (
        "yield Wake(view.now_us + 1.5, 'x')",
        r"whose at_us is 1\.5 \(expected a whole number\)",
    ),
    "raises": ("return [1 / 0]", r"mine\.py:14: Mine\.plan at 0 s: ZeroDivisionError: "),
    "raises late": (
        "\n        if view.now_us: self.lost\n        yield from map(Start, [*view.queue][:1])",
        r"mine\.py:15: Mine\.plan at 1 s: AttributeError: ",
    ),
    "exits": ("raise SystemExit(0)", r"mine\.py:14: Mine\.plan at 0 s: SystemExit: 0"),
    "recurses": ("return self.plan(view, changes)", r"mine\.py:14: .*RecursionError"),
}  # fmt: skip


def toy(chosen) -> RunResult:
    return simulate(
        read_workload(ROOT / "workloads/toy.json"),
        chosen,
        machine_events=read_events(ROOT / "failure_events/toy.events"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_what_a_policy_does_wrong_is_told(case: str, tmp_path: Path) -> None:
    code, told = WRONG[case]
    (tmp_path / "mine.py").write_text(POLICY.format(code=code))
    with pytest.raises(PolicyError, match=told) as caught:
        toy(scheduler(f"{tmp_path}/mine.py:Mine"))
    assert "\n" not in str(caught.value)


def test_a_policy_that_exits_leaves_with_status_2(tmp_path: Path, capsys) -> None:
    (tmp_path / "mine.py").write_text(POLICY.format(code="raise SystemExit(0)"))
    arguments = ["run", str(ROOT / "workloads/toy.json"), "-p", f"{tmp_path}/mine.py:Mine"]
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--out", str(tmp_path / "out")])
    assert left.value.code == 2
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("rebat: error: policy Mine: mine.py:14: Mine.plan at 0 s: ")


def test_a_class_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    text = POLICY.format(code="return []").replace("def __init__(self)", "def __init__(self, n)")
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match="class Mine cannot be created: TypeError"):
        toy(scheduler(f"{tmp_path}/mine.py:Mine"))


def test_a_reaction_is_checked_too(tmp_path: Path) -> None:
    text = POLICY.format(code="yield from map(Start, [*view.queue][:1])")
    text += "\n    def react(self, view, news):\n        return news.failed\n"
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(PolicyError, match=r"mine\.py:16: Mine\.react at 1 s: proposed 2"):
        toy(scheduler(f"{tmp_path}/mine.py:Mine"))


def test_a_file_is_read_as_it_is_now_and_nothing_is_put_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for number in (1, 2):  # the same size, within one tick of the file system's clock
        file.write_text(f"class Mine: n = {number}\nMine.plan = Mine.react = print")
        assert scheduler(f"{file}:Mine").kind.n == number
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


# ---- two policies of the same name


def test_two_policies_of_one_name_both_run_and_say_what_they_are(tmp_path: Path, capsys) -> None:
    readme = re.search(OWN_POLICY, (ROOT / "README.md").read_text(), re.DOTALL)
    assert readme is not None
    for name, text in (("a", readme[1]), ("b", readme[1].replace("a.n_nodes,", "-a.n_nodes,"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
    specs = [f"{tmp_path}/{name}/mine.py:SmallestFirst" for name in ("a", "b", "a/../b")]
    out = tmp_path / "out"
    chosen = [argument for spec in specs[:2] for argument in ("-p", spec)]
    main(["run", str(ROOT / "workloads/toy.json"), *chosen, "--out", str(out)])
    folders = sorted(path for path in out.iterdir() if path.is_dir())
    assert len(folders) == 2
    for folder, name in zip(folders, ("a", "b"), strict=True):
        content = (tmp_path / name / "mine.py").read_bytes()
        assert json.loads((folder / "summary.json").read_text())["own_code"] == [
            {
                "file": "mine.py",
                "name": "SmallestFirst",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ]
    flows = [(folder / "rebat_jobs.csv").read_bytes() for folder in folders]
    assert flows[0] != flows[1]


def test_a_policy_of_its_own_name_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY.format(code="return []"))
    spec = f"{tmp_path}/mine.py:Mine"
    assert [one.name for one in schedulers([spec, "sfsj"])] == ["Mine", "sfsj"]


@pytest.mark.parametrize(
    ("specs", "told"),
    [
        (["sfsj", "h111"], "h111 is a duplicate of sfsj"),
        (["easy", "easy"], "easy is a duplicate \\("),
        (["PATH:Mine", "PATH:Mine"], "mine.py:Mine is a duplicate \\("),
    ],
)
def test_two_names_of_a_policy_are_told(specs: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY.format(code="return []"))
    with pytest.raises(InputError, match=told):
        schedulers(spec.replace("PATH", f"{tmp_path}/mine.py") for spec in specs)


# ---- user-defined rules

RULES = """
from rebat.core.nodes import NodeSet

def big_first(attempt):
    return -attempt.n_nodes

def smallest(candidate):
    date, order = candidate.release
    return candidate.running.attempt.n_nodes, -date, -order

def always(steal):
    return True

def whole(checkpointing, run_us, semantics):
    from rebat.models.remaining import since_last_checkpoint
    return since_last_checkpoint(checkpointing, run_us, semantics)

def low(free, request, machine):
    nodes = [node for node in range(machine.n_nodes) if free[node]][:request.n_nodes]
    return NodeSet.of(nodes) if len(nodes) == request.n_nodes else None

def nothing(*_):
    return None

def broken(*_):
    return [][0]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "rules.py").write_text(RULES)
    return tmp_path / "rules.py"


@pytest.mark.parametrize(
    ("own", "known"),
    [
        ("greedy:order={0}:big_first", "greedy:order=largest"),
        ("greedy:{0}:big_first", "greedy:order=largest"),
        ("SFSJ:victim={0}:smallest", "sfsj"),
        ("sfsj:CRITERION={0}:always,depth=EASY", "sfsj:depth=easy"),
        ("baseline:placement={0}:low", "baseline:placement=named"),
    ],
)
def test_rules_from_a_file_decide_as_those_of_the_tables(own: str, known: str, rules: Path) -> None:
    ours, theirs = toy(scheduler(own.format(rules))), toy(scheduler(known))
    assert [a.start_us for a in ours.ledger.attempts] == [
        a.start_us for a in theirs.ledger.attempts
    ]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("greedy:order={0}:nothing", r"rules\.py:22: .* the rule returned None"),
        ("greedy:order={0}:broken", r"rules\.py:26: broken\.plan at 0 s: IndexError"),
        ("sfsj:victim={0}:nothing", r"rules\.py:22: nothing\.react at 1 s: .*returned None"),
        ("sfsj:criterion={0}:smallest", r"rules\.py:8: smallest\.react at 1 s: AttributeError"),
    ],
)
def test_rules_that_fail_are_told(spec: str, told: str, rules: Path) -> None:
    with pytest.raises(PolicyError, match=told):
        toy(scheduler(spec.format(rules)))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("greedy:order={0}:absent", "has no 'absent'"),
        ("greedy:order={0}x.py:absent", "no such file"),
        ("baseline:maintenance={0}:always", "unknown maintenance"),
        ("baseline:victim={0}:smallest", "victim has no effect with"),
        ("greedy:order=lpt,{0}:big_first", "two values for order"),
        ("baseline:depth=easy,depth=greedy", "two values for depth"),
        ("baseline:Depth=easy,depth=easy", "two values for depth"),
    ],
)
def test_specifications_that_cannot_be(spec: str, told: str, rules: Path) -> None:
    with pytest.raises(InputError, match=told):
        scheduler(spec.format(rules))


def test_rules_come_as_json_options_too(rules: Path, monkeypatch) -> None:
    monkeypatch.chdir(rules.parent)
    given = configure("greedy", {"order": "rules.py:big_first"}).make()
    Session(given)
    own = configure("rules.py:Mine2", {"policy": "greedy:order=rules.py:big_first"})
    assert own.name == "greedy:order=rules.py:big_first"
    with pytest.raises(InputError, match="has no 'absent'"):
        configure("greedy", {"order": "rules.py:absent"})


# ---- user-defined reactions

REACTIONS = """
from rebat.contract import Cause, Move, NodeSet, Policy, Priority, Requeue, Stop

def steal(view, news):
    for failed in news.hit:
        running = [run for run in view.running.values() if run not in news.hit]
        victims = [run for run in running if run not in view.stopping]
        if victims and failed.n_nodes > view.n_free:
            victim = min(victims, key=lambda run: (run.n_nodes, -run.attempt.job_serial))
            yield Stop(victim.id, Cause.STOLEN, then=Requeue(Priority.VICTIM))

class Thief(Policy):
    def __init__(self):
        self.hits = []

    def react(self, view, news):
        self.hits += news.hit
        return [*steal(view, news)]

class Lazy(Policy):
    def plan(self, view, changes):
        return []

class Needs:
    def __init__(self, n):
        pass

    def react(self, view, news):
        return []

NUMBER = 3

def broken(view, news):
    if news.hit:
        [][0]
    return []

def seven(view, news):
    yield 7

def nothing(view, news):
    pass

def few(view):
    return []

def shift(view, news):
    for run in [run for run in view.running.values() if news.hit and run not in news.hit][:1]:
        yield Stop(run.id, Cause.MOVED, then=Move(NodeSet.parse("0")))
"""


@pytest.fixture
def reactions(tmp_path: Path) -> Path:
    folder = tmp_path / "c++"  # a + in a path separates no reactions
    folder.mkdir()
    (folder / "mine.py").write_text(REACTIONS)
    return folder / "mine.py"


@pytest.mark.parametrize(
    ("own", "known"),
    [
        ("baseline:react={0}:steal", "sfsj"),
        ("baseline:REACT={0}:Thief,depth=EASY", "sfsj:depth=easy"),
        ("baseline:recovery={0}:Thief", "sfsj"),
        ("sfsj:react=stealing+{0}:Lazy2", "sfsj"),
        ("sfsj:react={0}:Lazy2+stealing,timing=next", "h311"),
        ("baseline:planning=fifo,react={0}:Lazy2", "baseline:planning=fifo"),
    ],
)
def test_reactions_from_a_file_decide_with_built_in_parts(own, known, reactions: Path) -> None:
    reactions.write_text(REACTIONS + "\ndef Lazy2(view, news):\n    return ()\n")
    ours, theirs = toy(scheduler(own.format(reactions))), toy(scheduler(known))
    assert [(a.attempt.id, a.start_us, a.cause) for a in ours.ledger.attempts] == [
        (a.attempt.id, a.start_us, a.cause) for a in theirs.ledger.attempts
    ]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("easy:react={0}:broken", r"mine\.py:35: broken\.react at 1 s: IndexError: "),
        ("easy:react=stealing+{0}:broken", r"^mine\.py:35: broken\.react at 1 s: IndexError: "),
        ("easy:order={0}:len,react={0}:seven", r"^mine\.py:38: seven\.react at 0 s: proposed 7"),
        ("easy:react={0}:seven", r"mine\.py:38: seven\.react at 0 s: proposed 7 \(expected"),
        ("easy:react={0}:nothing", r"mine\.py:41: nothing\.react at 0 s: returned None"),
        ("easy:react={0}:few", r"mine\.py:44: few\.react at 0 s: TypeError"),
        ("easy:react={0}:shift,reservations=n:0:begin=9h:length=1h", "not possible with reserv"),
    ],
)
def test_reactions_that_fail_are_told(spec: str, told: str, reactions: Path) -> None:
    reactions.write_text(REACTIONS + "\ndef len(attempt):\n    return attempt.n_nodes\n")
    with pytest.raises(PolicyError, match=told):
        toy(scheduler(spec.format(reactions)))


@pytest.mark.parametrize(
    ("react", "told"),
    [
        ("{0}:absent", r"mine\.py: has no 'absent'"),
        ("{0}x.py:steal", "no such file"),
        ("stealing+{0}:Lazy", r"mine\.py: Lazy: class Lazy has no method react \("),
        ("{0}:NUMBER", r"mine\.py: NUMBER: is not a rule for react"),
        ("requeue+{0}:steal", "without duplicates; requeue cannot be combined"),
        ("{0}:steal+{0}:steal", "without duplicates"),
        (
            "steeling+{0}:steal",
            r"unknown react 'steeling'; did you mean stealing\? .*FILE\.py:NAME",
        ),
        ("{0}", r"unknown react '.*mine\.py'"),
    ],
)
def test_reactions_that_cannot_be(react: str, told: str, reactions: Path) -> None:
    if react == "{0}":
        reactions = Path("mine.py")
    with pytest.raises(InputError, match=told):
        scheduler(f"easy:react={react.format(reactions)}")


def test_a_reaction_with_arguments_is_told(reactions: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.py: class Needs cannot be created: TypeError"):
        toy(scheduler(f"easy:react={reactions}:Needs"))


def test_each_run_has_a_new_reaction(reactions: Path) -> None:
    chosen = scheduler(f"easy:react={reactions}:Thief")
    attempts = [toy(chosen).ledger.attempts for _ in range(2)]
    assert attempts[0] == attempts[1]


def test_the_code_of_a_reaction_is_recorded(reactions: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(reactions.parent)
    spec = "easy:react=stealing+mine.py:steal,victim=fits"
    main(["run", "toy", "-p", spec, "--failures", "toy", "--out", "out"])
    sha256 = hashlib.sha256(reactions.read_bytes()).hexdigest()
    (folder,) = (path for path in Path("out").iterdir() if path.is_dir())
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["own_code"] == [{"file": "mine.py", "name": "steal", "sha256": sha256}]
    inputs = json.loads(Path("out/provenance.json").read_text())["inputs"]
    assert {"option": "--policy", "file": "mine.py", "sha256": sha256} in inputs
    main(["cite", "out"])
    assert "du2024" in capsys.readouterr().out  # the built-in part
    main(["reproduce", "out", "--yes"])
    assert identity(scheduler(spec))["react"] == ["stealing", {"name": "steal", "sha256": sha256}]
    moved = reactions.rename(reactions.parent.parent / "mine.py")
    assert identity(scheduler(spec.replace("mine.py", f"{moved}"))) == identity(
        preset(spec, moved.parent)
    )


def test_reactions_are_served_and_checked(reactions: Path, monkeypatch) -> None:
    monkeypatch.chdir(reactions.parent)
    Session(configure("easy", {"react": "stealing+mine.py:steal"}).make())
    with pytest.raises(InputError, match="has no 'absent'"):
        configure("easy", {"react": "stealing+mine.py:absent"})
    swept = rebat.sweep("toy", ["easy", "easy:react=mine.py:steal"], mtbf=["20s", "30s"], seeds=1)
    assert {*swept.frame["policy"]} == {"easy", "easy:react=mine.py:steal"}
    assert rebat.check_policy("easy:react=mine.py:steal", seeds=2).passed
