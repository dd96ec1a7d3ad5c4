# SPDX-License-Identifier: Apache-2.0
"""Names of resubmissions are unique. Workloads whose ids prevent this are errors before the run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import check_ids, split_attempt
from rebat.core.errors import BatsimAbort, InputError
from rebat.core.jobs import Job, Workload
from rebat.core.options import SessionOptions
from rebat.drive.ask import Session
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import read_events
from rebat.policies.presets import preset
from rebat.runs.scenario import Scenario
from rebat.runs.staging import prepared
from rebat.wire.conversation import Conversation, session_for
from rebat.wire.recording import read_frames
from rebat.workloads.batsim_json import read_workload
from tests.session.test_session import begun, completed, failed, killed, kinds, say, submitted
from tests.support.amount import few
from tests.support.recordings import DATA
from tests.support.scenarios import check_run, fails, failures, machine, run

pytestmark = pytest.mark.usefixtures("both_ways")

RECORDED = DATA / "real-batsim"
COLLISION = "has the id of a resubmission of job"


@pytest.mark.parametrize(
    ("name", "found"),
    [("12#3", ("12", 3)), ("12", ("12", 0)), ("#1", ("#1", 0)), ("a#b", ("a#b", 0)),
     ("a#b#2", ("a#b", 2)), ("a#0", ("a#0", 0)), ("a#01", ("a#01", 0)), ("a#", ("a#", 0)),
     ("a#1#2", ("a#1", 2)), ("a#²", ("a#²", 0)), ("a#" + "9" * 5000, ("a#" + "9" * 5000, 0))],
)  # fmt: skip
def test_the_name_of_a_resubmission(name: str, found: tuple[str, int]) -> None:
    assert split_attempt(name) == found


def test_only_the_name_of_an_other_jobs_resubmission_is_refused() -> None:
    check_ids(["a#1", "b", "b#01", "b#0", "b#x", "c#1#1"])
    with pytest.raises(InputError, match=r"job a#1#2: .* resubmission of job a#1 "):
        check_ids(["a#1", "a#1#2", "b"])


def test_a_recorded_collision_is_refused_before_it_runs() -> None:
    """Batsim aborted on this workload, because an id was registered twice."""
    with pytest.raises(InputError, match=COLLISION):
        prepared(read_workload(RECORDED / "id-collision/w.json"), Scenario())


def test_a_job_named_as_a_resubmission_of_nobody_runs_and_is_resubmitted() -> None:
    workload = named(machine(2, (2, 10), (1, 5)), "a#1", "b")
    result = run("baseline", prepared(workload, Scenario()), fails(0, 3, 4))
    check_run(result)
    assert {job.id for job in result.jobs} == {"w0!a#1", "w0!a#1#1", "w0!b"}


def named(workload: Workload, *ids: str) -> Workload:
    """Return the workload with other ids."""
    pairs = zip(workload.jobs, ids, strict=True)
    jobs = tuple(msgspec.structs.replace(job, id=name) for job, name in pairs)
    return msgspec.structs.replace(workload, jobs=jobs)


# ---- on the wire


@pytest.mark.parametrize("ids", [("a", "a#1"), ("a#1", "a")])
def test_a_session_refuses_the_second_of_two_such_jobs(ids: tuple[str, str]) -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted(ids[0]))
    with pytest.raises(InputError, match=f"job w0!a#1: {COLLISION} w0!a "):
        say(session, 1, submitted(ids[1], at=1))


def test_an_id_is_not_free_again_when_its_job_is_over() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("a#1"))
    say(session, 5, completed("a#1", 5, "0-1"))
    with pytest.raises(InputError, match=COLLISION):
        say(session, 6, submitted("a", at=6))


def test_a_job_that_is_over_needs_no_more_names() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("a"))
    say(session, 5, completed("a", 5, "0-1"))
    assert kinds(say(session, 6, submitted("a#1", at=6))) == ["ExecuteJob"]


def conversation(folder: Path, workload: Path) -> tuple[Conversation, list[bytes]]:
    """Return a session and a simulator's recorded messages that name an existing workload file."""
    said = [frame.data for frame in read_frames(folder / "talk.jsonl") if frame.of_simulator]
    first = json.loads(said[0])
    first["events"][0]["data"]["workloads"] = {"w0": str(workload)}
    made = Conversation(lambda _, began: session_for("baseline", {}, began))
    return made, [json.dumps(first).encode(), *said[1:]]


