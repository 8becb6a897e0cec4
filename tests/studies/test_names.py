"""What is said of a study stands in its module: no table of studies by name elsewhere."""

import ast
from collections import Counter

import pytest

from core.studies.lookup import find_study, study_modules
from pages.parts.views import one_head
from tests.sources import PROJECT, files_of, nodes_of

NAMES = study_modules().keys()
# What looks like a table of studies and is none, or is one with a reason.
OTHER = {
    "core/__main__.py": "commands, two of which share the name of the study that they run",
    "core/capture/interventions.py": "operators and ways to change a run: what stands in for a head",
    "core/tuning/saved_checkpoints.py": "keys of what training wrote, and their types",
    "core/report/claims/__init__.py": "ids of the report's claims",
}


def tables(folder: str) -> dict[str, list[str]]:
    """By file and line, collections with two or more names of studies among their keys or items."""
    found = {}
    for file in files_of(folder):
        where = str(file.relative_to(PROJECT))
        if where.startswith("core/studies/") or where in OTHER:
            continue
        for node in nodes_of(file):
            if not isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
                continue
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            names = [item.value for item in items if isinstance(item, ast.Constant) and item.value in NAMES]
            if len(names) > 1:
                found[f"{where}:{node.lineno}"] = names
    return found


# The same words said of something else.
HOMONYMS = {
    "core/capture/standins.py": "disable is an operator",
    "core/capture/interventions.py": "disable is an operator",
    "core/capture/knockout.py": "separators are a kind of edge",
    "core/capture/losses.py": "disable is an operator",
    "core/capture/patching.py": "patch is an operator",
    "core/capture/selfcheck.py": "disable is an operator",
    "core/commands/study_commands.py": "finetune is a command",
    "core/report/claims/disabling.py": "an order of pruning",
    "core/report/claims/maps.py": "separators are a kind of sink",
    "core/report/claims/scores.py": "finetune is a command",
    "core/sign_in.py": "a key of the settings",
    "core/store/hypotheses.py": "hypothesis is a kind of stored record",
    "core/store/label_checks.py": "separators are a column of the maps",
    "core/tasks/features.py": "separators are a feature of tokens",
    "core/tuning/saved_checkpoints.py": "a key of what training wrote",
}


def singles(folder: str) -> set[str]:
    """Files outside the studies in which a call or a comparison has a study's name for itself, or begins a string with
    it and a slash, as scores are named."""
    found = set()
    for file in files_of(folder):
        where = str(file.relative_to(PROJECT))
        for node in () if where.startswith("core/studies/") else nodes_of(file):
            if isinstance(node, ast.Call):
                said = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "study")]
            elif isinstance(node, ast.Compare):
                said = [node.left, *node.comparators]
            else:
                continue
            texts = [value.value for value in said if isinstance(value, ast.Constant) and isinstance(value.value, str)]
            if any(text in NAMES or ("/" in text and text.partition("/")[0] in NAMES) for text in texts):
                found.add(where)
    return found


def test_core_calls_no_study_by_a_name_of_its_own():
    """A page says which study it starts and shows; in core that is STUDY.name."""
    assert singles("core") == set(HOMONYMS)


# Tables of pages, with how many there are: what a study is or asks, it says itself.
IN_PAGES = {
    "pages/parts/reports/caveats.py": 1,  # why the verdicts of two studies can differ
    "pages/parts/shell/page_table.py": 1,  # which view opens a study's results, by which parameters of its URL
}


def test_no_table_of_studies_stands_in_core():
    assert not tables("core")


def test_pages_have_tables_of_views_and_addresses_alone():
    assert Counter(where.partition(":")[0] for where in tables("pages")) == IN_PAGES


def test_what_a_head_is_told_of_has_a_section_that_its_view_knows():
    said = {find_study(name).section for name in NAMES} - {""}
    assert said == set(one_head.ABOUT)


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_called_as_its_file(name):
    assert find_study(name).name == name
