"""Finding personal data and secrets in text. Pure; every pattern is linear in the text.

Patterns know ASCII letters and digits only, so that text in a script without spaces around a number does not hide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

PiiKind = Literal["secret", "email", "iban", "card", "ip", "phone"]
_DIGITS = "0123456789"
_CARD_LENGTHS = (19, 16, 15, 14, 13)
_ALNUM = re.compile(r"[A-Za-z0-9]")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AT": 20, "BE": 16, "BG": 22, "BR": 29, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IS": 26,
    "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25,
    "RO": 24, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "TR": 26, "UA": 29,
}  # fmt: skip


class Found(NamedTuple):
    """A stretch of text, and what it is."""

    kind: PiiKind
    start: int
    end: int


class _Detector(NamedTuple):
    """Where something may be, and a judge that says where it really ends: where it began if it is nothing."""

    kind: PiiKind
    pattern: re.Pattern[str]
    end: Callable[[re.Match[str]], int]


def find(kind: PiiKind, text: str) -> Iterator[Found]:
    """What there is of one kind, from left to right, without overlaps."""
    detector = _DETECTORS[kind]
    position = 0
    while match := detector.pattern.search(text, position):
        end = detector.end(match)
        if end > match.start():
            yield Found(kind, match.start(), end)
        position = max(end, match.start() + 1)


def _card_end(match: re.Match[str]) -> int:
    """After the longest beginning with the length and the checksum of a payment card (ISO/IEC 7812)."""
    places = [place for place in range(match.start(), match.end()) if match.string[place] in _DIGITS]
    digits = [int(match.string[place]) for place in places]
    for length in _CARD_LENGTHS:
        if length <= len(places) and not _ALNUM.match(match.string, places[length - 1] + 1) and _luhn(digits[:length]):
            return places[length - 1] + 1
    return match.start()


def _luhn(digits: list[int]) -> bool:
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban_end(match: re.Match[str]) -> int:
    """After as many characters as the country's IBAN has, if their checksum (ISO 13616) holds."""
    length = _IBAN_LENGTHS.get(match[0][:2], 0)
    taken = [index for index in range(match.start(), match.end()) if match.string[index] != " "][:length]
    if not length or len(taken) < length or _ALNUM.match(match.string, taken[-1] + 1):
        return match.start()
    letters = "".join(match.string[index] for index in taken)
    number = "".join(str(int(char, 36)) for char in letters[4:] + letters[:4])
    return taken[-1] + 1 if int(number) % 97 == 1 else match.start()


def _ip_end(match: re.Match[str]) -> int:
    parts = [int(part) for part in match[0].split(".")]
    # Addresses of this machine and of nobody tell nothing about a person.
    return match.end() if max(parts) <= 255 and 0 < parts[0] < 255 and parts[0] != 127 else match.start()


def _whole(match: re.Match[str]) -> int:
    return match.end()


_SECRETS = (
    r"sk-(?=[A-Za-z_-]{0,60}+[0-9])[A-Za-z0-9_-]{16,}+",  # OpenAI and those who follow it
    r"gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{30,}+|glpat-[A-Za-z0-9_-]{20,}+",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}+(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{35}+|hf_[A-Za-z0-9]{30,}+|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{30,}+",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}+|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}+",
    r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",  # a signed token (RFC 7519)
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s]*+(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
)
_PHONES = (
    r"\+[1-9](?:[ .-]?\(?[0-9]\)?){7,14}",  # with its country (E.164)
    r"(?:1[ .-])?(?:\([0-9]{3}\) ?[0-9]{3}|[0-9]{3}[.-][0-9]{3}|[2-9][0-9]{2} [0-9]{3})[ .-][0-9]{4}",  # North America
    r"1[3-9][0-9]{9}|1[3-9][0-9][ -][0-9]{4}[ -][0-9]{4}",  # China, mobile
    r"0[1-9][0-9]{1,3}[ /-][0-9]{3,4}[ -]?[0-9]{3,4}",  # with a trunk prefix
)
_DETECTORS = {
    detector.kind: detector
    for detector in (
        _Detector("secret", re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_SECRETS)})"), _whole),
        _Detector(
            "email",
            re.compile(
                r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}[A-Za-z]{2,24}"
                r"(?![A-Za-z0-9-])"
            ),
            _whole,
        ),
        _Detector("iban", re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,40}"), _iban_end),
        _Detector("card", re.compile(r"(?<![0-9A-Za-z.])[2-6](?:[ -]?[0-9]){12,18}"), _card_end),
        _Detector("ip", re.compile(r"(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9])"), _ip_end),
        _Detector("phone", re.compile(rf"(?<![0-9A-Za-z.+-])(?:{'|'.join(_PHONES)})(?![0-9A-Za-z]|[.-][0-9])"), _whole),
    )
}
