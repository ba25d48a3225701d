"""The erasure: one transaction that takes the words within an extent and leaves stones.

Law: no row is deleted. Whoever runs a turn that goes is fenced first, so that nothing comes back. What can't be done in
a transaction (files, free space, platforms) is left to whoever cleans up after it.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial

import msgspec

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.exchange import edits, handoffs, readers
from segue.changes.exchange.edits import Deleted
from segue.changes.exchange.readers import Reader
from segue.changes.forgetting import dead_letters
from segue.changes.forgetting import extent as extents
from segue.changes.forgetting.extent import Extent, TimeRun, TurnId, uncited
from segue.changes.people import actors, notes, tokens
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves, search, sessions
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, Audience, Identity, Person, Place
from segue.core.messages import Stone, encode_parts, plain_text
from segue.core.text.search_words import words_of
from segue.core.transcripts import Tip
from segue.core.turns import TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q

_REPEATS = 5
_RARE = 12
"""Words of what goes that are looked for elsewhere."""
_LONG = 5
"""Letters of a word that may tell one text from another."""


class ForgettingKind(StrEnum):
    """Extents of a forgetting."""

    EXCHANGE = "exchange"
    SESSION = "session"
    PERSON = "person"


class Cause(StrEnum):
    """Why something is forgotten."""

    ASKED = "asked"
    """Its person asked for it."""
    DELETED = "deleted"
    """Its author deleted the message on the platform, where the host lets that count."""
    RETENTION = "retention"
    """The host keeps nothing for so long."""
    HOST = "host"
    """The host had a person forgotten."""


class Reason(Value, frozen=True):
    """Who has something forgotten, why, and where the receipt is told."""

    by: PersonId
    why: Cause
    at: Moment
    address: str = ""
    """Empty if nobody waits for a receipt."""
    answers: tuple[str, ...] = ()


class Repeat(Value, frozen=True):
    """An entry elsewhere that has words of what was forgotten."""

    session: SessionId
    n: int
    title: str


class Removed(Value, frozen=True):
    """The result of a forgetting: what it took and what it couldn't reach, without any words."""

    said: int = 0
    calls: int = 0
    summaries: int = 0
    sessions: int = 0
    files: tuple[str, ...] = ()
    work: tuple[TimeRun, ...] = ()
    schedules: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """Models that were told of it: their providers may keep a copy."""
    asked_on: tuple[str, ...] = ()
    """Accounts on whose platforms people's own messages stand."""
    repeats: tuple[Repeat, ...] = ()
    places: tuple[str, ...] = ()
    """Addresses where the gateway itself may have quoted it."""
    notes: int = 0


class PersonStep(Value, frozen=True):
    """One thing of a person that is to be forgotten: an exchange in another's session, or a session of their own."""

    session: SessionId
    n: int
    """The entry that they said; 0 for the whole session."""
    seq: int
    """The place of that entry among all; what they said before it is forgotten."""


Find = Callable[[], Transaction[Extent]]
"""Finds what is to go, as it stands now."""


def take(find: Find, kind: ForgettingKind, of: Tip | SessionId | None, reason: Reason) -> Transaction[Removed]:
    """Take what is in an extent."""
    extent = yield from _held(find, reason)
    session, n = (of.session, of.n) if isinstance(of, Tip) else (of, 0)
    id = yield from one(
        int,
        q.add_forgetting(
            kind=kind,
            session=session,
            n=n,
            by=reason.by,
            why=reason.why,
            at=reason.at,
            address=reason.address,
            answers=msgspec.json.encode(reason.answers).decode(),
            taken="{}",
        ),
    )
    stone = Stone(reason.at, reason.by)
    yield from _stop(extent, reason.at)
    yield from _lay_stones(extent, id, stone, nameless=int(reason.why is Cause.HOST))
    places = yield from _clear(extent, id, reason.at)
    places |= yield from _drop_notes(extent)
    schedules = yield from _end_sessions(extent, reason.at)
    repeats = yield from _repeats(extent, reason)
    found = {"schedules": tuple(schedules), "repeats": repeats, "places": tuple(sorted(places))}
    taken = msgspec.structs.replace(_counted(extent), **found)
    yield q.set_taken(id=id, taken=msgspec.json.encode(taken).decode())
    owner = (yield from sessions.known(session)).owner if session else ""
    what = "notes" if extent.notes and not extent.held else kind
    yield from audit.note(Fact(Event.FORGOT, owner, reason.by, detail=f"{what}, {reason.why}"), reason.at)
    yield Wake(Topic.FORGOTTEN)
    return taken


