import numpy as np
import pytest
from scipy.stats import binom

from core.patterns.evaluation import BINS
from data.recipes.pattern_figures import calibrated_error


def test_the_calibration_error_that_chance_alone_causes():
    """For equal confidences, the accuracy of a bin is a binomial share, whose mean distance is a sum over its law."""
    for count, sure in ((400, 0.9), (100, 0.6), (10, 0.8)):
        size = count // BINS
        right = np.arange(size + 1)
        expected = (binom.pmf(right, size, sure) * abs(right / size - sure)).sum()
        mean, _ = calibrated_error(np.full(count, sure))
        assert mean == pytest.approx(expected, rel=0.03)
    # Ten maps are ten bins: a right one has an error of .2, a wrong one of .8, and at most four are wrong in 95 %
    assert binom.cdf(3, 10, 0.2) < 0.95 < binom.cdf(4, 10, 0.2)
    assert calibrated_error(np.full(10, 0.8))[1] == pytest.approx((6 * 0.2 + 4 * 0.8) / 10)
    assert calibrated_error(np.ones(50)) == (0, 0)
