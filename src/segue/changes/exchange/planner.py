"""The planner: what may be scheduled by whom, and where its answers may go."""

from collections.abc import Collection

from segue.changes.exchange import children, readers, routes, schedules
from segue.changes.exchange.children import Asker
from segue.changes.exchange.schedules import LOCAL, Order, Recipient, Schedule
from segue.changes.people import actors, persons
from segue.changes.people.allowances import Allowing
from segue.changes.places import addresses
from segue.changes.places.addresses import Homes, is_surely_own
from segue.changes.rows import first
from segue.changes.sessions import moves, readings, sessions
from segue.core import schedules as times
from segue.core.contracts.database import Transaction
from segue.core.destinations import matching, parse, shown
from segue.core.lanes import Address, Identity, Place
from segue.core.moves import Begin
from segue.core.people import MINUTE, Standing
from segue.core.schedules import LONGEST_TASK, Plan
from segue.core.settings import GatewaySettings
from segue.core.values import Moment, PersonId, SessionId
from segue.database.statements import q
from segue.errors import Invalid, Refusal, Refused

ORIGIN = "origin"


class Planner:
    """Decides what may be scheduled, and where its answers may go."""

    def __init__(self, accounts: Collection[tuple[str, str]], settings: GatewaySettings) -> None:
        self._accounts = accounts
        self._settings = settings
        self._homes = Homes(settings.accounts)
        self._allowing = Allowing(settings)

    def order(
        self,
        person: PersonId,
        session: SessionId,
        asked_in: tuple[str | None, str],
        plan: Plan,
        task: str,
        deliver: str,
    ) -> Transaction[Order]:
        """An order, checked; `asked_in` are the keys of the lane and the address where somebody gave it."""
        if not task.strip() or len(task) > LONGEST_TASK:
            raise Invalid("task", f"it has {len(task):,} characters", f"Give it 1 to {LONGEST_TASK:,}.")
        standing = yield from self._standing(person, session)
        yield from self._within_limits(person, plan)
        lane, origin = asked_in
        name, route = yield from self._to(deliver.strip() or ORIGIN, origin, person, standing)
        if name not in (ORIGIN, LOCAL):
            yield from self._heard(Address.parse(route), session, person, standing)
        return Order(session, lane, person, task.strip(), plan, name, route)

    def make(
        self, asker: Asker, key: str, plan: Plan, task: str, deliver: str, id: str, at: Moment
    ) -> Transaction[Schedule]:
        """Scheduled work that an agent asks for in its turn."""
        yield from children.hold(asker)
        yield from children.hold_call(key)
        if (made := (yield from schedules.known(key))) is not None:
            return made
        session = asker.session or asker.only
        if session is None:
            # Work that a program schedules has a conversation of its own.
            session = SessionId(id)
            yield from moves.begin(Begin(session, (yield from actors.hold(asker.person)), None), at)
        asked_in = yield from routes.now(session, (session, asker.turn))
        order = yield from self.order(asker.person, session, asked_in, plan, task, deliver)
        return (yield from schedules.make(order, id, key, at))

    def cancel(self, asker: Asker, id: str, at: Moment) -> Transaction[Schedule]:
        """Scheduled work that an agent cancels in its turn."""
        yield from children.hold(asker)
        if id not in {schedule.id for schedule in (yield from self.known(asker))}:
            raise Refused(Refusal.NO_SCHEDULE)
        return (yield from schedules.cancel(id, asker.person, at))

    def known(self, asker: Asker) -> Transaction[list[Schedule]]:
        """The scheduled work of a turn's person, as far as its readers know it."""
        owned = yield from schedules.owned(asker.person)
        owned = [schedule for schedule in owned if asker.only in (None, schedule.session)]
        return (yield from readers.seen((yield from children.reader(asker)), owned))

    def _heard(self, address: Address, session: SessionId, person: PersonId, standing: Standing) -> Transaction[None]:
        """Refuse to deliver what a session says where others read who haven't read it."""
        place = yield from first(Place, q.address(address=address.key))
        if place is not None and (yield from is_surely_own(place, person)):
            return
        owner = (yield from sessions.known(session)).owner
        home = yield from self._homes.of(address.platform, address.account)
        if standing is Standing.HOST and owner == person and home is not None and home.address == address:
            return
        if not (yield from readings.whole(address, session)):
            problem = "others read there who haven't read this session"
            raise Invalid("deliver", problem, "Schedule it there instead, or deliver to origin.")

    def route(self, schedule: Schedule) -> Transaction[Recipient]:
        """The recipient of the answer, as things stand when the work is due: a home may have moved."""
        if schedule.deliver in (ORIGIN, LOCAL):
            return Recipient(schedule.route)
        address = Address.parse(schedule.route)
        home = yield from self._homes.of(address.platform, address.account)
        if home is not None and ":" not in schedule.deliver:
            address = home.address
        known: list[Identity] = yield from persons.identities(schedule.owner)
        host = not set(self._settings.hosts).isdisjoint(known)
        return Recipient(address.key, host and home is not None and home.address == address)

    def plan(self, when: str, at: Moment) -> Plan:
        """A time as somebody wrote it."""
        return times.plan(when, self._settings.zone, at)

    def divide(self, text: str, at: Moment) -> tuple[Plan, str]:
        """A time and the task that follows it."""
        return times.divide(text, self._settings.zone, at)

    def _standing(self, person: PersonId, session: SessionId) -> Transaction[Standing]:
        known: list[Identity] = yield from persons.identities(person)
        if not set(self._settings.hosts).isdisjoint(known):
            return Standing.HOST
        try:
            yield from sessions.own(session, person)
        except Refused as refused:
            raise Refused(Refusal.NOT_ALLOWED) from refused
        return Standing.OWNER

    def _within_limits(self, person: PersonId, plan: Plan) -> Transaction[None]:
        allowance = yield from self._allowing.of(person)
        have = yield from schedules.owned(person)
        if len(have) >= allowance.schedules:
            raise Invalid("schedule", f"you have {len(have)} pieces of scheduled work to come", "Cancel one first.")
        # No line is due more often than once a minute.
        if allowance.schedule_every > MINUTE and times.closest(plan) < allowance.schedule_every:
            problem = f"it would be due more often than every {allowance.schedule_every / 60:g} minutes"
            raise Invalid("when", problem, "Leave more time between.")

    def _to(self, deliver: str, origin: str, person: PersonId, standing: Standing) -> Transaction[tuple[str, str]]:
        """Where an answer is to go, by its name and the key of its address."""
        if deliver.casefold() == ORIGIN:
            if not origin:
                fix = "Deliver to local, a platform's home or PLATFORM:CHAT."
                raise Invalid("deliver", "this session has no place of its own", fix)
            return ORIGIN, origin
        if deliver.casefold() == LOCAL:
            if standing is not Standing.HOST:
                raise Invalid("deliver", "local files are the host's", "Deliver to origin, or a chat of your own.")
            if not self._settings.data:
                raise Invalid("deliver", "this gateway has no data folder", "Deliver to origin, or to a chat.")
            return LOCAL, ""
        return (yield from self._elsewhere(deliver, person, standing))

    def _elsewhere(self, deliver: str, person: PersonId, standing: Standing) -> Transaction[tuple[str, str]]:
        wanted = parse(deliver)
        accounts = matching(wanted, self._accounts)
        if len(accounts) != 1:
            names = ", ".join(shown(*account) for account in accounts or sorted(self._accounts)) or "none"
            what = "names several accounts" if accounts else "isn't connected"
            raise Invalid("deliver", f"{wanted.name!r} {what}", f"Choose origin, local or one of: {names}.")
        [(platform, account)] = accounts
        name = f"{platform}.{account}"
        home, host = (yield from self._homes.of(platform, account)), standing is Standing.HOST
        if not wanted.chat:
            if home is None or not (host or (yield from schedules.spoken_at(person, home.address))):
                raise Invalid("deliver", f"{name} has no home for you", f"Deliver to origin, or to {name}:CHAT.")
            return name, home.address.key
        known: list[Place] = yield from addresses.chats(platform, account, wanted.chat)
        own: list[Address] = []
        for place in known:
            own += [place.address] if host or (yield from schedules.spoken_at(person, place.address)) else []
        if home is not None and host and home.address.chat == wanted.chat:
            own.append(home.address)
        if not own:
            fix = "Choose a chat in which you have talked to me."
            raise Invalid("deliver", f"no chat of yours on {name} goes by {wanted.chat!r}", fix)
        return f"{name}:{wanted.chat}", own[0].key
