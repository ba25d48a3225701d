"""Tools of programs that act for a person, in no turn of an agent's: the same table, with that person's rights.

Law: a call that changes something has a key of the program's own. The same call with the same key is done once, however
often it is made and whichever gateway takes it; a program that doesn't know whether a call was done makes it again.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.commands.handoff import HandoffCommand, UnaskedReaders
from segue.changes.exchange import children, handoffs, questions
from segue.changes.exchange.asking import Asks
from segue.changes.exchange.children import Asker, Program
from segue.changes.people import persons, tokens
from segue.changes.people.access import Access
from segue.changes.people.allowances import Allowing
from segue.changes.people.tokens import Bearer
from segue.changes.sessions import lists
from segue.core.contracts.agents import Tool
from segue.core.contracts.wakes import Topic
from segue.core.handoffs import HandoffRecord
from segue.core.lanes import Identity, Person, clean_name
from segue.core.messages import ToolCall, ToolResult
from segue.core.moves import Consent
from segue.core.people import Standing
from segue.core.questions import YES, YES_OR_NO, Question, QuestionState
from segue.core.values import Plain, SessionId, Value, make_id
from segue.core.windows import ACCOUNT, PROGRAM
from segue.errors import Invalid, Refusal, Refused, StoreError, Unanswered
from segue.runtime.parts import Ground
from segue.runtime.tools.arguments import SESSION, named
from segue.runtime.tools.children import Label
from segue.runtime.tools.messages import LONGEST_WAIT, Messages
from segue.runtime.tools.table import Calling, Offer, performed
from segue.runtime.tools.waiting import until

PATIENCE = 45.0
"""Seconds for which a call waits for a person: programs give up on a call after a minute."""
_FOUND, _CHARACTERS = 20, 500
_KEY = "key"
_KEYED = frozenset({"sessions_spawn", "sessions_send", "schedule", "handoff", "ask", "notes_write"})
"""Tools whose calls have a key; the others change nothing, or nothing more when they are called again."""
_LONGEST_KEY = 100
_KEY_IS = (
    f"a word of your own for this call, of 1 to {_LONGEST_KEY} characters and a new one for each. The same call with "
    "the same key is done once: if you don't know whether it was, make it again."
)
_SEEN_AS: dict[str, Plain] = {
    _KEY: {"type": "string", "minLength": 1, "maxLength": _LONGEST_KEY, "description": _KEY_IS},
    "label": {"type": "string", "maxLength": 64, "description": "the title of a session, instead of an id."},
}
"""Arguments that programs have in a way of their own."""
_DOES = {
    "sessions_list": "List your person's sessions, the last used first.",
    "sessions_history": "Show the newest of what was said in one of your person's sessions.",
    "sessions_send": "Say something in one of your person's sessions, for them. With wait the answer is the result of "
    "this call, if it comes in time; without, it is shown where that conversation is.",
    "sessions_close": "Close one of your person's sessions. What it does now is stopped; what was said stays readable.",
    "schedule": "Have something done later by the agent of this gateway, once or again and again, and its answer "
    "delivered.",
    "ask": "Ask your person something in the chat where they are, and wait for the answer.",
    "notes_read": "Read what the agent of this gateway has noted about your person.",
    "notes_write": "Note something about your person, for later sessions; or put it in the place of an older note.",
}
"""Purposes of tools that agents read in words of their own."""


class BeginArguments(Value, frozen=True):
    """Arguments of sessions_spawn, for a program."""

    task: Annotated[str, Meta(min_length=1, description="what to say first in it: all that its agent knows.")]
    label: Label = ""
    wait: Annotated[
        float,
        Meta(ge=0, le=LONGEST_WAIT, description="seconds to wait for its answer, at most 300; 0 to go on at once."),
    ] = 0

    def __post_init__(self) -> None:
        if not self.task.strip():
            raise ValueError("it is blank")


class SessionSearchArguments(Value, frozen=True):
    """Arguments of sessions_search."""

    words: Annotated[str, Meta(min_length=1, description="words that were all said; the last may be a beginning.")]


class HandoffArguments(Value, frozen=True):
    """Arguments of handoff."""

    destination: Annotated[
        str, Meta(min_length=1, description="where it goes: a platform for its home, or PLATFORM:CHAT.")
    ]
    label: Label = ""
    session: Annotated[str, Meta(description=SESSION)] = ""


class Programs:
    """The tools of programs."""

    def __init__(
        self,
        ground: Ground,
        offers: Iterable[Offer],
        messages: Messages,
        handoff: HandoffCommand,
        agent: str,
    ) -> None:
        self._ground = ground
        self.lent = ground.lent
        self._store = ground.store
        self._messages = messages
        self._handoff = handoff
        self._still = Access(ground.settings, ground.ids).still
        self._asks = Asks(ground.adapters, ground.settings)
        self._allowing = Allowing(ground.settings)
        self._agent = agent
        self._own = {offer.tool.name: offer for offer in self._offers()}
        self.offers = {offer.tool.name: offer for offer in offers} | self._own
        self.patience = PATIENCE

    def _offers(self) -> tuple[Offer, ...]:
        return (
            Offer(
                "sessions_spawn",
                "Begin a conversation with the agent of this gateway, for your person. It lasts: go on with it by "
                "sessions_send, and people by resuming it in a chat.",
                BeginArguments,
                self.begin,
            ),
            Offer(
                "sessions_search",
                "Find what was said in your person's sessions, the newest first.",
                SessionSearchArguments,
                self.search,
            ),
            Offer(
                "handoff",
                "Move one of your person's sessions to a chat, where they go on with it.",
                HandoffArguments,
                self.hand_off,
            ),
        )

    def of(self, bearer: Bearer) -> "ProgramTools":
        """The tools of whoever shows a token."""
        reached = self.offers if bearer.token.session is None else _of_one_session(self.offers)
        return ProgramTools(self, reached, bearer.person, bearer.token.id, bearer.token.session)

    def of_host(self, host: Person) -> "ProgramTools":
        """The tools of the host's own programs on this machine."""
        return ProgramTools(self, self.offers, host, "", None)

    def calling(self, asker: Asker, key: str) -> Calling:
        """A call that one of them makes."""
        return Calling(asker, key, nullcontext, ProgramAsker(self, asker), self._agent)

    async def asker(self, person: Person, token: str, key: str, only: SessionId | None) -> Asker:
        """Whoever makes it."""
        allowance = await self._store.read(self._allowing.of, person.id)
        program = Program(Identity(PROGRAM, ACCOUNT, token or "host").key, allowance, only)
        return Asker(None, 0, person.id, person.name, key, self._ground.ids(), program)

    async def check(self, token: str) -> None:
        """Raise `Refused` if a token counts no more; the host's own programs on this machine have none."""
        if token:
            await self._store.read(tokens.check, token, self._still, self._ground.clock())

    async def over(self, person: Person) -> None:
        """A person's programs went over a limit: it is written down."""
        at = self._ground.clock()
        await self._store.write(audit.note, Fact(Event.LIMITED, person.id, detail="programs"), at)

    async def begin(self, calling: Calling, asked: BeginArguments) -> dict[str, Any]:
        """Begin a conversation."""
        if asked.label != clean_name(asked.label):
            raise Invalid("label", "it has characters that can't be shown", "Use one line of plain words.")
        new = SessionId(self._ground.ids())
        session = await self._store.write(
            children.begin, calling.asker, calling.key, new, asked.label, asked.task, self._ground.clock()
        )
        told = {"session": session, "label": asked.label}
        if not asked.wait:
            return told | {"state": "begun", "note": "sessions_history shows its answer when it is there."}
        return told | await self._messages.outcome(session, 1, asked.wait)

    async def search(self, calling: Calling, asked: SessionSearchArguments) -> dict[str, Any]:
        """What was said somewhere."""
        found = await self._store.read(lists.having, calling.asker.person, asked.words, _FOUND)
        told = [
            {"session": one.session.id, "title": one.session.title, "text": one.text[:_CHARACTERS]} for one in found
        ]
        return {"found": told}

    async def hand_off(self, calling: Calling, asked: HandoffArguments) -> dict[str, Any]:
        """Move a session."""
        named(asked.label, asked.session)
        asker, id = calling.asker, _id(calling.key)
        session = await self._store.read(children.find, asker, asked.label, asked.session)
        known = await self._store.read(persons.identities, asker.person)
        standing = Standing.OWNER if set(self._ground.settings.hosts).isdisjoint(known) else Standing.HOST
        by, to = (asker.person, standing), asked.destination

        async def begin(consent: Consent) -> None:
            await self._store.write(self._handoff.for_program, by, session, to, consent, id, self._ground.clock())

        try:
            await begin(Consent.ASKED)
        except UnaskedReaders as unasked:
            # A program consents to nothing for its person.
            words = f"A program wants to hand a session off to {to}: {unasked.problem}. May they read all of it?"
            if await self.ask(asker, f"{calling.key}/readers", words, YES_OR_NO) != YES:
                raise Refused(Refusal.NEEDS_YES) from unasked
            await begin(Consent.GIVEN)

        async def look() -> HandoffRecord | None:
            found = await self._store.read(handoffs.read, id)
            return None if found.settled is None else found

        settled = await until(self._ground, session, self.patience, look)
        if settled is None:
            note = "Make the same call with the same key to learn how far it is."
            return {"session": session, "state": "on its way", "note": note}
        told = {"session": session, "state": settled.state.value, "destination": settled.place}
        return told | ({"note": settled.error} if settled.error else {})

    async def ask(self, asker: Asker, key: str, words: str, choices: Sequence[str]) -> str:
        """A person's answer to what a program wants to know."""
        asking = self._asks.wanted(("", ""), key, words, choices, "")
        id = _id(key)
        await self._store.write(self._asks.ask_for_program, asker.person, asker.only, asking, id, self._ground.clock())

        async def look() -> Question | None:
            await self._store.write(questions.expire, self._ground.clock())
            found = await self._store.read(questions.read, id)
            return None if found.state is QuestionState.OPEN else found

        settled = await until(self._ground, Topic.ASKED, self.patience, look)
        if settled is None:
            raise Unanswered("Nobody has answered yet. Make the same call with the same key to go on waiting.")
        answer = questions.decided(settled)
        if answer is None:
            raise Unanswered(settled.outcome)
        return answer


