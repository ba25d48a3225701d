"""Characters that nobody sees, whatever Unicode calls them: letters that are blank, selectors, tags, joiners."""

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_CODED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Unicode's Default_Ignorable_Code_Point outside those categories, and the braille pattern without a dot.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def shows(c: str) -> bool:
    """Whether a character is one that people see, or a space."""
    return unicodedata.category(c) not in _HIDDEN and c not in _BLANK


def with_codes(text: str) -> str:
    """A text with the code point in the place of each control, direction and escape character but line breaks.

    Whoever reads it sees all that is in it, in the order in which it runs.
    """
    return "".join(c if c == "\n" or unicodedata.category(c) not in _CODED else _code(c) for c in text)


def _code(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) <= 0xFFFF else f"\\U{ord(c):08x}"


def blank(text: str) -> bool:
    """Whether a text has nothing to see."""
    return not any(c.isprintable() and c != " " and c not in _BLANK for c in text)
