"""Mistakes that are planted on purpose: a drill that doesn't find one is no drill."""

import asyncio
import enum
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.responses import Response

from segue.adapters.discord import gateway as discord_gateway
from segue.adapters.feishu import adapter as feishu_adapter
from segue.adapters.feishu import api as feishu_api
from segue.adapters.feishu.messages import Message
from segue.adapters.http import signature
from segue.adapters.matrix import incoming as matrix_incoming
from segue.adapters.slack import adapter as slack_adapter
from segue.adapters.slack import incoming as slack_incoming
from segue.adapters.telegram import adapter as telegram_adapter
from segue.adapters.telegram import updates as telegram_updates
from segue.adapters.whatsapp import adapter as whatsapp_adapter
from segue.agents.acp import calls
from segue.agents.acp import turn as acp_turn
from segue.changes import run_days
from segue.changes.commands import Commands, consent, views
from segue.changes.commands.consent import Consents
from segue.changes.commands.people import LinkCommand, _typed
from segue.changes.commands.request import Answer, Request
from segue.changes.commands.schedules import ScheduleCommands
from segue.changes.exchange import children, routes, schedules, turns
from segue.changes.exchange.explanations import Errors
from segue.changes.exchange.planner import Planner
from segue.changes.exchange.readers import Reader
from segue.changes.people import codes
from segue.changes.people.codes import Code, CodeKind
from segue.changes.people.notes import Notebooks
from segue.changes.sessions import readings
from segue.changes.sessions.readings import Unread
from segue.core.contracts.adapters import Accepted, Letter
from segue.core.contracts.database import Statement, Transaction
from segue.core.lanes import Address, Lane
from segue.core.messages import Arrival, Outgoing
from segue.core.people import Standing
from segue.core.questions import Question, QuestionState
from segue.core.text import markdown
from segue.core.text.splitting import MessageRoom
from segue.core.turns import Run
from segue.core.values import Secret, SessionId
from segue.database import sqlite_file, statements
from segue.database.sqlite import _Worker
from segue.database.sqlite_threads import Job
from segue.database.transactions import one_by_one
from segue.errors import StoreError
from segue.runtime import outbox
from segue.runtime.gateway import Gateway
from segue.runtime.inbox import Inbox
from segue.runtime.lifecycle.accept_health import AcceptHealth
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.lifecycle.supervisor import Supervisor
from segue.runtime.outbox import Outbox
from segue.runtime.retrying import Patient
from segue.runtime.server.callers import Caller, Callers
from segue.runtime.tools.reading import Reading
from segue.runtime.turns.answering import Answering
from segue.runtime.turns.asking import Askers
from segue.runtime.turns.prompt import Prompt
from segue.runtime.turns.running import Running
from segue.runtime.turns.stranded import Stranded
from segue.runtime.windows.window import Window
from segue.store import Store
from tests.drills.pace import slow
from tests.drills.parrots import ACCOUNT, PLATFORM


class Patch(NamedTuple):
    """What is put in the place of something, for a while."""

    owner: Any
    name: str
    made_of: Callable[[Any], Any]
    """Given what is there, what is there instead."""


@contextmanager
def planted(*patches: Patch) -> Iterator[None]:
    """Plant them, and take them back in the end."""
    before: list[tuple[Patch, Any]] = []
    try:
        for patch in patches:
            found = vars(patch.owner)[patch.name]
            before.append((patch, found))
            setattr(patch.owner, patch.name, patch.made_of(found))
        statements.compile_for.cache_clear()
        yield
    finally:
        for patch, found in reversed(before):
            setattr(patch.owner, patch.name, found)
        statements.compile_for.cache_clear()


def pragma(name: str, value: object) -> Patch:
    """Another setting of the SQLite file."""

    def made_of(settings: str) -> str:
        lines = [line for line in settings.splitlines() if not line.strip().startswith(f"pragma {name} ")]
        assert len(lines) < len(settings.splitlines())
        return "\n".join([*lines, f"pragma {name} = {value};"])

    return Patch(sqlite_file, "_SETTINGS", made_of)


