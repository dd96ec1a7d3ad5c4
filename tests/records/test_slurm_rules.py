# SPDX-License-Identifier: Apache-2.0
"""Rules of a Slurm: priorities, shares, limits and reservations, as options of policies."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rebat.core.errors import InputError
from rebat.policies.presets import preset
from rebat.policies.site_rules import rules_of
from rebat.records.slurm_rules import read_rules

UTC = ZoneInfo("UTC")

CONFIG = """\
Configuration data as of 2026-11-22T11:55:59
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightFairShare = 5000
PriorityWeightJobSize   = 200
PriorityWeightPartition = 0
PriorityWeightQOS       = 7
PriorityWeightTRES      = (null)
PriorityMaxAge          = 7-00:00:00
PriorityFavorSmall      = Yes
PriorityFlags           = NO_FAIR_TREE,CALCULATE_RUNNING
PriorityCalcPeriod      = 00:05:00
PriorityDecayHalfLife   = 14-00:00:00
"""

ASSOCIATIONS = """\
Cluster|Account|User|ParentName|Share|GrpJobs|GrpTRES|MaxJobs
one|root|||1|||
one|root|root||1|||
one|phys||root|60|8|cpu=64,node=16|3
one|optics||phys|2|||
one|optics|ann||1|||
one|phys|bo||parent|||9
one|chem||root|40||cpu=8|
one|chem|a:b||1|||
one|chem|carla||1|||
"""

RESERVATIONS = """\
Cluster|Name|NodeNames|Start|End|Flags
one|maint|n[013-014]|1000000100|1000003700|MAINT
one|open||1000000100|1000003700|
one|never|n001|1000003700|Unknown|
"""


def rules(folder: Path, *texts: str):
    """Return the rules in files with these texts."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text(text)
    return read_rules(paths, UTC)


def test_weights_of_priorities_become_an_order(tmp_path: Path) -> None:
    read = rules(tmp_path, CONFIG)
    assert read.options == {
        "order": "multifactor:age=1000,fairshare=5000,size=200,max_age=604800,favor_small=yes",
        "half_life": "14d",
        "fairshare_rule": "classic",
        "order_period": "5min",
    }
    assert read.notes == ["weights of priorities that are not simulated: priorityweightqos"]
    basic = CONFIG.replace("priority/multifactor", "priority/basic")
    assert rules(tmp_path, basic).options == {}


def test_weights_of_sprio_become_an_order(tmp_path: Path) -> None:
    text = (
        "          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE    JOBSIZE\n"
        "        Weights                               1       1000       5000          0\n"
    )
    assert rules(tmp_path, text).options["order"] == (
        "multifactor:age=1000,fairshare=5000,max_age=604800"
    )
    with pytest.raises(InputError, match="contains no weights"):
        rules(tmp_path, text.replace("Weights", "123"))


def test_associations_become_shares_and_limits(tmp_path: Path) -> None:
    read = rules(tmp_path, ASSOCIATIONS)
    shares = "root=1+phys=60(optics=2(ann=1)+bo=parent)+chem=40(carla=1)"
    # The limit of the account phys holds for optics, too. Users without MaxJobs have that of phys.
    limits = "account=phys:child=optics:jobs=8:nodes=16+user=ann:jobs=3+user=bo:jobs=9"
    assert read.options == {"shares": shares, "limits": limits}
    assert [note.partition(":")[0] for note in read.notes] == [
        "1 association with special characters in a name, or for one partition",
        "GrpTRES of 1 account contains no number of nodes",
    ]


def associations(*rows: str, head: str = "ParentName|Share|GrpJobs|GrpTRES|MaxJobs") -> str:
    return "\n".join([f"Cluster|Account|User|{head}", *(f"one|{row}" for row in rows)]) + "\n"


ROOT = "root|||1|||"


