"""The glossary has one source, which docs and tooltips read."""

import pandas as pd
import pytest

from core import glossary
from pages.parts.widgets import tables


def test_the_docs_are_written_from_the_glossary():
    assert glossary.DOCS.read_text(encoding="utf-8") == glossary.markdown()


@pytest.mark.thorough
@pytest.mark.parametrize(("term", "meaning"), glossary.terms().items())
def test_a_term_has_one_sentence(term, meaning):
    assert meaning.endswith(".")
    assert ". " not in meaning.replace("et al. ", "")
    assert len(meaning.split()) <= 35


def test_about_eighty_terms_of_the_field():
    assert len(glossary.terms()) >= 80


def test_columns_refer_to_terms():
    columns = ("q", "n", "baseline", "kappa", "macro_f1", "ece", "weights_hash")
    assert all(glossary.column_meaning(column) in glossary.terms().values() for column in columns)
    assert glossary.column_meaning("no such column") is None


def test_tables_explain_columns_with_the_glossary():
    shown = {}

    class Container:
        def dataframe(self, frame, **options):
            shown.update(options["column_config"])

    tables.show_table(pd.DataFrame({"macro_f1": [0.5], "q": [0.01], "a_b": [1], "c": [2]}), container=Container())
    assert shown["macro_f1"]["label"] == "macro f1"
    assert shown["macro_f1"]["help"] == glossary.terms()["macro F1"]
    assert shown["q"]["help"] == glossary.terms()["q"]
    assert shown["a_b"] == "a b"
    assert "c" not in shown
