# SPDX-License-Identifier: Apache-2.0
"""The page of the gallery follows from its tables, and its commands exist."""

from __future__ import annotations

import shlex

import pytest
from scripts.gallery import FOLDER, PAGE, QUESTIONS, Question, page

from rebat.cli.main import cli
from tests.docs.test_commands import parsed


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_has_commands_a_table_and_a_picture(question: Question) -> None:
    for command in question.commands:
        parsed(cli, shlex.split(command)[1:])
    assert (FOLDER / f"{question.name}.csv").exists()
    assert (FOLDER / f"{question.name}.png").read_bytes().startswith(b"\x89PNG")