@pytest.mark.parametrize(
    ("rows", "limits"),
    [
        # A limit of root holds for all accounts, one of a user only for this user.
        (["root|||1|9||", "a||root|1|||", "b||a|1|||"], "account=root:child=a:child=b:jobs=9"),
        ([ROOT, "a||root|1|||", "a|bo||1|3|cpu=4,node=2|"], "user=bo:jobs=3:nodes=2"),
        ([ROOT, "a||root|1|||", "a|bo||1|3||2"], "user=bo:jobs=2"),
        # A user with several accounts has a limit in each of them.
        (
            [ROOT, "a||root|1|||", "b||root|1|||", "a|bo||1||node=2|", "b|bo||1|||5"],
            "user=bo:account=a:nodes=2+user=bo:account=b:jobs=5",
        ),
        # MaxJobs of an account above counts if no other one is stated.
        ([ROOT, "a||root|1|||7", "b||a|1|||", "b|bo||1|||", "b|cy||1|||0"], "user=bo:jobs=7"),
        # INFINITE and NO_VAL are no limits.
        ([ROOT, "a||root|1|4294967295|node=4294967294|4294967295", "a|bo||1|||"], None),
    ],
)
def test_limits_of_parents_and_of_users(
    tmp_path: Path, rows: list[str], limits: str | None
) -> None:
    read = rules(tmp_path, associations(*rows))
    assert read.options.get("limits") == limits
    assert [note for note in read.notes if "limit of 0" in note] == (
        ["user cy has a limit of 0: ignored"] if "b|cy||1|||0" in rows else []
    )
    if limits:
        preset(f"easy:limits={limits}").make()


def test_accounts_without_parents(tmp_path: Path) -> None:
    head = "Share|GrpTRES"
    flat = rules(tmp_path, associations("root||1|", "a||2|", "b||1|", "b|bo|1|", head=head))
    assert flat.options == {"shares": "b=1(bo=1)"}
    assert flat.notes == ["2 accounts without the account above it (a, b): below root"]
    rows = ["root||1|", " a||2|node=4", "  b||1|", "  b|bo|1|", " c|zoe|3|"]
    tree = rules(tmp_path, associations(*rows, head=head))
    assert tree.options == {
        "shares": "a=2(b=1(bo=1))+c=1(zoe=3)",
        "limits": "account=a:child=b:nodes=4",
    }
    assert tree.notes == ["1 account without the account above it (c): below root"]
    circle = rules(tmp_path, associations(ROOT, "a||b|1|||", "b||a|1|||", "b|bo||1|||"))
    assert circle.options == {"shares": "a=1(b=1(bo=1))"}


def test_limits_that_are_not_simulated_have_notes(tmp_path: Path) -> None:
    head = "ParentName|Share|GrpTRES|MaxWall|GrpSubmit"
    rows = ["root||||||", "a||root|1|cpu=4|1-00:00:00|5", "a|bo||1|gres/gpu=1||"]
    read = rules(tmp_path, associations(*rows, "a|short", head=head))
    assert read.notes == [
        "1 row of rules with another number of columns: ignored",
        "GrpTRES of 1 account contains no number of nodes: ignored",
        "GrpTRES of 1 user contains no number of nodes: ignored",
        "GrpSubmit of 1 association: not simulated",
        "MaxWall of 1 association: not simulated",
    ]


def test_each_setting_that_is_not_simulated_has_a_note(tmp_path: Path) -> None:
    config = CONFIG.replace(
        "NO_FAIR_TREE,CALCULATE_RUNNING", "SMALL_RELATIVE_TO_TIME,DEPTH_OBLIVIOUS,NO_FAIR_TREE"
    )
    read = rules(tmp_path, f"{config}PriorityUsageResetPeriod = DAILY\n")
    assert read.notes[1:] == [
        "PriorityFlags DEPTH_OBLIVIOUS: not simulated",
        "PriorityFlags SMALL_RELATIVE_TO_TIME: not simulated",
        "PriorityUsageResetPeriod DAILY: not simulated, usage is never reset",
    ]
    assert len(rules(tmp_path, f"{CONFIG}PriorityUsageResetPeriod = NONE\n").notes) == 1


@pytest.mark.parametrize(
    ("enforced", "has_limits"),
    [("associations,limits", True), ("associations,limits,qos,safe", True), ("none", False)],
)
def test_limits_count_only_if_slurm_enforces_them(
    tmp_path: Path, enforced: str, has_limits: bool
) -> None:
    config = f"{CONFIG}AccountingStorageEnforce = {enforced}\n"
    for texts in ((config, ASSOCIATIONS), (ASSOCIATIONS, config)):
        slurm = rules(tmp_path, *texts)
        assert ("limits" in slurm.options) == has_limits
        assert any("AccountingStorageEnforce" in note for note in slurm.notes) != has_limits


def test_reservations_have_nodes_and_unix_times(tmp_path: Path) -> None:
    (row,) = rules(tmp_path, RESERVATIONS).reservations
    assert row == ("maint", "n[013-014]", 1000000100.0, 1000003700.0)


