"""A machine that moves, forks, titles, talks and undoes at random, on both databases and in a model of what holds."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from segue.core.lanes import Lane, Person
from segue.core.messages import Summary, Text
from segue.core.moves import Consent, Fork, Handoff, Move, Release, Renew, Resume, Spawn, Start
from segue.core.transcripts import AGENT, Entry, Tip
from segue.core.values import SessionId
from segue.errors import Refusal, Refused
from tests.changes.model import Model, Name, Says
from tests.changes.world import Engine, World

T = TypeVar("T")
TITLES = ("plan", "idea")
LABELS = ("", "search")


def tip_of(name: Name | None) -> Tip | None:
    return Tip(SessionId(name[0]), name[1]) if name else None


def said(entries: Sequence[Entry]) -> list[str]:
    return [part.text for entry in entries for part in entry.parts if isinstance(part, Text | Summary)]


class Machine(RuleBasedStateMachine):
    """Two people, a private lane each and one that both share."""

    def __init__(self, dsn: str, empty: Callable[[], None]) -> None:
        super().__init__()
        self._dsn = dsn
        self._empty = empty
        self._open = contextlib.ExitStack()
        self._run = self._open.enter_context(asyncio.Runner())
        self._count = 0

    def teardown(self) -> None:
        for world in self.worlds:
            self._run.run(world.close())
        self._open.close()

    @initialize()
    def begin(self) -> None:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        self._empty()
        self.worlds = [
            self._run.run(World.open(Engine.SQLITE, folder / "segue.db")),
            self._run.run(World.open(Engine.POSTGRES, self._dsn)),
        ]
        ann, bob = self._both(lambda w: w.person("ann")), self._both(lambda w: w.person("bob"))
        self.people: dict[str, Person] = {ann.id: ann, bob.id: bob}
        shared = self._both(lambda w: w.thread(ann))
        lanes = self._both(lambda w: w.dm(ann, "a")), self._both(lambda w: w.dm(bob, "b")), shared
        self.lanes: dict[str, Lane] = {lane.key: lane for lane in lanes}
        self.model = Model({shared.key})
        self._touched = ""
        for lane, by in zip(self.lanes, (ann.id, bob.id, ann.id), strict=True):
            session = self._new()
            self._renew(lane, session, by)
            for n in range(3):
                self._say(session, by, [f"asked {n}"])
                self._say(session, "agent", [f"answered {n}"])

    def _both(self, act: Callable[[World], Awaitable[T]]) -> T:
        """Do it on both databases, which must answer alike."""
        one, two = (self._run.run(_awaited(act(world))) for world in self.worlds)
        assert one == two
        return one

    def _attempt(self, act: Callable[[World], Awaitable[T]], modelled: Callable[[T | None], object]) -> T | None:
        """Do it on both databases and in the model: all three agree, also in why they refuse."""

        async def outcome(world: World) -> tuple[T | None, Refusal | None]:
            try:
                return await act(world), None
            except Refused as refused:
                return None, refused.why

        for world in self.worlds:
            world.clock.passes(1)
        value, why = self._both(outcome)
        expected = None
        try:
            modelled(value)
        except Says as says:
            expected = says.why
        assert why is expected
        return value

    def _move(self, move: Move, by: str, modelled: Callable[[str], None]) -> None:
        def act(world: World) -> Awaitable[str]:
            return _id(world.store.move(move, self.people[by]))

        self._attempt(act, lambda id: modelled(id or "refused"))

    def _new(self) -> SessionId:
        self._count += 1
        return SessionId(f"s{self._count}")

    def _draw_session(self, data: st.DataObject, likely: int = 3) -> str:
        session: str = data.draw(
            st.sampled_from([*[*self.model.sessions] * likely, *(["none"] if likely < 100 else [])])
        )
        self._touched = session if session != "none" else self._touched
        return session

    def _draw_by(self, data: st.DataObject, session: str) -> str:
        """Mostly the session's owner."""
        found = self.model.sessions.get(session)
        return self._draw(data, [*([found.owner] * 4 if found else []), *self.people])

    def _draw(self, data: st.DataObject, among: Sequence[T]) -> T:
        return data.draw(st.sampled_from(among))

    def _draw_name(self, data: st.DataObject, session: str) -> Name:
        """An entry of the session's path, of another branch of it, or of somebody else's."""
        names = [entry.name for found in self.model.sessions.values() for entry in found.said]
        near = [entry.name for entry in self.model.path(self.model.sessions[session].tip)]
        return self._draw(data, [*near[-6:] * 2, *names[-6:], ("none", 1), (session, 99)])

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        self._renew(self._draw(data, [*self.lanes]), self._new(), self._draw(data, [*self.people]))

    def _renew(self, lane: str, session: SessionId, by: str) -> None:
        self._move(Renew(self.lanes[lane], session), by, lambda id: self.model.renew(id, lane, session, by))
        self._touched = session

    @rule(data=st.data(), yes=st.sampled_from(Consent))
    def resume(self, data: st.DataObject, yes: Consent) -> None:
        lane, session = self._draw(data, [*self.lanes]), self._draw_session(data)
        by = self._draw_by(data, session)
        move = Resume(self.lanes[lane], SessionId(session), consent=yes)
        self._move(move, by, lambda id: self.model.resume(id, lane, session, by, yes is Consent.GIVEN))

    @rule(data=st.data(), yes=st.sampled_from(Consent), title=st.sampled_from(("", *TITLES)))
    def fork(self, data: st.DataObject, yes: Consent, title: str) -> None:
        lane, source = self._draw(data, [*self.lanes]), self._draw_session(data)
        by = self._draw_by(data, source)
        at = None
        if source in self.model.sessions and data.draw(st.booleans()):
            at = self._draw_name(data, source)
        session = self._new()
        move = Fork(self.lanes[lane], SessionId(source), session, tip_of(at), title, yes)
        given = yes is Consent.GIVEN
        self._move(move, by, lambda id: self.model.fork(id, lane, source, session, by, at, title, given))
        if session in self.model.sessions:
            self._touched = session

    @rule(data=st.data(), yes=st.sampled_from(Consent))
    def handoff(self, data: st.DataObject, yes: Consent) -> None:
        origin, destination = self._draw(data, [*self.lanes]), self._draw(data, [*self.lanes])
        by = self._draw_by(data, self.model.bound(origin) or "none")
        move = Handoff(self.lanes[origin], self.lanes[destination], yes)
        self._move(move, by, lambda id: self.model.handoff(id, origin, destination, by, yes is Consent.GIVEN))

    @rule(data=st.data(), start=st.sampled_from(Start), label=st.sampled_from(LABELS))
    def spawn(self, data: st.DataObject, start: Start, label: str) -> None:
        parent = self._draw_session(data)
        by = self._draw_by(data, parent)
        lane: str | None = self._draw(data, [None, *self.lanes])
        session = self._new()
        move = Spawn(SessionId(parent), session, label, self.lanes[lane] if lane else None, start)
        forks = start is Start.FORK
        self._move(move, by, lambda id: self.model.spawn(id, parent, session, by, label, lane, forks))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lane, by = self._draw(data, [*self.lanes]), self._draw(data, [*self.people])
        self._move(Release(self.lanes[lane]), by, lambda id: self.model.release(id, lane))

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        session = self._draw_session(data)
        by = self._draw_by(data, session)

        async def act(world: World) -> str:
            await world.store.close_session(SessionId(session), self.people[by])
            [(id,)] = await world.raw("select id from moves order by seq desc limit 1")
            return str(id)

        self._attempt(act, lambda id: self.model.close(id or "refused", session, by))

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        session = self._draw_session(data)
        by = self._draw_by(data, session)
        self._attempt(
            lambda w: w.store.reopen_session(SessionId(session), self.people[by]),
            lambda _: self.model.reopen(session, by),
        )

    @rule(data=st.data())
    def undo_move(self, data: st.DataObject) -> None:
        move, by = self._draw(data, [*[*self.model.moves][-5:], "none"]), self._draw(data, [*self.people])
        self._attempt(
            lambda w: _id(w.store.undo_move(move, self.people[by])),
            lambda id: self.model.undo_move(move, id or "refused", by),
        )

    @rule(data=st.data(), title=st.sampled_from(TITLES))
    def set_title(self, data: st.DataObject, title: str) -> None:
        session = self._draw_session(data)
        by = self._draw_by(data, session)
        given: list[Name] = []
        title_given = self._attempt(
            lambda w: w.store.set_title(SessionId(session), title, self.people[by]),
            lambda _: given.append(self.model.set_title(session, title, by)),
        )
        assert given == ([(title_given.name, title_given.number)] if title_given else [])

    @rule(data=st.data(), count=st.integers(1, 3), agent=st.booleans())
    def say(self, data: st.DataObject, count: int, agent: bool) -> None:  # noqa: FBT001
        session = self._draw_session(data, likely=100)
        by = self._draw_by(data, session)
        texts = [f"{len(self.model.sessions[session].said)}.{n}" for n in range(count)]
        self._say(session, "agent" if agent else by, texts)

    def _say(self, session: str, by: str, texts: list[str]) -> None:
        author = AGENT if by == "agent" else self.people[by]
        self._attempt(lambda w: w.store.say(SessionId(session), author, *texts), lambda _: None)
        for text in texts:
            self.model.say(session, by, text)

    @rule(data=st.data(), count=st.integers(0, 3))
    def undo(self, data: st.DataObject, count: int) -> None:
        session = self._draw_session(data, likely=100)
        by = self._draw_by(data, session)
        self._attempt(
            lambda w: w.store.undo(SessionId(session), self.people[by], count),
            lambda _: self.model.undo(session, count),
        )

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        session = self._draw_session(data, likely=100)
        by = self._draw_by(data, session)
        asked: list[str] = []
        entries = self._attempt(
            lambda w: w.store.retry(SessionId(session), self.people[by]),
            lambda _: asked.extend(self.model.retry(session)),
        )
        assert said(entries or []) == asked

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        session = self._draw_session(data, likely=100)
        by = self._draw_by(data, session)
        to = self._draw_name(data, session)
        self._attempt(
            lambda w: w.store.rewind(SessionId(session), Tip(SessionId(to[0]), to[1]), self.people[by]),
            lambda _: self.model.rewind(session, to),
        )

    @rule(data=st.data())
    def compress(self, data: st.DataObject) -> None:
        session = self._draw_session(data, likely=100)
        by = self._draw_by(data, session)
        upto = self._draw_name(data, session)
        tip = Tip(SessionId(upto[0]), upto[1])
        self._attempt(
            lambda w: w.store.compress(SessionId(session), f"sum {upto}", tip, self.people[by]),
            lambda _: self.model.compress(session, f"sum {upto}", upto),
        )

    @invariant()
    def bindings_and_their_history_are_the_models(self) -> None:
        rows = self._rows("select lane, session, why, ended_why, move, ended_move from bindings order by id")
        assert rows == [(b.lane, b.session, b.why, b.ended, b.move, b.ended_move) for b in self.model.bindings]
        rows = self._rows("select id, kind, lane, session, undone is not null from moves order by seq")
        assert [(*row[:4], bool(row[4])) for row in rows] == [
            (id, record.kind, record.lane, record.session, record.undone) for id, record in self.model.moves.items()
        ]

    @invariant()
    def sessions_titles_and_tips_are_the_models(self) -> None:
        rows = self._rows(
            "select s.id, s.owner, s.origin, s.parent, s.depth, s.label, s.closed is not null, s.tip_session, s.tip, "
            "s.length, t.name, t.number from sessions s left join titles t on t.session = s.id and t.until is null "
            "order by s.id"
        )
        assert {row[0]: (*row[1:6], bool(row[6]), *row[7:]) for row in rows} == {
            s.id: (
                *(s.owner, s.origin, s.parent, s.depth, s.label, s.closed),
                *(s.tip or (None, None)),
                len(s.said),
                *(s.title or (None, None)),
            )
            for s in self.model.sessions.values()
        }

    @invariant()
    def the_path_of_what_was_touched_is_the_models(self) -> None:
        if self._touched in self.model.sessions:
            self._compare_paths(self._touched)

    def _compare_paths(self, session: str) -> None:
        path = self._both(lambda w: w.store.path(SessionId(session)))
        expected = self.model.path(self.model.sessions[session].tip)
        assert [(e.tip.session, e.tip.n) for e in path] == [entry.name for entry in expected]
        assert said(path) == [entry.text for entry in expected]
        assert said(self._both(lambda w: w.store.visible(SessionId(session)))) == self.model.visible(session)

    @invariant()
    def what_people_see_is_what_the_rows_say(self) -> None:
        async def bound(world: World) -> dict[str, str | None]:
            found = {key: await world.store.bound(lane) for key, lane in self.lanes.items()}
            return {key: session.id if session else None for key, session in found.items()}

        assert self._both(bound) == {key: self.model.bound(key) for key in self.lanes}

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._both(lambda w: w.raw(sql))


async def _awaited(value: Awaitable[T]) -> T:
    return await value


async def _id(moving: Awaitable[Any]) -> str:
    return str((await moving).id)


def test_the_store_does_what_the_model_says(postgres: Any, today: str, emptied: Callable[[], None]) -> None:
    thorough = hypothesis.settings().max_examples > 1000
    run_state_machine_as_test(
        lambda: Machine(postgres.dsn(today), emptied),  # type: ignore[arg-type]
        settings=hypothesis.settings(
            max_examples=300 if thorough else 12,
            stateful_step_count=60 if thorough else 40,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[*([hypothesis.Phase.shrink] if thorough else []), hypothesis.Phase.generate],
            report_multiple_bugs=False,
        ),
    )
