"""Strings."""


def reverse_words(text: str) -> str:
    """Return the words of text in reverse order, joined by single spaces.

    >>> reverse_words("one two three")
    'three two one'
    >>> reverse_words("  hello   world ")
    'world hello'
    """
    return " ".join(reversed(text.split()))


def capitalize_words(text: str) -> str:
    """Return text with the first letter of every word in upper case and the rest unchanged.

    >>> capitalize_words("new york city")
    'New York City'
    >>> capitalize_words("iOS app")
    'IOS App'
    """
    words = text.split(" ")
    return " ".join(word[:1].upper() + word[1:] for word in words)


def is_anagram(first: str, second: str) -> bool:
    """Check whether two strings are anagrams, ignoring case and spaces.

    >>> is_anagram("Dormitory", "dirty room")
    True
    >>> is_anagram("apple", "pale")
    False
    """
    a = sorted(first.replace(" ", "").lower())
    b = sorted(second.replace(" ", "").lower())
    return a == b


def run_length_encode(text: str) -> str:
    """Compress text by writing every run of equal characters as the character followed by its length.

    >>> run_length_encode("aaabcc")
    'a3b1c2'
    >>> run_length_encode("")
    ''
    """
    result = ""
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        result += text[i] + str(j - i)
        i = j
    return result


def run_length_decode(text: str) -> str:
    """Expand a string of characters, each followed by how often it is repeated.

    >>> run_length_decode("a3b1c2")
    'aaabcc'
    >>> run_length_decode("x12")
    'xxxxxxxxxxxx'
    """
    result = ""
    i = 0
    while i < len(text):
        char = text[i]
        i += 1
        digits = ""
        while i < len(text) and text[i].isdigit():
            digits += text[i]
            i += 1
        result += char * int(digits)
    return result


def first_unique_char(text: str) -> int:
    """Return the index of the first character that occurs exactly once in text, or -1.

    >>> first_unique_char("swiss")
    1
    >>> first_unique_char("aabb")
    -1
    """
    for i, char in enumerate(text):
        if text.count(char) == 1:
            return i
    return -1


def snake_to_camel(name: str) -> str:
    """Convert a snake_case name to camelCase.

    >>> snake_to_camel("user_first_name")
    'userFirstName'
    >>> snake_to_camel("id")
    'id'
    """
    parts = name.split("_")
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def camel_to_snake(name: str) -> str:
    """Convert a camelCase name to snake_case.

    >>> camel_to_snake("userFirstName")
    'user_first_name'
    >>> camel_to_snake("id")
    'id'
    """
    result = ""
    for char in name:
        if char.isupper():
            result += "_" + char.lower()
        else:
            result += char
    return result


def title_slug(title: str) -> str:
    """Turn a title into a slug: lower case, letters and digits only, with words joined by hyphens.

    >>> title_slug("Hello, World!")
    'hello-world'
    >>> title_slug("  Top 10 Tips ")
    'top-10-tips'
    """
    cleaned = "".join(char.lower() if char.isalnum() else " " for char in title)
    return "-".join(cleaned.split())


def truncate(text: str, width: int) -> str:
    """Shorten text to at most width characters, ending with three dots if something was cut.

    >>> truncate("programming", 8)
    'progr...'
    >>> truncate("short", 8)
    'short'
    """
    if len(text) <= width:
        return text
    return text[: width - 3] + "..."


def find_positions(text: str, part: str) -> list[int]:
    """Return every index at which part begins in text.

    >>> find_positions("banana", "an")
    [1, 3]
    >>> find_positions("abc", "x")
    []
    """
    positions = []
    for i in range(len(text) - len(part) + 1):
        if text[i : i + len(part)] == part:
            positions.append(i)
    return positions


def common_prefix(words: list[str]) -> str:
    """Find the longest prefix that all words share.

    >>> common_prefix(["flower", "flow", "flight"])
    'fl'
    >>> common_prefix([])
    ''
    """
    if not words:
        return ""
    prefix = words[0]
    for word in words[1:]:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


def is_pangram(text: str) -> bool:
    """Check whether text contains every letter of the English alphabet.

    >>> is_pangram("The quick brown fox jumps over the lazy dog")
    True
    >>> is_pangram("Hello world")
    False
    """
    return set("abcdefghijklmnopqrstuvwxyz") <= set(text.lower())


def atbash(text: str) -> str:
    """Encode lower case letters with the Atbash cipher: a becomes z, b becomes y and so on.

    >>> atbash("abc")
    'zyx'
    >>> atbash("test 1")
    'gvhg 1'
    """
    result = ""
    for char in text:
        if "a" <= char <= "z":
            result += chr(ord("a") + ord("z") - ord(char))
        else:
            result += char
    return result


