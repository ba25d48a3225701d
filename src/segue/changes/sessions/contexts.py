"""Contexts: what an agent is told about where and with whom it talks, kept so that it stays the same.

Law: a section holds for the lanes that it was written for and after the summary that it was written after. It is
rewritten when a turn comes from another lane after one of these went away, which is what a handoff leads to, and after
a compaction; never because somebody else speaks, a topic changed, a note was written or a lane went away. A lane that
joins the others is told of in the transcript, so that all that a model was sent stays as it was, unless the section
tells what its readers aren't to know. A compaction that is taken back brings back what was told before it. A section is
void otherwise only when the host hides ids or shows them again, when another agent answers that keeps notes, and when
something was forgotten.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from segue.changes.exchange import turns
from segue.changes.people import persons
from segue.changes.places import addresses, lanes
from segue.changes.rows import each, first, one
from segue.changes.sessions import transcripts
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Identity, Lane, Place
from segue.core.messages import Aside
from segue.core.prompt.envelopes import Voices
from segue.core.transcripts import GATEWAY, Draft, Session, Tip
from segue.core.turns import Claim, Turn
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q


class Basis(Value, frozen=True):
    """The facts that a section is written for, beside the lanes that it knows of."""

    summary: str = ""
    """The summary that stood for what was said before; empty if there was none."""
    redaction: str = ""
    """The ids that were hidden in it."""
    agent: str | None = None
    """The agent that is told it, if that is one that keeps notes."""


class Context(Value, frozen=True):
    """The prompt section of a session, and the facts that it was written for."""

    lanes: tuple[str, ...]
    """The lanes that it knows of, by their keys."""
    basis: Basis
    voices: Voices
    section: str
    notes: tuple[str, ...] | None
    """The agent's notes about the person as they were then; None where there is no notebook."""


class Staying(Value, frozen=True):
    """A lane that speaks to a session and will, with its place."""

    lane: Lane
    place: Place


class Spoken(Value, frozen=True):
    """As whom and where somebody spoke to a session; `route` is an address's key, or empty."""

    identity: Identity
    route: str


class Surroundings(Value, frozen=True):
    """The lanes of a session, the newest first, the homes there are, and its owner."""

    lanes: tuple[Lane, ...]
    places: tuple[Place, ...]
    homes: tuple[Place, ...]
    owner: tuple[Identity, ...]
    was: tuple[PersonId, ...] = ()
    """The persons who turned out to be the owner; entries keep the one that they were said by."""

    @property
    def shared(self) -> frozenset[str]:
        """The lanes that many people read, by their keys."""
        both = zip(self.lanes, self.places, strict=True)
        return frozenset(lane.key for lane, place in both if place.audience is Audience.MANY)


ReadNotes = Callable[[SessionId, Turn, str | None], Transaction[tuple[str, ...] | None]]
"""Reads an agent's notes about the person of a turn; None where there is no notebook."""


def no_notes(_session: SessionId, _turn: Turn, _agent: str | None) -> Transaction[None]:
    """No notebook."""
    yield from ()


class Composed(Value, frozen=True):
    """A section for what there is; or an aside, if what was told before may stay."""

    voices: Voices
    section: str
    aside: str = ""


Compose = Callable[[Surroundings, frozenset[str]], Composed]
"""Writes of what there is; some of its lanes, by their keys, may have been told of and be there still."""


class Told(Value, frozen=True):
    """The section of a session as its agent is told it, and the places that speak to it."""

    context: Context
    places: tuple[Place, ...]
    tip: Tip | None = None
    """Where the session ends, if a place was just told of in its transcript."""


def current(session: SessionId, turn: Turn) -> Transaction[Told | None]:
    """The prompt section that the agent got last; None if others read the session of whom it says nothing."""
    context = yield from first(Context, q.context(session=session))
    if context is None:
        return None
    staying = yield from each(Staying, q.lanes_staying(session=session))
    shared = {stays.lane.key for stays in staying if stays.place.audience is Audience.MANY}
    if not shared.issubset(context.lanes) and not shared <= (yield from _as_now(context)):
        return None
    places = tuple(stays.place for stays in staying)
    if turn.lane is not None and all(stays.lane.key != turn.lane for stays in staying):
        places = ((yield from one(Place, q.place_of(lane=turn.lane))), *places)
    return Told(context, places)


