"""The words that search knows: one function makes them for both databases and for queries."""

import re

from segue.core.text.normal import normal

MOST = 64 * 1024
"""Bytes of words kept for one entry."""
_LOOKED_AT = 4 * MOST
"""Characters that are looked at: a text that is longer has had its share of words by then."""
_LONGEST = 64
_RUNS = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\U00020000-\U0003ffff]+"
)


def words_of(text: str) -> list[str]:
    """The words of a text, each once, in order: NFKC, case folded; scripts without spaces as pairs of characters."""
    folded = normal(normal(text, _LOOKED_AT).casefold(), _LOOKED_AT)
    found: dict[str, None] = {}
    size = 0
    for run in _RUNS.findall(folded):
        for word in _cut(run):
            if word in found:
                continue
            size += len(word.encode()) + 1
            if size > MOST:
                return list(found)
            found[word] = None
    return list(found)


def _cut(run: str) -> list[str]:
    """A run of letters as words: what has no spaces of its own becomes overlapping pairs."""
    words: list[str] = []
    end = 0
    for found in _UNSPACED.finditer(run):
        words += _plain(run[end : found.start()])
        piece = found[0]
        # The last one alone too: then every character begins a word, and a query of one finds it anywhere.
        words += [piece[i : i + 2] for i in range(len(piece))]
        end = found.end()
    return words + _plain(run[end:])


def _plain(word: str) -> list[str]:
    return [word[:_LONGEST]] if word else []
