"""Exports and imports: a session as a transcript that a file can hold, and back."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from segue.changes.people import actors
from segue.changes.places import addresses
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves, sessions, titles, transcripts
from segue.core.contracts.agents import Usage
from segue.core.contracts.database import Transaction
from segue.core.exports.jsonl import Cost, Leap, Line, Transcript, transcript_of
from segue.core.lanes import Lane, Place, Rules
from segue.core.messages import Aside, Citation, Citing, Notice, Part, Parts, Summary
from segue.core.moves import Why
from segue.core.titles import new_title, parse
from segue.core.transcripts import IMPORTED, Author, Draft, Entry, Role, Session, Tip
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved

_CHUNK = 500
_ALL = 2**31 - 1
_CAME_AS = "import/"
"""A setting's name, with an owner and a session's id where it was exported: the session that it became here."""
_PARENT = "import-parent/"
"""A setting's name, with the id of a session: the id of its parent elsewhere, which never came here."""
_COPIED = "import-copied/"
"""A setting's name, with the id of a session: the entries elsewhere that its first ones are copies of, as JSON."""


def transcript(session: SessionId, owner: PersonId) -> Transaction[Transcript]:
    """All that one of a person's own sessions holds: every branch, and what it goes on from in other sessions."""
    yield from sessions.own(session, owner)
    return (yield from whole(session))


def whole(session: SessionId) -> Transaction[Transcript]:
    """The same, for whoever was found to be its owner before."""
    found = yield from one(Session, q.session(session=session))
    own: list[Entry] = []
    while more := (yield from sessions.entries_since(session, own[-1].tip.n if own else 0, _CHUNK)):
        own += more
    moves = (yield from transcripts.tip_changes(session, _ALL))[::-1]
    ends = [tip for move in moves for tip in (move.before, move.after)]
    inherited: dict[Tip, Entry] = {}
    for tip in dict.fromkeys([*(entry.parent for entry in own), found.tip, *ends]):
        if tip is not None and tip.session != session and tip not in inherited:
            path = yield from transcripts.path(tip)
            inherited |= {entry.tip: entry for entry in path}
    costs = yield from each(Cost, q.costs_of(session=session))
    # Databases differ in how they sort words.
    costs.sort(key=lambda cost: (cost.turn, cost.usage.model))
    made = transcript_of(found, [*inherited.values(), *own], moves, costs)
    if copied := (yield from _copied(session)):
        told = [replace(line, origin=origin) for line, origin in zip(made.lines, copied, strict=False)]
        made = replace(made, lines=(*told, *made.lines[len(told) :]))
    if not made.parent and (parent := (yield from first(str, q.setting(name=f"{_PARENT}{session}")))):
        return replace(made, parent=parent)
    return made


class Origin(Value, frozen=True):
    """Where an imported session comes from, if it wasn't an export."""

    key: str = ""
    """Its key there; a session with the same key is brought in once."""
    parent: SessionId | None = None
    after: Tip | None = None
    """The entry that its first entries follow; a summary of entry 0 stands for all up to here."""
    usage: tuple[Usage, ...] = ()
    """Its cost there, by model."""


class Brought(Value, frozen=True):
    """The session that a transcript became, now or when it was brought in before."""

    session: SessionId
    new: bool


class Numbering(Value, frozen=True):
    """The entries that the numbers of a transcript name here."""

    session: SessionId
    linked: tuple[Tip, ...] = ()
    """Entries of other sessions, which its first lines are."""

    def tip(self, number: int | None) -> Tip | None:
        """The entry of a number; None for none."""
        if not number:
            return None
        count = len(self.linked)
        return self.linked[number - 1] if number <= count else Tip(self.session, number - count)


class Furnished(Value, frozen=True):
    """A lane, and whether it was given its sessions now; if not, it was in use and stays as it is."""

    lane: Lane
    new: bool