def renew(
    held: Claim, turn: Turn, basis: Basis, compose: Compose, at: Moment, read: ReadNotes = no_notes
) -> Transaction[Told]:
    """The prompt section from now on; the one before if it still holds."""
    yield from turns.check(held)
    context = yield from first(Context, q.context(session=held.session))
    around = yield from _with(turn, (yield from surroundings(held.session)))
    told = yield from first(Context, q.context_after(session=held.session, **msgspec.structs.asdict(basis)))
    known = (yield from _as_now(told)) if told else frozenset[str]()
    tip = None
    if told is None or not around.shared <= known or not (yield from _known(known, turn, around)):
        here = tuple(lane.key for lane in around.lanes)
        written = compose(around, known if turn.lane is not None and known.issubset(here) else frozenset())
        if told is not None and written.aside:
            told = replace(told, lanes=here, voices=written.voices)
            tip = yield from transcripts.append(held.session, [Draft(GATEWAY, (Aside(written.aside),))], at)
        else:
            notes = yield from read(held.session, turn, basis.agent)
            told = Context(here, basis, written.voices, written.section, notes)
    if told != context:
        yield q.add_context(
            session=held.session,
            lanes=msgspec.json.encode(told.lanes).decode(),
            voices=told.voices,
            section=told.section,
            notes=msgspec.json.encode(told.notes).decode() if told.notes is not None else None,
            at=at,
            **msgspec.structs.asdict(basis),
        )
    return Told(told, around.places, tip)


def surroundings(session: SessionId) -> Transaction[Surroundings]:
    """The lanes of a session, the homes, and its owner."""
    staying = yield from each(Staying, q.lanes_staying(session=session))
    homes = yield from addresses.homes()
    owner = (yield from one(Session, q.session(session=session))).owner
    return Surroundings(
        tuple(stays.lane for stays in staying),
        tuple(stays.place for stays in staying),
        tuple(home.place for home in homes),
        tuple((yield from persons.identities(owner))),
        tuple((yield from each(PersonId, q.everyone_in(person=owner)))),
    )


def nameable(session: SessionId) -> Transaction[list[Identity | Address]]:
    """The things an agent may name by an id in a session: its people and their places, its lanes, and the homes."""
    around = yield from surroundings(session)
    spots: dict[Identity | Address, None] = {place.address: None for place in (*around.places, *around.homes)}
    for spoken in (yield from each(Spoken, q.sources(session=session))):
        spots[spoken.identity] = None
        if spoken.route:
            spots[Address.parse(spoken.route)] = None
    return list(spots)


def _with(turn: Turn, around: Surroundings) -> Transaction[Surroundings]:
    """The surroundings with the lane that a turn comes from, which may speak to another session: by a quote."""
    if turn.lane is None or any(lane.key == turn.lane for lane in around.lanes):
        return around
    place = yield from one(Place, q.place_of(lane=turn.lane))
    return replace(around, lanes=(Lane.parse(turn.lane), *around.lanes), places=(place, *around.places))


def _as_now(context: Context) -> Transaction[frozenset[str]]:
    """The lanes that were told of, by the keys that they have now."""
    told: set[str] = set()
    for key in context.lanes:
        told.add((yield from lanes.now(Lane.parse(key))).key)
    return frozenset(told)


def _known(told: frozenset[str], turn: Turn, around: Surroundings) -> Transaction[bool]:
    """Whether a turn comes from a lane that was told of, perhaps under another id of its chat or its person."""
    if turn.lane is not None:
        return (yield from lanes.now(Lane.parse(turn.lane))).key in told
    return all(lane.key in told or lane.address.key != turn.route for lane in around.lanes)