def query(name: str, before: str, after: str) -> Patch:
    """Another text in a named query, for databases that are opened from now on."""

    def made_of(texts: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        changed = {key: text.replace(before, after) for key, text in texts.items() if key[0] == name and text}
        # The two databases may say it differently, or one of them not at all.
        assert any(text != texts[key] for key, text in changed.items())
        return texts | changed

    return Patch(statements, "_TEXTS", made_of)


def split(at: str) -> Patch:
    """On SQLite, a commit more in the middle of a transaction: before this statement."""

    def made_of(run: Callable[[_Worker, Job], Any]) -> Callable[[_Worker, Job], Any]:
        def in_two(worker: _Worker, job: Job) -> Any:
            whole = job.transaction

            def halves(*args: Any, **kwargs: Any) -> Transaction[Any]:
                steps = one_by_one(whole(*args, **kwargs))
                rows: Any = None
                while True:
                    try:
                        statement = steps.send(rows)
                    except StopIteration as done:
                        return done.value
                    if isinstance(statement, Statement) and statement.name == at:
                        worker._execute("commit")
                        worker._execute(worker._begin)
                    rows = yield statement

            job.transaction = halves
            try:
                return run(worker, job)
            finally:
                job.transaction = whole

        return in_two

    return Patch(_Worker, "_run", made_of)


def _acknowledge_first(accept: Callable[[Gateway, Arrival | Letter], Any]) -> Any:
    kept = set[Any]()

    async def acknowledge(gateway: Gateway, arrival: Arrival | Letter) -> Accepted:
        loop = asyncio.get_running_loop()
        kept.add(loop.call_later(0.02, lambda: kept.add(loop.create_task(accept(gateway, arrival)))))
        return Accepted.NEW

    return acknowledge


def _answer_at_once(attempt: Callable[[_Worker, Job], None]) -> Any:
    def answered(worker: _Worker, job: Job) -> None:
        attempt(worker, job)
        job.future.get_loop().call_soon_threadsafe(job.settle)

    return answered


def _new_keys(send: Callable[[Outbox, Outgoing], Any]) -> Any:
    async def sent(box: Outbox, held: Outgoing) -> str:
        delivery = replace(held.delivery, key=f"{held.delivery.key}/{os.urandom(4).hex()}")
        message: str = await send(box, replace(held, delivery=delivery))
        return message

    return sent


def _one_chat(accept: Callable[[Gateway, Arrival], Any]) -> Any:
    async def accepted(gateway: Gateway, arrival: Arrival) -> Accepted:
        address = replace(arrival.place.address, chat="one for all")
        outcome: Accepted = await accept(gateway, replace(arrival, place=replace(arrival.place, address=address)))
        return outcome

    return accepted


def _whatever_happens(accept: Callable[[Inbox, Arrival], Any]) -> Any:
    async def accepted(inbox: Inbox, arrival: Arrival) -> Accepted:
        try:
            outcome: Accepted = await accept(inbox, arrival)
        except StoreError:
            return Accepted.NEW
        return outcome

    return accepted


def _remembered(bound: Callable[[Store, Lane], Any]) -> Any:
    memory: dict[Lane, tuple[float, Any]] = {}

    async def remembered(store: Store, lane: Lane) -> Any:
        if lane not in memory or memory[lane][0] < time.monotonic():
            memory[lane] = time.monotonic() + 0.1, await bound(store, lane)
        return memory[lane][1]

    return remembered


def _believing(_prove: Callable[..., None]) -> Callable[..., None]:
    return lambda *_: None


def _guessed(opened: Callable[..., bytes]) -> Callable[..., bytes]:
    def by_either_key(key: Secret, sealed: object) -> bytes:
        try:
            return opened(key, sealed)
        except HTTPException:
            return opened(Secret("a guess"), sealed)

    return by_either_key


def _once(asked: Any) -> Any:
    async def once(patient: Patient, transaction: Any, *args: Any, **kwargs: Any) -> Any:
        return await getattr(patient._driver, asked.__name__)(transaction, *args, **kwargs)

    return once


def _days_by_the_clock(at: float) -> Transaction[tuple[int, ...]]:
    yield from ()
    return tuple(range(int(at // run_days.DAY) + 1))


def _ready_without_lease(_ready: Any) -> property:
    return property(lambda gateway: gateway._inbox.open and not (gateway.patient.trouble or gateway._accepting.problem))


def _hoarding(one: Callable[[Answering, Running], Any]) -> Any:
    kept: list[Running] = []

    async def hoarded(answering: Answering, live: Running) -> Run | None:
        kept.append(live)
        following: Run | None = await one(answering, live)
        return following

    return hoarded


def _idle(_look: Any) -> Any:
    async def idle(*_: Any) -> None:
        """Look at nothing."""

    return idle


def _never_waiting(_run: Any) -> Any:
    async def run(box: Outbox) -> None:
        while True:
            # It has taken all that was due, so it needn't look in the database.
            if len(box._calls) < 64:
                await box._take()
                await box.wake.wait()
            elif box.free:
                """There is room again."""

    return run


def _gives(value: Any) -> Transaction[Any]:
    yield from ()
    return value


def _once_read(unread: Callable[..., Transaction[Unread]]) -> Any:
    def been_there(address: Address, session: SessionId) -> Transaction[Unread]:
        been = yield Statement("been_there", {"address": address.key, "session": session})
        return readings.NOTHING if been else (yield from unread(address, session))

    return been_there


def _at_any_home(at_home: Callable[..., Transaction[bool]]) -> Any:
    return lambda consents, request: at_home(consents, replace(request, standing=Standing.HOST))


def _linked_at_once(use: Callable[..., Transaction[Any]]) -> Any:
    def linked(self: LinkCommand, code: Code, request: Request) -> Transaction[Any]:
        if code.kind is not CodeKind.LINK or code.person == request.met.person.id:
            return (yield from use(self, code, request))
        yield from codes.use_code(code, request.at)
        return Answer((yield from self._join(_typed(code, request), request.at)))

    return linked


def _read_out(listed: Callable[..., Transaction[Answer]]) -> Any:
    def read_out(self: ScheduleCommands, request: Request) -> Transaction[Answer]:
        before = yield from schedules.owned(request.met.person.id)
        answer = yield from listed(self, request)
        left = {one.id for one in (yield from schedules.owned(request.met.person.id))}
        return replace(answer, text=" ".join([answer.text, *(one.task for one in before if one.id not in left)]))

    return read_out


def _home_at_last(newest: Callable[..., Transaction[tuple[str | None, str]]]) -> Any:
    def at_last(session: SessionId) -> Transaction[tuple[str | None, str]]:
        lane, address = yield from newest(session)
        return lane, address or Address(PLATFORM, ACCOUNT, chat="lobby").key

    return at_last


_HELD = ("holder = :me and epoch = :epoch", "1 = 1")
_BEAT = "update replicas set expires = {now} + :seconds where id = :me and expires >= {now}"
_COME_BACK = """insert into replicas (id, expires) values (:me, {now} + :seconds)
    on conflict (id) do update set expires = excluded.expires"""


def _raising(made: Any) -> Any:
    def schedule(self: Any, request: Any) -> Any:
        if "9999" in request.rest:
            raise KeyError("America/New_York")
        return (yield from made(self, request))

    return schedule


def _exploding(made: Any) -> Any:
    explosive = re.compile(r"(?:[a-z ]+)+!!")
    prey = re.compile(r"[a-z ]{20,}")

    def divide(self: Any, text: str, at: float) -> Any:
        # The same text repeated until this machine takes too long for it, however fast it is.
        began = time.process_time()
        for letters in range(20, 60) if prey.match(text) else ():
            explosive.fullmatch(f"{text[:20]:e<{letters}}")
            if slow(time.process_time() - began):
                break
        return made(self, text, at)

    return divide


def _quoting(made: Any) -> Any:
    def schedule(self: Any, request: Any) -> Any:
        answer = yield from made(self, request)
        return replace(answer, text=answer.text + request.rest)

    return schedule


def _failing(_made: Any) -> Any:
    async def failing(*_: Any) -> Any:
        raise KeyError("nobody foresaw it")

    return failing


def _nameless(origin: Any) -> Any:
    raise KeyError(origin.sender_user_name)


def _believed(raw: Any, *path: str) -> Any:
    for name in path:
        raw = raw.get(name, {})
    return raw.get("events", [])


class Bug(enum.Enum):
    """A mistake, and what it would do."""

    NONE = "nothing is wrong"
    ACKNOWLEDGES_FIRST = "the platform hears 2xx before the message is durable"
    ANSWERS_BEFORE_THE_COMMIT = "whoever waits for a write hears that it is done before it is"
    FORGETS_KEYS = "a redelivery is taken for a new message"
    ACCEPTS_IN_TWO_TRANSACTIONS = "the key of a message is durable before its turn is"
    FINISHES_IN_TWO_TRANSACTIONS = "a turn is done before its answer is on its way"
    NOTHING_RESERVED = "what running turns may spend isn't counted"
    LEASES_WITHOUT_EPOCHS = "whoever held a session once may write to it for ever"
    NEVER_TAKES_OVER = "what a dead replica held stays held"
    NEW_KEYS = "each attempt at a delivery has a key of its own"
    OUT_OF_TURN = "deliveries to one place are sent in any order"
    ONE_CHAT_FOR_ALL = "whoever writes is in the same conversation"
    REMEMBERS_BINDINGS = "a process looks at what it remembers of a lane, not at the database"
    LANES_UNLOCKED = "a move doesn't wait for another one in the same lane"
    SIGNATURES_UNREAD = "whoever calls a webhook is believed"
    ANY_TIME = "what was signed once is good for ever, and its key is forgotten"
    SECRET_UNREAD = "whoever calls Telegram's webhook is believed"
    PROOFS_UNREAD = "whoever calls the webhook of Slack, WhatsApp or Feishu is believed"
    ANY_HANDSHAKE = "whoever shakes hands with WhatsApp's or Feishu's webhook is believed"
    BELIEVES_IN_DISKS = "a message that couldn't be kept is acknowledged all the same"
    ALWAYS_WELL = "health is green, whatever happens"
    HEALTH_BY_BEATS = "health is green as long as heartbeats can be written"
    READY_WITHOUT_LEASE = "whoever lost the lease still says that it is ready"
    DAYS_BY_THE_CLOCK = "days are counted by the wall clock, also those in which no gateway ran"
    WRITES_FOR_EVER = "whoever reads nothing keeps a connection for ever"
    NEWCOMERS_REFUSED = "a newcomer waits, though strangers hold all connections"
    GIVES_UP = "a store that can't now is never asked again"
    COMMITS_UNSYNCED = "a commit is in the log, which isn't synced"
    NOTHING_SYNCED = "nothing is ever synced"
    FOLDER_UNSYNCED = "the log may lose its name"
    NEVER_LOOKS_AT_ITSELF = "what a replica holds and doesn't work on stays held"
    HANGS_IN_PLACE = "a call that hangs keeps its place"
    TURNS_WITHOUT_WAITING = "an outbox that has no room for calls looks again at once"
    HOARDS = "what a turn needed is kept when it is over"
    COMMAND_RAISES = "a command ends in an error that nobody foresaw"
    PATTERN_EXPLODES = "a pattern with nested repetition reads what people type"
    LIST_QUOTES_TOO_MUCH = "a command quotes all that was said to it"
    TOOL_RAISES = "a tool ends in an error that nobody foresaw"
    UPDATE_RAISES = "an update without a field that most have can't be read"
    SYNC_RAISES = "a sync whose events are no list isn't taken in"
    EVENT_RAISES = "an event of Slack's whose type is no word can't be read"
    CONTENT_BELIEVED = "whatever Feishu says that a message holds is taken for that"
    LISTS_BELIEVED = "whatever Discord lists is taken for messages"
    FRAME_RAISES = "a frame ends its window"
    ONCE_READ_ALWAYS_READ = "a place that has spoken to a session may read all that is said in it since"
    TOOLS_REACH_ALL = "whoever reads the answer, tools find all that its person has"
    SENDS_TO_ALL = "an agent writes to a session whoever reads that"
    ANSWERS_GO_ANYWHERE = "what a session says unasked goes to any place that asked once"
    LISTS_TELL_ALL = "where others read, lists and searches tell as much as in private"
    HOME_OF_ALL = "the host's yes to a home stands for everybody's sessions"
    ANSWERED_TWICE = "the last answer to a question wins, after the first was heard"
    RUNS_BEFORE_THE_ANSWER = "an agent goes on before anybody has answered"
    NO_DEADLINE = "a question stays open for ever"
    TERMINAL_OPENS_ON_ANY = "a terminal opens by itself on a session that a group reads"
    HOMES_IN_EVERY_PROMPT = "everybody's agent is told of the host's homes"
    ERRORS_FOR_ALL = "/why tells anybody the agent's own errors"
    LINKED_AT_ONCE = "a code makes two people one without a question"
    CANCELS_ALOUD = "what is cancelled among others is read out, wherever it was scheduled"
    BACK_TO_THE_UNREAD = "a session goes back to what its readers haven't read"
    LATE_ANSWERS_GO_HOME = "what has nowhere to go is told in the host's home"
    PARTED_READ_ON = "who was parted from somebody goes on in that one's session"
    QUESTIONS_ALOUD = "who answers a private question among others is told aloud what was asked"
    NOTES_FOR_ALL = "notes about a person are told wherever they speak"
    RENDERS_EACH_GUESS = "to find the end of a message, each guess is rendered"
    BRACKETS_UNBOUNDED = "brackets within brackets are looked into, however many there are"
    ROOMS_KEEP_READING = "a private chat that becomes a group goes on with what its person read there"
    UNSUPERVISED = "a loop that fails ends all others"
    UNTOLD = "what fails is told nobody"
    WAKES_FIRST = "a wake-up that fails keeps whoever waits for a commit from hearing of it"
    ALLOWS_BY_ONE_LINE = "calls whose first 200 characters are the same are one permission"
    LIMITS_NOT_INHERITED = "a turn that is answered nowhere has the limits of no account"
    WAITING_UNSEEN = "who waits for an answer of a session that they have left isn't thought of"

    @property
    def patches(self) -> tuple[Patch, ...]:
        """How it is planted."""
        return _PATCHES[self]


def _rendered(_: Any) -> Any:
    return lambda room, text: len(text) <= room.readable and room.size(text) <= room.longest


def _asked_twice(ask: Any) -> Any:
    async def again(self: Any, live: Running, asking: Any) -> str:
        await ask(self, live, asking)
        await asyncio.sleep(0.3)
        answer: str = await ask(self, live, asking)
        return answer

    return again


def _at_once(_over: Any) -> Any:
    async def over(_self: Any, _live: Running, question: Question) -> Question:
        return replace(question, state=QuestionState.ANSWERED, answer="yes")

    return over


def _waking_first(settle: Callable[[Job], None]) -> Any:
    def settled(job: Job) -> None:
        for _wake in job.wakes:
            os.listdir(".")  # noqa: PTH208 -- needs a file descriptor, as a wake-up does
        settle(job)

    return settled


_UNSEEN = query("arriving", "where account = :account and key in", "where 1 = 0 and account = :account and key in")
_PATCHES: dict[Bug, tuple[Patch, ...]] = {
    Bug.RENDERS_EACH_GUESS: (Patch(MessageRoom, "surely", _rendered),),
    Bug.BRACKETS_UNBOUNDED: (Patch(markdown, "_enclosed", lambda _: lambda _text: 0),),
    Bug.ANSWERED_TWICE: (
        query("settle_question", "and state = 'open' and", "and"),
        Patch(Question, "open", lambda _: lambda *_: True),
        Patch(Askers, "ask", _asked_twice),
    ),
    Bug.RUNS_BEFORE_THE_ANSWER: (Patch(Askers, "_over", _at_once),),
    Bug.NO_DEADLINE: (query("questions_over", "deadline < :at", "1 = 0"),),
    Bug.NONE: (),
    Bug.COMMAND_RAISES: (Patch(ScheduleCommands, "schedule", _raising),),
    Bug.PATTERN_EXPLODES: (Patch(Planner, "divide", _exploding),),
    Bug.LIST_QUOTES_TOO_MUCH: (Patch(Commands, "run", _quoting),),
    Bug.TOOL_RAISES: (Patch(Reading, "history", _failing),),
    Bug.UPDATE_RAISES: (Patch(telegram_updates.Origin, "author", lambda _: property(_nameless)),),
    Bug.SYNC_RAISES: (Patch(matrix_incoming, "events_in", lambda _: _believed),),
    Bug.EVENT_RAISES: (Patch(slack_incoming, "is_known", lambda _: lambda raw: bool(raw["event"]["type"])),),
    Bug.CONTENT_BELIEVED: (Patch(feishu_api, "decode", lambda _: lambda raw: Message(**raw)),),
    Bug.LISTS_BELIEVED: (Patch(discord_gateway, "listed", lambda _: lambda raw: raw),),
    Bug.FRAME_RAISES: (Patch(Window, "earlier", _failing),),
    Bug.ACKNOWLEDGES_FIRST: (Patch(Gateway, "accept", _acknowledge_first),),
    Bug.ANSWERS_BEFORE_THE_COMMIT: (Patch(_Worker, "_attempt", _answer_at_once),),
    Bug.FORGETS_KEYS: (query("see", "do nothing", "do update set at = excluded.at"), _UNSEEN),
    Bug.ACCEPTS_IN_TWO_TRANSACTIONS: (split("add_turn_from"),),
    Bug.FINISHES_IN_TWO_TRANSACTIONS: (split("add_delivery"),),
    Bug.LEASES_WITHOUT_EPOCHS: (
        query("hold", *_HELD),
        query("stands", "s.holder = :me and s.epoch = :epoch", "1 = 1"),
        query("stands", "t.outcome is not null as ended", "1 = 0 as ended"),
        query("still_stands", *_HELD),
        query("finish", *_HELD),
        query("end_running", "and outcome is null", ""),
        query("end_turn", "and outcome is null", ""),
        query("beat", _BEAT, _COME_BACK),
    ),
    Bug.NOTHING_RESERVED: (query("spending", "r.session <> :session", "r.session <> :session and 1 = 0"),),
    Bug.NEVER_TAKES_OVER: (query("free_sessions", "where holder is not null", "where 1 = 0 and holder is not null"),),
    Bug.ALLOWS_BY_ONE_LINE: (Patch(acp_turn, "whole", lambda _: lambda call: (calls.called(call),) * 2),),
    Bug.LIMITS_NOT_INHERITED: (Patch(turns, "origin", lambda _: lambda _session, _turn: _gives(None)),),
    Bug.NEW_KEYS: (Patch(Outbox, "_send", _new_keys),),
    Bug.OUT_OF_TURN: (
        query("outgoing", "and (p.id < d.id or p.holder is not null)", "and 1 = 0"),
        query("outgoing", "order by d.due, d.id", "order by d.due desc, d.id desc"),
        query("take_own", "and p.key <> :key", "and 1 = 0"),
    ),
    Bug.ONE_CHAT_FOR_ALL: (Patch(Gateway, "accept", _one_chat),),
    Bug.REMEMBERS_BINDINGS: (Patch(Store, "bound", _remembered),),
    Bug.LANES_UNLOCKED: (query("lock_lane", "{for_update}", ""),),
    Bug.SIGNATURES_UNREAD: (Patch(signature.Signing, "verify", lambda _: lambda *_: None),),
    Bug.ANY_TIME: (
        Patch(signature, "WINDOW", lambda _: 10**12),
        query("see", "do nothing", "do update set at = 1"),
        _UNSEEN,
    ),
    Bug.SECRET_UNREAD: (Patch(telegram_adapter, "prove", _believing),),
    Bug.PROOFS_UNREAD: (
        Patch(slack_adapter, "prove", _believing),
        Patch(whatsapp_adapter, "prove", _believing),
        Patch(feishu_adapter, "prove", _believing),
    ),
    Bug.ANY_HANDSHAKE: (
        Patch(whatsapp_adapter.WhatsApp, "_shake_hands", lambda _: lambda *_: Response()),
        Patch(feishu_adapter, "unsealed", _guessed),
    ),
    Bug.BELIEVES_IN_DISKS: (Patch(Inbox, "accept", _whatever_happens),),
    Bug.ALWAYS_WELL: (Patch(Gateway, "problems", lambda _: lambda _gateway: []),),
    Bug.HEALTH_BY_BEATS: (
        Patch(AcceptHealth, "accept", lambda _: lambda health, arrived: health._inbox.accept(arrived)),
    ),
    Bug.READY_WITHOUT_LEASE: (Patch(Gateway, "ready", _ready_without_lease),),
    Bug.DAYS_BY_THE_CLOCK: (Patch(run_days, "count", lambda _: _days_by_the_clock),),
    Bug.WRITES_FOR_EVER: (Patch(Caller, "paused", lambda _: lambda _caller: None),),
    Bug.NEWCOMERS_REFUSED: (Patch(Callers, "_make_way", lambda _: lambda *_: False),),
    Bug.GIVES_UP: (Patch(Patient, "write", _once), Patch(Patient, "read", _once)),
    Bug.COMMITS_UNSYNCED: (pragma("synchronous", "normal"),),
    Bug.NOTHING_SYNCED: (pragma("synchronous", "off"),),
    Bug.FOLDER_UNSYNCED: (Patch(sqlite_file, "_sync_folder", lambda _: lambda _folder: None),),
    Bug.NEVER_LOOKS_AT_ITSELF: (Patch(Stranded, "look", _idle),),
    Bug.HANGS_IN_PLACE: (Patch(outbox, "_MOST_SLOW", lambda _: 0),),
    Bug.TURNS_WITHOUT_WAITING: (Patch(Outbox, "run", _never_waiting),),
    Bug.HOARDS: (Patch(Answering, "answer", _hoarding),),
    Bug.ONCE_READ_ALWAYS_READ: (Patch(readings, "unread", _once_read),),
    Bug.TOOLS_REACH_ALL: (Patch(children, "reader", lambda _: lambda _asker: _gives(Reader())),),
    Bug.ROOMS_KEEP_READING: (query("widen_places", "and kind = 'dm'", "and 1 = 0 and kind = 'dm'"),),
    Bug.UNSUPERVISED: (Patch(Supervisor, "supervised", lambda _: lambda _self, loop: loop.run()),),
    Bug.UNTOLD: (Patch(Failures, "failed", lambda _: lambda *_: None),),
    Bug.WAKES_FIRST: (Patch(Job, "settle", _waking_first),),
    Bug.WAITING_UNSEEN: (query("turns_beside", "t.outcome is null", "1 = 0"),),
    Bug.SENDS_TO_ALL: (Patch(children, "_fits", lambda _: lambda *_: _gives(None)),),
    Bug.ANSWERS_GO_ANYWHERE: (Patch(routes, "hears", lambda _: lambda *_: _gives(value=True)),),
    Bug.LISTS_TELL_ALL: (
        Patch(Request, "reader", lambda _: property(lambda _request: Reader())),
        Patch(Request, "alone", lambda _: property(lambda _request: None)),
    ),
    Bug.HOME_OF_ALL: (Patch(Consents, "_at_home", _at_any_home),),
    Bug.HOMES_IN_EVERY_PROMPT: (Patch(Prompt, "_hosts_own", lambda _: lambda *_: True),),
    Bug.ERRORS_FOR_ALL: (Patch(views, "explain", lambda explain: lambda trace, _: explain(trace, Errors.TOLD)),),
    Bug.LINKED_AT_ONCE: (Patch(LinkCommand, "_use", _linked_at_once),),
    Bug.CANCELS_ALOUD: (Patch(ScheduleCommands, "schedules", _read_out),),
    Bug.BACK_TO_THE_UNREAD: (Patch(readings, "missed", lambda _: lambda *_: _gives(value=False)),),
    Bug.LATE_ANSWERS_GO_HOME: (Patch(routes, "newest", _home_at_last),),
    Bug.PARTED_READ_ON: (query("lanes_astray", "where s.owner = :owner", "where 1 = 0 and s.owner = :owner"),),
    Bug.QUESTIONS_ALOUD: (Patch(consent, "_alone", lambda _: lambda _request, *words: Answer("".join(words))),),
    Bug.NOTES_FOR_ALL: (Patch(Notebooks, "opens", lambda _: lambda *_: _gives(value=True)),),
    Bug.TERMINAL_OPENS_ON_ANY: (query("last_own", "and a.kind <> 'dm'", "and 1 = 0"),),
}
