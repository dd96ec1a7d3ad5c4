# SPDX-License-Identifier: Apache-2.0
"""What to cite: rebat, Batsim, and the publications behind policies, failure laws and checkpoints.

`references.bib` contains the entries. `PUBLICATIONS` states when an entry applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from rebat.models.failures.laws import prefabs
from rebat.policies.presets import Preset

SOFTWARE = """\
@software{{rebat,
  author  = {{{{The rebat developers}}}},
  title   = {{rebat: resilient batch schedulers for {{Batsim}}}},
  version = {{{version}}},
  year    = {{2026}}{url}
}}"""
"""Entry of rebat."""

BATSIM = "dutot2016"
"""Key of the entry that always applies: rebat simulates as Batsim does."""


class Publication(NamedTuple):
    """When an entry of `references.bib` applies.

    Attributes
    ----------
    names : tuple of str
        Texts by which a source names the publication: that of a preset or of a failure law.
    options : dict of str to tuple of str
        Values of options that the publication describes, by option: an axis, or an option of the
        run. The parts of ``react`` count separately.
    """

    names: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = {}


PUBLICATIONS: dict[str, Publication] = {
    "du2024": Publication(
        ("Du, Marchal, Pallez, Robert 2024",),
        {"react": ("stealing",), "semantics": ("authors",), "accounting": ("program",)},
    ),
    "benoit2020": Publication(
        ("Benoit, Le Fèvre, Raghavan, Robert, Sun 2020", "Benoit et al. 2020"),
        {"planning": ("shelf", "shelf-nb"), "silent_errors": ("retry",)},
    ),
    "vardas2022": Publication(
        ("Vardas, Ploumidis, Marazakis 2022",),
        {"placement": ("slurm-linear", "torus-first", "rps", "faps")},
    ),
    "prabhakaran2018": Publication(
        ("Prabhakaran, Neumann, Wolf 2018",), {"react": ("replacement",), "planning": ("flexible",)}
    ),
    "rodriguez-pascual2019": Publication(
        ("Rodríguez-Pascual, Cao, Moríñigo, Cooperman, Mayo-García 2019",),
        {
            "placement": ("cluster",),
            "react": ("compaction", "priorities", "sleep", "defragment", "foresee"),
        },
    ),
    BATSIM: Publication(),
    "mualem2001": Publication(("Mu'alem and Feitelson 2001",), {"depth": ("easy", "conservative")}),
    "tsafrir2007": Publication((), {"predict": ("recent",)}),
    "tang2009": Publication((), {"order": ("wfp3", "unicef")}),
    "carastan-santos2017": Publication((), {"order": ("f1", "f2", "f3", "f4")}),
    "kokolis2025": Publication(("Kokolis et al.",), {"react": ("exclude", "preempt")}),
    "young1974": Publication((), {"checkpoint": ("young-daly",)}),
    "daly2006": Publication((), {"checkpoint": ("young-daly",)}),
    "schroeder2006": Publication(("Schroeder and Gibson 2006",)),
    "di2017": Publication(("Di et al. 2017",)),
    "grattafiori2024": Publication(("Llama 3",)),
    "dong2025": Publication(("Dong et al., Evolution of Aegis",)),
    "cui2025": Publication(("Cui et al., Story of Two GPUs",)),
}
"""Publications by the key of their entry, in the order of the output."""


@cache
def entries() -> dict[str, str]:
    """Return the entries of `references.bib` by key, in BibTeX."""
    text = files("rebat.results").joinpath("references.bib").read_text(encoding="utf-8")
    blocks = [f"@{block.strip()}" for block in text.split("\n@") if block.strip()]
    blocks[0] = blocks[0].removeprefix("@")
    return {block[block.index("{") + 1 : block.index(",")]: block for block in blocks}


def cited(policies: Iterable[Preset], options: Mapping[str, Any]) -> list[str]:
    """Return the keys of the publications that a result uses, Batsim's among them.

    Parameters
    ----------
    policies : iterable of Preset
        The policies of the result. Policies of the user's own code have no publication.
    options : mapping of str to value
        The options of the run, with the failure law (or its name) as ``law``.
    """
    sources: list[str] = []
    words: set[tuple[str, str]] = {(name, str(value)) for name, value in options.items()}
    for preset in policies:
        sources.append(preset.source)
        words |= set(_words(preset.point.effective))
    law = options.get("law")
    prefab = prefabs().get(str(law.get("name") if isinstance(law, Mapping) else law))
    if prefab is not None:
        sources.append(prefab.source)
    return [
        key for key, row in PUBLICATIONS.items() if key == BATSIM or _applies(row, sources, words)
    ]


def bibtex(keys: Iterable[str], version: str, repository: str = "") -> str:
    """Return the entry of this version of rebat, and the entries with these keys, as BibTeX.

    ``repository`` is the address of rebat's repository. If it is empty, the entry has no address.
    """
    url = f",\n  url     = {{{repository}}}" if repository else ""
    software = SOFTWARE.format(version=version, url=url)
    return "\n\n".join([software, *(entries()[key] for key in keys)])


def _words(effective: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options of a policy with their values, one pair for each part of a sum."""
    for name, value in effective.items():
        for part in str(value).split("+"):
            yield name, part


def _applies(row: Publication, sources: list[str], words: set[tuple[str, str]]) -> bool:
    return any(name in source for name in row.names for source in sources) or any(
        (option, value) in words for option, values in row.options.items() for value in values
    )
