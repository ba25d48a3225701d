"""Imports a Hermes home into the store.

- Each Hermes session becomes one Segue session. A second import of the same home adds nothing.
- A session that Hermes split off by compacting continues its parent. Its summary replaces the earlier entries.
- Undone messages stay as a branch.
- A lane is bound to its Hermes session, and its earlier sessions become its history.

A preview takes the same path and writes nothing, so it reports everything that an import would do.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path

from segue.changes.people import grants, persons
from segue.changes.places.addresses import Homes, set_home
from segue.changes.sessions import exports
from segue.changes.sessions.exports import Brought, Furnished, Origin, Stay
from segue.core.contracts.database import Clock
from segue.core.exports.jsonl import Line, Transcript
from segue.core.lanes import Identity, Lane, Person, Place, Sharing, lane_of
from segue.core.messages import Speaker, Summary
from segue.core.settings import GatewaySettings
from segue.core.titles import new_title, parse
from segue.core.transcripts import AGENT, GATEWAY, Author, Role, Tip
from segue.core.values import PersonId, SessionId, Value
from segue.errors import Invalid
from segue.imports.hermes.home import FoundHome, HermesHome, HermesSpot, Route, Skipped
from segue.imports.hermes.messages import HermesStanding, Message
from segue.store import Store

_PLATFORMS = frozenset({"discord", "feishu", "matrix", "signal", "slack", "telegram", "whatsapp"})
_NOBODY = frozenset({"batch", "cron", "kanban", "subagent", "tool", "webhook"})
"""Sources in which a program wrote the user's messages."""


class Mode(Enum):
    """Whether to import a home or only preview the import."""

    LOOK = "to tell what would come, and write nothing"
    APPLY = "to bring it in"


class Fate(StrEnum):
    """The outcome for one Hermes session."""

    NEW = "new"
    """It is imported."""
    KNOWN = "known"
    """An earlier import brought it."""
    EMPTY = "empty"
    """It has no messages, so it isn't imported."""


class HermesSession(Value, frozen=True):
    """A Hermes session and its outcome."""

    id: str
    fate: Fate
    title: str = ""
    source: str = ""
    owner: str = ""
    """The identity of an owner other than the host, as `owners` in segue.toml writes it; empty for the host."""
    entries: int = 0


class Report(Value, frozen=True):
    """The result of an import or of its preview."""

    sessions: int = 0
    entries: int = 0
    lanes: int = 0
    homes: int = 0
    known: int = 0
    """The number of sessions that an earlier import had brought."""
    empty: int = 0
    """The number of sessions without messages."""
    skipped: tuple[Skipped, ...] = ()
    listed: tuple[HermesSession, ...] = ()
    strange: tuple[str, ...] = ()
    """Platforms of lanes with no account here, or with several."""


async def import_hermes(
    path: Path,
    store: Store,
    by: Person,
    settings: GatewaySettings | None = None,
    mode: Mode = Mode.APPLY,
    clock: Clock = time.time,
) -> Report:
    """Import a Hermes home. The host owns it, together with the people that the settings link to the host."""
    settings = settings or GatewaySettings()
    if mode is Mode.APPLY and settings.hosts:
        # Link the host's identities as the gateway does on its start: an import may come before the first start.
        [identity, *_] = hosts = [*(await store.driver.read(persons.identities, by.id)), *settings.hosts]
        await store.driver.write(grants.unite, hosts, [store.new_session_id() for _ in hosts[1:]], clock())
        by = await store.person(identity)
    home = await asyncio.to_thread(HermesHome.open, path, _accounts(settings))
    try:
        return await _Import(home, store, by, settings, mode, clock).run()
    finally:
        home.close()


def _accounts(settings: GatewaySettings) -> dict[str, str]:
    """Return the account for each platform that has exactly one."""
    count = Counter(platform for platform, _ in settings.accounts)
    return {platform: account for platform, account in settings.accounts if count[platform] == 1}


