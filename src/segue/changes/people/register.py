"""The register: who may talk, since when and by what, as the host looks after them."""

from enum import StrEnum

from segue.changes import audit
from segue.changes.audit import Event, Fact, Noted
from segue.changes.people import actors, grants, notes, persons, tokens
from segue.changes.people.grants import Grant
from segue.changes.people.notes import Note
from segue.changes.people.persons import IdentityFact, Merge
from segue.changes.people.tokens import Token
from segue.changes.places import addresses, merges
from segue.changes.places.merges import ChatMerge
from segue.changes.rows import each, first, one
from segue.changes.sessions import sessions, transcripts
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, Person
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.transcripts import Entry, Session
from segue.core.values import Moment, PersonId, Value
from segue.database.statements import q
from segue.errors import Invalid

_FACTS = 50
_SESSIONS = 1000


class By(StrEnum):
    """The reason why somebody may talk, or may not."""

    HOST = "host"
    """They run this Segue."""
    BLOCKED = "blocked"
    """They may talk nowhere."""
    GRANT = "let in"
    """A code let them in."""
    NAMED = "named in allow"
    """segue.toml names one of their ids."""
    PUBLIC = "public account"
    """Everybody may, where they spoke."""
    GROUP = "group"
    """They spoke in a group that segue.toml names."""
    STRANGER = "stranger"
    """They may not talk."""


class PersonRow(Value, frozen=True):
    """A person as the register lists them."""

    person: Person
    heard: bool
    blocked: Moment | None


class Listed(Value, frozen=True):
    """A person, why they may talk or not, since when, and how platforms know them."""

    id: PersonId
    name: str
    by: By
    since: Moment
    identities: tuple[str, ...]


class PersonFacts(Value, frozen=True):
    """All that is known of a person but their words."""

    listed: Listed
    identities: tuple[IdentityFact, ...]
    grants: tuple[Grant, ...]
    tokens: tuple[Token, ...]
    links: tuple[Merge, ...]
    chats: tuple[ChatMerge, ...]
    """Ids that were taken for one private chat of theirs."""
    sessions: int
    facts: tuple[Noted, ...]


def find(named: str) -> Transaction[PersonId]:
    """The person whom the host means: by id, by `PLATFORM.ACCOUNT/USER`, or by a name that one person alone has."""
    known = yield from each(PersonRow, q.known_people())
    if (yield q.person(person=named)):
        return (yield from actors.now(PersonId(named)))
    before, slash, user = named.partition("/")
    platform, dot, account = before.partition(".")
    if slash and dot and (person := (yield from persons.who(Identity(platform, account, user)))):
        return person
    same = [row.person.id for row in known if row.person.name.casefold() == named.casefold()]
    if len(same) != 1:
        what = f"{len(same)} people are called" if same else "nobody goes by"
        raise Invalid("person", f'{what} "{named}"', "Give the id that `segue people list` shows.")
    return same[0]


def everybody(settings: GatewaySettings) -> Transaction[list[Listed]]:
    """Everybody who was ever met, the newest first."""
    found: list[Listed] = []
    for row in (yield from each(PersonRow, q.known_people())):
        found += [(yield from _listed(row, settings))]
    return found


def facts(person: PersonId, settings: GatewaySettings) -> Transaction[PersonFacts]:
    """All that is known of a person but their words."""
    [row] = [row for row in (yield from each(PersonRow, q.known_people())) if row.person.id == person]
    owned = yield from sessions.owned(person, _SESSIONS, None, 0.0)
    return PersonFacts(
        (yield from _listed(row, settings)),
        tuple((yield from each(IdentityFact, q.identities_known(person=person)))),
        tuple((yield from grants.of(person))),
        tuple((yield from tokens.of(person))),
        tuple((yield from persons.merges_within(person))),
        tuple((yield from _chats(person))),
        len(owned),
        tuple((yield from audit.newest(_FACTS, person))),
    )


def _chats(person: PersonId) -> Transaction[list[ChatMerge]]:
    """The merges that made a person's private chats what they are."""
    found: dict[str, ChatMerge] = {}
    ways = yield from persons.identities(person)
    for platform, account in dict.fromkeys((way.platform, way.account) for way in ways):
        for place in (yield from addresses.private_chats(person, platform, account)):
            found |= {merge.id: merge for merge in (yield from merges.within(place.address))}
    return list(found.values())


class RightsCount(Value, frozen=True):
    """How many tokens, grants and blocks hold."""

    tokens: int
    grants: int
    blocks: int


def count_rights(at: Moment) -> Transaction[RightsCount]:
    """Count the tokens, grants and blocks that hold."""
    held = [token for token in (yield from tokens.listed()) if token.counts(at)]
    return RightsCount(len(held), len((yield from grants.everyones())), (yield from one(int, q.count_blocks())))


class PersonWords(Value, frozen=True):
    """The words of a person's sessions, the oldest first, and what agents noted about them."""

    sessions: list[tuple[Session, list[Entry]]]
    notes: list[Note]


def read(person: PersonId, by: PersonId, at: Moment) -> Transaction[PersonWords]:
    """The words of a person for the host; that they were read is written down."""
    owned = yield from sessions.owned(person, _SESSIONS, None, 0.0)
    found: list[tuple[Session, list[Entry]]] = []
    for session in reversed(owned):
        found += [(session, (yield from transcripts.current_path(session.id)))]
    yield from audit.note(Fact(Event.READ, person, by, detail=f"{len(found)} sessions"), at)
    return PersonWords(found, (yield from notes.of(person)))


def _listed(row: PersonRow, settings: GatewaySettings) -> Transaction[Listed]:
    ways = yield from each(IdentityFact, q.identities_known(person=row.person.id))
    held = yield from first(Grant, q.grants_of_person(person=row.person.id))
    by, since = _why(row, ways, held, settings)
    return Listed(row.person.id, row.person.name, by, since, tuple(way.identity.name for way in ways))


def _why(row: PersonRow, ways: list[IdentityFact], held: Grant | None, settings: GatewaySettings) -> tuple[By, Moment]:
    """The strongest reason why somebody may talk or not, and since when it holds as far as is known."""
    accounts = [(way, settings.accounts.get((way.identity.platform, way.identity.account), NO_ACCOUNT)) for way in ways]
    if any(way.identity in settings.hosts for way in ways):
        return By.HOST, row.person.since
    if row.blocked is not None:
        return By.BLOCKED, row.blocked
    if held is not None:
        return By.GRANT, held.since
    if named := [way for way, account in accounts if way.identity.user in account.allow]:
        return By.NAMED, named[0].since
    if public := [way for way, account in accounts if account.public]:
        return By.PUBLIC, public[0].since
    return (By.GROUP if row.heard else By.STRANGER), row.person.since