class ProgramTools:
    """The tools of one program."""

    def __init__(
        self, programs: Programs, offers: Mapping[str, Offer], person: Person, token: str, only: SessionId | None
    ) -> None:
        self._programs = programs
        self._offers = offers
        self._person = person
        self._token = token
        self._only = only
        self.offered = tuple(_as_seen(offer.tool) for offer in offers.values())

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one; a call that can't be done is a result with `failed`."""
        given = dict(call.arguments) if isinstance(call.arguments, Mapping) else {}
        key = given.pop(_KEY, None) if call.name in _KEYED else ""
        if not isinstance(key, str) or len(key) > _LONGEST_KEY or (call.name in _KEYED and not key):
            return ToolResult(
                call.id, str(Invalid(_KEY, "it is missing, or isn't one", f"Give {_KEY_IS}")), failed=True
            )
        try:
            return await performed(self._offers, msgspec.structs.replace(call, arguments=given), self._run(key))
        except StoreError as error:
            return ToolResult(call.id, f"{error} Then make the same call again.", failed=True)

    def _run(self, key: str) -> Callable[[Offer, Value], Awaitable[Any]]:
        async def run(offer: Offer, arguments: Value) -> Any:
            written = sha256(msgspec.json.encode(arguments, order="deterministic")).hexdigest()[:32]
            called = f"program/{self._token}/{offer.tool.name}/{written}/{key}"
            asker = await self._programs.asker(self._person, self._token, called, self._only)
            try:
                done = await offer.run(self._programs.calling(asker, called), arguments)
            except Refused as refused:
                if refused.why is Refusal.OVER_LIMIT:
                    await self._programs.over(self._person)
                raise
            # A call may have waited for minutes: it answers only whoever may still ask.
            await self._programs.check(self._token)
            return done

        return run


