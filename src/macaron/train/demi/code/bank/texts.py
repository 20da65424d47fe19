"""Text: characters, words, brackets and ciphers."""


def split_at_capitals(text: str) -> list[str]:
    """Split text in front of every capital letter.

    >>> split_at_capitals("myFirstName")
    ['my', 'First', 'Name']
    >>> split_at_capitals("")
    []
    """
    parts: list[str] = []
    for char in text:
        if char.isupper() or not parts:
            parts.append(char)
        else:
            parts[-1] += char
    return parts


def alternate_case(text: str) -> str:
    """Write the letters of text in upper and lower case by turns, starting with upper case; others do not count.

    >>> alternate_case("hello you")
    'HeLlO yOu'
    >>> alternate_case("")
    ''
    """
    result = ""
    upper = True
    for char in text:
        if char.isalpha():
            result += char.upper() if upper else char.lower()
            upper = not upper
        else:
            result += char
    return result


def first_unclosed(text: str) -> int:
    """Return the index of the outermost opening bracket "(" that is never closed, or -1.

    >>> first_unclosed("a(b)(c")
    4
    >>> first_unclosed("(x)")
    -1
    """
    places = []
    for i, char in enumerate(text):
        if char == "(":
            places.append(i)
        elif char == ")" and places:
            places.pop()
    return places[0] if places else -1


def inside_quotes(text: str) -> list[str]:
    """Return the pieces of text that stand between pairs of double quotes.

    >>> inside_quotes('say "yes" or "no"')
    ['yes', 'no']
    >>> inside_quotes("nothing")
    []
    """
    pieces = []
    current = ""
    inside = False
    for char in text:
        if char == '"':
            if inside:
                pieces.append(current)
                current = ""
            inside = not inside
        elif inside:
            current += char
    return pieces


def vigenere(text: str, key: str) -> str:
    """Shift every small letter of text by the place of the key's letter (a is 0), repeating the key.

    Other characters stay as they are and use up no letter of the key.

    >>> vigenere("attack", "bad")
    'btwbcn'
    >>> vigenere("a b", "b")
    'b c'
    """
    result = ""
    used = 0
    for char in text:
        if "a" <= char <= "z":
            shift = ord(key[used % len(key)]) - ord("a")
            result += chr((ord(char) - ord("a") + shift) % 26 + ord("a"))
            used += 1
        else:
            result += char
    return result


def rail_fence(text: str) -> str:
    """Write the characters at even indexes first and then those at odd indexes.

    >>> rail_fence("abcdef")
    'acebdf'
    >>> rail_fence("")
    ''
    """
    upper = ""
    lower = ""
    for i in range(len(text)):
        if i % 2 == 0:
            upper += text[i]
        else:
            lower += text[i]
    return upper + lower


def undo_rail_fence(text: str) -> str:
    """Restore a text of which the characters at even indexes were written first and then those at odd indexes.

    >>> undo_rail_fence("acebdf")
    'abcdef'
    >>> undo_rail_fence("acb")
    'abc'
    """
    half = (len(text) + 1) // 2
    upper, lower = text[:half], text[half:]
    result = ""
    for i in range(half):
        result += upper[i]
        if i < len(lower):
            result += lower[i]
    return result


def swap_letters(text: str, first: str, second: str) -> str:
    """Exchange two letters everywhere in text.

    >>> swap_letters("banana", "a", "n")
    'bnanan'
    >>> swap_letters("", "a", "b")
    ''
    """
    result = ""
    for char in text:
        if char == first:
            result += second
        elif char == second:
            result += first
        else:
            result += char
    return result


def morse_letters(message: str, table: dict[str, str]) -> str:
    """Decode a message of code words separated by single spaces; a code word that is not in the table gives "?".

    >>> morse_letters("... --- ...", {"...": "S", "---": "O"})
    'SOS'
    >>> morse_letters("-.-.", {})
    '?'
    """
    result = ""
    for code in message.split(" "):
        result += table.get(code, "?")
    return result


