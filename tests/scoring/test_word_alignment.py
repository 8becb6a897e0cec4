"""Which guesses are gold links, by hand."""

import numpy as np

from core.scoring.alignment import PositionTable, hits


def test_a_guess_is_right_where_the_target_word_is_linked_to_its_source_word():
    links = [(0, 2), (3, 2), (1, 0)]  # target word 1 has no link, and 2 has two
    guessed = np.array([[1, 0, 3], [0, 0, 0], [2, 1, 1]])
    assert hits(guessed, links).tolist() == [[True, True], [False, True], [False, False]]
    assert hits(guessed, []).shape == (3, 0)


def test_a_word_is_guessed_from_its_position_by_what_was_linked_there_or_along_the_diagonal():
    rows = [(3, 2, [(2, 0), (1, 1)]), (3, 2, [(2, 0), (0, 1)]), (3, 2, [(1, 0)]), (4, 2, [(3, 0)])]
    table = PositionTable(rows)
    assert table.guesses(3, 2).tolist() == [2, 0]  # twice the last word; of two words as often, the first
    assert table.guesses(4, 2).tolist() == [3, 3]  # the second word was never linked: the end of the diagonal
    assert table.guesses(5, 3).tolist() == [0, 2, 4]
    assert table.guesses(7, 3).tolist() == [0, 3, 6]
    assert table.guesses(4, 1).tolist() == [0]
    assert table.guesses(1, 3).tolist() == [0, 0, 0]
