"""Trees: what a session left behind, however its entries are looked through."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from segue.core.exports.tree import Link, off_path, pieces


@st.composite
def trees(draw: st.DrawFn) -> list[Link]:
    """Entries that each follow an earlier one, or none, the newest first."""
    count = draw(st.integers(0, 30))
    return [Link(n, draw(st.integers(0, n - 1))) for n in range(count, 0, -1)]


def way(links: list[Link], at: int) -> Iterator[int]:
    after = {link.n: link.after for link in links}
    while at:
        yield at
        at = after[at]


@given(trees(), st.integers(0, 30), st.integers(1, 7))
def test_pieces_are_all_that_isnt_on_the_way_page_by_page(links: list[Link], tip: int, page: int) -> None:
    at = tip = min(tip, len(links))
    off: list[Link] = []
    for start in range(0, len(links), page):
        left, at = off_path(links[start : start + page], at)
        off += left
    on_way = set(way(links, tip))
    assert {link.n for link in off} == {link.n for link in links} - on_way
    found = pieces(off)
    assert sum(piece.entries for piece in found) == len(off)
    for piece in found:
        # A piece leaves the way at one entry, or begins with none.
        assert piece.first.after in {0, *on_way}
        below = [link.n for link in off if piece.first.n in way(links, link.n)]
        assert piece.entries == len(below)