def _held(find: Find, reason: Reason) -> Transaction[Extent]:
    """The extent with all its sessions locked, so that nothing comes to it any more; those that go whole are closed."""
    held: set[SessionId] = set()
    while True:
        extent = yield from find()
        more = extent.held - held
        if not more:
            return extent
        for id in sorted(more & set(extent.sessions)):
            yield from _close(id, reason.at)
        for id in sorted(more):
            yield q.lock_session(session=id)
        held |= more


def _close(id: SessionId, at: Moment) -> Transaction[None]:
    """Let every lane go of a session; what runs in it is stopped."""
    session = yield from sessions.known(id)
    running = yield from handoffs.running(id)
    if running is not None:
        yield from handoffs.cancel(running.id, running.by, at)
    if session.closed is None:
        # Its move needs an id that is the same whenever this runs again.
        yield from moves.close(id, session.owner, f"forget/{id}/{at}", at, moves.AtWork.STOPPED)


def exchange(entry: Tip, reason: Reason) -> Transaction[Removed]:
    """Forget the exchange that an entry is a part of."""
    find = partial(extents.of_exchange, entry.session, entry.n)
    return (yield from take(find, ForgettingKind.EXCHANGE, entry, reason))


def turn(turn: TurnId, reason: Reason) -> Transaction[Removed]:
    """Forget a turn with all that belongs to it, answered or not."""
    find = partial(extents.of_turn, turn.session, turn.turn)
    return (yield from take(find, ForgettingKind.EXCHANGE, turn.session, reason))


def deleted(message: str, address: Address, person: Person, at: Moment) -> Transaction[Deleted]:
    """Forget the exchange of a message that its author deleted on the platform."""
    said = yield from edits.turn_of(message, address, person)
    if said is None or said.kind is not TurnKind.ARRIVAL:
        return Deleted.UNKNOWN
    yield from turn(TurnId(said.session, said.answered), Reason(person.id, Cause.DELETED, at))
    return Deleted.SAID


def session(session: SessionId, reason: Reason) -> Transaction[Removed]:
    """Forget a session with the children that it spawned."""
    return (yield from take(partial(extents.of_session, session), ForgettingKind.SESSION, session, reason))


def noted(ids: Sequence[str], reason: Reason) -> Transaction[Removed]:
    """Forget notes about a person."""
    return (yield from take(partial(extents.of_notes, ids), ForgettingKind.PERSON, None, reason))


def next_of_person(person: PersonId, after: int) -> Transaction[PersonStep | None]:
    """Find the next thing that a person owns, or said in another's session after a place; only reads."""
    person = yield from actors.now(person)
    own = yield from first(SessionId, q.unforgotten(person=person))
    if own is not None:
        return PersonStep(own, 0, 0)
    return (yield from first(PersonStep, q.said_by(person=person, after=after)))


def person_step(step: PersonStep, reason: Reason) -> Transaction[None]:
    """Forget a thing that a person owns or said."""
    if step.n:
        yield from exchange(Tip(step.session, step.n), reason)
    else:
        yield from session(step.session, reason)


def person_end(person: PersonId, reason: Reason) -> Transaction[None]:
    """Forget what is left of a person once nothing that they said stands: names and dead letters."""
    person = yield from actors.now(person)
    for identity in (yield from each(Identity, q.identities_of(person=person))):
        yield from dead_letters.clear_person(identity, reason.at)
    for note in (yield from notes.of(person)):
        yield from notes.drop(note.id)
    yield from tokens.forget_person(person, reason.by, reason.at)
    yield q.forget_name(person=person)
    yield q.forget_name_in_turns(person=person)
    yield q.forget_names_of_places(person=person)
    yield from take(extents.nothing, ForgettingKind.PERSON, None, reason)


def _stop(extent: Extent, at: Moment) -> Transaction[None]:
    """End what waits or runs, and fence whoever runs it."""
    fenced: set[SessionId] = set()
    for turn in extent.turns:
        running = bool((yield q.runs_in(session=turn.session, turn=turn.turn)))
        if (yield q.end_for_good(session=turn.session, turn=turn.turn, at=at)) and running:
            fenced.add(turn.session)
    for session in sorted(fenced):
        yield q.fence_session(session=session)
        yield Wake(Topic.LOOK, session)
        yield Wake(Topic.TURNS)


