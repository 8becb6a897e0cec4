"""Changes of shares and single heads' shares, freed of a classifier's confusions.

With C[t, p] = P(predicted p | true t) of held-out maps, counted shares c are C^T s. Of two counts by one classifier its
errors are the same: a change of c is C^T times the change of s, whose error comes from the change alone, not from
either count. Source: Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test".
"""

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from .class_shares import FITS, MISFIT_LEVEL, Fit, confusion_errors


def true_changes(
    change: Float[np.ndarray, " class"],
    halves: Float[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
    *,
    several: int = 1,
) -> Float[np.ndarray, "three class"]:
    """What counted shares changed by in truth, with intervals.

    A change always fits: whether the classifier errs as on its labelled maps is told by the shares before and after
    (`CorrectedShare.misfit`).

    Args:
        change: of the counted share of each class.
        halves: of its interval over inputs; those of all classes are added, whatever they have in common.
        held_out: left-out labelled maps by group, true class and class that the classifier gave. A class without any is
            taken to be predicted right.
        several: classes that the interval of the confusions shall hold for at once (Bonferroni).

    Returns:
        Value, low and high of each class; the errors of inputs and of confusions are independent, so the squares of
        their halves add up.
    """
    confusions = confusion_errors(held_out)
    inverse = np.linalg.pinv(confusions.chance.T)
    value = inverse @ change
    spread = inverse @ np.einsum("t,tij->ij", value**2, confusions.errors) @ inverse.T
    reach = scipy.special.ndtri(1 - 0.025 / several) * np.sqrt(np.diagonal(spread))
    half = np.hypot(reach, np.abs(inverse) @ halves)
    return np.stack([value, value - half, value + half])


def true_shares(
    counts: Int[np.ndarray, "head class"],
    chosen: Bool[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
) -> Float[np.ndarray, "three head"]:
    """Each head's share of maps of the chosen classes together, in truth (`corrected_shares`, of the head's own maps).

    Whether a head misfits is tested by chi-square with as many degrees of freedom as shares are 0 in the fit (Susko
    2013, "Likelihood ratio tests with boundary constraints using data-dependent degrees of freedom").

    Args:
        counts: maps of each head that were classified as each class, one of each input; every head has maps.
        held_out: left-out labelled maps by group, true class and class that the classifier gave.

    Returns:
        Value, low and high of each head. *Range:* 0 to 1; low and high are NaN where no shares of the classes, confused
        as the labelled maps were, give the counts.
    """
    confusions = confusion_errors(held_out)
    made = []
    for count in counts:
        fit = Fit.of_head(count, confusions)
        shares, least = fit.best()
        fits = least < FITS or scipy.special.chdtrc((shares == 0).sum(), least) >= MISFIT_LEVEL
        ends = fit.interval(chosen, shares, least) if fits else (np.nan, np.nan)
        made.append((float(shares[chosen].sum()), *ends))
    return np.array(made).T
