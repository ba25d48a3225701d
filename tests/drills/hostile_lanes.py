"""Hostile ids: no two lanes may share a key, whatever a platform calls its chats, threads and people.

A key that leads back to the parts it was made from can't belong to any other lane. So each lane is checked by itself,
and millions of them need no more memory than one.
"""

import random
from collections.abc import Iterator

from segue.core.lanes import Address, Lane
from segue.errors import Invalid

CHUNK = 50_000
SHOWN = 10
PIECES = (
    *("", "/", "//", "%", "%%", "%2F", "%2f", "%25", "%252F", "%00", "%C3%A9", "%ED%A0%80"),
    *(":", "::", ".", "..", "-", "--", "@", "~", ";", "'", '"', "`", "\\", "\\u0000"),
    *("\0", "\n", "\r\n", "\t", " ", "\x1f", "\x7f", "\x80", "\x85", "\xa0"),
    # Equal to one another for whoever folds case or normalises.
    *("a", "A", "\uff21", "ß", "SS", "I", "i", "\u0131", "İ", "s", "\u017f", "k", "\u212a"),
    *("é", "e\u0301", "\u0301", "ﬁ", "fi", "가", "\u1100\u1161"),
    *("😀", "👨\u200d👩", "\ufe0f", "\u200b", "\u202e", "\u2028", "\ufeff", "\uffff", "\U0010ffff"),
    # Halves of a UTF-16 pair, alone and as two characters.
    *("\ud800", "\udc00", "\udfff", "\ud83d", "\ude00", "\ud83d\ude00", "\udc80"),
    *("0", "-1001234567890", "1699999999.000100", "+4915112345678", "@u:h.org:8448", "wamid.HBgL+/8=", "US.1349"),
)


def parts(chance: random.Random) -> list[str]:
    """Some ids, put together from pieces that have broken somebody's key before; one is very long."""
    lengths = [chance.randrange(5) for _ in range(255)]
    return ["".join(chance.choices(PIECES, k=length)) for length in (*lengths, chance.randrange(100, 500))]


def lanes(seed: int, count: int) -> Iterator[tuple[str, str, str, str, str, str]]:
    """The six parts of so many lanes; parts of one lane often equal each other."""
    chance = random.Random(seed)
    for done in range(0, count, CHUNK):
        ids = parts(chance)
        for _ in range(min(CHUNK, count - done)):
            platform, account, space, chat, thread, person = chance.choices(ids, k=6)
            yield platform, account, space, chat, thread, chance.choice((person, person, thread, chat))


def leads_back(six: tuple[str, str, str, str, str, str]) -> bool:
    """Whether a lane's key gives exactly its parts again."""
    *address, person = six
    try:
        lane = Lane.parse(Lane(Address(*address), person).key)
    except Invalid:
        return False
    there = lane.address
    return six == (there.platform, there.account, there.space, there.chat, there.thread, lane.person)


def run(seed: int, count: int) -> list[tuple[str, str, str, str, str, str]]:
    """Check so many lanes; returns the first few whose key could be another lane's."""
    wrong = []
    for six in lanes(seed, count):
        if not leads_back(six):
            wrong.append(six)
            if len(wrong) == SHOWN:
                break
    return wrong