def _lay_stones(extent: Extent, id: int, stone: Stone, nameless: int) -> Transaction[None]:
    """Put stones where the words were; `nameless` is 1 if the names of who said them go, too."""
    alone = encode_parts((stone,))
    for entry in (*extent.entries.values(), *extent.citing.values()):
        tip, words = entry.tip, " ".join(words_of(plain_text(entry.parts)))
        whole = tip in extent.entries
        if whole and all(isinstance(part, Stone) for part in entry.parts):
            continue
        parts = alone if whole else encode_parts(uncited(entry.parts, extent.texts, stone))
        yield q.add_erasure(forgetting=id, session=tip.session, n=tip.n)
        yield q.lay_stone(session=tip.session, n=tip.n, parts=parts, nameless=nameless if whole else 0)
        if whole and words:
            # Whoever makes it findable at this moment is done by now, or finds the stone.
            yield q.drop_from_index(seq=entry.seq, tokens=words, owner=entry.owner, indexed=int(entry.indexed))
    for turn, cited in extent.citing_turns.items():
        parts = encode_parts(uncited(cited, extent.texts, stone))
        yield q.lay_stone_on_turn(session=turn.session, turn=turn.turn, parts=parts)
    for turn in extent.turns:
        yield q.lay_stone_on_turn(session=turn.session, turn=turn.turn, parts=alone)
        yield q.lay_stone_on_journal(session=turn.session, turn=turn.turn, parts=alone)


def _drop_notes(extent: Extent) -> Transaction[set[str]]:
    """Take the notes that come of it, also from what agents were told; returns where the gateway may quote them."""
    people, places = set[PersonId](), set[str]()
    for session in sorted(extent.held):
        people.add((yield from sessions.known(session)).owner)
    for note in sorted(extent.notes):
        person = yield from notes.drop(note)
        people |= {person} if person else set()
    for person in sorted(people):
        # What an agent was told may be a note that stands no more: what was put in its place has other words.
        yield from notes.untell(person)
        places |= set((yield from each(str, q.private_places_of(person=person))))
    return places


def _clear(extent: Extent, id: int, at: Moment) -> Transaction[set[str]]:
    """Clear what was sent and the dead letters that it came as; returns where the gateway may have quoted it."""
    for turn in extent.turns:
        keys = {"first": f"{turn.session}/{turn.turn}/", "last": f"{turn.session}/{turn.turn}0"}
        yield q.clear_deliveries(forgetting=id, at=at, **keys)
        yield q.clear_questions(session=turn.session, turn=turn.turn, at=at)
    places: set[str] = set()
    for session in sorted(extent.held):
        yield q.clear_partial(session=session)
        yield q.clear_states(session=session)
        yield q.void_states(session=session)
        places |= set((yield from each(str, q.places_of_session(session=session))))
    yield from dead_letters.clear_messages(extent.messages, at)
    return places


def _end_sessions(extent: Extent, at: Moment) -> Transaction[list[str]]:
    """Take the titles, labels, tokens and scheduled work of sessions that go whole; returns which work that was."""
    ended: list[str] = []
    for id in extent.sessions:
        for schedule in (yield from each(str, q.forget_schedules(session=id, at=at))):
            yield q.forget_runs(schedule=schedule, at=at)
            ended.append(schedule)
        yield q.forget_titles(session=id, at=at)
        yield q.forget_contexts(session=id)
        yield q.revoke_tokens_of_session(session=id, at=at)
        yield q.forget_session(session=id, at=at)
    return ended


def _counted(extent: Extent) -> Removed:
    asked_on = {
        f"{address.platform}.{address.account}"
        for words in extent.turns.values()
        if words is not None and words.message and words.route
        for address in [Address.parse(words.route)]
    }
    return Removed(
        extent.said,
        extent.calls,
        extent.summaries,
        len(extent.sessions),
        tuple(sorted(extent.files)),
        tuple(extent.work),
        (),
        tuple(sorted(extent.models)),
        tuple(sorted(asked_on)),
        notes=len(extent.notes),
    )


def _repeats(extent: Extent, reason: Reason) -> Transaction[tuple[Repeat, ...]]:
    """Entries that are left and have the longest of these words: a model, or a person, may have repeated them.

    Of the sessions of whoever asked, as far as those know them who read the receipt.
    """
    if not reason.address:
        return ()
    place = yield from first(Place, q.address(address=reason.address))
    alone = place is not None and place.audience is Audience.ONE
    reader, by = Reader(() if alone else (Address.parse(reason.address),)), (yield from actors.now(reason.by))
    words = {word for text in extent.texts for word in words_of(text) if len(word) >= _LONG}
    found: dict[Tip, str] = {}
    for word in sorted(words, key=lambda word: (-len(word), word))[:_RARE]:
        for entry in (yield from readers.seen(reader, (yield from search.search(by, word, _REPEATS)))):
            if word in words_of(entry.text):
                found[entry.tip] = yield from readers.title(reader, entry.tip.session)
    return tuple(Repeat(tip.session, tip.n, title) for tip, title in [*found.items()][:_REPEATS])
