"""The statistics under every quality claim: intervals and paired tests that stay honest with few sources.

A confidence level is 95 % throughout. scipy is imported when a function needs it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

CONFIDENCE = 0.95
RESAMPLES = 2000


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


class Mean(NamedTuple):
    """A mean over cases that come in clusters: its value, standard error, and degrees of freedom."""

    value: float
    error: float
    freedom: float


class Paired(NamedTuple):
    """Two subjects on the same cases.

    Attributes:
        difference: accuracy of the first less that of the second, with its interval.
        only_first, only_second: cases that only one of them passed.
        p: exact McNemar, two-sided.
    """

    n: int
    difference: float
    interval: Interval
    only_first: int
    only_second: int
    p: float


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value of McNemar's test from the two discordant counts; 1.0 where there are none.

    Under the null hypothesis the discordant cases fall to either side like a fair coin (McNemar 1947, exact form).

    Raises:
        ValueError: a count is negative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"discordant counts are {only_first} and {only_second}; they cannot be negative")
    if only_first + only_second == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_first, only_first + only_second, 0.5).pvalue)


def wilson(passed: int, n: int) -> Interval:
    """Wilson's score interval of a proportion of independent cases (Wilson 1927); all of [0, 1] where n is 0.

    Raises:
        ValueError: `passed` is not between 0 and n.
    """
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} cases cannot have passed")
    if n == 0:
        return Interval(0.0, 1.0)
    from scipy.stats import binomtest

    found = binomtest(passed, n).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(float(found.low), float(found.high))


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> Mean:
    """The mean of all values, with a standard error that allows any dependence inside a cluster.

    The variance is the bias-reduced cluster-robust one (CR2) and the degrees of freedom are its Satterthwaite
    approximation, both from Bell and McCaffrey (2002), here in closed form for a mean. With clusters of one size the
    degrees of freedom are their number less one; with one dominant cluster they fall towards one. A single cluster
    says nothing about others: the error is infinite and the freedom 0.

    Raises:
        ValueError: there are no values, or not one cluster for each.
    """
    n = len(values)
    if n == 0 or len(clusters) != n:
        raise ValueError(f"{n} values and {len(clusters)} clusters; give one cluster for each of at least one value")
    mean = math.fsum(values) / n
    sizes = Counter(clusters)
    if len(sizes) == 1:
        return Mean(mean, math.inf, 0.0)
    residuals: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        residuals.setdefault(cluster, []).append(value - mean)
    shares = {cluster: size / n for cluster, size in sizes.items()}
    variance = math.fsum((math.fsum(left) / n) ** 2 / (1 - shares[name]) for name, left in residuals.items())
    return Mean(mean, math.sqrt(variance), _freedom(list(shares.values())))


def _freedom(shares: Sequence[float]) -> float:
    """Satterthwaite degrees of freedom of the CR2 variance of a mean, for clusters with these shares of the cases."""
    own = math.fsum(share**2 for share in shares)
    factors = [share**2 / (1 - share) for share in shares]
    cross = math.fsum(factors) ** 2 - math.fsum(factor**2 for factor in factors)
    return 1 / (own + cross)


def accuracy_interval(passed: Sequence[bool], clusters: Sequence[Hashable]) -> Interval:
    """Interval of an accuracy over cases of several sources, for sources like these.

    The exact binomial (Clopper-Pearson) interval on an effective number of cases: n divided by the design effect of the
    clusters (never under 1) and reduced for the degrees of freedom of that effect, after Korn and Graubard (1998). Of
    few sources it stays wide, also where all cases passed and a bootstrap would claim certainty. With one cluster no
    variation between sources can be estimated: that is Wilson's interval, and it speaks of this source only.

    Raises:
        ValueError: there are no cases, or not one cluster for each.
    """
    found = clustered_mean([float(value) for value in passed], clusters)
    n, rate = len(passed), found.value
    if not found.freedom:
        return wilson(sum(passed), n)
    from scipy.stats import beta, t

    tail = (1 - CONFIDENCE) / 2
    independent = rate * (1 - rate) / n
    effect = max(found.error**2 / independent, 1.0) if independent else 1.0
    # Independent cases would have n - 1 degrees of freedom; of two cases or clusters there is nothing to reduce.
    ratio = t.ppf(tail, n - 1) / t.ppf(tail, min(found.freedom, n - 1))
    size = n / effect * float(ratio) ** 2
    hits = rate * size
    low = 0.0 if rate == 0 else float(beta.ppf(tail, hits, size - hits + 1))
    high = 1.0 if rate == 1 else float(beta.ppf(1 - tail, hits + 1, size - hits))
    return Interval(low, high)


def cluster_bootstrap(
    count: int, clusters: Sequence[Hashable], statistic: Callable[[Sequence[int]], float], *, seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:  # fmt: skip
    """Percentile bootstrap that draws whole clusters with replacement (Davison and Hinkley 1997, section 3.8).

    For statistics without a formula, such as a ratio, and for many clusters: under about twenty it is too narrow.

    Args:
        count: number of cases; `statistic` is given positions from `range(count)`, some of them several times.

    Raises:
        ValueError: there are no cases, or not one cluster for each.
    """
    if count == 0 or len(clusters) != count:
        raise ValueError(f"{count} cases and {len(clusters)} clusters; give one cluster for each of at least one case")
    members: dict[Hashable, list[int]] = {}
    for position, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(position)
    groups, dice = list(members.values()), random.Random(seed)
    drawn = sorted(
        statistic([position for group in dice.choices(groups, k=len(groups)) for position in group])
        for _ in range(resamples)
    )
    return Interval(_quantile(drawn, (1 - CONFIDENCE) / 2), _quantile(drawn, (1 + CONFIDENCE) / 2))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def paired(first: Sequence[bool], second: Sequence[bool], clusters: Sequence[Hashable]) -> Paired:
    """Compare two subjects that answered the same cases, in the same order.

    The interval is Student's on the mean of the differences, with the clustered error of `clustered_mean`; where all
    cases are of one cluster, each counts as its own and the interval speaks of that source only. The exact test counts
    cases as independent, so with few sources look at the interval too.

    Raises:
        ValueError: there are no cases, or the lengths differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} results cannot be paired")
    differences = [float(one) - float(two) for one, two in zip(first, second, strict=True)]
    several = len(set(clusters)) > 1
    found = clustered_mean(differences, clusters if several else range(len(differences)))
    only_first, only_second = differences.count(1.0), differences.count(-1.0)
    return Paired(
        n=len(differences), difference=found.value, interval=_student(found), only_first=only_first,
        only_second=only_second, p=mcnemar(only_first, only_second),
    )  # fmt: skip


def _student(found: Mean) -> Interval:
    """Student's interval, inside the bounds of a difference of accuracies."""
    if not found.freedom:
        return Interval(-1.0, 1.0)
    from scipy.stats import t

    reach = float(t.ppf((1 + CONFIDENCE) / 2, found.freedom)) * found.error
    return Interval(max(found.value - reach, -1.0), min(found.value + reach, 1.0))


def percentile(values: Sequence[float], share: float) -> float:
    """The value under which `share` of the values lie, interpolated; 0.0 for no values."""
    return _quantile(sorted(values), share) if values else 0.0