class _Import:
    """One import and its progress."""

    def __init__(
        self, home: HermesHome, store: Store, by: Person, settings: GatewaySettings, mode: Mode, clock: Clock
    ) -> None:
        self._home = home
        self._store = store
        self._by = by
        self._settings = settings
        self._rules = settings.routing.rules
        self._mode = mode
        self._clock = clock
        self._platforms = _PLATFORMS | {route.spot.place.address.platform for route in home.routes.values()}
        self._by_key = _grouped(home.sessions.values(), lambda found: found.key)
        self._by_parent = _grouped(home.sessions.values(), lambda found: found.parent)
        self._met: dict[Speaker, Person] = {}
        self._brought: dict[str, SessionId] = {}
        self._tips: dict[str, Tip | None] = {}
        self._furnished: set[Lane] = set()
        self._listed: list[HermesSession] = []
        self._lanes = self._homes = 0

    async def run(self) -> Report:
        current = {self._newest(route.session) for route in self._home.routes.values()}
        for found in _parents_first(self._home.sessions):
            messages = await asyncio.to_thread(self._home.history, found.id)
            if messages or found.id in current:
                await self._bring(found, messages)
            else:
                self._listed.append(HermesSession(found.id, Fate.EMPTY, found.title, found.source))
        for route in sorted(self._home.routes.values(), key=lambda route: route.used, reverse=True):
            await self._furnish(route)
        for place in self._home.homes:
            await self._settle(place)
        return self._report()

    def _report(self) -> Report:
        fates = Counter(listed.fate for listed in self._listed)
        entries = sum(listed.entries for listed in self._listed if listed.fate is Fate.NEW)
        addresses = [route.spot.place.address for route in self._home.routes.values()]
        strange = {spot.platform for spot in addresses if (spot.platform, spot.account) not in self._settings.accounts}
        return Report(
            fates[Fate.NEW],
            entries,
            self._lanes,
            self._homes,
            fates[Fate.KNOWN],
            fates[Fate.EMPTY],
            tuple(self._home.skipped),
            tuple(self._listed),
            tuple(sorted(strange)),
        )

    async def _bring(self, found: FoundHome, messages: Sequence[Message]) -> None:
        owner, speaker = await self._people(found)
        after = self._tips.get(found.parent) if self._goes_on(found) else None
        lines, tip, after = _lines(found, messages, speaker, after)
        used = max([found.used or 0.0, *(line.at for line in lines)])
        began = found.began or min((line.at for line in lines), default=used)
        transcript = Transcript(began, max(used, began), tuple(lines), tip, self._title(found))
        session = self._store.new_session_id()
        usage = (found.usage,) if found.usage else ()
        origin = Origin(f"hermes/{found.id}", self._brought.get(found.parent), after, usage)
        brought = await self._written(transcript, owner, session, origin)
        self._brought[found.id] = brought.session
        if brought.new:
            self._tips[found.id] = Tip(session, tip) if tip else after
        fate = Fate.NEW if brought.new else Fate.KNOWN
        whose = "" if owner.id == self._by.id else self._identity_of(found)
        self._listed.append(HermesSession(found.id, fate, transcript.title, found.source, whose, len(lines)))

    async def _written(self, transcript: Transcript, owner: Person, session: SessionId, origin: Origin) -> Brought:
        if self._mode is Mode.APPLY:
            return await self._store.driver.write(exports.bring, transcript, owner.id, session, self._clock(), origin)
        before = await self._store.driver.read(exports.brought_before, origin.key)
        return Brought(before or session, new=before is None)

    async def _furnish(self, route: Route) -> None:
        """Bind the lane of a route to its session."""
        current = self._newest(route.session)
        before = [found.id for found in self._by_key[route.key] if found.id in self._brought and found.id != current]
        stays: list[Stay] = []
        for id in [*before, current]:
            since = max(self._home.sessions[id].began or 0.0, stays[-1].since if stays else 0.0)
            stays.append(Stay(self._brought[id], since, self._store.new_session_id()))
        person = await self._meet(route.spot.speaker) if route.spot.speaker else self._by
        furnished = await self._furnishing(route.spot, person, stays)
        if furnished.new:
            self._lanes += 1
            return
        bound = await self._store.bound(furnished.lane)
        if bound is None or bound.id != self._brought[current]:
            self._home.skipped.append(Skipped(route.key, "this lane is in use here and stays as it is"))

    async def _furnishing(self, spot: HermesSpot, person: Person, stays: Sequence[Stay]) -> Furnished:
        if self._mode is Mode.APPLY:
            fresh = self._store.new_session_id(), self._clock()
            where = spot.place, spot.chat_aliases, person.id, self._rules
            return await self._store.driver.write(exports.furnish, *where, stays, *fresh)
        lane = lane_of(spot.place, person.id, self._rules)
        new = lane not in self._furnished and not await self._store.history(lane)
        self._furnished.add(lane)
        return Furnished(lane, new)

    async def _settle(self, place: Place) -> None:
        """Set the account's home from Hermes, unless it has one here."""
        platform, account = place.address.platform, place.address.account
        if (platform, account) not in self._settings.accounts:
            self._home.skipped.append(Skipped(f"home of {platform}", "it has no account here, or several"))
            return
        named = await self._store.driver.read(Homes(self._settings.accounts).of, platform, account)
        if named is None:
            self._homes += 1
            if self._mode is Mode.APPLY:
                fresh = self._store.new_session_id(), self._clock()
                await self._store.driver.write(set_home, place, self._by.id, *fresh)
        elif named.address != place.address:
            self._home.skipped.append(Skipped(f"home of {platform}", "this account has one here, which stays"))

    def _newest(self, id: str) -> str:
        """Return the newest session that compacting made of this one, after any number of steps."""
        seen = {id}
        while self._home.sessions[id].ended == "compression":
            later = [found.id for found in self._by_parent[id] if self._goes_on(found) and found.id not in seen]
            if not later:
                break
            id = later[-1]
            seen.add(id)
        return id

    def _goes_on(self, found: FoundHome) -> bool:
        """Return whether compacting its parent made this session."""
        parent = self._home.sessions.get(found.parent)
        return parent is not None and parent.ended == "compression" and not found.sibling

    async def _people(self, found: FoundHome) -> tuple[Person, Author]:
        """Return the owner of a session and the author of its messages.

        A shared session doesn't record which person wrote a message.
        """
        spot = self._home.spot(found)
        if spot is not None and spot.speaker is not None:
            person = await self._meet(spot.speaker)
            return person, _speaks(person) if spot.sharing is Sharing.APART else Author(Role.PERSON)
        if found.user and found.source in self._platforms:
            identity = Identity(found.source, self._home.account(found.source, found.key), found.user)
            return await self._meet(Speaker(identity)), Author(Role.PERSON)
        return self._by, Author(Role.PERSON) if found.source in _NOBODY or spot else _speaks(self._by)

    async def _meet(self, speaker: Speaker) -> Person:
        if speaker not in self._met:
            self._met[speaker] = await self._person(speaker)
        return self._met[speaker]

    async def _person(self, speaker: Speaker) -> Person:
        if self._mode is Mode.APPLY:
            return await self._store.person(speaker.identity, speaker.name, speaker.aliases)
        if speaker.identity in self._settings.hosts:
            return self._by
        known = await self._store.driver.read(persons.who, speaker.identity)
        return Person(known or PersonId(speaker.identity.key), speaker.name, self._clock())

    def _identity_of(self, found: FoundHome) -> str:
        """Return the identity of a session's owner as segue.toml writes it."""
        spot = self._home.spot(found)
        if spot is not None and spot.speaker is not None:
            identity = spot.speaker.identity
        else:
            identity = Identity(found.source, self._home.account(found.source, found.key), found.user)
        return f"{identity.platform}.{identity.account}/{identity.user}"

    def _title(self, found: FoundHome) -> str:
        name, number = parse(found.title)
        if not name:
            return ""
        try:
            new_title(name)
        except Invalid as error:
            self._home.skipped.append(Skipped(f"title of {found.id}, {name!r}", error.problem))
            return ""
        return name if number is None else f"{name} #{number}"