def test_the_file_that_batsim_names_is_looked_at_when_the_simulation_begins() -> None:
    """Batsim sends the id of a job only at its submission, which can be too late."""
    folder = RECORDED / "id-collision"
    talk, said = conversation(folder, folder / "w.json")
    with pytest.raises(InputError, match=rf"message 1 .*w\.json: job a#1: {COLLISION} a "):
        talk.answer(said[0])


@pytest.mark.parametrize("content", ["", "[]", '{"jobs": 3}', "[" * 100_000, '{"jobs": [{}]}'])
def test_what_is_no_workload_at_hand_is_passed_over(tmp_path: Path, content: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(content)
    for other in (file, tmp_path, tmp_path / "absent.json", Path("/dev/zero"), Path("a\0b")):
        talk, said = conversation(RECORDED / "id-collision", other)
        assert b'"events":[]' in talk.answer(said[0])


# ---- profiles


def test_a_profile_named_as_that_of_a_resubmission_is_left_alone() -> None:
    """Batsim aborted on the recorded answer. The session uses another name."""
    folder = RECORDED / "profile-collision"
    workload, events = read_workload(folder / "w.json"), read_events(folder / "f.events")
    result = run("baseline", workload, events)
    check_run(result)
    profiles = {job.id: job.profile for job in result.jobs}
    assert profiles == {"w0!a": "x", "w0!a#1": "a#1:x'", "w0!b": "a#1:x"}


PARTS = st.sampled_from(["a", "b", "a#1", "b#2", "x", "a#1:x", "x:b#1:x", "b#1:a#1:x", ":", "a:"])


@settings(max_examples=few(200))
@given(st.lists(st.tuples(PARTS, PARTS), min_size=2, max_size=6), failures(4))
def test_whatever_jobs_and_profiles_are_called_no_name_is_registered_twice(pairs, events) -> None:
    """The engine would abort on a name that is registered twice, like Batsim."""
    jobs = {job_id: Job(job_id, 2, 0, None, profile) for job_id, profile in pairs}
    profiles = {profile: {"type": "delay", "delay": 20} for _, profile in pairs}
    workload = Workload("w", 4, tuple(jobs.values()), profiles)
    try:
        run("baseline", prepared(workload, Scenario()), events)
    except InputError as error:
        assert COLLISION in str(error)
        assert any(split_attempt(name)[0] in jobs.keys() - {name} for name in jobs)


# ---- delays


def test_batsim_loads_no_delay_of_zero() -> None:
    with pytest.raises(InputError, match="profile 'z': delay: is 0 "):
        read_workload(RECORDED / "delay-zero/w.json")


def test_the_engine_aborts_on_a_registered_delay_of_zero() -> None:
    engine = Engine(machine(2, (1, 5)), options=EngineOptions(dynamic_jobs=True))
    profile = d.RegisterProfile(
        at_us=0, workload="w0", name="z", profile={"type": "delay", "delay": 0}
    )
    with pytest.raises(BatsimAbort, match="malformed profile"):
        engine.run(lambda message: d.Reply(message.now_us, (profile,)))


def test_what_is_stopped_as_it_ends_runs_again_for_a_microsecond() -> None:
    """A failure can be reported before the end of a job at the same time. Then no work is left."""
    workload = machine(2, (2, 10))
    session = Session(preset("baseline").make(), SessionOptions())
    profile = add_perfect(workload).profiles[workload.jobs[0].profile]
    config = {"dynamic-jobs-enabled": True}
    session.handle(
        e.Message(0, (e.SimulationBegan(
            at_us=0, n_nodes=2, config=config, profiles={"w0": {"d": profile}}, workloads={},
        ),))
    )  # fmt: skip
    say(session, 0, submitted("1"))
    say(session, 10, failed(10, "0"))
    ended = completed("1", 10, "0-1", "COMPLETED_KILLED")
    decisions = say(session, 10, ended, killed(10, "1"))
    (registered,) = (one for one in decisions if isinstance(one, d.RegisterProfile))
    assert registered.profile["delay"] == 1e-6
