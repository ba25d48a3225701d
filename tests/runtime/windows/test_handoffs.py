"""Handoffs from, to and through windows: terminals, pages and scripts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from segue.changes.commands.people import ASKED, CONFIRM, SHOWN
from segue.changes.places import windows
from segue.core.handoffs import LIVE, HandoffProgress, State
from segue.core.lanes import Address, Kind, Lane, Place
from segue.core.moves import Consent, Resume
from segue.core.settings import AccountSettings
from segue.core.values import SessionId
from segue.core.windows import ACCOUNT, HOSTS, TERMINAL
from segue.errors import Refusal, Refused
from segue.runtime.windows.frames import (
    Begins,
    HandoffFrame,
    HandoffRequest,
    InvitationFrame,
    NoticeFrame,
    OpenRequest,
    QuestionsFrame,
    RefusedFrame,
    WaitingFrame,
)
from segue.testing.agents import Pause, ScriptedAgent
from segue.testing.chats import Chat, Someone
from segue.testing.personas import Telegram, TelegramAdapter
from segue.testing.waits import PATIENCE
from tests.in_process import PUBLIC
from tests.runtime.house import Guest, House, house
from tests.stories.moving_house import HERE, recalls

CATS = HERE.format(last="cats")


class LinkedAdapter(TelegramAdapter):
    """One whose platform has start links."""

    async def start_link(self, code: str) -> str:
        """A link."""
        return f"https://chat.example/agent?start={code}"


class Doorstep:
    """A house, and a platform on which the host has a private chat."""

    def __init__(self) -> None:
        self.agent = ScriptedAgent(otherwise=recalls)
        self.platform = Telegram()
        self.ann: Someone = self.platform.person("Ann")
        self.dm: Chat = self.platform.dm(self.ann)
        self.account = PUBLIC
        self.here: House

    @asynccontextmanager
    async def opened(self, path: Path, home: Chat | None = None) -> AsyncIterator[House]:
        """The gateway runs while inside."""
        async with house(path, self.agent, LinkedAdapter(self.platform), account=self.account) as self.here:
            if home is not None:
                store = self.here.gateway.store
                await store.set_home(home.place, await store.person(HOSTS[0]))
            yield self.here


async def ends(guest: Guest) -> State:
    """How a handoff ended that a window is shown."""
    return (await guest.shown(HandoffFrame, lambda frame: frame.state not in LIVE)).state


async def test_a_terminal_is_shown_each_step_and_that_it_is_gone(tmp_path: Path) -> None:
    doorstep, pause = Doorstep(), Pause()
    async with doorstep.opened(tmp_path, doorstep.dm) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        doorstep.agent.will("Hello ", pause, "there.")
        await terminal.says("/handoff telegram")
        await pause.reached()
        seen = await terminal.shown(HandoffFrame, lambda frame: frame.step is HandoffProgress.WRITING)
        assert (seen.state, seen.to) == (State.CLAIMED, "telegram.main")
        pause.over()
        assert await ends(terminal) is State.DONE
        await terminal.shown(WaitingFrame)
        assert terminal.session is None
        thread = await doorstep.dm.sees_thread()
        await thread.reads("Hello there.")


async def test_a_window_that_cannot_leave_what_others_read_says_so(tmp_path: Path) -> None:
    doorstep, pause = Doorstep(), Pause()
    async with doorstep.opened(tmp_path, doorstep.dm) as here, here.terminal() as terminal:
        store = here.gateway.store
        host = await store.person(HOSTS[0])
        await terminal.opened()
        await terminal.says("dogs")
        await terminal.shows("dogs", "You said: dogs")
        await terminal.says("/new cats")
        await terminal.shows("cats", "You said: cats")
        cats = await store.bound(Lane(Address(TERMINAL, ACCOUNT, chat="ann")))
        assert cats is not None
        club = await store.lane(Place(Address("wall", "one", chat="club"), Kind.GROUP, "The Club"), host)
        await store.move(Resume(club, cats.id, consent=Consent.GIVEN), host)
        doorstep.agent.will("Hello ", pause, "there.")
        await terminal.says("/handoff telegram")
        await pause.reached()
        async with here.terminal() as again:
            await again.opened()
            told = [frame.text for frame in again.had(NoticeFrame)]
        pause.over()
        assert await ends(terminal) is State.DONE
    assert told == [
        "This session is being handed off. Wait for it, or cancel it first.",
        "Everyone in The Club reads this session. /branch goes on alone.",
    ]


async def test_what_was_over_before_a_window_opened_is_not_told_there(tmp_path: Path) -> None:
    doorstep = Doorstep()
    async with doorstep.opened(tmp_path, doorstep.dm) as here, here.page() as page:
        store = here.gateway.store
        await store.link(await store.person(HOSTS[0]), await store.person(doorstep.ann.identity))
        await page.opened()
        async with here.terminal() as terminal:
            await terminal.opened()
            await terminal.says("cats")
            await terminal.shows("cats", "You said: cats")
            await terminal.says("/handoff telegram")
            assert await ends(terminal) is State.DONE
        thread = await doorstep.dm.sees_thread()
        async with here.terminal() as again:
            # It looks at the same conversation, which moves on from elsewhere.
            await again.shows("cats", "You said: cats", CATS)
            doorstep.ann.says("/handoff page", thread)
            await page.shows("cats", "You said: cats", CATS, CATS)
            await thread.reads("This conversation goes on in web. /resume brings it back here.")
            await again.told("/who")
            assert again.had(HandoffFrame) == []


async def test_cancelled_from_the_terminal_it_stays(tmp_path: Path) -> None:
    doorstep, pause = Doorstep(), Pause()
    async with doorstep.opened(tmp_path, doorstep.dm) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        doorstep.agent.will("Hello ", pause, "there.")
        await terminal.says("/handoff telegram")
        await pause.reached()
        await terminal.says("/handoff cancel")
        assert await ends(terminal) is State.CANCELLED
        await terminal.says("dogs")
        await terminal.shows("cats", "You said: cats", "dogs", "You said: dogs")


async def test_a_conversation_comes_to_a_terminal_that_somebody_looks_at(tmp_path: Path) -> None:
    doorstep = Doorstep()
    async with doorstep.opened(tmp_path) as here:
        store = here.gateway.store
        await store.link(await store.person(HOSTS[0]), await store.person(doorstep.ann.identity))
        doorstep.ann.says("cats", doorstep.dm)
        await doorstep.dm.reads("You said: cats")
        doorstep.ann.says("/handoff terminal", doorstep.dm)
        await doorstep.dm.reads("destination: nobody looks at a terminal now. Run `segue` there first.")
        doorstep.ann.says("/handoff page", doorstep.dm)
        await doorstep.dm.reads("destination: nobody looks at a page now. Open the page first.")
        async with here.terminal() as terminal, here.page() as page:
            await terminal.opened()
            await page.opened()
            # Both begin on the person's last session, so that they leave it first.
            for window in (terminal, page):
                await window.says("/new")
                await window.shown(NoticeFrame)
            doorstep.ann.says("/handoff terminal", doorstep.dm)
            await terminal.shows("cats", "You said: cats", CATS)
            await doorstep.dm.reads("This conversation goes on in terminal. /resume brings it back here.")
            await terminal.says("/handoff web")
            await page.shows("cats", "You said: cats", CATS, CATS)


async def test_a_conversation_comes_to_a_terminal_that_another_process_serves(tmp_path: Path) -> None:
    doorstep = Doorstep()
    async with doorstep.opened(tmp_path) as here, house(tmp_path, doorstep.agent) as beside:
        store = here.gateway.store
        await store.link(await store.person(HOSTS[0]), await store.person(doorstep.ann.identity))
        doorstep.ann.says("cats", doorstep.dm)
        await doorstep.dm.reads("You said: cats")
        async with beside.terminal() as terminal:
            await terminal.opened()
            await terminal.says("/new")
            await terminal.shown(NoticeFrame)
            doorstep.ann.says("/handoff terminal", doorstep.dm)
            await terminal.shows("cats", "You said: cats", CATS)
            await doorstep.dm.reads("This conversation goes on in terminal. /resume brings it back here.")
        async with asyncio.timeout(PATIENCE):
            while await store.driver.read(windows.elsewhere, TERMINAL, ACCOUNT, ""):  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        doorstep.ann.says("dogs", doorstep.dm)
        await doorstep.dm.reads("You said: dogs")
        doorstep.ann.says("/handoff terminal", doorstep.dm)
        await doorstep.dm.reads("destination: nobody looks at a terminal now. Run `segue` there first.")


async def test_what_a_command_says_is_shown_where_its_window_is(tmp_path: Path) -> None:
    agent = ScriptedAgent(otherwise=recalls)
    async with house(tmp_path, agent) as here, house(tmp_path, agent), here.terminal() as terminal:
        await terminal.opened()
        # Either process would send it, if it only were quick enough.
        for n in range(20):
            await terminal.says(f"/help {n}")
            assert "There is no such command" in (await terminal.shown(NoticeFrame)).text


async def test_a_terminal_alone_says_how_to_connect_more(tmp_path: Path) -> None:
    agent = ScriptedAgent(otherwise=recalls)
    async with house(tmp_path, agent) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        for typed in ("/handoff", "/handoff telegram"):
            await terminal.says(typed)
            assert "segue serve" in (await terminal.shown(NoticeFrame)).text
        await terminal.told("/who")
        assert terminal.had(InvitationFrame) == []


async def test_one_scan_and_two_yeses_let_in_link_and_bring_the_conversation(tmp_path: Path) -> None:
    doorstep = Doorstep()
    doorstep.account = AccountSettings()
    async with doorstep.opened(tmp_path) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        await terminal.says("/handoff")
        invitation = await terminal.shown(InvitationFrame)
        link = invitation.links["telegram.main"]
        doorstep.ann.says(f"/start {link.partition('=')[2]}", doorstep.dm)
        await doorstep.dm.reads(ASKED.format(other="ann (at the terminal of this machine)"))
        doorstep.ann.says("/yes", doorstep.dm)
        await doorstep.dm.reads(CONFIRM)
        [asked] = (await terminal.shown(QuestionsFrame)).questions
        assert "wants to be you, the host" in asked.words
        assert doorstep.ann.identity.name in asked.words
        assert terminal.had(NoticeFrame)[1:] == [], "a card, and nothing beside it"
        await terminal.says("/yes")
        await doorstep.dm.reads("Welcome. The conversation is on its way here.")
        assert await ends(terminal) is State.DONE
        thread = await doorstep.dm.sees_thread()
        await thread.reads(CATS)
        store = here.gateway.store
        assert await store.person(doorstep.ann.identity) == await store.person(HOSTS[0])
        # A code works once.
        eve = doorstep.platform.person("Eve")
        eve.says(f"/start {invitation.code}", doorstep.platform.dm(eve))
        await doorstep.platform.dm(eve).reads(Refusal.WRONG_CODE.value)


async def test_a_code_that_others_could_read_works_no_more(tmp_path: Path) -> None:
    doorstep = Doorstep()
    async with doorstep.opened(tmp_path) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        await terminal.says("/handoff")
        code = (await terminal.shown(InvitationFrame)).code
        lobby, eve = doorstep.platform.group("lobby"), doorstep.platform.person("Eve")
        doorstep.ann.says(f"/link {code}", lobby)
        await lobby.reads(SHOWN)
        eve.says(f"/link {code}", doorstep.platform.dm(eve))
        await doorstep.platform.dm(eve).reads(Refusal.WRONG_CODE.value)


async def test_a_script_hands_a_session_off_from_where_it_is(tmp_path: Path) -> None:
    doorstep = Doorstep()
    async with doorstep.opened(tmp_path, doorstep.dm) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("cats")
        await terminal.shows("cats", "You said: cats")
        assert terminal.session is not None
        session = terminal.session.id
        async with here.terminal(request=OpenRequest(lane="script", begins=Begins.HERE)) as script:
            await script.opened()
            await script.sends(HandoffRequest(session, "nowhere"))
            refused = await script.shown(RefusedFrame)
            assert "isn't connected" in refused.text
            await script.sends(HandoffRequest(SessionId("0" * 26), "telegram"))
            assert (await script.shown(RefusedFrame)).text == str(Refused(Refusal.NOT_FOUND))
            await script.sends(HandoffRequest(session, "telegram"))
            assert await ends(script) is State.DONE
            assert await ends(terminal) is State.DONE
            thread = await doorstep.dm.sees_thread()
            await thread.reads(CATS)
            # The script's own window speaks to nothing.
            assert await here.gateway.store.lanes_of(session) == [Lane(thread.address)]
            lobby, bob = doorstep.platform.group("lobby"), doorstep.platform.person("Bob")
            bob.says("hello", lobby)
            await lobby.reads("You said: hello")
            await script.sends(HandoffRequest(session, f"telegram:{lobby.id}"))
            refused = await script.shown(RefusedFrame)
            assert refused.text.endswith("everyone in lobby can read there. Say so with --allow-readers if they may.")
            await script.sends(HandoffRequest(session, f"telegram:{lobby.id}", yes=True))
            assert await ends(script) is State.DONE
            await (await lobby.sees_thread()).reads(CATS)
