"""The bound of Clopper and Pearson against known values."""

from __future__ import annotations

import pytest

from mcpdetect.score.bounds import upper_bound
from mcpdetect.score.coverage import Rate, rate, status_of

WORDS = ("miss", "misses", "miss rate")


@pytest.mark.parametrize(
    ("errors", "trials", "percent"),
    [
        # with no error the bound is 1 - 0.05 ** (1 / n)
        (0, 1, 95.0),
        (0, 2, 77.64),
        (0, 3, 63.16),
        (0, 7, 34.82),
        (0, 59, 4.95),
        (0, 299, 1.0),
        # tables of the binomial: 1 in 10, 2 in 20, 5 in 50
        (1, 10, 39.42),
        (2, 20, 28.26),
        (5, 50, 19.88),
        (10, 10, 100.0),
        (0, 0, 100.0),
    ],
)
def test_known_values(errors: int, trials: int, percent: float) -> None:
    assert round(100 * upper_bound(errors, trials), 2) == pytest.approx(percent, abs=0.01)


def test_at_the_bound_so_few_errors_come_in_one_series_of_twenty() -> None:
    from math import comb

    tried = 0
    for trials in range(1, 40):
        for errors in range(trials):
            p = upper_bound(errors, trials)
            tail = sum(comb(trials, at) * p**at * (1 - p) ** (trials - at) for at in range(errors + 1))
            assert tail == pytest.approx(0.05, abs=1e-9)
            tried += 1
    assert tried == 780


def test_more_trials_lower_the_bound_and_more_errors_raise_it() -> None:
    bounds = [upper_bound(0, trials) for trials in range(1, 100)]
    assert bounds == sorted(bounds, reverse=True)
    bounds = [upper_bound(errors, 30) for errors in range(31)]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize(("errors", "trials"), [(-1, 2), (3, 2)])
def test_what_cannot_be_is_refused(errors: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"{errors} errors in {trials} trials"):
        upper_bound(errors, trials)


def test_the_plain_sentence() -> None:
    assert rate(0, 7, WORDS) == Rate(7, 0, 34.8, "0 misses in 7: the miss rate may still be 35%")
    assert rate(0, 2, WORDS).sentence == "0 misses in 2: the miss rate may still be 78%"
    assert rate(0, 59, WORDS).sentence == "0 misses in 59: the miss rate may still be 5.0%"
    assert rate(1, 10, WORDS).sentence == "1 miss in 10: the miss rate may still be 39%"
    assert rate(0, 0, WORDS) == Rate(0, 0, 100.0, "never tried: nothing is known of the miss rate")


def test_the_status_goes_by_the_fewest() -> None:
    assert [status_of(0), status_of(1), status_of(2), status_of(3)] == ["unproved", "thin", "thin", "proved"]
    assert status_of(9, 0) == "unproved"
    assert status_of(9, 2) == "thin"
    assert status_of(9, 3) == "proved"
