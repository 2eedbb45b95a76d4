"""How wrong a rate may still be: the one-sided 95% bound of Clopper and Pearson.

C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits illustrated in the case of the binomial,
Biometrika 26 (1934), 404-413. With x errors in n independent trials the upper bound is the rate p at which x errors or
fewer would be seen in only 5% of such series.
"""

from __future__ import annotations

from math import comb, fsum

__all__ = ["CONFIDENCE", "upper_bound"]

CONFIDENCE = 0.95
"""How sure a bound is."""

_STEPS = 60


def upper_bound(errors: int, trials: int) -> float:
    """Return the rate that the true one does not exceed, with 95% confidence; 1.0 where nothing was tried.

    Args:
        errors: how often it went wrong.
        trials: how often it was tried.

    Raises:
        ValueError: more errors than trials, or fewer than none.
    """
    if not 0 <= errors <= trials:
        raise ValueError(f"{errors} errors in {trials} trials")
    if errors == trials:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _at_most(errors, trials, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _at_most(errors: int, trials: int, rate: float) -> float:
    """Return the probability of ``errors`` errors or fewer (the lower tail of the binomial distribution)."""
    return fsum(comb(trials, at) * rate**at * (1 - rate) ** (trials - at) for at in range(errors + 1))
