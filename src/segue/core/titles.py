"""Titles: what a person calls a session, and the numbers that tell a lineage apart.

Law: `NAME` is the first of its lineage and `NAME #2`, `NAME #3` follow; then the first is shown as `NAME #1`. Two
titles are alike if they differ in case alone; there are no wildcards.
"""

import re
from itertools import islice

from segue.core.text.normal import normal
from segue.core.text.splitting import graphemes
from segue.core.text.visible import blank, shows
from segue.core.values import Value
from segue.errors import Invalid

LONGEST = 100
_LABEL = 60
_LOOKED_AT = 16 * LONGEST
"""Characters that are looked at: a text that is longer is no title."""
_NUMBERED = re.compile(r"^(?P<name>.+?) #(?P<number>[1-9][0-9]{0,8})$", re.DOTALL)
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""Characters that hold Persian words and emoji together."""
_JOINED = "\u0600-\u1dff\u2000-\u200b\u200e-\ufe0d\ufe10-\U0010ffff"
"""Characters that a joiner can hold together: not those of scripts whose letters stand alone."""
_LOOSE = re.compile(f"(?<![{_JOINED}{_JOINERS}])[{_JOINERS}]+|[\u200c\u200d]+(?![{_JOINED}{_JOINERS}])")
"""Joiners that hold nothing together, which nobody would see."""


class Title(Value, frozen=True, order=True):
    """A name and its place in the lineage."""

    name: str
    number: int = 1
    several: bool = False
    """Whether others of the lineage follow."""

    def __str__(self) -> str:
        return f"{self.name} #{self.number}" if self.several or self.number > 1 else self.name


def label(text: str) -> str:
    """The beginning of a text on one line, by which a session without a title is known."""
    seen = "".join(c for c in text[:_LOOKED_AT] if c.isspace() or c in _JOINERS or shows(c))
    line = "" if blank(seen) else " ".join(seen.split())
    ends = [end for _, end in islice(graphemes(line, 0, len(line)), _LABEL + 1)]
    return line if len(ends) <= _LABEL else f"{line[: ends[_LABEL - 2]]}…"


def clean(text: str) -> str:
    """A title as it is kept: NFC, one line, single spaces, nothing invisible but joiners where they join."""
    flat = "".join(" " if c.isspace() else c for c in text[:_LOOKED_AT])
    shown = "".join(c for c in flat if c in _JOINERS or shows(c))
    held = _LOOSE.sub("", normal(shown, _LOOKED_AT, "NFC"))
    # Normalised last: a hidden character may have stood between a letter and its accent.
    return " ".join(normal(held, _LOOKED_AT, "NFC").split())


def folded(name: str) -> str:
    """A title as it is compared: without regard to case, and to joiners, which not every keyboard has."""
    return "".join(c for c in name if c not in _JOINERS).casefold()


def new_title(text: str) -> str:
    """The name that somebody gives a session, checked."""
    name = clean(text)
    if not name:
        raise Invalid("title", "it is empty", "Give at least one visible character.")
    if len(name) > LONGEST:
        raise Invalid("title", f"it has {len(name)} characters", f"Keep it to {LONGEST}.")
    if name.isdecimal():
        raise Invalid("title", "it is only digits", "Add a word, so that it isn't taken for a line number.")
    if _NUMBERED.match(name):
        raise Invalid(
            "title", "it ends in a number sign and a number", "Leave that off: Segue numbers repeated titles itself."
        )
    return name


def parse(text: str) -> tuple[str, int | None]:
    """The words typed to find a session: a name, and its number if one was given."""
    name = clean(text)
    found = _NUMBERED.match(name)
    return (found["name"], int(found["number"])) if found else (name, None)