class Stay(Value, frozen=True):
    """A session that a lane spoke to since a time."""

    session: SessionId
    since: Moment
    move: str
    """An id for the move that bound it."""


def brought_before(key: str) -> Transaction[SessionId | None]:
    """The session that came from elsewhere under a key."""
    return (yield from first(SessionId, q.setting(name=key)))


def bring(
    transcript: Transcript, owner: PersonId, session: SessionId, at: Moment, origin: Origin | None = None
) -> Transaction[Brought]:
    """Make a session of a transcript, with its entries as they were, under the title's lineage at its new owner.

    Anybody may have written it: what it tells in the gateway's name is marked as imported.
    """
    origin = origin or Origin()
    owner = yield from actors.hold(owner)
    if origin.key:
        if before := (yield from brought_before(origin.key)):
            return Brought(before, new=False)
        if not (yield q.add_setting(name=origin.key, value=session)):
            raise Moved
    parent = origin.parent or (yield from _parent_here(transcript.parent, owner))
    yield q.add_session(
        session=session,
        owner=owner,
        origin=None,
        parent=parent,
        depth=0,
        label="",
        ending="session",
        tip_session=None,
        tip=None,
        at=transcript.began,
    )
    here = Numbering(session, (yield from _links(transcript, owner)))
    own = transcript.lines[len(here.linked) :]
    yield from _add_entries(own, here, origin.after)
    tip = here.tip(transcript.tip) or origin.after
    yield transcripts.set_tip(session, tip, len(own), transcript.used)
    yield from _add_leaps(transcript.leaps, here)
    # New turns go on counting after those that the entries and the costs name.
    turns = [line.turn for line in transcript.lines] + [cost.turn for cost in transcript.costs]
    yield q.skip_turns(session=session, turn=max(turns, default=0))
    # Turn 0 is before the first; the size of its last request isn't known.
    for cost in (*transcript.costs, *(Cost(0, used, 0, transcript.used) for used in origin.usage)):
        spent = msgspec.structs.asdict(cost.usage)
        yield q.add_usage(session=session, turn=cost.turn, size=cost.size, at=cost.at, **spent)
    if transcript.session:
        yield q.set_setting(name=f"{_CAME_AS}{owner}/{transcript.session}", value=session)
    if copied := [line.origin for line in own if line.origin]:
        yield q.set_setting(name=f"{_COPIED}{session}", value=msgspec.json.encode(copied).decode())
    if transcript.parent and not parent:
        yield q.set_setting(name=f"{_PARENT}{session}", value=transcript.parent)
    if transcript.title:
        name, number = parse(transcript.title)
        yield from titles.take(session, owner, new_title(name), at, number or 1)
    return Brought(session, new=True)


def furnish(
    place: Place, aliases: Sequence[str], person: PersonId, rules: Rules, stays: Sequence[Stay], merge: str, at: Moment
) -> Transaction[Furnished]:
    """Let a lane that never spoke to a session have spoken to these, and to the last of them still."""
    lane = yield from addresses.lane(place, aliases, person, rules, merge, at)
    yield q.lock_lane(lane=lane.key)
    if (yield q.lane_history(lane=lane.key, count=1)):
        return Furnished(lane, new=False)
    person = yield from actors.now(person)
    for stay in stays:
        yield q.add_move(move=stay.move, kind="renew", lane=lane.key, session=stay.session, by=person, at=stay.since)
        why = Why.FIRST if stay is stays[0] else Why.NEW
        yield from moves.bind(lane, stay.session, why, person, stay.move, stay.since)
    return Furnished(lane, new=True)


