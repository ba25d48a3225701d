"""What the store should do, said with plain lists and dicts, for the machine to compare both databases with."""

from __future__ import annotations

from dataclasses import dataclass, field

from segue.errors import Refusal


class Says(Exception):
    """The model refuses."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why)
        self.why = why


Name = tuple[str, int]
"""An entry by its session and its number there."""


@dataclass
class Said:
    name: Name
    parent: Name | None
    who: str
    text: str
    upto: Name | None = None
    """What a summary stands for."""


@dataclass
class Conversation:
    id: str
    owner: str
    origin: str | None
    tip: Name | None
    parent: str | None = None
    depth: int = 0
    label: str = ""
    closed: bool = False
    title: Name | None = None
    said: list[Said] = field(default_factory=list)


@dataclass
class Binding:
    lane: str
    session: str
    why: str
    move: str
    ended: str | None = None
    ended_move: str | None = None


@dataclass
class Record:
    kind: str
    lane: str | None
    session: str | None
    made: list[tuple[str, str | None, str | None]]
    undone: bool = False


@dataclass
class Model:
    shared: set[str]
    """The lanes that many can read."""
    sessions: dict[str, Conversation] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    moves: dict[str, Record] = field(default_factory=dict)
    read: dict[str, set[Name]] = field(default_factory=dict)
    """What was on the path of a session while a lane spoke to it; each lane is a place of its own."""

    def bound(self, lane: str) -> str | None:
        return next((b.session for b in self.bindings if b.lane == lane and b.ended is None), None)

    def renew(self, move: str, lane: str, session: str, by: str) -> None:
        self._begin(Conversation(session, by, lane, None))
        self._record(move, "renew", [(lane, session, "new")], session)

    def resume(self, move: str, lane: str, session: str, by: str, yes: bool) -> None:  # noqa: FBT001
        found = self._readable(session, lane, by)
        if self.bound(lane) == session:
            raise Says(Refusal.ALREADY_THERE)
        if found.closed:
            raise Says(Refusal.CLOSED)
        self._readers(session, lane, yes, by)
        self._record(move, "resume", [(lane, session, "resume")])

    def fork(
        self,
        move: str,
        lane: str,
        source: str,
        session: str,
        by: str,
        at: Name | None,
        title: str,
        yes: bool,  # noqa: FBT001
    ) -> None:
        found = self._readable(source, lane, by, at)
        self._readers(source, lane, yes, by, at)
        if at and not (at[0] == source and 1 <= at[1] <= len(found.said)) and at not in self._names(found.tip):
            raise Says(Refusal.NOT_FOUND)
        made = Conversation(session, by, lane, at or found.tip, source)
        self._begin(made)
        if title:
            self._entitle(made, title)
        self._record(move, "fork", [(lane, session, "fork")], session)

    def handoff(self, move: str, origin: str, destination: str, by: str, yes: bool) -> None:  # noqa: FBT001
        session = self.bound(origin)
        if session is None:
            raise Says(Refusal.NOTHING_BOUND)
        if self.sessions[session].owner != by:
            raise Says(Refusal.NOT_ALLOWED)
        if origin == destination or self.bound(destination) == session:
            raise Says(Refusal.SAME_LANE)
        self._readers(session, destination, yes, by)
        self._record(move, "handoff", [(destination, session, "handoff")])

    def spawn(self, move: str, parent: str, session: str, by: str, label: str, lane: str | None, forks: bool) -> None:  # noqa: FBT001
        found = self._own(parent, by)
        if found.closed:
            raise Says(Refusal.CLOSED)
        if found.depth >= 3:
            raise Says(Refusal.TOO_DEEP)
        self._may_live(parent, label)
        tip = found.tip if forks else None
        self._begin(Conversation(session, found.owner, lane, tip, parent, found.depth + 1, label))
        self._record(move, "spawn", [(lane, session, "spawn")] if lane else [], session)

    def release(self, move: str, lane: str) -> None:
        if self.bound(lane) is None:
            raise Says(Refusal.NOTHING_BOUND)
        self._record(move, "release", [(lane, None, "release")])

    def close(self, move: str, session: str, by: str) -> None:
        found = self._own(session, by)
        if found.closed:
            raise Says(Refusal.CLOSED)
        found.closed = True
        lanes = [b.lane for b in self.bindings[::-1] if b.session == session and b.ended is None]
        self._record(move, "close", [(lane, None, "close") for lane in lanes], session)

    def reopen(self, session: str, by: str) -> None:
        self._may_reopen(session, by)
        self.sessions[session].closed = False

    def undo_move(self, move: str, undo: str, by: str) -> None:
        record = self.moves.get(move)
        if record is None or record.undone:
            raise Says(Refusal.NOTHING_TO_UNDO)
        closed = self.sessions[record.session] if record.kind == "close" and record.session else None
        if closed:
            self._may_reopen(closed.id, by)
        elif not record.made:
            raise Says(Refusal.NOTHING_TO_UNDO)
        for lane, before, after in record.made:
            if self.bound(lane) != after:
                raise Says(Refusal.MOVED_SINCE)
            if before:
                self._readable(before, lane, by)
            if before and self.sessions[before].closed and self.sessions[before] is not closed:
                raise Says(Refusal.CLOSED)
            if before:
                self._readers(before, lane, False, by)  # noqa: FBT003
        if closed:
            closed.closed = False
        record.undone = True
        self._record(undo, "undo", [(lane, before, "undo") for lane, before, _ in record.made])

    def set_title(self, session: str, title: str, by: str) -> Name:
        found = self._own(session, by)
        if found.title is None or found.title[0] != title:
            self._entitle(found, title)
        assert found.title
        return found.title

    def say(self, session: str, who: str, text: str, upto: Name | None = None) -> None:
        found = self.sessions[session]
        name = session, len(found.said) + 1
        found.said.append(Said(name, found.tip, who, text, upto))
        found.tip = name
        self._saw()

    def path(self, tip: Name | None) -> list[Said]:
        found = []
        while tip:
            found.append(self.sessions[tip[0]].said[tip[1] - 1])
            tip = found[-1].parent
        return found[::-1]

    def undo(self, session: str, count: int) -> None:
        starts = self._exchanges(session)
        if not 1 <= count <= len(starts):
            raise Says(Refusal.NOTHING_TO_UNDO)
        self.sessions[session].tip = starts[-count].parent
        self._saw()

    def retry(self, session: str) -> list[str]:
        starts = self._exchanges(session)
        if not starts:
            raise Says(Refusal.NOTHING_TO_RETRY)
        path = self.path(self.sessions[session].tip)
        after = path[path.index(starts[-1]) :]
        people = next((i for i, said in enumerate(after) if said.who in {"agent", "gateway"}), len(after))
        self.sessions[session].tip = starts[-1].parent
        self._saw()
        return [said.text for said in after[:people]]

    def rewind(self, session: str, to: Name) -> None:
        if to not in self._names(self.sessions[session].tip):
            raise Says(Refusal.NOT_FOUND)
        self.sessions[session].tip = to
        self._saw()

    def compress(self, session: str, text: str, upto: Name) -> None:
        if upto not in self._names(self.sessions[session].tip):
            raise Says(Refusal.NOT_FOUND)
        self.say(session, "gateway", text, upto)

    def visible(self, session: str) -> list[str]:
        path = self.path(self.sessions[session].tip)
        for i in range(len(path) - 1, -1, -1):
            if upto := path[i].upto:
                covered = [said.name for said in path].index(upto)
                return [said.text for said in (path[i], *path[covered + 1 : i], *path[i + 1 :])]
        return [said.text for said in path]

    def _exchanges(self, session: str) -> list[Said]:
        starts: list[Said] = []
        before: Said | None = None
        for said in self.path(self.sessions[session].tip):
            goes_on = before and before.who not in {"agent", "gateway"} and before.name[0] == said.name[0]
            if said.who not in {"agent", "gateway"} and not goes_on:
                starts.append(said)
            before = said
        return starts

    def _names(self, tip: Name | None) -> list[Name]:
        return [said.name for said in self.path(tip)]

    def _begin(self, session: Conversation) -> None:
        self.sessions[session.id] = session

    def _own(self, session: str, by: str) -> Conversation:
        found = self.sessions.get(session)
        if found is None or found.owner != by:
            raise Says(Refusal.NOT_FOUND)
        return found

    def _readable(self, session: str, lane: str, by: str, at: Name | None = None) -> Conversation:
        found = self.sessions.get(session)
        been_here = any(b.lane == lane and b.session == session for b in self.bindings)
        if found is None or (by != found.owner and not (been_here and self._has_read(lane, at or found.tip))):
            raise Says(Refusal.NOT_FOUND)
        return found

    def _readers(self, session: str, lane: str, yes: bool, by: str, at: Name | None = None) -> None:  # noqa: FBT001
        found = self.sessions[session]
        own = found.owner == by
        if not (own and (yes or lane not in self.shared)) and not self._has_read(lane, at or found.tip):
            raise Says(Refusal.NEEDS_YES)

    def _has_read(self, lane: str, tip: Name | None) -> bool:
        there = tip is None or (tip[0] in self.sessions and 1 <= tip[1] <= len(self.sessions[tip[0]].said))
        return not there or set(self._names(tip)) <= self.read.get(lane, set())

    def _saw(self) -> None:
        for binding in self.bindings:
            if binding.ended is None:
                names = self._names(self.sessions[binding.session].tip)
                self.read.setdefault(binding.lane, set()).update(names)

    def _may_reopen(self, session: str, by: str) -> None:
        found = self._own(session, by)
        if found.closed and found.depth and found.parent:
            self._may_live(found.parent, found.label)

    def _may_live(self, parent: str, label: str) -> None:
        live = [s for s in self.sessions.values() if s.parent == parent and s.depth and not s.closed]
        if len(live) >= 16:
            raise Says(Refusal.TOO_MANY_CHILDREN)
        if label and label in {s.label for s in live}:
            raise Says(Refusal.LABEL_TAKEN)

    def _entitle(self, session: Conversation, title: str) -> None:
        taken = [
            s.title[1] for s in self.sessions.values() if s.owner == session.owner and s.title and s.title[0] == title
        ]
        session.title = title, max(taken, default=0) + 1

    def _record(
        self, move: str, kind: str, changes: list[tuple[str, str | None, str]], session: str | None = None
    ) -> None:
        made = []
        for lane, to, why in changes:
            before = next((b for b in self.bindings if b.lane == lane and b.ended is None), None)
            if before:
                before.ended, before.ended_move = why, move
            if to:
                self.bindings.append(Binding(lane, to, why, move))
            made.append((lane, before.session if before else None, to))
        session = session or next((to for _, to, _ in changes if to), None)
        self.moves[move] = Record(kind, changes[0][0] if changes else None, session, sorted(made))
        self._saw()
