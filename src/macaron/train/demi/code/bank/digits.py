"""Digits, bases and number sequences."""


def largest_digit_place(n: int) -> int:
    """Return the place of the largest digit of n, counted from the right and starting with 0.

    The place further to the right counts if the digit occurs several times.

    >>> largest_digit_place(9153)
    3
    >>> largest_digit_place(4141)
    1
    """
    best_place = 0
    best_digit = -1
    place = 0
    while n > 0:
        digit = n % 10
        if digit > best_digit:
            best_digit = digit
            best_place = place
        n //= 10
        place += 1
    return best_place


def sort_digits(n: int) -> int:
    """Return the number whose digits are those of n in descending order.

    >>> sort_digits(30172)
    73210
    >>> sort_digits(5)
    5
    """
    digits = sorted(str(n), reverse=True)
    return int("".join(digits))


def has_rising_digits(n: int) -> bool:
    """Check whether every digit of n is greater than the digit to its left.

    >>> has_rising_digits(1479)
    True
    >>> has_rising_digits(1449)
    False
    """
    digits = str(n)
    for i in range(1, len(digits)):
        if digits[i] <= digits[i - 1]:
            return False
    return True


def shared_digits(first: int, second: int) -> list[int]:
    """Return the digits that occur in both numbers, without repetition and in ascending order.

    >>> shared_digits(12234, 4025)
    [2, 4]
    >>> shared_digits(11, 22)
    []
    """
    result = []
    for digit in range(10):
        if str(digit) in str(first) and str(digit) in str(second):
            result.append(digit)
    return result


def digit_pairs(n: int) -> list[int]:
    """Split the digits of n into two-digit numbers from left to right; a last single digit stands alone.

    >>> digit_pairs(123456)
    [12, 34, 56]
    >>> digit_pairs(987)
    [98, 7]
    """
    text = str(n)
    pairs = []
    for start in range(0, len(text), 2):
        pairs.append(int(text[start : start + 2]))
    return pairs


def octal_value(text: str) -> int:
    """Return the value of a string of octal digits.

    >>> octal_value("17")
    15
    >>> octal_value("")
    0
    """
    value = 0
    for digit in text:
        value = value * 8 + int(digit)
    return value


def flip_bits(n: int, width: int) -> int:
    """Exchange zeros and ones in the lowest width bits of n and return the number.

    >>> flip_bits(5, 4)
    10
    >>> flip_bits(0, 3)
    7
    """
    result = n
    for place in range(width):
        result ^= 1 << place
    return result


def longest_bit_run(n: int) -> int:
    """Return the length of the longest run of ones in the binary form of n.

    >>> longest_bit_run(0b1101110)
    3
    >>> longest_bit_run(0)
    0
    """
    longest = 0
    run = 0
    while n > 0:
        if n % 2 == 1:
            run += 1
            longest = max(longest, run)
        else:
            run = 0
        n //= 2
    return longest


def goldbach_pair(n: int) -> tuple[int, int]:
    """Find two primes that add up to an even number n greater than 2, with the smaller one as small as possible.

    >>> goldbach_pair(10)
    (3, 7)
    >>> goldbach_pair(4)
    (2, 2)
    """

    def prime(number: int) -> bool:
        if number < 2:
            return False
        for divisor in range(2, number):
            if number % divisor == 0:
                return False
        return True

    for first in range(2, n):
        if prime(first) and prime(n - first):
            return (first, n - first)
    return (0, 0)


def prime_powers(n: int) -> dict[int, int]:
    """Return a dictionary that maps every prime in the decomposition of n to its exponent.

    >>> prime_powers(360)
    {2: 3, 3: 2, 5: 1}
    >>> prime_powers(1)
    {}
    """
    powers: dict[int, int] = {}
    divisor = 2
    while n > 1:
        while n % divisor == 0:
            powers[divisor] = powers.get(divisor, 0) + 1
            n //= divisor
        divisor += 1
    return powers


def divisor_count(n: int) -> int:
    """Count the divisors of a positive number, 1 and itself included.

    >>> divisor_count(12)
    6
    >>> divisor_count(13)
    2
    """
    count = 0
    for candidate in range(1, n + 1):
        if n % candidate == 0:
            count += 1
    return count


def are_coprime(first: int, second: int) -> bool:
    """Check whether two positive numbers have no common divisor besides 1.

    >>> are_coprime(8, 15)
    True
    >>> are_coprime(12, 18)
    False
    """
    for divisor in range(2, min(first, second) + 1):
        if first % divisor == 0 and second % divisor == 0:
            return False
    return True


def prime_flags(limit: int) -> list[bool]:
    """Return a list in which the entry at index i tells whether i is prime, for i from 0 to limit.

    >>> prime_flags(5)
    [False, False, True, True, False, True]
    >>> prime_flags(1)
    [False, False]
    """
    flags = [True] * (limit + 1)
    flags[0] = False
    if limit >= 1:
        flags[1] = False
    for number in range(2, limit + 1):
        if flags[number]:
            for multiple in range(2 * number, limit + 1, number):
                flags[multiple] = False
    return flags


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
