"""Digits, bits, primes and divisors."""


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