def test_owners_of_reservations(tmp_path: Path) -> None:
    """The users and accounts of a reservation, from associations or from ``scontrol``."""
    owners = associations(
        ROOT + "|1", "phys||root|1||||2", "optics||phys|1||||3",
        "optics|ann||1||||4", head="ParentName|Share|GrpJobs|GrpTRES|MaxJobs|ID",
    )  # fmt: skip
    reserved = (
        "Cluster|Name|NodeNames|Start|End|Flags|Assocs\n"
        "one|a|n1|1000000100|1000003700||4,\none|b|n2|1000000100|1000003700|DAILY|2\n"
        "one|c|n2|1000000100|1000003700||99\n"
    )
    for texts in ((owners, reserved), (reserved, owners)):
        read = rules(tmp_path, *texts)
        assert read.owners == {
            "a": ["user=ann"],
            "b": ["account=phys", "account=optics", "every=1d"],
            "c": [],
        }
        assert [note for note in read.notes if "reservation c" in note] == [
            "reservation c: associations 99, which no column ID states: not simulated"
        ]
    shown = (
        "ReservationName=x StartTime=2026-11-22T12:00:00 EndTime=2026-11-22T13:00:00\n"
        "   Nodes=n[1-2] NodeCnt=2 Features=(null) PartitionName=(null) Flags=SPEC_NODES,FLEX\n"
        "   Users=ann,bo Groups=crew Accounts=-chem Licenses=(null) State=ACTIVE\n\n"
        "ReservationName=y StartTime=2026-11-22T12:00:00 EndTime=2026-11-22T13:00:00\n"
        "   Nodes=n3 Flags=WEEKLY\n   Users=(null) Groups=(null) Accounts=phys\n"
    )
    read = rules(tmp_path, shown)
    assert [row[:2] for row in read.reservations] == [("x", "n[1-2]"), ("y", "n3")]
    assert read.owners == {"x": ["user=ann", "user=bo"], "y": ["account=phys", "every=1w"]}
    assert read.notes == [
        "reservation x: excluded account chem: not simulated",
        "reservation x: groups crew: not simulated",
        "reservation x: flag FLEX: not simulated",
    ]


def test_the_options_are_valid(tmp_path: Path) -> None:
    read = rules(tmp_path, CONFIG, ASSOCIATIONS)
    options = rules_of("all", read.options)
    assert {"order", "shares", "limits"} <= options.keys()
    preset("easy:rules=all").with_rules(read.options).make()
    with pytest.raises(InputError, match="the site states no reservations"):
        rules_of("limits+reservations", read.options)
    with pytest.raises(InputError, match="the site states no rules"):
        rules_of("all", {})
    with pytest.raises(InputError, match="the rules of the site are unknown"):
        preset("easy:rules=all").make()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("JobID|User\n1|a\n", "contains no rules of Slurm"),
        (ASSOCIATIONS.replace("one|chem||", "two|chem||"), "contains several clusters: one, two"),
        (RESERVATIONS.replace("1000000100", "soon"), "invalid time 'soon'"),
        ("", "contains no rules of Slurm"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        rules(tmp_path, text)


@pytest.mark.parametrize(
    ("accounts", "words"), [(1, ""), (2, ":account=phys"), (3, ":account=phys")]
)
def test_a_limit_of_a_user_states_the_account_if_the_user_has_several(
    tmp_path: Path, accounts: int, words: str
) -> None:
    names = ("phys", "chem", "bio")[:accounts]
    head = "Cluster|Account|User|ParentName|Share|GrpJobs|GrpTRES|MaxJobs\none|root|||1|||\n"
    rows = [f"one|{name}||root|1|||\none|{name}|ann||1|||" for name in names]
    text = head + "\n".join(rows).replace("phys|ann||1|||", "phys|ann||1|||4", 1)
    assert rules(tmp_path, text).options["limits"] == f"user=ann{words}:jobs=4"


def test_reservations_without_nodes_or_length_are_counted(tmp_path: Path) -> None:
    head = "Cluster|Name|NodeNames|Start|End|Flags\n"
    rows = ["a||1000|2000|", "b|None|1000|2000|", "c|n1|2000|2000|", "d|n1|2001|2000|"]
    read = rules(tmp_path, head + "\n".join(f"one|{row}" for row in [*rows, "e|n1|1999|2000|"]))
    assert read.reservations == [("e", "n1", 1999.0, 2000.0)]
    assert read.notes == ["4 reservations without nodes, a start or an end: ignored"]