def rotate_letters(text: str, shift: int) -> str:
    """Shift every letter of text by shift places in the alphabet, keeping case and other characters.

    >>> rotate_letters("Zoo", 1)
    'App'
    >>> rotate_letters("abc-XYZ", 3)
    'def-ABC'
    """
    result = ""
    for char in text:
        if char.isalpha():
            base = ord("A") if char.isupper() else ord("a")
            result += chr((ord(char) - base + shift) % 26 + base)
        else:
            result += char
    return result


def remove_punctuation(text: str) -> str:
    """Remove every character that is not a letter, a digit or a space.

    >>> remove_punctuation("Hi! How's it going?")
    'Hi Hows it going'
    >>> remove_punctuation("...")
    ''
    """
    return "".join(char for char in text if char.isalnum() or char == " ")


def shortest_word(sentence: str) -> str:
    """Return the shortest word of a sentence, the last one in case of a tie, or an empty string.

    >>> shortest_word("the quick red fox")
    'fox'
    >>> shortest_word("")
    ''
    """
    best = ""
    for word in sentence.split():
        if best == "" or len(word) <= len(best):
            best = word
    return best


def mask_email(address: str) -> str:
    """Hide an e-mail address by replacing all but the first character before the @ with asterisks.

    >>> mask_email("anna@example.com")
    'a***@example.com'
    >>> mask_email("x@y.org")
    'x@y.org'
    """
    name, domain = address.split("@")
    return name[0] + "*" * (len(name) - 1) + "@" + domain


def acronym(phrase: str) -> str:
    """Build the acronym of a phrase from the first letters of its words, in upper case.

    >>> acronym("portable network graphics")
    'PNG'
    >>> acronym("as soon as possible")
    'ASAP'
    """
    return "".join(word[0].upper() for word in phrase.split())


def pad_center(text: str, width: int, fill: str = " ") -> str:
    """Center text in a string of the given width, with one more fill character on the right if needed.

    >>> pad_center("ab", 5, "*")
    '*ab**'
    >>> pad_center("hello", 3)
    'hello'
    """
    missing = max(width - len(text), 0)
    left = missing // 2
    return fill * left + text + fill * (missing - left)


def hamming_distance(first: str, second: str) -> int:
    """Count the positions at which two strings of equal length differ.

    Raise ValueError if the lengths are not equal.

    >>> hamming_distance("karolin", "kathrin")
    3
    >>> hamming_distance("", "")
    0
    """
    if len(first) != len(second):
        raise ValueError("strings must have equal length")
    count = 0
    for a, b in zip(first, second, strict=True):
        if a != b:
            count += 1
    return count


def letter_frequency(text: str) -> dict[str, int]:
    """Return a dictionary with the number of occurrences of each letter, ignoring case.

    >>> letter_frequency("Hello!")
    {'h': 1, 'e': 1, 'l': 2, 'o': 1}
    >>> letter_frequency("123")
    {}
    """
    counts: dict[str, int] = {}
    for char in text.lower():
        if char.isalpha():
            counts[char] = counts.get(char, 0) + 1
    return counts


def wrap_text(text: str, width: int) -> list[str]:
    """Break text into lines of at most width characters without dividing words.

    >>> wrap_text("the cat sat on the mat", 7)
    ['the cat', 'sat on', 'the mat']
    >>> wrap_text("", 5)
    []
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = line + " " + word if line else word
    if line:
        lines.append(line)
    return lines


def is_subsequence(part: str, text: str) -> bool:
    """Check whether the characters of part appear in text in the same order, not necessarily next to each other.

    >>> is_subsequence("ace", "abcde")
    True
    >>> is_subsequence("aec", "abcde")
    False
    """
    position = 0
    for char in text:
        if position < len(part) and part[position] == char:
            position += 1
    return position == len(part)


def swap_ends(word: str) -> str:
    """Exchange the first and the last character of a word.

    >>> swap_ends("planet")
    'tlanep'
    >>> swap_ends("a")
    'a'
    """
    if len(word) < 2:
        return word
    return word[-1] + word[1:-1] + word[0]


def merge_in_turn(first: str, second: str) -> str:
    """Merge two strings by taking characters in turn; what remains of the longer one comes at the end.

    >>> merge_in_turn("abc", "12")
    'a1b2c'
    >>> merge_in_turn("", "xyz")
    'xyz'
    """
    result = ""
    for i in range(max(len(first), len(second))):
        result += first[i : i + 1] + second[i : i + 1]
    return result
