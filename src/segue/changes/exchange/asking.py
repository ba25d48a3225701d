"""Asking: what the agent of a turn wants to know, or the gateway about it, comes before whoever may answer it."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from segue.changes.exchange import children, deliveries, questions, routes
from segue.changes.exchange.questions import UNSURE, Asking, Posed
from segue.changes.people import persons
from segue.changes.people.allowances import Allowing
from segue.changes.places.ways import Way, Ways
from segue.changes.rows import first
from segue.changes.sessions import moves, sessions
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.database import Transaction
from segue.core.lanes import Audience, Identity, Lane, Place, lane_of
from segue.core.messages import Outgoing
from segue.core.questions import (
    ALWAYS,
    FOR_THIS_SESSION,
    LONGEST,
    LONGEST_PERMISSION,
    NO,
    YES,
    YES_OR_NO,
    Question,
    checked,
    shown_by,
)
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.turns import Run
from segue.core.values import Moment, PersonId, SessionId
from segue.core.windows import ShowsWindows
from segue.database.statements import q
from segue.errors import Invalid

_LOOKED_AT = 20
"""Sessions of a person among which one is looked for that they talk in."""
_QUOTED = 200
"""Characters of a message by which its owner knows it."""


class Asks:
    """Asks what agents want to know, as the settings say who may answer and for how long."""

    def __init__(self, adapters: Mapping[tuple[str, str], Adapter], settings: GatewaySettings) -> None:
        self._settings = settings
        self._adapters = adapters
        self._rules = settings.routing.rules
        self._ways = Ways(adapters, self._rules)
        self._allowing = Allowing(settings)

    def wanted(self, account: tuple[str, str], key: str, words: str, choices: Sequence[str], allows: str) -> Asking:
        """The question of a turn that is answered by an account; raises `Invalid` if it can't be asked."""
        words, offered = checked(words, YES_OR_NO if allows else choices, LONGEST_PERMISSION if allows else LONGEST)
        named = self._settings.accounts.get(account, NO_ACCOUNT).approvers
        approvers = tuple(Identity.named(name).key for name in named)
        offered = (YES, NO, FOR_THIS_SESSION, ALWAYS) if allows else offered
        return Asking(key, words, offered, allows, self._settings.questions.deadline, approvers)

    def ask(self, run: Run, agent: str, asking: Asking, id: str, at: Moment) -> Transaction[Question]:
        """Ask it; asked again in another attempt at the turn, it is the same question."""
        person = PersonId(run.turns[0].person)
        most = (yield from self._allowing.of(person)).questions
        ways = yield from self._to(run, asking, at)
        asked = Posed(id, asking, session=run.held.session, turn=run.name, agent=agent)
        return (yield from questions.ask_in_turn(run, asked, ways, most, at))

    def ask_for_program(
        self, person: PersonId, only: SessionId | None, asking: Asking, id: str, at: Moment
    ) -> Transaction[Question]:
        """Ask a person what a program of theirs wants to know; asked again under the same id, it is the same."""
        yield from children.hold_call(id)
        known = yield from questions.find(id)
        if known is not None:
            return known
        where = yield from self._whereabouts(person, only)
        if where is None:
            fix = "Let them write to this gateway once, in a private chat or a window."
            raise Invalid("question", "there is no place where its person could be asked", fix)
        most = (yield from self._allowing.of(person)).questions
        asked = Posed(id, asking, session=where[0])
        return (yield from questions.ask_for_program(person, asked, (where[1],), most, at))

    def _whereabouts(self, person: PersonId, only: SessionId | None) -> Transaction[tuple[SessionId, Way] | None]:
        """The private place in which a person talked last, and the session there; a chat before a window."""
        found: list[tuple[SessionId, Way]] = []
        for session in (yield from sessions.owned(person, _LOOKED_AT, None, 0.0)):
            for lane in (yield from sessions.lanes(session.id)) if only in (None, session.id) else ():
                place = yield from first(Place, q.address(address=lane.address.key))
                adapter = self._adapters.get((lane.address.platform, lane.address.account))
                if adapter is None or place is None or place.audience is not Audience.ONE:
                    continue
                if not isinstance(adapter, ShowsWindows):
                    return session.id, Way(place.address, lane)
                found.append((session.id, Way(place.address, lane)))
        return found[0] if found else None

    def unsure(self, held: Outgoing, error: str, id: str, at: Moment) -> Transaction[None]:
        """Give a message up of which nobody knows whether it was sent, and ask its session's owner about it."""
        yield from deliveries.give_up(held, error, at)
        delivery = held.delivery
        if not delivery.session or shown_by(delivery.key):
            return
        session = yield from sessions.known(SessionId(delivery.session))
        address, owner = delivery.address, session.owner
        place = (yield from first(Place, q.address(address=address.key))) or Place(address)
        lane = lane_of(place, owner, self._settings.routing.rules)
        known = [one for one in (yield from persons.identities(owner)) if one.account == address.account]
        user = next((one.user for one in known if one.platform == address.platform), "")
        way = (yield from self._ways.alone(place, lane, owner, user)) or Way(address, lane)
        text = delivery.text or (delivery.file.name if delivery.file else "")
        shown = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
        words = f"Nobody knows whether this message arrived: “{shown}” Shall I send it again?"
        asking = Asking(f"unsure/{held.id}", words, YES_OR_NO, deadline=self._settings.questions.deadline)
        most = (yield from self._allowing.of(owner)).questions
        asked = Posed(id, asking, UNSURE, str(held.id), session.id)
        yield from questions.ask_about_send(held, owner, asked, way, most, at)

    def _to(self, run: Run, asking: Asking, at: Moment) -> Transaction[list[Way]]:
        """The ways by which it is asked: the turn's own place, unseen by others if it can be; approvers in private."""
        turn, session = run.turns[-1], run.held.session
        key, route = turn.lane, turn.route
        if key is None or not route or (yield q.left_by_turn(session=session, turn=run.name)):
            key, route = yield from routes.now(session, (session, run.name))
        ways: list[Way] = []
        place = (yield from first(Place, q.address(address=route))) if route else None
        if place is not None:
            lane = Lane.parse(key) if key else lane_of(place, PersonId(turn.person), self._rules)
            user = Identity.parse(turn.identity).user if turn.identity else ""
            alone = yield from self._ways.alone(place, lane, PersonId(turn.person), user)
            ways.append(alone or Way(place.address, lane))
            if alone is None:
                # Scheduled work, or a child, may answer where nobody has spoken in that lane yet.
                yield from moves.see(replace(place, address=lane.address), lane.person, at)
        for approver in map(Identity.parse, asking.approvers):
            who = yield from persons.who(approver)
            way = (yield from self._ways.private(who, approver.platform, approver.account)) if who else None
            ways += [way] if way is not None and way not in ways else []
        return ways
