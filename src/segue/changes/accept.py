"""The front door: one transaction from a message as it came in to a turn that waits for its session.

Law: seen, who, where, may they, command or words, session, queue. All of it happens once, or none of it does.
"""

import json
from collections.abc import Callable, Collection, Mapping
from enum import Enum, StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.commands.request import Answer, Request
from segue.changes.exchange import deliveries, edits, letters, questions, quotes
from segue.changes.exchange.edits import Deleted, Edited
from segue.changes.exchange.letters import DeadLetter
from segue.changes.exchange.turns import Slot
from segue.changes.forgetting import erasure
from segue.changes.people import persons
from segue.changes.people.access import Pass, Refuse, Verdict, anybody
from segue.changes.people.allowances import Allowing, Weighed
from segue.changes.people.persons import Known, Met
from segue.changes.places import addresses, audiences, lanes, merges
from segue.changes.rows import RowsOf, batch, first, must, one
from segue.changes.sessions import moves, resets, sessions, transcripts
from segue.changes.sessions.rows import Bound
from segue.core.commands import Command, Means, Unknown, nearest, parse
from segue.core.contracts.database import Statement, Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Identity, Kind, Lane, Person, Place, Sharing, account_key, clean_place, lane_of
from segue.core.messages import Arrival, Aside, File, Parts, Telling, Text, encode_parts, plain_text
from segue.core.moves import Consent, Fork, Renew, Resume, Why
from segue.core.people import EVER, MINUTE, Limit, PersonTally, Standing
from segue.core.prompt.section import RESET, first_words
from segue.core.resets import Due, due, notice
from segue.core.settings import (
    NO_ACCOUNT,
    AccountSettings,
    Busy,
    Deletions,
    DmThreads,
    GatewaySettings,
    Mentions,
    Quotes,
)
from segue.core.text.notices import ELSEWHERE, unknown, welcome
from segue.core.text.visible import blank
from segue.core.transcripts import GATEWAY, Draft, Session, Source, Tip
from segue.core.turns import Claim, Room, Run, Turn, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Refused

_ANYBODY = "?"
ALBUM = 1.0
"""Seconds after the newest picture of an album until its turn is due."""


class Fresh(Value, frozen=True):
    """Ids and the time of one arrival, made before its transaction so that it can run again."""

    person: PersonId
    session: SessionId
    move: str
    merges: tuple[str, ...]
    """One for the chat, then one for each alias of the person."""
    trace: str
    at: Moment


class Duplicate(Value, frozen=True):
    """The same message came before; it is safe to acknowledge."""


class Handled(Enum):
    """Why an arrival became no turn."""

    REFUSED = "its person may not"
    COMMAND = "it was a command"
    EDITED = "it replaced words that still waited"
    EDITED_LATER = "it stands after what it edits"
    WITHDRAWN = "it took back words that still waited"
    HIDDEN = "it took back words that were said"
    NOTHING_SAID = "it told of a place and had no words"
    NOT_MEANT = "it was for the people there"


_DELETED = {
    Deleted.WAITING: Handled.WITHDRAWN,
    Deleted.SAID: Handled.HIDDEN,
    Deleted.UNKNOWN: Handled.NOTHING_SAID,
}


class FilesFirst(Exception):
    """A message is let in, and its files aren't here yet: nothing was changed, it comes again with them."""


class OverLimit(Value, frozen=True):
    """An arrival was refused, since its person has as much as they may; it may come again."""

    limit: Limit
    until: Moment
    """Until when all more of theirs is refused, too; in the past if that isn't known."""


class Queued(Value, frozen=True):
    """An arrival became a turn."""

    session: SessionId
    turn: int
    lane: Lane
    met: Met
    reset: Due | None = None
    run: Run | None = None
    """The run that begins now, if the session was idle and is held by this replica since."""


class Via(StrEnum):
    """How a message comes to the session that it is asked of."""

    BINDING = "binding"
    """Its lane speaks to it."""
    QUOTE = "quote"
    """It answers a message of it; its lane has spoken to it before and goes on as it is."""


class Errand(Value, frozen=True):
    """Work for a session: the words that came in, or what a command makes of them."""

    parts: Parts
    kind: TurnKind = TurnKind.ARRIVAL
    session: SessionId | None = None
    """The session that it is asked of; None is the one that the lane speaks to by now, begun if need be."""
    via: Via = Via.BINDING
    lane: Lane | None = None
    """The lane that speaks to that session, if it isn't the one that the arrival came in; it is answered there."""
    weighed: Weighed = Weighed()


