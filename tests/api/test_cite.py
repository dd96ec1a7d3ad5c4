# SPDX-License-Identifier: Apache-2.0
"""Citations: each source of policies and laws has an entry, and results cite what they use."""

from __future__ import annotations

import io
from email.message import Message
from pathlib import Path

import pytest
import yaml
from pybtex.database import parse_string
from pybtex.database.input import bibtex as reader

import rebat
from rebat.api.cite import cite
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.failures.laws import prefabs
from rebat.policies.presets import PRESETS
from rebat.results.citations import PUBLICATIONS, cited, entries
from tests.support.pages import ROOT


def keys(text: str) -> set[str]:
    return set(parse_string(text, "bibtex").entries)


def test_the_entries_are_bibtex() -> None:
    data = reader.Parser().parse_stream(
        io.StringIO((ROOT / "schedulers/rebat/results/references.bib").read_text(encoding="utf-8"))
    )
    assert set(data.entries) == set(entries()) == set(PUBLICATIONS)
    for key, entry in data.entries.items():
        assert {"title", "year"} <= set(entry.fields), key
        assert entry.persons["author"], key
        assert key.removesuffix(entry.fields["year"]) or key == "dutot2016"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_cites_its_source(name: str) -> None:
    source = PRESETS[name].source
    found = [key for key, row in PUBLICATIONS.items() if any(text in source for text in row.names)]
    assert found or source.startswith("Batsched"), source
    assert set(found) <= set(cited([PRESETS[name]], {}))


@pytest.mark.parametrize("name", sorted(prefabs()))
def test_every_failure_law_of_a_machine_cites_its_source(name: str) -> None:
    assert set(cited([], {"law": {"name": name}})) > {"dutot2016"}


@pytest.mark.parametrize(
    ("policies", "options", "expected"),
    [
        ([], {}, set()),
        (["easy:order=wfp3"], {}, {"mualem2001", "tang2009"}),
        (["fifo:react=stealing"], {}, {"du2024"}),
        (["cluster:react=compaction"], {}, {"rodriguez-pascual2019"}),
        (["greedy:predict=recent"], {"checkpoint": "young-daly"},
         {"benoit2020", "tsafrir2007", "young1974", "daly2006"}),
        (["dbes:react=replacement+stealing"], {}, {"prabhakaran2018", "du2024"}),
    ],
)  # fmt: skip
def test_options_determine_the_publications(
    policies: list[str], options: dict[str, str], expected: set[str]
) -> None:
    presets = [rebat.policies.presets.preset(name.replace("fifo", "batsched-fcfs"))
               for name in policies]  # fmt: skip
    assert set(cited(presets, options)) == expected | {"dutot2016"}


def test_a_result_cites_what_it_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    own = tmp_path / "mine.py"
    own.write_text(
        "from rebat import Policy\n\n\nclass Idle(Policy):\n"
        '    """Start nothing."""\n\n    def plan(self, view, changes):\n        return ()\n'
    )
    result = rebat.run("toy", ["sfsj", f"{own}:Idle"], failures=rebat.failures(file="toy"))
    result.write(out)
    own.write_text("raise SystemExit('code of the user must not run')\n")
    main(["cite", str(out)])
    text = capsys.readouterr().out
    assert keys(text) == {"rebat", "du2024", "dutot2016", "mualem2001"}
    assert f"version = {{{rebat.__version__}}}" in text


def test_campaigns_cite_their_papers() -> None:
    """Each campaign of a paper cites this paper."""
    for folder, paper in {
        "node_stealing": "du2024",
        "silent_errors": "benoit2020",
        "torus": "vardas2022",
        "partitions": "vardas2022",
        "replacement": "prabhakaran2018",
        "migration": "rodriguez-pascual2019",
        "training": "kokolis2025",
    }.items():
        for file in (ROOT / "campaigns" / folder).glob("*.toml"):
            assert paper in keys(cite(file)), file


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contains no provenance\.json"):
        cite(tmp_path)
    (tmp_path / "provenance.json").write_text("[]")
    with pytest.raises(InputError, match="is invalid"):
        cite(tmp_path)
    with pytest.raises(InputError, match="unknown policy"):
        cite(policies=["sfsjj"])


def test_citation_file_and_bibtex_agree() -> None:
    """CITATION.cff has the title and authors of the entry, and lists the five papers and Batsim."""
    record = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    software = parse_string(cite(), "bibtex").entries["rebat"]
    plain = software.fields["title"].translate({ord("{"): None, ord("}"): None})
    assert record["title"] == plain
    assert record["authors"] == [{"name": "The rebat developers"}]
    assert record["date-released"].year == int(software.fields["year"])
    assert record["license"] == "Apache-2.0"
    listed = {row["title"].lower(): row for row in record["references"]}
    for key in ("du2024", "benoit2020", "vardas2022", "prabhakaran2018", "rodriguez-pascual2019",
                "dutot2016"):  # fmt: skip
        entry = parse_string(entries()[key], "bibtex").entries[key]
        title = entry.fields["title"].translate({ord("{"): None, ord("}"): None}).lower()
        assert len(listed[title]["authors"]) == len(entry.persons["author"])
        assert listed[title].get("doi") == entry.fields.get("doi")


def test_the_address_of_the_repository_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    urls = Message()
    urls["Project-URL"] = "Issues, https://example.org/o/rebat/issues"
    urls["Project-URL"] = "Repository, https://example.org/o/rebat"
    monkeypatch.setattr("rebat.api.cite.metadata", lambda name: urls)
    entry = parse_string(cite(), "bibtex").entries["rebat"]
    assert entry.fields["url"] == "https://example.org/o/rebat"
    monkeypatch.setattr("rebat.api.cite.metadata", lambda name: Message())
    assert "url" not in parse_string(cite(), "bibtex").entries["rebat"].fields


def test_included_campaigns_and_missing_folders() -> None:
    assert "du2024" in keys(cite("node_stealing/quick"))
    with pytest.raises(InputError, match="nothere: does not exist"):
        cite("nothere")
