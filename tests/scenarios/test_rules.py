"""Every rule has its story, and every story its rule."""

import ast
from pathlib import Path

from tests.scenarios.rules import RULES

FOLDER = Path(__file__).parent
STORIES = {
    f"{file.parent.name}/{file.stem.removeprefix('test_')}": [
        node.name.removeprefix("test_")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    for file in FOLDER.glob("*/test_*.py")
}


def test_every_test_that_a_rule_names_exists() -> None:
    for rule in RULES:
        assert rule.tests, rule.text
        for named in rule.tests:
            file, _, beginning = named.partition("::")
            found = [test for test in STORIES.get(file, []) if test.startswith(beginning)]
            assert len(found) == 1, f"{rule.text}: {named} is {found}"


def test_every_story_shows_a_rule() -> None:
    named = {test.partition("::")[0] for rule in RULES for test in rule.tests}
    assert set(STORIES) - named == set()


def test_no_rule_is_stated_twice() -> None:
    texts = [rule.text for rule in RULES]
    assert len(set(texts)) == len(texts)
