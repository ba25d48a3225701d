"""What the stories of handoffs stand on: two platforms, a gateway between them, and an agent that recalls."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from segue.changes.exchange import handoffs
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Driver
from segue.core.handoffs import HandoffRecord, Patience
from segue.core.lanes import Address, Identity, Lane
from segue.core.messages import PLACEHOLDER, Aside, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, Settings, Streams
from segue.core.transcripts import Role, Session
from segue.runtime.gateway import Gateway
from segue.store import Store, open_driver
from segue.testing.agents import ScriptedAgent, Step
from segue.testing.chats import Chat, Someone
from segue.testing.personas import Persona
from tests.in_process import gateway_on

HERE = "Hello here. Last you said: {last}"


def is_opening(work: Work) -> bool:
    """Whether the agent is to speak first."""
    return any(isinstance(part, Aside) and "just moved" in part.text for draft in work.asked for part in draft.parts)


def recalls(work: Work) -> Iterable[Step]:
    """Say again what was said; in a new place, what was said last."""
    if is_opening(work):
        said = [entry.text for entry in work.transcript if entry.author.role is Role.PERSON]
        return [HERE.format(last=said[-1] if said else "nothing")]
    return ["You said: " + " + ".join(plain_text(draft.parts) for draft in work.asked)]


class Street:
    """Two platforms with a gateway between them; Ann, who is the host, has a private chat on the first."""

    def __init__(self, origin: Persona, destination: Persona) -> None:
        self.origin, self.destination = origin, destination
        self.ann = origin.person("Ann")
        self.dm = origin.dm(self.ann)
        self.there = destination.person("Ann")
        self.agent = ScriptedAgent(otherwise=recalls)
        self.home: Chat | None = None
        self.spelt: Address | None = None
        """The home's address as the settings spell it, if that isn't the whole of it."""
        self.hosts: tuple[Identity, ...] = (self.ann.identity, self.there.identity)
        self.patience = Patience()
        self.poll = 0.05
        self.through: Callable[[Driver], Driver] = lambda driver: driver
        """What stands between the gateway and its database."""
        self.routing = Settings()
        self.store: Store

    @asynccontextmanager
    async def opened(self, where: str) -> AsyncIterator[Gateway]:
        """The gateway runs while inside."""
        home = self.home.place if self.home else None
        if home and self.spelt:
            home = replace(home, address=self.spelt)
        accounts = {
            (self.origin.name, self.origin.account): AccountSettings(public=True, streams=Streams.WHOLE),
            (self.destination.name, self.destination.account): AccountSettings(
                public=True, streams=Streams.WHOLE, home=home
            ),
        }
        async with gateway_on(
            self.through(await open_driver(where)),
            self.agent,
            self.origin,
            self.destination,
            limits=UNBOUNDED,
            routing=self.routing,
            hosts=self.hosts,
            accounts=accounts,
            handoff=self.patience,
            poll=self.poll,
        ) as gateway:
            self.store = gateway.store
            yield gateway

    async def talks(self, text: str = "about cats", title: str = "Cats") -> None:
        """Ann has a conversation in her private chat."""
        self.ann.says(text, self.dm)
        await self.dm.reads(f"You said: {text}")
        self.ann.says(f"/title {title}", self.dm)
        await self.dm.reads(f"This session is called {title}.")

    async def says(self, text: str, who: Someone | None = None, where: Chat | None = None) -> str:
        """Somebody says something, and the next that the agent says there is returned."""
        chat = where or self.dm
        before = len(chat.replies)
        (who or self.ann).says(text, chat)

        def answer() -> str | None:
            new = [reply for reply in chat.replies[before:] if reply != PLACEHOLDER]
            return new[0] if new else None

        return await chat.platform.changes.until(answer, lambda: f"{text!r} was never answered: {chat.replies!r}")

    async def bound(self, chat: Chat) -> Session | None:
        """What a chat speaks to that is nobody's own."""
        return await self.store.bound(Lane(chat.address))

    async def session(self) -> Session:
        """The session of Ann's private chat."""
        found = await self.bound(self.dm)
        assert found is not None
        return found

    async def last(self) -> HandoffRecord:
        """The newest handoff from Ann's private chat."""
        found = await self.store.driver.read(handoffs.last_from, Lane(self.dm.address))
        assert found is not None
        return found