def _speaks(person: Person) -> Author:
    return Author(Role.PERSON, person.id, person.name)


def _age(found: FoundHome) -> tuple[float, str]:
    return found.began or 0.0, found.id


def _grouped(sessions: Iterable[FoundHome], by: Callable[[FoundHome], str]) -> Mapping[str, list[FoundHome]]:
    """Group sessions by a common value, each group from the oldest to the newest."""
    groups: defaultdict[str, list[FoundHome]] = defaultdict(list)
    for found in sorted(sessions, key=_age):
        groups[by(found)].append(found)
    return groups


def _parents_first(sessions: Mapping[str, FoundHome]) -> Iterator[FoundHome]:
    """Sort sessions from the oldest to the newest, with each parent before its children."""
    done: set[str] = set()
    for youngest in sorted(sessions.values(), key=_age):
        lineage: list[FoundHome] = []
        found: FoundHome | None = youngest
        while found is not None and found.id not in done:
            done.add(found.id)
            lineage.append(found)
            found = sessions.get(found.parent)
        yield from reversed(lineage)


def _lines(
    found: FoundHome, messages: Sequence[Message], speaker: Author, after: Tip | None
) -> tuple[list[Line], int | None, Tip | None]:
    """Return a session's entries, its tip, and the entry that it continues if a summary covers it.

    Compacted entries stay on the path under their summary. Without a recognizable summary they become a branch, so that
    a model sees what it saw in Hermes.
    """
    summed = any(message.summary for message in messages if message.standing is HermesStanding.SAID)
    after = after if summed else None
    lines: list[Line] = []
    tip: int | None = None
    covered = 0
    aside: int | None = None
    at = found.began or 0.0
    for number, message in enumerate(messages, 1):
        at = at if message.at is None else message.at
        author, parts = _author(message, speaker), message.parts
        if message.summary and (covered or after) and message.standing is not HermesStanding.UNDONE:
            author, parts = GATEWAY, (*message.parts[:-1], Summary(message.summary, "", covered))
        if message.standing is HermesStanding.SAID or (message.standing is HermesStanding.COMPACTED and summed):
            lines.append(Line(number, tip, author, parts, at))
            tip, aside = number, None
            covered = number if message.standing is HermesStanding.COMPACTED else covered
        else:
            lines.append(Line(number, tip if aside is None else aside, author, parts, at))
            aside = number
    return lines, tip, after


def _author(message: Message, speaker: Author) -> Author:
    match message.role:
        case "user":
            return speaker
        case "system":
            return GATEWAY
        case _:
            return AGENT
