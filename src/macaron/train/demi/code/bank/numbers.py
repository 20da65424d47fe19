"""Numbers."""

import math


def least_common_multiple(a: int, b: int) -> int:
    """Return the least common multiple of two positive integers.

    >>> least_common_multiple(4, 6)
    12
    >>> least_common_multiple(7, 3)
    21
    """
    multiple = max(a, b)
    while multiple % a != 0 or multiple % b != 0:
        multiple += max(a, b)
    return multiple


def digital_root(n: int) -> int:
    """Add the digits of n again and again until one digit is left.

    >>> digital_root(9875)
    2
    >>> digital_root(0)
    0
    """
    while n > 9:
        n = sum(int(digit) for digit in str(n))
    return n


def is_perfect(n: int) -> bool:
    """Check whether n equals the sum of its proper divisors.

    >>> is_perfect(28)
    True
    >>> is_perfect(12)
    False
    """
    return n > 1 and sum(d for d in range(1, n // 2 + 1) if n % d == 0) == n


def is_armstrong(n: int) -> bool:
    """Check whether n equals the sum of its digits, each raised to the number of digits.

    >>> is_armstrong(153)
    True
    >>> is_armstrong(10)
    False
    """
    digits = str(n)
    total = 0
    for digit in digits:
        total += int(digit) ** len(digits)
    return n == total


def is_power_of_two(n: int) -> bool:
    """Check whether n is a power of two.

    >>> is_power_of_two(64)
    True
    >>> is_power_of_two(0)
    False
    """
    if n < 1:
        return False
    while n % 2 == 0:
        n //= 2
    return n == 1


def divisors(n: int) -> list[int]:
    """Return all divisors of n in ascending order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    >>> divisors(1)
    [1]
    """
    return [d for d in range(1, n + 1) if n % d == 0]


def smallest_divisor(n: int) -> int:
    """Return the smallest divisor of n that is larger than 1.

    >>> smallest_divisor(35)
    5
    >>> smallest_divisor(13)
    13
    """
    d = 2
    while n % d != 0:
        d += 1
    return d


def next_prime(n: int) -> int:
    """Return the smallest prime that is larger than n.

    >>> next_prime(14)
    17
    >>> next_prime(1)
    2
    """
    candidate = n + 1
    while candidate < 2 or any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def collatz_steps(n: int) -> int:
    """Count the steps until n becomes 1, halving even numbers and replacing odd ones by 3 * n + 1.

    >>> collatz_steps(6)
    8
    >>> collatz_steps(1)
    0
    """
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def reverse_number(n: int) -> int:
    """Reverse the digits of an integer, keeping its sign.

    >>> reverse_number(-120)
    -21
    >>> reverse_number(305)
    503
    """
    sign = -1 if n < 0 else 1
    return sign * int(str(abs(n))[::-1])


def wrap_angle(degrees: int) -> int:
    """Return the angle from 0 to 359 that points in the same direction as degrees.

    >>> wrap_angle(450)
    90
    >>> wrap_angle(-90)
    270
    """
    while degrees < 0:
        degrees += 360
    return degrees % 360


def integer_sqrt(n: int) -> int:
    """Return the largest integer whose square is at most n.

    >>> integer_sqrt(27)
    5
    >>> integer_sqrt(0)
    0
    """
    root = 0
    while (root + 1) * (root + 1) <= n:
        root += 1
    return root


def trailing_zeros(n: int) -> int:
    """Count the zeros at the end of n factorial.

    >>> trailing_zeros(25)
    6
    >>> trailing_zeros(4)
    0
    """
    count = 0
    while n >= 5:
        n //= 5
        count += n
    return count


def from_digits(digits: list[int], base: int) -> int:
    """Return the number whose digits in the given base are listed, most significant first.

    >>> from_digits([1, 0, 1, 0], 2)
    10
    >>> from_digits([15, 15], 16)
    255
    """
    value = 0
    for digit in digits:
        value = value * base + digit
    return value


def binary_to_int(bits: str) -> int:
    """Convert a string of binary digits to an integer.

    >>> binary_to_int("1011")
    11
    >>> binary_to_int("0")
    0
    """
    value = 0
    for bit in bits:
        value = value * 2 + int(bit)
    return value


def count_ones(n: int) -> int:
    """Count the ones in the binary representation of n.

    >>> count_ones(13)
    3
    >>> count_ones(0)
    0
    """
    count = 0
    while n:
        count += n % 2
        n //= 2
    return count


def binomial(n: int, k: int) -> int:
    """Return the number of ways to choose k out of n things.

    >>> binomial(5, 2)
    10
    >>> binomial(3, 5)
    0
    """
    if k < 0 or k > n:
        return 0
    result = 1
    for i in range(1, k + 1):
        result = result * (n - k + i) // i
    return result


def pascal_row(n: int) -> list[int]:
    """Return row n of Pascal's triangle, where row 0 is [1].

    >>> pascal_row(4)
    [1, 4, 6, 4, 1]
    >>> pascal_row(0)
    [1]
    """
    row = [1]
    for _ in range(n):
        row = [1] + [row[i] + row[i + 1] for i in range(len(row) - 1)] + [1]
    return row


def power_mod(base: int, exponent: int, modulus: int) -> int:
    """Compute base to the power of exponent modulo modulus by repeated squaring.

    >>> power_mod(3, 13, 7)
    3
    >>> power_mod(5, 0, 9)
    1
    """
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent //= 2
    return result


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the Euclidean distance between two points.

    >>> distance((0, 0), (3, 4))
    5.0
    >>> distance((1, 1), (1, 1))
    0.0
    """
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def population_variance(values: list[float]) -> float:
    """Return the population variance of a list of numbers.

    >>> population_variance([2, 4, 4, 4, 5, 5, 7, 9])
    4.0
    >>> population_variance([3])
    0.0
    """
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def celsius_to_fahrenheit(celsius: float) -> float:
    """Convert a temperature from degrees Celsius to degrees Fahrenheit.

    >>> celsius_to_fahrenheit(100)
    212.0
    >>> celsius_to_fahrenheit(-40)
    -40.0
    """
    return celsius * 9 / 5 + 32


def compound(principal: float, rate: float, years: int) -> float:
    """Return the value of an investment after some years with a yearly rate in percent, rounded to cents.

    >>> compound(1000, 5, 2)
    1102.5
    >>> compound(200, 0, 10)
    200.0
    """
    value = principal * (1 + rate / 100) ** years
    return round(float(value), 2)


def alternating_digit_sum(n: int) -> int:
    """Add and subtract the digits of n in turn, starting with a plus for the first digit.

    >>> alternating_digit_sum(5241)
    6
    >>> alternating_digit_sum(7)
    7
    """
    total = 0
    sign = 1
    for digit in str(n):
        total += sign * int(digit)
        sign = -sign
    return total


def triangular_index(n: int) -> int:
    """Return k if n is the k-th triangular number 1 + 2 + ... + k, otherwise -1.

    >>> triangular_index(10)
    4
    >>> triangular_index(8)
    -1
    """
    k = 0
    total = 0
    while total < n:
        k += 1
        total += k
    return k if total == n else -1


def multiplication_table(n: int) -> list[list[int]]:
    """Build the multiplication table of the numbers 1 to n as a list of rows.

    >>> multiplication_table(3)
    [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    >>> multiplication_table(0)
    []
    """
    return [[row * column for column in range(1, n + 1)] for row in range(1, n + 1)]


def luhn_valid(number: str) -> bool:
    """Check a card number with the Luhn algorithm.

    >>> luhn_valid("4539 1488 0343 6467")
    True
    >>> luhn_valid("8273 1232 7352 0569")
    False
    """
    total = 0
    for i, digit in enumerate(reversed(number.replace(" ", ""))):
        value = int(digit)
        if i % 2 == 1:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0
