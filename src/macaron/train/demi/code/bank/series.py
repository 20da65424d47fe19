"""Number sequences, polynomials and fractions."""


def pell_numbers(n: int) -> list[int]:
    """Return the first n terms of the sequence 0, 1, 2, 5, 12, ... in which each term is twice the last one plus the
    one before that.

    >>> pell_numbers(6)
    [0, 1, 2, 5, 12, 29]
    >>> pell_numbers(1)
    [0]
    """
    terms = [0, 1]
    while len(terms) < n:
        terms.append(2 * terms[-1] + terms[-2])
    return terms[:n]


def padovan(n: int) -> int:
    """Compute the n-th term of the sequence that starts with three ones, where p(n) = p(n - 2) + p(n - 3).

    >>> [padovan(n) for n in range(8)]
    [1, 1, 1, 2, 2, 3, 4, 5]
    >>> padovan(10)
    12
    """
    if n < 3:
        return 1
    a, b, c = 1, 1, 1
    for _ in range(n - 2):
        a, b, c = b, c, a + b
    return c


def square_sum_below(limit: int) -> int:
    """Return the sum of all square numbers that are less than limit.

    >>> square_sum_below(10)
    14
    >>> square_sum_below(1)
    0
    """
    total = 0
    root = 1
    while root * root < limit:
        total += root * root
        root += 1
    return total


def evaluate_polynomial(coefficients: list[int], x: int) -> int:
    """Compute the value at x of the polynomial whose coefficients are listed from the highest power to the constant.

    >>> evaluate_polynomial([2, 0, 1], 3)
    19
    >>> evaluate_polynomial([], 5)
    0
    """
    value = 0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def multiply_polynomials(p: list[int], q: list[int]) -> list[int]:
    """Multiply two polynomials given by their coefficients, the constant first.

    >>> multiply_polynomials([1, 1], [1, -1])
    [1, 0, -1]
    >>> multiply_polynomials([2], [3, 4])
    [6, 8]
    """
    result = [0] * (len(p) + len(q) - 1)
    for i in range(len(p)):
        for j in range(len(q)):
            result[i + j] += p[i] * q[j]
    return result


def polynomial_text(coefficients: list[int]) -> str:
    """Write a polynomial with coefficients from the constant upwards as text, leaving out terms that are zero.

    >>> polynomial_text([1, 0, 3])
    '1 + 3x^2'
    >>> polynomial_text([0, 2])
    '2x'
    >>> polynomial_text([0, 0])
    '0'
    """
    terms = []
    for power, coefficient in enumerate(coefficients):
        if coefficient == 0:
            continue
        if power == 0:
            terms.append(str(coefficient))
        elif power == 1:
            terms.append(f"{coefficient}x")
        else:
            terms.append(f"{coefficient}x^{power}")
    return " + ".join(terms) if terms else "0"


def continued_fraction(numerator: int, denominator: int) -> list[int]:
    """Return the terms of the continued fraction of a quotient of two positive numbers.

    >>> continued_fraction(45, 16)
    [2, 1, 4, 3]
    >>> continued_fraction(8, 2)
    [4]
    """
    terms = []
    while denominator != 0:
        terms.append(numerator // denominator)
        numerator, denominator = denominator, numerator % denominator
    return terms


def add_fractions(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Add two fractions given as (numerator, denominator) and return the sum in lowest terms.

    >>> add_fractions((1, 2), (1, 6))
    (2, 3)
    >>> add_fractions((1, 4), (3, 4))
    (1, 1)
    """
    numerator = first[0] * second[1] + second[0] * first[1]
    denominator = first[1] * second[1]
    a, b = numerator, denominator
    while b != 0:
        a, b = b, a % b
    return (numerator // a, denominator // a)


def persistence(n: int) -> int:
    """Count how often the digits of n must be multiplied together until a single digit is left.

    >>> persistence(39)
    3
    >>> persistence(4)
    0
    """
    steps = 0
    while n >= 10:
        product = 1
        for digit in str(n):
            product *= int(digit)
        n = product
        steps += 1
    return steps


def fraction_digits(numerator: int, denominator: int, places: int) -> str:
    """Return the first digits after the point of a quotient, as a string of the given length without rounding.

    >>> fraction_digits(1, 7, 6)
    '142857'
    >>> fraction_digits(1, 2, 3)
    '500'
    """
    digits = ""
    rest = numerator % denominator
    for _ in range(places):
        rest *= 10
        digits += str(rest // denominator)
        rest %= denominator
    return digits


def is_harshad(n: int) -> bool:
    """Check whether a positive number is divisible by the sum of its digits.

    >>> is_harshad(18)
    True
    >>> is_harshad(19)
    False
    """
    total = sum(int(digit) for digit in str(n))
    return n % total == 0


def round_to_multiple(n: int, step: int) -> int:
    """Return the multiple of step that is nearest to n; the larger one if two are equally near.

    >>> round_to_multiple(17, 5)
    15
    >>> round_to_multiple(15, 10)
    20
    """
    lower = n - n % step
    upper = lower + step
    if n - lower < upper - n:
        return lower
    return upper


def change_coins(amount: int, coins: list[int]) -> list[int]:
    """Give an amount back with the largest coins first and return the coins that are handed out.

    >>> change_coins(38, [25, 10, 5, 1])
    [25, 10, 1, 1, 1]
    >>> change_coins(0, [5, 1])
    []
    """
    handed = []
    for coin in sorted(coins, reverse=True):
        while amount >= coin:
            handed.append(coin)
            amount -= coin
    return handed
