"""Checks of the kit itself: the specification and the cases agree."""

import ast
import pathlib

from kit.mutants import EXCEPTIONS, MUTANTS
from kit.specification import PAGE, problems, sentences

HERE = pathlib.Path(__file__).resolve().parent


def cited_numbers():
    """Returns the numbers that cases cite, from the source of the cases."""
    found = set()
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and getattr(mark.func, "id", None) == "cites":
                        found |= {argument.value for argument in mark.args}
    return found


def test_each_sentence_is_cited_or_listed_as_untested():
    assert problems(PAGE.read_text(encoding="utf-8"), cited_numbers()) == []


def test_check_finds_an_uncited_and_an_unknown_number():
    page = "- **S-A-1** The service MUST answer.\n- **S-A-2** The service MUST answer.\n\n"
    found = problems(page, {"S-A-1", "S-B-9"})
    assert len(found) == 2
    assert "S-B-9" in found[0]
    assert "S-A-2" in found[1]


def test_each_mutant_breaks_a_known_sentence():
    known = sentences()
    assert [mutant.name for mutant in MUTANTS.values() if not set(mutant.breaks) <= set(known)] == []


def test_each_tested_sentence_has_a_mutant():
    broken = {number for mutant in MUTANTS.values() for number in mutant.breaks}
    assert sorted(cited_numbers() - broken - set(EXCEPTIONS)) == []
