"""The prompt of a turn: what an agent is told about where it talks, and the words as it is to hear them."""

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from segue.changes import settings as kept
from segue.changes.people.notes import Notebooks
from segue.changes.sessions import contexts, resets
from segue.changes.sessions.contexts import Basis, Composed, Context, Surroundings, Told
from segue.core.contracts.adapters import (
    Adapter,
    EditsMessages,
    MentionsById,
    OpensThreads,
    SendsFiles,
    ShowsButtons,
    ShowsTyping,
)
from segue.core.contracts.agents import Participant, ReadsFiles, Work
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Audience, Identity, Kind, Lane, Place
from segue.core.prompt.envelopes import Voices, veiled
from segue.core.prompt.pseudonyms import NoVeil, Pseudonyms, Veil
from segue.core.prompt.section import Abilities, PromptFacts, joined, notebook, section
from segue.core.settings import GatewaySettings, Redaction
from segue.core.transcripts import Draft, Entry, Path, Role, Tip
from segue.core.turns import Run, Turn
from segue.core.values import PersonId, SessionId
from segue.core.windows import ShowsWindows
from segue.errors import Invalid
from segue.runtime.retrying import Patient
from segue.runtime.turns.transcript_cache import TranscriptCache

_KEY = "pseudonyms"
_KEPT = 1024
_LONGEST = 30 * 86400.0
"""Seconds for which background work may keep a session without saying so again."""


class PlaceJoined(Exception):
    """A session has an entry more, which tells its agent of a place that joined."""

    def __init__(self, tip: Tip) -> None:
        super().__init__(f"{tip.session}/{tip.n}")
        self.tip = tip