def _links(transcript: Transcript, owner: PersonId) -> Transaction[tuple[Tip, ...]]:
    """The entries of the owner's sessions here that the first lines of a transcript are, so that a fork copies nothing.

    None of them if one isn't here as it is told: it may have been forgotten, or never have come.
    """
    inherited = [line for line in transcript.lines if line.origin]
    if not inherited or any(line.origin is None for line in transcript.lines[: len(inherited)]):
        return ()
    came: dict[SessionId, tuple[SessionId | None, int]] = {}
    known: dict[Tip, Tip] = {}
    names = [line.origin.session for line in inherited if line.origin]
    for name in dict.fromkeys([*names, *([SessionId(transcript.parent)] if transcript.parent else [])]):
        session = yield from _parent_here(name, owner)
        copies = (yield from _copied(session)) if session and session != name else []
        came[name] = session, len(copies)
        known |= {origin: Tip(session, n) for n, origin in enumerate(copies, 1) if session}
    for origin in (line.origin for line in inherited if line.origin):
        session, before = came[origin.session]
        if origin not in known and session:
            known[origin] = Tip(session, origin.n + before)
    tips = [known[line.origin] for line in inherited if line.origin in known]
    if len(tips) < len(inherited):
        return ()
    here, entries = Numbering(SessionId(""), tuple(tips)), dict[Tip, Entry]()
    for line in reversed(inherited):
        tip = tips[line.number - 1]
        if tip not in entries:
            if (yield from transcripts.entry(tip)) is None:
                return ()
            entries |= {entry.tip: entry for entry in (yield from transcripts.path(tip))}
        if not _same(entries[tip], line, here):
            return ()
    return tuple(tips)


def _copied(session: SessionId) -> Transaction[list[Tip]]:
    """The entries elsewhere that the first ones of an imported session are copies of."""
    found = yield from first(str, q.setting(name=f"{_COPIED}{session}"))
    return msgspec.json.decode(found, type=list[Tip]) if found else []


def _same(entry: Entry, line: Line, here: Numbering) -> bool:
    """Whether an entry here is what a line tells, be it as the gateway's own word or as an import marks it."""
    told = [(line.author, line.parts), _imported(line)]
    told = [(author, tuple(_named(part, here, None) for part in parts)) for author, parts in told]
    return (entry.author, entry.parts) in told and (entry.at, entry.parent) == (line.at, here.tip(line.parent))


def _add_entries(lines: Sequence[Line], here: Numbering, after: Tip | None) -> Transaction[None]:
    for line in lines:
        author, parts = _imported(line)
        draft = Draft(author, tuple(_named(part, here, after) for part in parts), line.source, line.at)
        parent, before = here.tip(line.parent) or after, line.number - len(here.linked) - 1
        yield from transcripts.add(here.session, parent, before, [draft], line.at, line.turn)


def _imported(line: Line) -> tuple[Author, Parts]:
    """The author and the parts of an imported entry: nothing in it is this gateway's word, and people see all of it."""
    if line.author.role is Role.GATEWAY:
        return IMPORTED, tuple(Notice(part.text) if isinstance(part, Aside) else part for part in line.parts)
    return line.author, tuple(
        Citation(part.text, name=IMPORTED.name, kind=Citing.FORWARD) if isinstance(part, Aside) else part
        for part in line.parts
    )


def _add_leaps(leaps: Sequence[Leap], here: Numbering) -> Transaction[None]:
    for leap in leaps:
        before, after = here.tip(leap.before), here.tip(leap.after)
        yield transcripts.moved(here.session, before, after, leap.why, leap.by, leap.at)


def _parent_here(parent: str, owner: PersonId) -> Transaction[SessionId | None]:
    """The owner's session that a parent became here, or the parent itself."""
    if not parent:
        return None
    here = yield from first(SessionId, q.setting(name=f"{_CAME_AS}{owner}/{parent}"))
    found = yield from first(Session, q.session(session=here or SessionId(parent)))
    return found.id if found and found.owner == owner else None


def _named(part: Part, here: Numbering, after: Tip | None) -> Part:
    """A part as this session keeps it: a summary names its last entry by session and number."""
    if not isinstance(part, Summary):
        return part
    last = here.tip(part.n) or after or Tip(here.session, 0)
    return Summary(part.text, last.session, last.n)
