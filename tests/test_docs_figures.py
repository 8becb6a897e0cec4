"""The tables in docs say what the stored rows say that they are from."""

import pytest

from tests.docs_figures import TABLES  # some are of record_report
from tests.docs_sentences import SENTENCES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.file}:{table.made.__name__}")
def test_a_table_in_the_docs_is_that_of_the_rows_that_ship(table):
    assert table.told == table.made(), "python -m tests.docs_figures writes it anew"


@pytest.mark.parametrize("said", SENTENCES, ids=lambda said: f"{said.file}:{said.study}")
def test_a_sentence_with_figures_is_that_of_the_rows_that_ship(said):
    assert said.missing() == []
