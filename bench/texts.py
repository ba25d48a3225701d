"""What is said in the bench: the same words for everybody."""

import random

QUESTION = "Could you look at the report once more and tell me whether the figures for last year are right now?"
ANSWER = (
    "I did. The second table is right now; in the first one the total still leaves out December, so it is about four "
    "percent too low. I would add the month, then say below the table where the figures come from, because somebody "
    "who reads only that page can't know."
)
RARE = "kestrel"
"""A word in one of a thousand entries."""

_WORDS = ("time", "year", "people", "way", "day", "thing", "life", "world", "school", "family", "group", "country")


def entry(dice: random.Random) -> str:
    """Some words, and sometimes the rare one."""
    words = dice.choices(_WORDS, k=12)
    if dice.random() < 0.001:
        words.append(RARE)
    return " ".join(words)
