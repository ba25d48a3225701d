"""Trees and long sessions: what was said long ago isn't read again to take something back or to draw a branch."""

import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from segue.changes.sessions import moves, sessions, transcripts, trees
from segue.core.contracts.database import Statement, Transaction
from segue.core.exports.tree import draw
from segue.core.messages import Order, Rewind, Text, Undo
from segue.core.moves import Fork, Limits
from segue.core.transcripts import AGENT, Author, Draft, Role, Tip
from segue.core.turns import Claim, Run, Turn, TurnKind, begin, far_enough
from segue.core.values import SessionId
from tests.changes.world import World

LONG = 2500
"""Exchanges of a long session."""


def counting(read: Counter[str]) -> Callable[..., Transaction[Any]]:
    """A transaction that counts the rows that another reads, by query."""

    def run(make: Callable[..., Transaction[Any]], *arguments: Any) -> Transaction[Any]:
        steps = make(*arguments)
        rows: Any = None
        while True:
            try:
                statement = steps.send(rows)
            except StopIteration as done:
                return done.value
            rows = yield statement
            if isinstance(statement, Statement):
                read[statement.name] += len(rows)

    return run


async def long_session(world: World) -> SessionId:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann)
    author = Author(Role.PERSON, ann.id, "ann")
    said = [(by, f"{what} {n}") for n in range(LONG) for by, what in ((author, "question"), (AGENT, "answer"))]
    drafts = [Draft(by, (Text(text),)) for by, text in said]
    await world.store.driver.write(transcripts.append, session, drafts, world.clock())
    return session


def asked(session: SessionId, kind: TurnKind, order: Order) -> Turn:
    return Turn(session, 1, kind, None, "", "ann", "Ann", "", "", (order,), 0.0, "")


async def test_what_moves_a_tip_reads_what_it_needs_of_a_long_session(world: World) -> None:
    session = await long_session(world)
    tip = Tip(session, 2 * LONG)
    orders: list[tuple[TurnKind, Order, int]] = [
        (TurnKind.UNDO, Undo(), 2 * LONG - 2),
        (TurnKind.UNDO, Undo(3), 2 * LONG - 6),
        (TurnKind.REWIND, Rewind(session, 2 * LONG - 9), 2 * LONG - 9),
    ]
    for kind, order, kept in orders:
        read: Counter[str] = Counter()
        turn = asked(session, kind, order)
        path = await world.store.driver.read(counting(read), transcripts.path, tip, far_enough(turn))
        assert sum(read.values()) <= 100
        onto = begin(Run(Claim(session, "me", 1), (turn,), tip), path).onto
        assert onto is not None
        assert onto.tip == Tip(session, kept)


async def test_a_tree_is_drawn_without_what_was_said(world: World) -> None:
    session = await long_session(world)
    ann = await world.person("ann")
    await world.store.undo(session, ann, 2)
    await world.store.say(session, ann, "another way")
    await world.store.rewind(session, Tip(session, 10), ann)
    await world.store.say(session, ann, "from the middle")
    fork = await world.fork(await world.dm(ann), session, ann)
    await world.store.undo(session, ann)
    owned = await world.store.session(session, ann)
    read: Counter[str] = Counter()
    tree = await world.store.driver.read(counting(read), trees.tree, owned)
    assert [(branch.id, branch.parent, branch.after) for branch in tree] == [
        (session, None, 0),
        (fork, session, 2 * LONG + 2),
    ]
    assert [branch.entries for branch in tree] == [2 * LONG + 2, 0]
    left = [(piece.after, piece.entries, piece.text) for piece in tree[0].abandoned]
    assert left == [(10, 2 * LONG - 9, "question 5"), (10, 1, "from the middle")]
    # Of what was said only the beginnings of the two branches that were left.
    assert read.pop("links") == 2 * LONG + 2
    assert read == {"entry": 2, "branches": 1}
    branches = await world.store.driver.read(sessions.branches, session)
    assert [child.id for child in branches] == [fork]


async def test_a_tree_may_be_deeper_than_python_recurses(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    first = await world.renew(lane, ann)
    depth = sys.getrecursionlimit() + 100
    chain = [first, *(world.store.new_session_id() for _ in range(depth))]

    def grow() -> Transaction[None]:
        for source, fork in pairwise(chain):
            yield from moves.make(Fork(lane, source, fork), ann.id, Limits(), f"move {fork}", world.clock())

    await world.store.driver.write(grow)
    deepest = await world.store.session(chain[-1], ann)
    root = await world.store.driver.read(trees.root, deepest)
    assert root.id == first
    tree = await world.store.driver.read(trees.tree, root)
    assert [branch.id for branch in tree] == chain
    *_, last = draw(tree, lambda branch: branch.id)
    assert last == f"{'   ' * (depth - 1)}└─ from the start: {chain[-1]} · 0 entries"
