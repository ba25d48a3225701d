"""Asking: what the agent of a turn wants to know comes before whoever may answer it."""

from collections.abc import Mapping, Sequence

from segue.changes.exchange import questions, routes
from segue.changes.exchange.questions import Asking
from segue.changes.people import persons
from segue.changes.people.allowances import Allowing
from segue.changes.places.ways import Way, Ways
from segue.changes.rows import first
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Lane, Place
from segue.core.questions import ALWAYS, FOR_THIS_SESSION, NO, YES, YES_OR_NO, Question, checked
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.turns import Run
from segue.core.values import Moment, PersonId
from segue.database.statements import q


class Asks:
    """Asks what agents want to know, as the settings say who may answer and for how long."""

    def __init__(self, adapters: Mapping[tuple[str, str], Adapter], settings: GatewaySettings) -> None:
        self._settings = settings
        self._ways = Ways(adapters, settings.routing.rules)
        self._allowing = Allowing(settings)

    def wanted(self, account: tuple[str, str], key: str, words: str, choices: Sequence[str], allows: str) -> Asking:
        """The question of a turn that is answered by an account; raises `Invalid` if it can't be asked."""
        words, offered = checked(words, YES_OR_NO if allows else choices)
        named = self._settings.accounts.get(account, NO_ACCOUNT).approvers
        approvers = tuple(Identity.named(name).key for name in named)
        offered = (YES, NO, FOR_THIS_SESSION, ALWAYS) if allows else offered
        return Asking(key, words, offered, allows, self._settings.questions.deadline, approvers)

    def ask(self, run: Run, agent: str, asking: Asking, id: str, at: Moment) -> Transaction[Question]:
        """Ask it; asked again in another attempt at the turn, it is the same question."""
        person = PersonId(run.turns[0].person)
        most = (yield from self._allowing.of(person)).questions
        ways = yield from self._to(run, asking)
        return (yield from questions.ask_in_turn(run, agent, asking, ways, most, id, at))

    def _to(self, run: Run, asking: Asking) -> Transaction[list[Way]]:
        """The ways by which it is asked: the turn's own place, unseen by others if it can be; approvers in private."""
        turn, session = run.turns[-1], run.held.session
        key, route = turn.lane, turn.route
        if key is None or not route:
            key, route = yield from routes.now(session, (session, run.name))
        ways: list[Way] = []
        if route:
            place = (yield from first(Place, q.address(address=route))) or Place(Address.parse(route))
            lane = Lane.parse(key) if key else Lane(place.address)
            user = Identity.parse(turn.identity).user if turn.identity else ""
            alone = yield from self._ways.alone(place, lane, PersonId(turn.person), user)
            ways.append(alone or Way(place.address, lane))
        for approver in map(Identity.parse, asking.approvers):
            who = yield from persons.who(approver)
            way = (yield from self._ways.private(who, approver.platform, approver.account)) if who else None
            ways += [way] if way is not None and way not in ways else []
        return ways
