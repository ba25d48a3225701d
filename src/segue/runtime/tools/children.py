"""Children: an agent starts sessions of its own, and closes them."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from segue.changes.exchange import children
from segue.changes.exchange.children import Child
from segue.changes.people.access import Access
from segue.core.contracts.adapters import OpensThreads
from segue.core.lanes import Place, clean_name, opened_in
from segue.core.moves import Spawn, Start
from segue.core.transcripts import Ending
from segue.core.values import SessionId, Value
from segue.errors import Invalid, SendLater, SendNever, SendUnsure
from segue.runtime.parts import Ground
from segue.runtime.threads import open_thread
from segue.runtime.tools.arguments import SESSION, named
from segue.runtime.tools.table import Calling, Offer

_PATIENCE, _TRIES = 30.0, 3
"""Seconds and calls that opening a thread may take: the agent's turn waits for it."""
_TITLE = 60

Label = Annotated[
    str,
    Meta(max_length=64, description="a short name for the child, at most 64 characters; no live sibling may have it."),
]


class SpawnArguments(Value, frozen=True):
    """Arguments of sessions_spawn."""

    task: Annotated[str, Meta(min_length=1, description="what the child is to do, in full: it sees nothing else.")]
    mode: Annotated[
        Ending,
        Meta(description='"run" for one task whose result comes back to you, or "session" for a child that lasts.'),
    ] = Ending.ONE_SHOT
    thread: Annotated[
        bool | Literal["required"],
        Meta(
            description="true for a thread in which people talk to a lasting child, "
            '"required" if it is of no use without one, or false.'
        ),
    ] = False
    label: Label = ""
    start: Annotated[
        Start, Meta(description='"fresh" for a child that knows only its task, or "fork" for one that knows all this.')
    ] = Start.FRESH

    def __post_init__(self) -> None:
        if not self.task.strip():
            raise ValueError("it is blank")


class CloseArguments(Value, frozen=True):
    """Arguments of sessions_close."""

    label: Label = ""
    session: Annotated[str, Meta(description=SESSION)] = ""


class NoThread(Exception):
    """Why a child gets no thread."""


class Children:
    """Starts and closes the sessions that agents ask for."""

    def __init__(self, ground: Ground) -> None:
        self._store = ground.store
        self._still = Access(ground.settings, ground.ids).still
        self._adapters = ground.adapters
        self._routing = ground.settings.routing
        self._clock = ground.clock
        self._ids = ground.ids
        self._ground = ground

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The tools about it."""
        return (
            Offer(
                "sessions_spawn",
                "Start a child session that works on its own while you go on. A run does one task and its result comes "
                "to you in a later turn. A session lasts: its answers are shown to people, and you go on with it by "
                "sessions_send.",
                SpawnArguments,
                self.spawn,
            ),
            Offer(
                "sessions_close",
                "Close a child session for good. What it does now is stopped; what was said stays readable.",
                CloseArguments,
                self.close,
            ),
        )

    async def spawn(self, calling: Calling, asked: SpawnArguments) -> dict[str, Any]:
        """Start a child."""
        asker = calling.asker
        if asked.label != clean_name(asked.label):
            raise Invalid("label", "it has characters that can't be shown", "Use one line of plain words.")
        known = await self._store.read(children.known, calling.key)
        if known is not None:
            return _told(await self._store.read(children.child, known.session), asked, "")
        move = Spawn(asker.session, SessionId(self._ids()), asked.label, None, asked.start, asked.mode)
        await self._store.read(children.allowed, asker, self._still)
        await self._store.write(children.check, asker, move, self._routing.limits)
        thread, why = None, ""
        try:
            thread = await self._thread(calling, asked)
        except NoThread as none:
            why = str(none)
            if asked.thread == "required":
                fix = "Leave it out to start the child without a thread."
                raise Invalid("thread", f"{why} Nothing was started", fix) from none
        child = await self._store.write(
            children.spawn,
            asker,
            calling.key,
            move,
            asked.task,
            thread,
            self._routing,
            (self._ids(), self._ids()),
            self._clock(),
        )
        return _told(child, asked, why)

    async def close(self, calling: Calling, asked: CloseArguments) -> dict[str, Any]:
        """Close a child."""
        named(asked.label, asked.session)
        asker = calling.asker
        session = await self._store.read(children.find, asker, asked.label, asked.session)
        before = await self._store.read(children.child, session)
        child = await self._store.write(children.close, asker, session, self._ids(), self._clock())
        stopped = "What it was doing was stopped. " if before.busy and not before.closed else ""
        again = "It was closed already. " if before.closed else ""
        note = f"{again}{stopped}sessions_history still shows what was said."
        return {"session": session, "label": child.label, "state": "closed", "note": note}

    async def _thread(self, calling: Calling, asked: SpawnArguments) -> Place | None:
        """The thread that was opened for a child, None if it is to have none; raises `NoThread` if it can't be."""
        if not asked.thread:
            return None
        if asked.mode is Ending.ONE_SHOT:
            raise NoThread("A run has no thread.")
        around = await self._store.read(children.opening, calling.asker)
        if around is None:
            raise NoThread("No thread was opened: nobody speaks to this session from a chat.")
        platform = around.address.platform
        adapter = self._adapters.get((platform, around.address.account))
        if adapter is None or not isinstance(adapter, OpensThreads):
            raise NoThread(f"No thread was opened: {platform} can't open any.")
        title = asked.label or clean_name(asked.task)[:_TITLE]
        try:
            named = title, calling.key
            address = await open_thread(adapter, around.around, named, self._ground, _PATIENCE, _TRIES)
        except SendNever as error:
            raise NoThread(f"No thread was opened: {platform} refused ({error}).") from error
        except (SendLater, SendUnsure) as error:
            raise NoThread(f"No thread was opened: {platform} can't now ({error}).") from error
        return opened_in(around, address)


def _told(child: Child, asked: SpawnArguments, why: str) -> dict[str, Any]:
    """A child as its agent is told of it."""
    told: dict[str, Any] = {"session": child.id, "label": child.label, "mode": asked.mode.value}
    if asked.mode is Ending.ONE_SHOT:
        told["note"] = f"{why} Its result comes to you in a turn of this session; don't wait for it now.".strip()
        return told
    told["thread"] = child.lane is not None
    name = f'label="{child.label}"' if child.label else f'session="{child.id}"'
    where = "in its thread" if child.lane is not None else "in this conversation"
    without = (why or "It has no thread.") + " " if asked.thread and child.lane is None else ""
    told["note"] = f"{without}Its answers are shown {where}. Go on with sessions_send({name}, message=...)."
    return told
