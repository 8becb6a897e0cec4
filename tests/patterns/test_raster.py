import numpy as np
import pytest

from core.patterns.raster import from_float16, rasterize, training_size


@pytest.mark.parametrize(("lengths", "size"), [([5, 9], 32), ([5, 90], 90), ([], 32)])
def test_the_size_is_that_of_the_longest_map_but_never_below_32(lengths, size):
    assert training_size(lengths) == size


def test_a_short_map_lies_in_the_middle_and_keeps_its_weights():
    one = np.arange(1, 26, dtype=np.float32).reshape(5, 5)
    out, cropped = rasterize([one], 32)
    assert cropped == 0
    assert np.array_equal(out[0, 13:18, 13:18], one)
    assert out.sum() == one.sum()


def test_a_long_map_keeps_its_top_left_corner_and_is_counted():
    one = np.random.default_rng(0).random((40, 40), dtype=np.float32)
    out, cropped = rasterize([one, one[:32, :32]], 32)
    assert cropped == 1
    assert np.array_equal(out[0], one[:32, :32])
    assert np.array_equal(out[0], out[1])


def test_float16_round_trip_keeps_three_digits():
    one = np.random.default_rng(0).random((7, 7), dtype=np.float32)
    np.testing.assert_allclose(
        from_float16(one.astype("<f2").tobytes(), 7), one, atol=5e-4
    )  # half a unit of float16 below 1
