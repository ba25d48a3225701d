"""One prompt of an ACP agent: its updates as the events of an answer, its questions as questions to a person."""

import asyncio
import logging
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from hashlib import sha256
from mimetypes import guess_extension
from typing import Any

from acp.schema import (
    AcceptElicitationResponse,
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AllowedOutcome,
    AudioContentBlock,
    BlobResourceContents,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ResourceContentBlock,
    SessionInfoUpdate,
    TextContentBlock,
    TextResourceContents,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from segue.agents.acp.calls import Calls, called
from segue.agents.acp.forms import fill
from segue.core.contracts.agents import Event, KeepsFiles, Progress, Titled, Usage, Work
from segue.core.messages import File, Reasoning, Text
from segue.core.questions import LONGEST, NO, YES
from segue.errors import Invalid, Unanswered

log = logging.getLogger(__name__)

PROVIDER = "acp"
_NAMELESS = "New session"
"""Beginning of what some agents call a session until they have found a title."""
_ONCE, _ALWAYS, _NOT, _NEVER = "allow_once", "allow_always", "reject_once", "reject_always"


class AcpTurn:
    """A prompt that runs in a session of the agent's."""

    def __init__(self, work: Work, model: str, cost: float) -> None:
        self.work = work
        self._model = model
        self._updates: asyncio.Queue[tuple[Any, Mapping[str, Any]] | None] = asyncio.Queue()
        self._calls = Calls()
        self._thought = ""
        self._message: str | None = None
        self._doing = ""
        self._asked: Counter[str] = Counter()
        self._asking: set[asyncio.Task[Any]] = set()
        self._cancelled = False
        self.cost = cost
        """The cost of the agent's whole session in dollars, as it was told last."""
        self._spent = 0.0

    def heard(self, update: Any, meta: Mapping[str, Any]) -> None:
        """The agent told something."""
        self._updates.put_nowait((update, meta))

    def over(self) -> None:
        """Nothing more comes."""
        self._updates.put_nowait(None)
        self.cancel()

    def cancel(self) -> None:
        """Nobody is to answer any more; the agent is told so."""
        self._cancelled = True
        for task in self._asking:
            task.cancel()

    async def events(self) -> AsyncGenerator[Event, None]:
        """All that the agent tells, until nothing more comes."""
        while (heard := await self._updates.get()) is not None:
            update, _ = heard
            if self._thought and not isinstance(update, AgentThoughtChunk):
                yield self._thoughts()
            if isinstance(update, AgentMessageChunk):
                async for said in self._said(update):
                    yield said
                continue
            silent = True
            for event in self._told(update):
                silent = False
                yield event
            if silent and self._doing:
                yield Progress(self._doing)  # it lives
        if self._thought:
            yield self._thoughts()
        for call in self._calls.unfinished():
            yield call

    def usage(self, done: PromptResponse) -> Usage | None:
        """The cost of the prompt, where the agent tells it."""
        spent, cost = done.usage, self._spent or None
        if spent is None:
            return Usage(self._model, cost=cost) if cost else None
        read, written = spent.cached_read_tokens or 0, spent.cached_write_tokens or 0
        # ACP counts tokens of the cache beside the input.
        whole = spent.input_tokens + read + written
        thoughts = spent.thought_tokens or 0
        return Usage(self._model, whole, spent.output_tokens + thoughts, thoughts, read, written, cost)

    def _thoughts(self) -> Reasoning:
        thought, self._thought = self._thought, ""
        return Reasoning(PROVIDER, {"text": thought})

    async def _said(self, update: AgentMessageChunk) -> AsyncIterator[Event]:
        """A piece of the answer; another message begins a paragraph."""
        if update.message_id and self._message and update.message_id != self._message:
            yield Text("\n\n")
        self._message = update.message_id or self._message
        match update.content:
            case TextContentBlock(text=text):
                yield Text(text)
            case ImageContentBlock(data=data, mime_type=media) | AudioContentBlock(data=data, mime_type=media):
                yield await self._file(f"{media.partition('/')[0]}{guess_extension(media) or ''}", media, data)
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(blob=data, mime_type=media, uri=uri)):
                yield await self._file(uri.rsplit("/", 1)[-1] or "file", media or "", data)
            case EmbeddedResourceContentBlock(resource=TextResourceContents(text=text, uri=uri)):
                yield Text(f"\n\n{uri}\n```\n{text}\n```\n\n")
            case ResourceContentBlock(name=name, uri=uri):
                yield Text(f"[{name}]({uri})")
            case _:
                """There is no other content."""

    async def _file(self, name: str, media: str, data: str) -> File | Text:
        """A file that the agent made."""
        files = self.work.files
        if not isinstance(files, KeepsFiles):
            return Text(f"({name} can't be kept here.)")
        try:
            return await files.keep(name, media, _once(b64decode(data, validate=True)))
        except NotBase64:
            return Text(f"({name} came broken.)")

    def _told(self, update: Any) -> Iterator[Event]:
        """The events of anything else that the agent tells."""
        match update:
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                self._thought += text
                yield self._does("thinking")
            case ToolCallStart() | ToolCallProgress():
                finished = self._calls.heard(update)
                yield self._does(self._calls.line(update.tool_call_id))
                yield from finished
            case AgentPlanUpdate(entries=entries) if entries:
                done = sum(entry.status == "completed" for entry in entries)
                now = next((entry.content for entry in entries if entry.status == "in_progress"), "")
                yield self._does(f"plan {done}/{len(entries)}{f': {now}' if now else ''}"[:200])
            case UsageUpdate(cost=cost) if cost is not None and cost.currency == "USD":
                # An agent that counts anew after a restart says less than it did before.
                self._spent += cost.amount - self.cost if cost.amount >= self.cost else cost.amount
                self.cost = cost.amount
            case SessionInfoUpdate(title=str(title)) if not title.startswith(_NAMELESS):
                yield Titled(title)
            case _:
                """Told to the session, or news to this version."""

    def _does(self, doing: str) -> Progress:
        self._doing = doing
        return Progress(doing)

    async def permit(self, call: ToolCallUpdate, options: list[PermissionOption]) -> RequestPermissionResponse:
        """Ask the person whether the agent may do something; nobody's answer is a no."""
        self._calls.heard(call)
        subject, details = called(self._calls.known(call.tool_call_id))
        kinds = Counter(option.kind for option in options)
        plain = max(kinds.values(), default=0) < 2 and (_ONCE in kinds or _ALWAYS in kinds)
        words = f"May I do this? {subject}{f'{chr(10)}{details}' if details else ''}"[:LONGEST]
        key = self._key(f"{subject}\n{details}\n{[option.name for option in options]}")
        if plain:
            answer = await self._ask(words, (), key, subject)
            wanted = (_ONCE, _ALWAYS) if answer == YES else (_NOT, _NEVER)
            chosen = next((one for kind in wanted for one in options if one.kind == kind), None)
        else:
            names = {f"{option.name}"[:150].replace("\n", " "): option for option in options}
            offered = (*names, *(() if NO in {name.casefold() for name in names} else (NO,)))
            answer = await self._ask(words, offered, key, "")
            chosen = names.get(answer or "") or next((one for one in options if one.kind in (_NOT, _NEVER)), None)
        if chosen is None or self._cancelled:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def elicit(self, message: str, mode: Any) -> CreateElicitationResponse:
        """Ask the person what the agent wants to know, a field after the other."""
        if (url := getattr(mode, "url", None)) is not None:
            words = f"{message}\n{url}\nSay yes once that is done."[:LONGEST]
            if await self._ask(words, (YES, NO), self._key(words), "") == YES:
                return AcceptElicitationResponse(action="accept")
            return DeclineElicitationResponse(action="decline")

        async def ask(words: str, choices: tuple[str, ...]) -> str | None:
            return await self._ask(words[:LONGEST], choices, self._key(words), "")

        content = await fill(message, mode.requested_schema, ask)
        if content is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=content)

    def _key(self, about: str) -> str:
        """A question's name: the same for the same request in a later attempt, and never that of another request."""
        self._asked[about] += 1
        return f"acp/{sha256(about.encode(errors='replace')).hexdigest()[:32]}/{self._asked[about]}"

    async def _ask(self, words: str, choices: tuple[str, ...], key: str, allows: str) -> str | None:
        """The person's answer; None if there is none."""
        task = asyncio.create_task(self._answer(words, choices, key, allows))
        self._asking.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            return None  # the agent waits for an answer, also when its turn is over
        finally:
            self._asking.discard(task)

    async def _answer(self, words: str, choices: tuple[str, ...], key: str, allows: str) -> str | None:
        try:
            return await self.work.ask(words, choices, key=key, allows=allows)
        except Unanswered:
            return None
        except Invalid as error:
            log.warning("the agent asked what nobody can be asked: %s", error)
            return None


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