def column_names(n: int) -> str:
    """Return the name of the n-th column of a spreadsheet: A for 1, Z for 26, AA for 27.

    >>> column_names(28)
    'AB'
    >>> column_names(3)
    'C'
    """
    name = ""
    while n > 0:
        n -= 1
        name = chr(ord("A") + n % 26) + name
        n //= 26
    return name


def longest_palindrome_inside(text: str) -> str:
    """Find the longest part of text that reads the same in both directions, the first of several.

    >>> longest_palindrome_inside("cbabd")
    'bab'
    >>> longest_palindrome_inside("")
    ''
    """
    best = ""
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            part = text[start:end]
            if part == part[::-1] and len(part) > len(best):
                best = part
    return best


def letters_to_delete(first: str, second: str) -> int:
    """Count how many letters must be deleted from two words together so that each is made of the same letters.

    >>> letters_to_delete("late", "tale")
    0
    >>> letters_to_delete("cat", "cart")
    1
    """
    count = 0
    for letter in set(first + second):
        count += abs(first.count(letter) - second.count(letter))
    return count


def expand_ranges(text: str) -> str:
    """Expand ranges of letters such as a-d in text to all letters from the first to the last.

    >>> expand_ranges("a-dxy")
    'abcdxy'
    >>> expand_ranges("q")
    'q'
    """
    result = ""
    i = 0
    while i < len(text):
        if i + 2 < len(text) and text[i + 1] == "-":
            for code in range(ord(text[i]), ord(text[i + 2]) + 1):
                result += chr(code)
            i += 3
        else:
            result += text[i]
            i += 1
    return result


def unescape_spaces(text: str) -> str:
    """Replace every %20 in text by a space.

    >>> unescape_spaces("a%20b%20c")
    'a b c'
    >>> unescape_spaces("100%")
    '100%'
    """
    result = ""
    i = 0
    while i < len(text):
        if text[i : i + 3] == "%20":
            result += " "
            i += 3
        else:
            result += text[i]
            i += 1
    return result


def words_by_count(text: str) -> list[tuple[str, int]]:
    """Count the words of text without regard to case and list them, the most frequent first, equals alphabetically.

    >>> words_by_count("no yes No maybe yes no")
    [('no', 3), ('yes', 2), ('maybe', 1)]
    >>> words_by_count("")
    []
    """
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def average_word_length(text: str) -> float:
    """Return the average length of the words of text rounded to one decimal place, 0.0 if there are no words.

    >>> average_word_length("a bird sings")
    3.3
    >>> average_word_length("")
    0.0
    """
    words = text.split()
    if not words:
        return 0.0
    total = 0
    for word in words:
        total += len(word)
    return round(total / len(words), 1)


def longest_sentence(text: str) -> int:
    """Return the number of words of the longest sentence; sentences end with a full stop, "!" or "?".

    >>> longest_sentence("Go! I am here. Why?")
    3
    >>> longest_sentence("")
    0
    """
    longest = 0
    for sentence in text.replace("!", ".").replace("?", ".").split("."):
        longest = max(longest, len(sentence.split()))
    return longest


def initials_of(name: str) -> str:
    """Return the initials of a name with a full stop after each, in capitals.

    >>> initials_of("ada maria king")
    'A.M.K.'
    >>> initials_of("")
    ''
    """
    result = ""
    for part in name.split():
        result += part[0].upper() + "."
    return result


def plural_of(noun: str) -> str:
    """Make the plural of an English noun: -es after s, x, ch or sh, -ies for a y after a consonant, else -s.

    >>> plural_of("city")
    'cities'
    >>> plural_of("box")
    'boxes'
    >>> plural_of("day")
    'days'
    """
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def count_syllables(word: str) -> int:
    """Count the groups of neighbouring vowels in a word.

    >>> count_syllables("banana")
    3
    >>> count_syllables("queue")
    1
    >>> count_syllables("hmm")
    0
    """
    count = 0
    before = False
    for char in word.lower():
        vowel = char in "aeiou"
        if vowel and not before:
            count += 1
        before = vowel
    return count
