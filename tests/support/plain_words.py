# SPDX-License-Identifier: Apache-2.0
"""Words and constructions that rebat does not use, and where they occur.

This list helps writers but does not check grammar. Most readers are not native speakers and skim.
Run the module on any files or folders::

    python -m tests.support.plain_words docs schedulers/rebat/cli

Prose is the text of pages and notebooks outside code, and the docstrings, comments and messages
(string literals with a space) of Python files. Names are the identifiers that Python files bind.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.pages import ROOT

# Words and constructions to avoid, and their replacements.
PLAIN = {
    r"told|tells?": "reports, receives, passes; the noun itself",
    r"(?<!plot )beside": "next to, alongside, compared with",
    r"anew|afresh": "again, recomputed, rebuilt",
    r"(?<!if )so (?:many|much|long)(?! as)": "n, a number of, the duration",
    r"such an?": "this, one like it",
    r"of which": "two sentences",
    r"in the mean": "on average",
    r"on demand of": "at the request of",
    r"of (?:one's|your|our|their|his) own": "custom, user-defined, your own",
    r"goes by the name": "is called, is named",
    r"what (?:comes|came|becomes|became) of": "the result, the outcome",
    r"by itself": "completes; alone",
    r"(?:comes|came|come) twice": "is a duplicate",
    r"(?:stands|stood|stand) (?:in|there)": "is in",
    r"(?:set|put) beside": "compared with",
    r"mends?|mended": "fixes, fixed",
    r"what for": "use",
    r"whom": "who, or another construction",
    r"therein|thereof|therewith|thereafter|wherein|whereof|hence|henceforth|thus": "here, so",
    r"whatever|whichever|whoever|wholly": "any, all, entirely",
    r"as (?:it|they) (?:is|are|was|were)": "unchanged",
    r"nobody|naught|nought": "no user, no job",
    r"in its turn|in turn(?! )": "one after another",
    r"of course": "nothing",
    r"it is (?:looked|asked|said)": "the active voice",
    r"lest|ere|whilst|amongst|upon|albeit": "a common word",
    r"doesn't|isn't|can't|won't|don't|aren't|wasn't|it's|that's|didn't": "no contractions",
}
_PROSE = re.compile(
    r"\b(?:" + "|".join(f"(?P<w{i}>{p})" for i, p in enumerate(PLAIN)) + r")\b", re.IGNORECASE
)

# Participles and pronouns do not describe a value.
NAMES = {"found", "told", "asked", "known", "kept", "one", "some", "what"}

# Quotations, and the names of published files: (end of the path, text of the line).
QUOTED = (
    ("core/errors.py", "def what(self)"),  # the earlier name of a public attribute
    ("policies/reactions/horizon.py", "hence the qualification of 'eternal'"),
    ("campaigns/real_failures/full.toml", "Mira, September 2018 as it was"),
)


class Finding(NamedTuple):
    """A word that rebat does not use: its file, line, the word, and the text around it."""

    path: Path
    line: int
    word: str
    text: str

    def __str__(self) -> str:
        where = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{where}:{self.line}: {self.word!r} in: {self.text.strip()[:110]}"


def findings(path: Path) -> Iterator[Finding]:
    """Yield the words in a file that rebat does not use."""
    readers = {".py": _python, ".ipynb": _notebook, ".md": _markdown, ".html": _plain}
    read = readers.get(path.suffix, _plain)
    for finding in read(path):
        if not any(str(path).endswith(p) and t in finding.text for p, t in QUOTED):
            yield finding


def prose(path: Path, text: str, first_line: int = 1) -> Iterator[Finding]:
    """Yield the findings in a text; its lines are counted from ``first_line``."""
    lines = text.splitlines()
    for match in _PROSE.finditer(text):
        at = text.count("\n", 0, match.start())
        word = " ".join(match[0].split())
        yield Finding(path, first_line + at, word, lines[at])


def _plain(path: Path) -> Iterator[Finding]:
    yield from prose(path, path.read_text())


_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`|\[[^\]]*\]\(|<!--.*?-->|^>.*$|“[^”]*”", re.M | re.S)


def _markdown(path: Path) -> Iterator[Finding]:
    yield from prose(path, _without_code(path.read_text()))


def _without_code(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        if match[0].startswith("[") and match[0].endswith("]("):
            return match[0]  # a link's text is prose
        return re.sub(r"[^\n]", " ", match[0])

    return _CODE.sub(blank, text)


def _notebook(path: Path) -> Iterator[Finding]:
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from prose(path, _without_code(text))
        else:
            yield from _comments(path, text)


def _python(path: Path) -> Iterator[Finding]:
    text = path.read_text()
    yield from _comments(path, text)
    yield from _names(path, ast.parse(text), text.splitlines())


def _comments(path: Path, text: str) -> Iterator[Finding]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        literal = token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        if token.type == tokenize.COMMENT or (literal and " " in token.string):
            words = re.sub(r"`[^`\n]+`", lambda m: " " * len(m[0]), token.string)
            yield from prose(path, words, token.start[0])


def _names(path: Path, tree: ast.AST, lines: list[str]) -> Iterator[Finding]:
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        if name.strip("_") in NAMES:
            line: int = getattr(node, "lineno", 1)
            yield Finding(path, line, name, lines[line - 1])


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the pages, notebooks and Python files in files and folders."""
    for path in paths:
        if path.is_dir():
            for suffix in ("*.md", "*.ipynb", "*.py"):
                yield from sorted(p for p in path.rglob(suffix) if p.name != "report.md")
        else:
            yield path


def main() -> None:
    """Print each finding, and the number of findings."""
    count = 0
    for path in files([Path(p).resolve() for p in sys.argv[1:]]):
        for finding in findings(path):
            count += 1
            print(finding)
    print(count, "findings")


if __name__ == "__main__":
    main()
