"""Which guesses are gold links, by hand."""

import numpy as np

from core.scoring.alignment import hits


def test_a_guess_is_right_where_the_target_word_is_linked_to_its_source_word():
    links = [(0, 2), (3, 2), (1, 0)]  # target word 1 has no link, and 2 has two
    guessed = np.array([[1, 0, 3], [0, 0, 0], [2, 1, 1]])
    assert hits(guessed, links).tolist() == [[True, True], [False, True], [False, False]]
    assert hits(guessed, []).shape == (3, 0)