class Spot(NamedTuple):
    """The lane and place of an arrival, under the ids first known for it, and what the lane speaks to, if known."""

    lane: Lane
    place: Place
    speaking: Bound | None
    kept: bool = True
    """Whether the place is kept as it is described now."""


class Looked(Value, frozen=True):
    """The facts about an arrival, looked up before anything is decided."""

    seen: bool
    known: Known | None
    """Its speaker."""
    bound: Bound | None
    """The session of its lane, if all who are there share one."""


class Entering(NamedTuple):
    """An arrival on its way in: who sent it, where, what they may, and the replica that may run it."""

    arrival: Arrival
    fresh: Fresh
    me: str | None
    met: Met
    spot: Spot
    verdict: Verdict


Taken = Queued | Handled | OverLimit | Duplicate
Judge = Callable[[Arrival, Command | Unknown | None, Met, Lane, Moment], Transaction[Verdict]]
RunCommand = Callable[[Request], Transaction[Answer]]


class FrontDoor:
    """Takes arrivals in as the settings say; where nothing runs commands, all that people say is words."""

    def __init__(
        self,
        settings: GatewaySettings,
        judge: Judge = anybody,
        run: RunCommand | None = None,
        agents_own: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._settings = settings
        self._routing = settings.routing
        self._resets = settings.routing.resets.resets
        self._judge = judge
        self._run = run
        self._agents_own = agents_own
        """Words after a slash that the agent itself takes."""
        self._allowing = Allowing(settings)

    def accept(self, arrival: Arrival, fresh: Fresh, me: str | None, room: Room | None = None) -> Transaction[Taken]:
        """Take one message in, exactly once; if its session is idle and there is room, `me` holds it from then on."""
        # Seen?
        arrival, looked, shared = yield from self._look_up(arrival, fresh.at)
        if looked.seen:
            return Duplicate()
        # Who?
        if arrival.chat_aliases:
            yield from merges.expect(arrival.place, arrival.chat_aliases)
        known = {} if arrival.chat_aliases else {arrival.speaker.identity.key: looked.known}
        if arrival.deletes:
            return (yield from self._deleted(arrival, fresh, known))
        met = yield from persons.meet(arrival.speaker, fresh.person, fresh.merges[1:], fresh.at, known)
        # A lane is keyed by nobody if the platform doesn't say who it was.
        who = met.person.id if any((arrival.speaker.identity.user, *arrival.speaker.aliases)) else ""
        # Where?
        spot = yield from self._locate(arrival, met.person, who, fresh, shared, looked.bound)
        # May they?
        text = plain_text(arrival.parts)
        command = parse(text) if self._run and text.lstrip().startswith("/") else None
        if self._run and (arrival.quotes or arrival.pressed or (spot.speaking and spot.speaking.asked)):
            command = (yield from _answers(arrival, met, spot, command, fresh.at)) or command
        verdict = yield from self._judge(arrival, command, met, spot.lane, fresh.at)
        spot = yield from self._for_its_readers(spot, met, verdict, who, fresh)
        runs = me if room is None or room.takes(met.person.id) else None
        came = Entering(arrival, fresh, runs, met, spot, verdict)
        # A command, or words?
        errand = yield from self._errand(came, command)
        if not isinstance(errand, Errand):
            return errand
        if arrival.unfetched:
            raise FilesFirst
        # Which session, and its queue.
        if errand.session is not None:
            return (yield from self._queue(came, errand, errand.session, None))
        if errand.parts is not arrival.parts:
            # A command brought these words, and may have moved its lane.
            came = came._replace(spot=(yield from self._look(spot.place, who)))
        if arrival.edits and (edited := (yield from self._edit(came))):
            return edited
        session, reset = yield from self._session(came)
        return (yield from self._queue(came, errand, session, reset))

    def _deleted(self, arrival: Arrival, fresh: Fresh, known: Mapping[str, Known | None]) -> Transaction[Handled]:
        """Take back what somebody said: whoever said it may, whatever else they may."""
        speaker, there = arrival.speaker, (yield from lanes.settled(Lane(arrival.place.address))).address
        by: Person | None
        if any((speaker.identity.user, *speaker.aliases)):
            by = (yield from persons.meet(speaker, fresh.person, fresh.merges[1:], fresh.at, known)).person
        else:
            # The platform doesn't say who it was: it counts as its author's doing.
            by = yield from edits.author(arrival.deletes, there)
        forgets = self._account(Lane(there)).deletions is Deletions.FORGET
        delete = erasure.deleted if forgets else edits.delete
        return _DELETED[(yield from delete(arrival.deletes, there, by, fresh.at))] if by else Handled.NOTHING_SAID

    def accept_again(
        self, letter: DeadLetter, arrival: Arrival, fresh: Fresh, me: str | None, room: Room | None = None
    ) -> Transaction[Queued | Handled | Duplicate | OverLimit]:
        """Take in what was a dead letter, as if it came for the first time."""
        if not (yield from letters.begin_again(letter, arrival, fresh.at)):
            return Duplicate()
        return (yield from self.accept(arrival, fresh, me, room))

    def _errand(self, came: Entering, command: Command | Unknown | None) -> Transaction[Errand | Handled | OverLimit]:
        """The work that an arrival asks for, unless its person may not, or it was a command that asks for none."""
        arrival, fresh, _, met, spot, verdict = came
        answers = isinstance(command, Command) and command.means is Means.ANSWERED
        meant = arrival.place.kind is Kind.DM or answers or (yield from self._meant(came))
        if isinstance(verdict, Refuse):
            if verdict.notice and meant:
                yield from self._say(came, Answer(verdict.notice))
            return Handled.REFUSED
        if not spot.kept and verdict.standing is not Standing.STRANGER:
            # Strangers leave no place behind.
            yield from _see(spot, fresh.at)
        if all(isinstance(part, Text) and blank(part.text) for part in arrival.parts):
            # Whoever has a conversation there knows how to talk to it.
            if arrival.brings_agent and (spot.speaking is None or spot.speaking.session is None):
                yield from self._say(came, Answer(welcome(arrival.place, spot.lane, self._account(spot.lane))))
            return Handled.NOTHING_SAID
        if isinstance(command, Unknown) and self._agents_own(command.word.casefold()):
            command = None
        if not meant:
            return Handled.NOT_MEANT
        weighed = yield from self._allowing.weigh(arrival, verdict.allowance, met, fresh.at)
        limit = weighed.limit
        if limit is Limit.MESSAGES or (limit is not None and command is None):
            # A command is only ever one of too many in a minute.
            return (yield from self._over(came, limit))
        if command is not None:
            asked = yield from self._command(came, command, verdict)
        else:
            by_quote = arrival.quotes and not arrival.edits and self._settings.quotes is not Quotes.OFF
            asked = (yield from self._quoted(came)) if by_quote else Errand(arrival.parts)
        return replace(asked, weighed=weighed) if isinstance(asked, Errand) else asked

    def _over(self, came: Entering, limit: Limit) -> Transaction[OverLimit]:
        """Refuse a message whose person has as much as they may; it may come again."""
        arrival, fresh, met = came.arrival, came.fresh, came.met
        identity, address = arrival.speaker.identity.key, arrival.place.address
        account = account_key(address.platform, address.account)
        for key in sorted(arrival.keys):
            yield q.unsee(account=account, key=key)
        yield from audit.note(Fact(Event.LIMITED, met.person.id, "", account, identity, limit.name.lower()), fresh.at)
        if (yield q.tell_limit(person=met.person.id, at=fresh.at)):
            yield from self._say(came, Answer(limit.value))
        return OverLimit(limit, met.tally.since + MINUTE if limit is Limit.MESSAGES else 0.0)

    def _command(self, came: Entering, command: Command | Unknown, verdict: Pass) -> Transaction[Errand | Handled]:
        arrival, fresh, met, spot = came.arrival, came.fresh, came.met, came.spot
        if isinstance(command, Unknown):
            return (yield from self._unknown(came, command))
        if arrival.edits:
            # A command ran when it was typed, and what was said as words stays words.
            words = yield from edits.of_words(arrival, spot.place.address, met.person)
            return Errand(arrival.parts) if words else Handled.COMMAND
        if self._run is None:
            return Handled.COMMAND
        labels = self._settings.labels
        request = Request(command, arrival, met, spot.lane, verdict.standing, fresh.trace, fresh.at, labels=labels)
        answer = yield from self._run(request)
        if not answer.ask:
            # A turn is counted as it is queued. Whoever holds a count waits for no session.
            yield q.count_message(person=met.person.id, at=fresh.at)
        if answer.text:
            yield from self._say(came, answer)
        if answer.ask:
            return Errand(answer.ask, answer.kind, answer.session, lane=answer.lane)
        return Handled.COMMAND

    def _unknown(self, came: Entering, command: Unknown) -> Transaction[Handled]:
        """Answer a command that nobody knows, unless it may be meant for somebody else in a group."""
        arrival = came.arrival
        if arrival.edits or not (arrival.place.kind is Kind.DM or arrival.mentions_agent):
            return Handled.NOT_MEANT
        yield q.count_message(person=came.met.person.id, at=came.fresh.at)
        yield from self._say(came, Answer(unknown(command.word, nearest(command.word))))
        return Handled.COMMAND

    def _meant(self, came: Entering) -> Transaction[bool]:
        """Whether a message in a group is for the agent: it names or answers it, or is in a thread that it opened."""
        arrival, address = came.arrival, came.spot.place.address
        if self._account(came.spot.lane).mentions is Mentions.OPTIONAL:
            return True
        if arrival.edits and (yield from edits.of_words(arrival, address, came.met.person)):
            # What was meant for it stays so, though the new words don't say it again.
            return True
        return arrival.mentions_agent or bool(address.thread and (yield from addresses.opened(address)))

    def _quoted(self, came: Entering) -> Transaction[Errand]:
        """Words for the session that wrote the message they answer, if the host lets quotes decide."""
        arrival, lane, place = came.arrival, came.spot.lane, came.spot.place
        here = Errand(arrival.parts)
        session = yield from quotes.session(lane, place, arrival.quotes, came.met.person.id)
        current = yield from sessions.bound(lane)
        if session is None or (current is not None and current.id == session):
            return here
        if self._settings.quotes is Quotes.ONCE:
            return Errand(arrival.parts, session=session, via=Via.QUOTE)
        try:
            actor, move = came.met.person.id, Resume(lane, session, Why.QUOTE)
            yield from moves.make(move, actor, self._routing.limits, came.fresh.move, came.fresh.at)
        except Refused:
            # What can't be switched to now changes nothing: the message is asked where the lane speaks.
            return here
        return Errand(arrival.parts, session=session)

    def _say(self, came: Entering, said: Answer) -> Transaction[None]:
        """Say something where it was asked, or by the way to whoever asked; then it says so here."""
        here, at = came.arrival.place.address, came.fresh.at
        key = questions.key_of(said.question) if said.question else f"notice/{came.fresh.trace}"
        to, only = (said.to.address, said.to.only) if said.to else (here, "")
        answers: tuple[str, ...] = (came.arrival.message,)
        if to != here:
            yield from deliveries.notify(here, ELSEWHERE, f"notice/{came.fresh.trace}/elsewhere", answers, at)
            answers = ()
        yield from deliveries.notify(to, said.text, key, answers, at, said.choices, said.file, only)

    def _account(self, lane: Lane) -> AccountSettings:
        return self._settings.accounts.get((lane.address.platform, lane.address.account), NO_ACCOUNT)

    def _look_up(self, arrival: Arrival, at: Moment) -> Transaction[tuple[Arrival, Looked, Lane | None]]:
        """Remember an arrival by its keys; returns it by ids that count, what was known, and the lane all share."""
        arrival = arrival.bounded
        if arrival.speaker.sole:
            arrival = yield from persons.sifted(arrival)
        place, rules, keys = arrival.place, self._routing.rules, arrival.keys
        # One that depends on who speaks, on what its chat is known as, or on who opened it, is found later.
        apart = arrival.chat_aliases or (place.address.thread and (rules.threads is Sharing.APART or self._one(place)))
        lane = None if apart else lane_of(place, _ANYBODY, rules)
        shared = lane if lane and not lane.person else None
        account = account_key(place.address.platform, place.address.account)
        by = {"identity": arrival.speaker.identity.key, "lane": shared.key if shared else ""}
        # This way an id that no database can keep comes to its driver, which refuses it.
        listed = json.dumps(keys, ensure_ascii=False)
        looked = yield from one(Looked, q.arriving(account=account, keys=listed, **by))
        for key in sorted(keys):
            seen = q.see(account=account, key=key, at=at)
            yield seen if looked.seen else must(seen)
        return arrival, looked, shared

    def _locate(
        self, arrival: Arrival, person: Person, who: str, fresh: Fresh, lane: Lane | None, speaking: Bound | None
    ) -> Transaction[Spot]:
        """The lane and the place of an arrival, as they are described now."""
        place = arrival.place
        if lane is None:
            lane, place, speaking, _ = yield from self._look(arrival.place, who)
        if speaking is None or speaking.session is None or arrival.chat_aliases:
            # Only a lane that isn't known can be another id of one that is. A person is held before a chat.
            yield from _still(person)
            place = yield from merges.settle(place, arrival.chat_aliases, person.id, fresh.merges[0], fresh.at)
            lane, place, speaking, _ = yield from self._look(place, who)
        if arrival.topic is Telling.ONCE:
            place = yield from addresses.as_known(place)
        described = (speaking.kind, speaking.name, speaking.topic) if speaking else None
        if described != (place.kind, place.name, place.topic):
            place = clean_place(place)
        kept = described == (place.kind, place.name, place.topic) and lane.address == place.address
        return Spot(lane, place, speaking, kept)

    def _look(self, place: Place, who: str) -> Transaction[Spot]:
        rules, known, one = self._routing.rules, place, self._one(place)
        if place.address.thread and (rules.threads is Sharing.APART or one):
            if (yield from addresses.opened(place.address)):
                known = Place(place.address, place.kind, place.name, place.topic, opened=True)
            elif one:
                known = Place(place.around, place.kind, place.name)
        lane = lane_of(known, who, rules)
        return Spot(lane, place, (yield from first(Bound, q.bound(lane=lane.key))))

    def _one(self, place: Place) -> bool:
        """Whether threads of this private chat speak to what the chat speaks to."""
        return place.kind is Kind.DM and self._begins(Lane(place.address)) is DmThreads.ONE

    def _begins(self, lane: Lane) -> DmThreads:
        """How threads of private chats begin on a lane's account."""
        return self._account(lane).dm_threads or self._routing.dm_threads

    def _for_its_readers(self, spot: Spot, met: Met, verdict: Verdict, who: str, fresh: Fresh) -> Transaction[Spot]:
        """The lane and the place, which start afresh if other people read there than before."""
        place, speaking, me = spot.place, spot.speaking, met.person.id
        if place.kind is not Kind.DM:
            if spot.kept:
                return spot
            # Also when somebody speaks who may not: the platform says who reads there now.
            yield from _still(met.person)
            afresh = yield from audiences.widen(place, fresh.move, fresh.at)
        elif isinstance(verdict, Refuse) or (spot.kept and (speaking is None or speaking.owner in (None, me))):
            return spot
        else:
            yield from _still(met.person)
            afresh = yield from audiences.keep_private(spot.lane.address, me, fresh.move, fresh.at)
        return (yield from self._look(place, who))._replace(kept=False) if afresh else spot

    def _edit(self, came: Entering) -> Transaction[Handled | None]:
        arrival, address = came.arrival, came.spot.place.address
        match (yield from edits.edit(arrival, address, came.met.person, came.fresh.move, came.fresh.at)):
            case Edited.WAITING:
                return Handled.EDITED
            case Edited.SAID:
                return Handled.EDITED_LATER
            case _:
                return None

    def _session(self, came: Entering) -> Transaction[tuple[SessionId, Due | None]]:
        """The session that a lane speaks to; a new one if it had none or a reset is due."""
        fresh, person, (lane, place, speaking, _) = came.fresh, came.met.person, came.spot
        actor, limits = person.id, self._routing.limits
        if speaking is None or speaking.session is None:
            yield from _unmoved(came)
            move = yield from self._first(came)
            yield from moves.make(move, actor, limits, fresh.move, fresh.at)
            return fresh.session, None
        session = speaking.session
        if not self._resets:
            return session, None
        policy = self._routing.resets.of(lane, place.kind)
        # The last turn of a session that is over keeps nobody from starting over.
        over = due(policy, speaking.used, fresh.at) if speaking.head == speaking.tail or speaking.over else None
        if over is None or (yield from resets.at_work(session, fresh.at)):
            return session, None
        yield from _unmoved(came)
        try:
            yield from moves.make(Renew(lane, fresh.session, Why(over.value)), actor, limits, fresh.move, fresh.at)
        except Refused as refused:
            # A handoff that began meanwhile is no reason to refuse a message: look again.
            raise Moved from refused
        if policy.notice and (yield from transcripts.count_said(session)):
            yield from deliveries.notify(place.address, notice(policy, over), f"reset/{fresh.move}", (), fresh.at)
        return fresh.session, over

    def _first(self, came: Entering) -> Transaction[Renew | Fork]:
        """How a lane begins: as a fork of the private chat's session if this is a thread there, else anew."""
        arrival, fresh, person, (lane, place, *_) = came.arrival, came.fresh, came.met.person, came.spot
        anew = Renew(lane, fresh.session, Why.FIRST)
        if place.kind is not Kind.DM or not lane.address.thread or self._begins(lane) is DmThreads.FRESH:
            return anew
        if (yield q.lane_history(lane=lane.key, count=1)):
            return anew
        # What the root shows is known, also where the private chat speaks to nobody any more.
        root = yield from _shown(arrival, place)
        around = yield from self._look(Place(place.around, Kind.DM), person.id)
        source = root.session if root else around.speaking.session if around.speaking else None
        known = (yield from first(Session, q.session(session=source))) if source is not None else None
        if known is None or known.owner != person.id:
            return anew
        return Fork(lane, known.id, fresh.session, at=root, consent=Consent.GIVEN)

    def _queue(self, came: Entering, errand: Errand, session: SessionId, reset: Due | None) -> Transaction[Queued]:
        """A turn more for a session; this replica holds it from here on if it was idle and a slot is free."""
        arrival, fresh, me, met, spot, _ = came
        lane, person = errand.lane or spot.lane, met.person
        turn = Turn(
            session,
            0,
            errand.kind,
            lane.key,
            spot.place.address.key,
            person.id,
            person.name,
            arrival.message,
            arrival.quotes,
            errand.parts,
            fresh.at,
            fresh.trace,
            arrival.speaker.identity.key,
        )
        counted: list[Statement] = []
        if near := errand.weighed.near:
            # Others of its person may have come at the same time.
            waiting = near.waiting if errand.parts is arrival.parts else EVER
            counted.append(must(q.within(person=person.id, messages=near.messages_a_minute, waiting=waiting)))
        if errand.weighed.files:
            counted.append(q.count_bytes(person=person.id, bytes=errand.weighed.files))
        if errand.weighed.strangers:
            weighed = errand.weighed
            counted.append(q.count_strangers(strangers=weighed.strangers, bytes=weighed.size, at=fresh.at))
        # Once the session is locked: if the lane still speaks to it, this message belongs here.
        row = {**msgspec.structs.asdict(turn), "parts": encode_parts(turn.parts)}
        added = q.add_turn_from(**row) if errand.via is Via.BINDING else q.add_turn_quoting(**row)
        if arrival.album:
            # Its other pictures are on their way: the turn waits for them, and takes them along.
            me, counted = None, [*counted, q.gather(session=session, seconds=ALBUM)]
        # A command is nothing that an agent hears.
        heard = met.heard or errand.kind is not TurnKind.ARRIVAL
        place = RowsOf(Slot, must(q.enqueue(session=session, me=me, at=fresh.at)))
        [slot], *_ = yield from batch(place, must(added), *counted, last=heard and not reset)
        turn = replace(turn, seq=slot.seq)
        # The session is held by now, and nothing is waited for after this: two first words of one person don't lock up.
        heard = heard or not (yield q.hear(person=person.id, at=fresh.at))
        met = replace(met, heard=heard, tally=PersonTally())
        tip = slot.tip
        if reset or not heard:
            tip = yield from _tell(session, met, turn.identity, reset, fresh.at)
        if me is not None and slot.holder == me and slot.head + 1 == slot.seq:
            run = Run(Claim(session, me, slot.epoch), (turn,), tip, bound=slot.bound)
            return Queued(session, slot.seq, lane, met, reset, run)
        if me is None and not arrival.album:
            yield Wake(Topic.TURNS)
        if self._settings.busy is not Busy.QUEUE:
            yield Wake(Topic.LOOK, session)
        return Queued(session, slot.seq, lane, met, reset)


def _answers(
    arrival: Arrival, met: Met, spot: Spot, command: Command | Unknown | None, at: Moment
) -> Transaction[Command | None]:
    """The command that a message stands for which answers a question: by a button, by a reply, or by its words.

    Without either it must be exactly one of the choices, or a question for any words must be the only one here.
    """
    about = arrival.pressed.message if arrival.pressed else arrival.quotes if command is None else ""
    if arrival.edits or (command is not None and not about):
        return None
    text = arrival.pressed.choice if arrival.pressed else plain_text(arrival.parts)
    question = (yield from questions.of_message(spot.place.address, about)) if about else None
    if about and question is None:
        question = yield from questions.under_way(spot.place.address, text)
    if question is not None:
        theirs = arrival.pressed or (yield from questions.may_answer(question, met.person.id))
        return Command("answer", f"{question.id} {text}", Means.ANSWERED) if theirs else None
    asked = yield from questions.open_in(spot.lane, met.person.id, at)
    if about or len(asked) != 1 or arrival.unfetched or any(isinstance(part, File) for part in arrival.parts):
        return None
    [question] = asked
    return Command("answer", f"{question.id} {text}", Means.ANSWERED) if question.choose(text) is not None else None


def see(arrival: Arrival, at: Moment) -> Transaction[bool]:
    """Remember an arrival by its keys; returns whether it is new."""
    address, new = arrival.place.address, True
    account = account_key(address.platform, address.account)
    for key in sorted(arrival.keys):
        new = bool((yield q.see(account=account, key=key, at=at))) and new
    return new


def give_up(
    arrival: Arrival, why: str, told: str, key: str, at: Moment, hosts: Collection[Identity]
) -> Transaction[bool]:
    """Make a dead letter of an arrival, and tell its person; returns whether it is new, and it isn't any more."""
    if not (yield from see(arrival, at)):
        return False
    address = arrival.place.address
    speaker = yield from first(Known, q.identity(key=arrival.speaker.identity.key))
    known = arrival.speaker.identity in hosts or (speaker is not None and speaker.granted)
    raw = msgspec.json.encode(arrival).decode()
    yield from letters.bury(account_key(address.platform, address.account), raw, why, at, int(known))
    if arrival.parts:
        yield from deliveries.notify(address, told, key, (arrival.message,), at)
    return True


def _unmoved(came: Entering) -> Transaction[None]:
    """Lock a lane that is to get a new session, unless a neighbour was first, or its person was merged meanwhile."""
    lane, speaking = came.spot.lane, came.spot.speaking
    yield from _still(came.met.person)
    yield q.lock_lane(lane=lane.key)
    now = yield from one(Bound, q.bound(lane=lane.key))
    if _stands(now) != (_stands(speaking) if speaking else (None, None, None, None)):
        raise Moved


def _stands(bound: Bound) -> tuple[SessionId | None, Moment | None, int | None, int | None]:
    return bound.session, bound.used, bound.head, bound.tail


def _still(person: Person) -> Transaction[None]:
    """Hold a person, unless they turned out to be somebody else meanwhile, or were forgotten."""
    if not (yield q.hold_person(person=person.id)) or (yield q.merged_into(person=person.id)):
        raise Moved


def _see(spot: Spot, at: Moment) -> Transaction[None]:
    """Remember a place and the lane that it speaks in, which may be that of the chat around it."""
    lane, place = spot.lane, spot.place
    yield from moves.see(place, lane.person, at)
    if lane.address != place.address:
        yield from moves.see(Place(lane.address, place.kind, place.name), lane.person, at)


def _shown(arrival: Arrival, place: Place) -> Transaction[Tip | None]:
    """The entry that a thread's root message shows, by its receipt."""
    for message in filter(None, (arrival.quotes, place.address.thread)):
        receipt = yield from deliveries.receipt(place.around, message)
        if receipt is not None and receipt.entry:
            return Tip(SessionId(receipt.session), receipt.entry)
    return None


def _tell(session: SessionId, met: Met, identity: str, reset: Due | None, at: Moment) -> Transaction[Tip | None]:
    """Tell the agent, once, why it starts over and that it hears somebody for the first time ever."""
    asides = [Draft(GATEWAY, (Aside(RESET[reset]),))] if reset else []
    if not met.heard:
        # Whose name it tells: an id in it is hidden like that in their own messages.
        asides.append(Draft(GATEWAY, (Aside(first_words(met.person.name)),), Source(identity)))
    return (yield from transcripts.append(session, asides, at))