class Prompt:
    """Makes the work of a turn; a session's section stays the same whoever speaks."""

    def __init__(
        self,
        store: Patient,
        adapters: Mapping[tuple[str, str], Adapter],
        settings: GatewaySettings,
        clock: Clock,
        files: ReadsFiles,
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._settings = settings
        self._clock = clock
        self._files = files
        self._notebooks = Notebooks(settings)
        self._abilities = {account: _abilities(adapter) for account, adapter in adapters.items()}
        self.transcripts = TranscriptCache(store)
        self._veil: Veil | None = NoVeil() if settings.redaction is Redaction.NONE else None
        self._told: OrderedDict[SessionId, tuple[int, str, Told]] = OrderedDict()

    async def work(
        self, run: Run, path: Path, asked: tuple[Draft, ...], noting: str | None = None, *, joins: bool = False
    ) -> Work:
        """The turn as its agent gets it; `noting` is the name of one that keeps notes.

        A turn that goes on from the tip `joins`: if it comes from a place that was just told of in the transcript,
        `PlaceJoined` is raised. For any other the section is written anew.
        """
        veil = self._veil or await self.veil()
        seen = path.visible
        told, turn = await self._context(run, path, asked, veil, noting, joins=joins), run.turns[-1]
        context, places, who = told.context, told.places, Identity.parse(turn.identity) if turn.identity else None
        spots = [Address.parse(turn.route)] if turn.route else []
        spots += [Lane.parse(turn.lane).address] if turn.route and turn.lane else []
        here = [place for place in places if place.address in spots]
        spoken = dict.fromkeys((place.address.platform, place.address.account) for place in places)
        person = Participant(turn.person, turn.name, who, who in self._settings.hosts) if turn.person else None
        if not isinstance(veil, NoVeil):
            seen = self.transcripts.shown(run.held.session, seen, lambda entry: veiled(entry, veil))
            asked = tuple(veiled(draft, veil) for draft in asked)
            here = [veiled_place(place, veil) for place in here]
            places = tuple(veiled_place(place, veil) for place in places)
            person = person and veiled_person(person, veil)
        return Work(
            run.held.session,
            run.name,
            context.section if context.notes is None else context.section + notebook(context.notes),
            seen,
            asked,
            run.journal,
            voices=context.voices,
            notes=context.notes,
            person=person,
            place=here[0] if here else None,
            readers=places,
            abilities=tuple(self._abilities[account] for account in spoken if account in self._abilities),
            zone=self._settings.zone,
            files=self._files,
            background=KeptOpen(self._store, run.held.session, self._clock),
            tries=run.fails + run.deaths,
        )

    def forget(self) -> None:
        """Let go of all words that are kept in memory."""
        self.transcripts.clear()
        self._told.clear()

    def forget_hidden(self, session: SessionId) -> None:
        """Let go of the transcripts that lead through a session: something in it was hidden, or is shown again."""
        self.transcripts.drop(session)
        self._told.pop(session, None)

    async def heard(self, more: tuple[Draft, ...]) -> tuple[Draft, ...]:
        """Messages that come while a turn runs, as its agent gets them."""
        veil = await self.veil()
        return more if isinstance(veil, NoVeil) else tuple(veiled(draft, veil) for draft in more)

    async def real(self, said: str, session: SessionId) -> str:
        """An agent's words with the ids that its pseudonyms stand for: those of whom and where it may name."""
        veil = await self.veil()
        return veil.real(said, await self._nameable(session)) if isinstance(veil, Pseudonyms) else said

    async def hidden(self, said: str, session: SessionId) -> str:
        """The same the other way round: what the gateway has to say to an agent, without real ids."""
        veil = await self.veil()
        return veil.text(said, await self._nameable(session)) if isinstance(veil, Pseudonyms) else said

    async def veil(self) -> Veil:
        """The veil between the gateway and its agents."""
        if self._veil is None:
            secret = await self._store.write(kept.once, _KEY, secrets.token_hex(32))
            mention = {account for account, adapter in self._adapters.items() if isinstance(adapter, MentionsById)}
            self._veil = Pseudonyms(secret, mention)
        return self._veil

    async def _nameable(self, session: SessionId) -> list[Identity | Address]:
        """All that an agent was told of and may name: the host's settings tell of accounts and homes too."""
        homes = [its.home.address for its in self._settings.accounts.values() if its.home]
        accounts = [Address(platform, account) for platform, account in self._adapters]
        return [*await self._store.read(contexts.nameable, session), *homes, *accounts]

    async def _context(
        self, run: Run, path: Path, asked: Sequence[Draft], veil: Veil, noting: str | None, *, joins: bool
    ) -> Told:
        """The session as its agent is told of it; known from when this replica last held it, if no other has since."""
        session, turn = run.held.session, run.turns[-1]
        summary = f"{path.summary.tip.session}/{path.summary.tip.n}" if path.summary is not None else ""
        if noting is not None and not await self._store.read(
            self._notebooks.opens, session, turn.seq, PersonId(turn.person)
        ):
            noting = None
        basis = Basis(summary, self._settings.redaction, noting)
        epoch, bound, told = self._told.pop(session, (0, "", None))
        if told is None or run.bound != bound or run.held.epoch - epoch not in {0, 1}:
            told = await self._store.read(contexts.current, session, turn)
        if told is None or not still_holds(told.context, turn, basis):
            told = await self._renew(run, path, basis, asked, veil, joins=joins)
        self._told[session] = run.held.epoch, run.bound, told
        if len(self._told) > _KEPT:
            self._told.popitem(last=False)
        return told

    async def _renew(
        self, run: Run, path: Path, basis: Basis, asked: Sequence[Draft], veil: Veil, *, joins: bool
    ) -> Told:
        def compose(around: Surroundings, told: frozenset[str]) -> Composed:
            voices = _voices(around, (*path.visible, *asked))
            facts = self._facts(run, around, voices)
            known = [place for lane, place in zip(around.lanes, around.places, strict=True) if lane.key in told]
            secret = self._hosts_own(replace(around, places=tuple(known))) and not self._hosts_own(around)
            if not known or not joins or secret:
                return Composed(voices, section(facts, veil))
            new = tuple(place for place in around.places if place not in known)
            return Composed(voices, "", joined(replace(facts, places=new), veil))

        at, turn = self._clock(), run.turns[-1]
        told = await self._store.write(contexts.renew, run.held, turn, basis, compose, at, self._notebooks.told)
        if told.tip is not None:
            raise PlaceJoined(told.tip)
        return told

    def _facts(self, run: Run, around: Surroundings, voices: Voices) -> PromptFacts:
        turn, accounts = run.turns[-1], self._settings.accounts
        spoken = dict.fromkeys((place.address.platform, place.address.account) for place in around.places)
        named = {(home.address.platform, home.address.account): home for home in around.homes}
        named |= {account: its.home for account, its in accounts.items() if its.home and account not in named}
        return PromptFacts(
            places=around.places,
            voices=voices,
            name=turn.name,
            identity=Identity.parse(turn.identity) if turn.identity else None,
            abilities=tuple(self._abilities[account] for account in spoken if account in self._abilities),
            accounts=tuple(sorted(self._adapters)) if self._hosts_own(around) else (),
            homes=tuple(named.values()) if self._hosts_own(around) else (),
        )

    def _hosts_own(self, around: Surroundings) -> bool:
        """Whether a session is the host's and nobody else reads it: only then are platforms and homes told of.

        One without a place is a child, whose answers are read wherever it was asked for.
        """
        host = not set(self._settings.hosts).isdisjoint(around.owner)
        return host and bool(around.places) and all(place.audience is Audience.ONE for place in around.places)


def still_holds(context: Context, turn: Turn, basis: Basis) -> bool:
    """Whether what the agent was told is still to be told, by all that can be seen without looking further."""
    if context.basis != basis:
        return False
    if turn.lane is not None:
        return turn.lane in context.lanes
    return not turn.route or any(Lane.parse(lane).address.key == turn.route for lane in context.lanes)


@dataclass(frozen=True)
class KeptOpen:
    """Background work of a session, which keeps it from being reset."""

    store: Patient
    session: SessionId
    clock: Clock

    async def keep(self, why: str, seconds: float) -> None:
        """Keep the session from being reset for so long."""
        if not why.strip() or not 0 < seconds <= _LONGEST:
            fix = f"Name the work, and give it at most {_LONGEST:.0f} seconds at a time."
            raise Invalid("background", f"{why!r} for {seconds:g} seconds can't be kept", fix)
        at = self.clock()
        await self.store.write(resets.keep, self.session, why, at + seconds, at)

    async def done(self, why: str) -> None:
        """The work is done."""
        await self.store.write(resets.let_go, self.session, why, self.clock())


def _voices(around: Surroundings, said: Iterable[Draft | Entry]) -> Voices:
    """How many there are to tell apart, from now on; where somebody speaks is in the work alone."""
    spoke = {item.author.person for item in said if item.author.role is Role.PERSON}
    # An import may not know who spoke, which makes nobody a second person.
    people = {"the owner" if person in around.was else person for person in spoke if person}
    shared = any(_shared(lane, place) for lane, place in zip(around.lanes, around.places, strict=True))
    return Voices.SEVERAL if shared or len(people) > 1 else Voices.ONE


def _shared(lane: Lane, place: Place) -> bool:
    """Whether several people may speak in a lane."""
    return place.kind is not Kind.DM and not lane.person


def veiled_place(place: Place, veil: Veil) -> Place:
    """A place as an agent may know it."""
    near, parent = (place.address,), place.parent
    return replace(
        place,
        address=veil.address(place.address),
        name=veil.text(place.name, near),
        topic=veil.text(place.topic, near),
        parent=veil.address(parent) if parent else None,
    )


def veiled_person(person: Participant, veil: Veil) -> Participant:
    """A person as an agent may know them."""
    near = (person.identity,) if person.identity else ()
    identity = veil.identity(person.identity) if person.identity else None
    return replace(person, name=veil.text(person.name, near), identity=identity)


def _abilities(adapter: Adapter) -> Abilities:
    window = isinstance(adapter, ShowsWindows)
    return Abilities(
        adapter.platform,
        adapter.account,
        threads=isinstance(adapter, OpensThreads),
        edits=window or isinstance(adapter, EditsMessages),
        typing=window or isinstance(adapter, ShowsTyping),
        files=isinstance(adapter, SendsFiles),
        buttons=window or isinstance(adapter, ShowsButtons),
        mention=adapter.mention("ID") if isinstance(adapter, MentionsById) else "",
    )