class ProgramAsker:
    """Asks the person of a program."""

    def __init__(self, programs: Programs, asker: Asker) -> None:
        self._programs = programs
        self._asker = asker

    async def __call__(self, words: str, choices: Sequence[str] = (), key: str | None = None, allows: str = "") -> str:
        """The person's answer."""
        del allows
        return await self._programs.ask(self._asker, key or "", words, choices)


def _as_seen(tool: Tool) -> Tool:
    """A tool as a program sees it."""
    schema: dict[str, Any] = dict(tool.parameters)
    needed = [*([_KEY] if tool.name in _KEYED else []), *schema.get("required", [])]
    properties = {name: _SEEN_AS.get(name, schema["properties"].get(name)) for name in (*needed, *schema["properties"])}
    seen = schema | {"properties": properties} | ({"required": needed} if needed else {})
    return Tool(tool.name, _DOES.get(tool.name, tool.does), seen)


def _of_one_session(offers: Mapping[str, Offer]) -> dict[str, Offer]:
    """The tools that reach no more than one session."""
    wider = {"sessions_spawn", "sessions_search", "notes_read", "notes_write"}
    return {name: offer for name, offer in offers.items() if name not in wider}


def _id(key: str) -> str:
    """An id that is the same for the same key."""
    return make_id(0.0, sha256(key.encode()).digest()[:10])
