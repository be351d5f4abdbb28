"""The statistics of the benchmarks."""

import pytest

from training.bench.figures import gaps, of_rounds, of_samples, percentile, rate_between, ratios


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.5, 1.5), ([0.0, 10.0], 0.99, 9.9), ([7.0], 0.1, 7.0)],
)
def test_percentile_interpolates_between_neighbours(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 1.1), ([1.0], -0.1)])
def test_percentile_refuses_what_has_none(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


def test_rounds_give_the_median_with_the_lowest_and_the_highest() -> None:
    figure = of_rounds([5.0, 1.0, 2.0])
    assert (figure.value, figure.low, figure.high, figure.n) == (2.0, 1.0, 5.0, 3)


def test_a_figure_without_rounds_is_an_error_and_no_zero() -> None:
    with pytest.raises(ValueError, match="round"):
        of_rounds([])


def test_ratios_pair_the_rounds() -> None:
    figure = ratios([2.0, 30.0, 4.0], [1.0, 10.0, 1.0])
    assert (figure.value, figure.low, figure.high) == (3.0, 2.0, 4.0)


@pytest.mark.parametrize("others", [[1.0], [1.0, 0.0]])
def test_rounds_that_do_not_pair_are_refused(others: list[float]) -> None:
    with pytest.raises(ValueError, match="pair"):
        ratios([1.0, 1.0], others)


def test_a_percentile_of_samples_lies_inside_its_interval() -> None:
    figure = of_samples([float(number) for number in range(1, 101)], 0.95)
    assert figure.low < figure.value < figure.high <= 100
    assert figure.n == 100


def test_gaps_and_rates_come_from_the_moments() -> None:
    assert gaps([1.0, 1.5, 3.0]) == [0.5, 1.5]
    assert rate_between([[0.0, 1.0, 2.0], [1.5]], begin_s=1.0, end_s=2.0) == 2.0
