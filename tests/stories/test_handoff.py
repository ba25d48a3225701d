"""A conversation moves to another place, live: it is there when its first message is, and else it never left."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from segue.changes.exchange import handoffs
from segue.core.accounts import Health, Reach
from segue.core.contracts.database import Driver, Transaction
from segue.core.handoffs import Patience, State
from segue.core.lanes import Address, Identity, Kind, Lane, Place
from segue.errors import OutcomeUnknown, Refusal
from segue.testing.agents import Doom, Pause
from segue.testing.faults import Call, Fault
from segue.testing.personas import PERSONAS, Discord, Feishu, Matrix, Persona, Slack, Telegram, WhatsApp
from segue.testing.platform import Threads
from tests.stories.moving_house import HERE, Street

P = ParamSpec("P")
T = TypeVar("T")
CATS = HERE.format(last="about cats")
THERE = "This conversation goes on in {}.two. /resume brings it back here."
STAYS = "The conversation is still here."
STAYED = "This conversation didn't move here: it goes on in whatsapp.one."


class Unsure:
    """A database that takes the first of each step of a handoff, and never says so."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.read, self.hint, self.listen, self.close = driver.read, driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self.taken: list[object] = []

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        done = await self._driver.write(transaction, *args, **kwargs)
        if transaction.__module__ == handoffs.__name__ and transaction not in self.taken:
            self.taken.append(transaction)
            raise OutcomeUnknown("The connection broke during the commit.")
        return done


@pytest.mark.parametrize("kind", [Kind.DM, Kind.GROUP])
@pytest.mark.parametrize("persona", PERSONAS, ids=lambda persona: persona.name)
async def test_a_conversation_goes_on_in_the_new_place(database: str, persona: type[Persona], kind: Kind) -> None:
    street = Street(Slack("one"), persona("two"))
    street.home = street.destination.dm(street.there) if kind is Kind.DM else street.destination.group("lobby")
    async with street.opened(database):
        await street.talks()
        session = await street.session()
        assert "Handing “Cats” off to" in await street.says("/handoff two")
        chat = street.home
        if persona.threads is not Threads.NONE and (persona, kind) != (Discord, Kind.DM):
            chat = await street.home.sees_thread()
            assert chat.title == "Cats"
        await chat.reads(CATS)
        await street.dm.reads(THERE.format(persona.name))
        [lane] = await street.store.lanes_of(session.id)
        assert await street.says("and dogs?", street.there, chat) == "You said: and dogs?"
        # The lane of what was opened is the lane of the first reply there.
        assert await street.store.lanes_of(session.id) == [lane]
        path = await street.store.path(session.id)
        assert [entry.text for entry in path if entry.text] == [
            "about cats",
            "You said: about cats",
            CATS,
            "and dogs?",
            "You said: and dogs?",
        ]
        assert await street.bound(street.dm) is None
        assert (await street.last()).state is State.DONE


async def test_a_home_that_is_written_without_its_space_is_looked_up(database: str) -> None:
    street = Street(Slack("one"), Discord("two"))
    street.home = chat = street.destination.dm(street.there)
    written = chat.address
    street.spelt = Address(written.platform, written.account, "", written.chat)
    async with street.opened(database):
        assert await street.says("before", street.there, chat) == "You said: before"
        await street.talks()
        session = await street.session()
        await street.says("/handoff two")
        await chat.reads(CATS)
        await street.dm.reads(THERE.format("discord"))
        assert await street.says("and dogs?", street.there, chat) == "You said: and dogs?"
        assert await street.store.lanes_of(session.id) == [Lane(written)]


async def test_whoever_never_hears_that_a_step_was_taken_still_gets_there(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.dm(street.there)
    unsure: list[Unsure] = []

    def through(driver: Driver) -> Driver:
        unsure.append(Unsure(driver))
        return unsure[0]

    street.through = through
    async with street.opened(database):
        await street.talks()
        await street.says("/handoff two")
        thread = await street.home.sees_thread()
        await thread.reads(CATS)
        await street.dm.reads(THERE.format("telegram"))
        taken = {getattr(change, "__name__", "") for change in unsure[0].taken}
        assert {"claim", "open_in", "finish", "sent"} <= taken


async def test_whoever_takes_it_back_takes_both_sides_back(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        assert await street.says("before", street.there, street.home) == "You said: before"
        former = await street.bound(street.home)
        await street.talks()
        session = await street.session()
        await street.says("/handoff whatsapp")
        await street.home.reads(CATS)
        await street.dm.reads(THERE.format("whatsapp"))
        assert "handoff" in await street.says("/undo", street.there, street.home)
        assert (await street.session()).id == session.id
        assert await street.bound(street.home) == former


async def test_where_a_thread_is_refused_the_place_itself_will_do(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.group("lobby")
    street.destination.misbehaves(Fault.REFUSES, Call.OPEN_THREAD)
    async with street.opened(database):
        await street.talks()
        session = await street.session()
        await street.says("/handoff two")
        await street.home.reads(CATS)
        assert street.home.threads == []
        await street.dm.reads(THERE.format("telegram"))
        # A flat group means one's own lane there.
        [lane] = await street.store.lanes_of(session.id)
        assert lane == Lane(street.home.address, (await street.store.person(street.there.identity)).id)
        assert await street.says("and dogs?", street.there, street.home) == "You said: and dogs?"
        assert await street.store.lanes_of(session.id) == [lane]


async def test_where_a_thread_is_refused_nobody_unknown_is_let_into_a_group(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.group("lobby")
    street.hosts = (street.ann.identity,)
    street.destination.misbehaves(Fault.REFUSES, Call.OPEN_THREAD)
    async with street.opened(database):
        await street.talks()
        await street.says("/handoff two")
        told = (await street.dm.reads_some(4))[3]
        assert told.startswith("The handoff to telegram.two failed: nobody knows you on telegram.two. /link first")
        assert told.endswith(STAYS)
        assert street.home.replies == []
        assert (await street.last()).state is State.FAILED


async def test_what_is_said_meanwhile_waits_and_is_answered_where_it_was_said(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.talks()
        session = await street.session()
        pause = Pause()
        street.agent.will("Hello ", pause, "there.")
        await street.says("/handoff two")
        await pause.reached()
        street.ann.says("from the old place", street.dm)
        await street.origin.settles()
        street.there.says("from the new place", street.home)
        await street.destination.settles()
        pause.over()
        await street.home.reads("Hello there.")
        await street.dm.reads("You said: from the old place\n\n(This is from “Cats”.)")
        await street.home.reads("You said: from the new place")
        texts = [entry.text for entry in await street.store.path(session.id) if entry.text]
        assert texts[2:] == [
            "Hello there.",
            "from the old place",
            "You said: from the old place",
            "from the new place",
            "You said: from the new place",
        ]


@pytest.mark.parametrize("typed", ["/new", "/resume Cats", "/handoff two", "/branch", "/undo"])
async def test_nothing_else_moves_a_conversation_on_its_way(database: str, typed: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.talks()
        pause = Pause()
        street.agent.will(pause, "Hello there.")
        await street.says("/handoff two")
        await pause.reached()
        street.ann.says(typed, street.dm)
        await street.origin.settles()
        pause.over()
        await street.home.reads("Hello there.")
        await street.dm.reads(THERE.format("whatsapp"))
        assert len([chat for chat in (street.dm, street.home) if await street.bound(chat)]) == 1


async def test_cancelled_while_the_agent_writes_it_never_left(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.says("before", street.there, street.home)
        former = await street.bound(street.home)
        await street.talks()
        session = await street.session()
        pause = Pause()
        street.agent.will("Hello ", pause, "there.")
        await street.says("/handoff two")
        await pause.reached()
        assert STAYS in await street.says("/handoff cancel")
        await street.agent.idle()
        assert await street.says("and dogs?") == "You said: and dogs?"
        assert await street.says("after", street.there, street.home) == "You said: after"
        assert (await street.session()).id == session.id
        again = await street.bound(street.home)
        assert former is not None
        assert again is not None
        assert again.id == former.id
        assert street.home.replies == ["You said: before", "You said: after"]
        assert (await street.last()).state is State.CANCELLED
        assert await street.says("/handoff cancel") == "No handoff is on its way from here."


async def test_what_slips_out_after_all_is_followed_by_where_the_conversation_is(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    street.destination.misbehaves(Fault.HANGS)
    async with street.opened(database):
        await street.talks()
        session = await street.session()
        before = session.tip
        await street.says("/handoff two")
        await street.destination.called(Call.SEND)
        assert STAYS in await street.says("/handoff cancel")
        street.destination.recovers()
        await street.home.reads("This conversation didn't move here: it goes on in slack.one.")
        assert street.home.replies[-1].startswith("This conversation didn't move here")
        assert (await street.last()).state is State.CANCELLED
        assert (await street.session()).tip == before
        assert await street.bound(street.home) is None


async def test_without_progress_it_fails_and_says_so(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    street.patience = Patience(progress=0.3)
    async with street.opened(database):
        await street.talks()
        before = (await street.session()).tip
        street.agent.will(Doom.HANGS)
        await street.says("/handoff two")
        await street.dm.reads(f"The handoff to whatsapp.two failed: nothing happened for too long. {STAYS}")
        assert (await street.last()).state is State.FAILED
        assert (await street.session()).tip == before
        assert await street.says("and dogs?") == "You said: and dogs?"
        assert street.home.replies == []
        await street.agent.idle()


async def test_an_agent_that_fails_or_says_nothing_moves_nothing(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.talks()
        before = (await street.session()).tip
        street.agent.will("")
        await street.says("/handoff two")
        await street.dm.reads(f"The handoff to whatsapp.two failed: the agent said nothing. {STAYS}")
        for _ in range(3):
            street.agent.will(RuntimeError("no"))
        await street.says("/handoff two")
        await street.dm.reads(f"The handoff to whatsapp.two failed: the agent failed. {STAYS}")
        assert (await street.session()).tip == before
        assert await street.says("and dogs?") == "You said: and dogs?"
        assert street.home.replies == []


@pytest.mark.parametrize("persona", [Slack, Discord, Telegram, Matrix, Feishu], ids=lambda persona: persona.name)
async def test_a_thread_that_was_opened_for_nothing_says_so(database: str, persona: type[Persona]) -> None:
    street = Street(WhatsApp("one"), persona("two"))
    street.home = street.destination.group("lobby")
    async with street.opened(database):
        await street.talks()
        street.agent.will("")
        await street.says("/handoff two")
        await street.dm.reads(f"The handoff to {persona.name}.two failed: the agent said nothing. {STAYS}")
        thread = await street.home.sees_thread()
        await thread.reads(STAYED)
        assert thread.replies == [STAYED]
        # Whoever writes there all the same begins a conversation.
        assert await street.says("hello", street.there, thread) == "You said: hello"
        assert await street.says("and dogs?") == "You said: and dogs?"


async def test_a_thread_that_opens_too_late_says_so(database: str) -> None:
    street = Street(WhatsApp("one"), Slack("two"))
    street.home = street.destination.group("lobby")
    street.destination.misbehaves(Fault.HANGS, Call.OPEN_THREAD)
    async with street.opened(database):
        await street.talks()
        await street.says("/handoff two")
        await street.destination.called(Call.OPEN_THREAD)
        assert STAYS in await street.says("/handoff cancel")
        street.destination.recovers()
        thread = await street.home.sees_thread()
        await thread.reads(STAYED)
        assert await street.says("and dogs?") == "You said: and dogs?"
        assert thread.replies == [STAYED]


async def test_a_place_that_takes_no_message_gives_the_conversation_back(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.dm(street.there)
    street.destination.misbehaves(Fault.REFUSES, Call.SEND)
    async with street.opened(database):
        await street.talks()
        before = (await street.session()).tip
        await street.says("/handoff two")
        text = await street.dm.reads_some(4)
        assert text[3].startswith("The handoff to telegram.two failed:")
        assert text[3].endswith(STAYS)
        session = await street.session()
        assert session.tip == before
        assert [lane.address for lane in await street.store.lanes_of(session.id)] == [street.dm.address]


async def test_others_hand_off_to_a_private_chat_of_their_own(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.group("the host's lobby")
    street.hosts = (Identity("whatsapp", "two", "somebody else"),)
    async with street.opened(database):
        await street.talks()
        assert "/link first" in await street.says("/handoff two")
        code = (await street.says("/link")).partition("/link ")[2].split()[0]
        there = street.destination.dm(street.there)
        assert (await street.says(f"/link {code}", street.there, there)).startswith("That code is of ")
        linked = await street.says("/yes", street.there, there)
        assert linked == "You are one person in both places now. /unlink takes it back."
        async with asyncio.timeout(60):
            while not any("typed your code" in reply for reply in street.dm.replies):  # noqa: ASYNC110 -- by its beginning
                await asyncio.sleep(0.01)
        assert "only you can read there" in await street.says("/handoff two")
        await street.destination.dm(street.there).reads(CATS)
        assert street.home.replies == []
        await street.dm.reads(THERE.format("whatsapp"))


async def test_nobody_hands_off_to_whom_they_were_taken_for_once(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.hosts = ()
    eve = street.destination.person("Eve")
    hers = street.destination.dm(eve)
    async with street.opened(database):
        await street.talks()
        await street.says("hello", street.there, street.destination.dm(street.there))
        await street.says("hello", eve, hers)
        ann, there, other = [await street.store.person(who.identity) for who in (street.ann, street.there, eve)]
        await street.store.link(ann, there)
        merge = await street.store.link(ann, other)
        await street.says(f"/handoff two:{hers.id}")
        await hers.reads(CATS)
        await street.dm.reads(THERE.format("whatsapp"))
        await street.store.unlink(merge)
        await street.talks("a secret", "Secret")
        refused = await street.says(f"/handoff two:{hers.id}")
        assert "you have no private chat with me" in refused
        # Nobody learns which chats there are.
        assert await street.says("/handoff two:nowhere") == refused


async def test_what_cannot_be_is_refused_at_once_with_the_reason(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.hosts = (street.ann.identity,)
    async with street.opened(database):
        assert await street.says("/handoff two") == (
            "No session is open here. Write something to start one, or /resume an old one."
        )
        await street.talks()
        assert await street.says("/handoff telegram") == (
            "destination: 'telegram' isn't connected. Connected are slack.one, whatsapp.two."
        )
        assert "whatsapp.two has no home" in await street.says("/handoff whatsapp.two")
        assert "nobody has spoken in 'x:y'" in await street.says("/handoff two:x:y")
        assert "is no place" in await street.says("/handoff two:")
        lobby = street.destination.group("lobby")
        somebody = street.destination.person("Bob")
        await street.says("hello", somebody, lobby)
        # There are no threads there and nobody knows Ann, so that no lane is hers.
        assert "/link first" in await street.says(f"/handoff two:{lobby.id}")
        await street.says("/home")
        pause = Pause()
        street.agent.will(pause, "slow")
        street.ann.says("take your time", street.dm)
        await pause.reached()
        assert "A turn is running or waiting" in await street.says("/handoff slack")
        pause.over()
        await street.dm.reads("slow")


async def test_a_chat_that_is_no_home_needs_a_yes(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    lobby = street.destination.group("lobby")
    async with street.opened(database):
        await street.talks()
        await street.says("hello", street.destination.person("Bob"), lobby)
        asked = await street.says(f"/handoff two:{lobby.id}")
        assert "everyone in lobby can read there: 2 messages of “Cats”; 1 other person has spoken there" in asked
        assert "Handing" in await street.says("/yes")
        await lobby.reads(CATS)


async def test_somebody_elses_private_chat_needs_a_yes_too(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    bob = street.destination.person("Bob")
    chat = street.destination.dm(bob)
    async with street.opened(database):
        await street.talks()
        await street.says("hello", bob, chat)
        asked = await street.says(f"/handoff two:{chat.id}")
        assert asked.startswith(f"In whatsapp.two:{chat.id} Bob can read there: 2 messages of “Cats”; 1 other person")
        assert await street.says("/no") == "All stays as it is."
        assert chat.replies == ["You said: hello"]
        await street.says(f"/handoff two:{chat.id}")
        # The yes is to what was asked about, and to nothing else.
        assert await street.says("/new a secret") == "You said: a secret"
        assert await street.says("/yes") == Refusal.MOVED_SINCE.value
        assert await street.says("/resume Cats") == "Back in “Cats”."
        await street.says(f"/handoff two:{chat.id}")
        assert "Bob can read there. /handoff cancel stops it." in await street.says("/yes")
        await chat.reads(CATS)


@pytest.mark.parametrize("persona", [WhatsApp, Slack], ids=lambda persona: persona.name)
async def test_a_private_chat_in_which_somebody_only_typed_commands_needs_a_yes_too(
    database: str, persona: type[Persona]
) -> None:
    street = Street(Slack("one"), persona("two"))
    bob = street.destination.person("Bob")
    chat = street.destination.dm(bob)
    async with street.opened(database):
        await street.talks()
        await street.says("/status", bob, chat)
        asked = await street.says(f"/handoff two:{chat.id}")
        # On some platforms a private chat goes by its person's id.
        whose = "Bob" if persona is WhatsApp else "somebody else"
        assert f"{whose} can read there: 2 messages of “Cats”" in asked
        assert await street.says("/no") == "All stays as it is."
        assert len(chat.replies) == 1


async def test_a_home_in_a_private_chat_is_none_once_its_person_is_parted_from_the_host(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    eve = street.destination.person("Eve")
    hers = street.destination.dm(eve)
    async with street.opened(database):
        await street.talks()
        await street.says("hello", eve, hers)
        ann, other = [await street.store.person(who.identity) for who in (street.ann, eve)]
        merge = await street.store.link(ann, other)
        await street.says("/home", eve, hers)
        assert "whatsapp.two: only you can read there" in await street.says("/handoff")
        await street.store.unlink(merge)
        assert "whatsapp.two has no home" in await street.says("/handoff two")
        assert "whatsapp.two" not in await street.says("/handoff")


async def test_which_of_two_is_asked_back_and_what_is_connected_is_offered(database: str) -> None:
    street = Street(WhatsApp("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.says("/home")
        await street.talks()
        assert await street.says("/handoff 2") == Refusal.NOT_LISTED.value
        asked = await street.says("/handoff whatsapp")
        assert asked.splitlines() == [
            "Which one do you mean?",
            "",
            "1. whatsapp.one: only you can read there",
            "2. whatsapp.two: only you can read there",
        ]
        assert "already in that place" in await street.says("/handoff 1")
        offered = await street.says("/handoff")
        assert offered.startswith("Where does it go?")
        assert "2. whatsapp.two: only you can read there" in offered
        assert await street.says("/answer 3") == (
            "That is none of the choices:\n"
            "1. whatsapp.one: only you can read there\n2. whatsapp.two: only you can read there"
        )
        # The choice was about another conversation.
        assert await street.says("/new a secret") == "You said: a secret"
        assert await street.says("2") == Refusal.MOVED_SINCE.value
        assert await street.says("/resume Cats") == "Back in “Cats”."
        await street.says("/handoff whatsapp")
        assert "Handing" in await street.says("2")
        await street.home.reads(CATS)


async def test_two_chats_of_one_id_are_told_apart_by_their_spaces(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    async with street.opened(database):
        await street.talks()
        bob = await street.store.person(street.destination.person("Bob").identity)
        for space in ("north", "south"):
            place = Place(Address("telegram", "two", space, "lobby"), Kind.GROUP, f"lobby {space}")
            await street.store.lane(place, bob)
        asked = await street.says("/handoff two:lobby")
        assert asked.splitlines()[2:] == [
            "1. telegram.two:north/lobby: everyone in lobby north can read there",
            "2. telegram.two:south/lobby: everyone in lobby south can read there",
        ]
        assert (await street.says("/handoff 2")).startswith("In telegram.two:south/lobby everyone in lobby south can")


async def test_it_goes_there_and_back_again(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.dm(street.there)
    # By what is told alone: nobody looks by themselves.
    street.poll = 3600.0
    async with street.opened(database):
        await street.says("/home")
        await street.talks()
        session = await street.session()
        await street.says("/handoff two")
        thread = await street.home.sees_thread()
        await thread.reads(CATS)
        await street.dm.reads(THERE.format("telegram"))
        assert "Handing" in await street.says("/handoff slack", street.there, thread)
        back = await street.dm.sees_thread()
        await back.reads(CATS)
        await thread.reads("This conversation goes on in slack.one. /resume brings it back here.")
        [lane] = await street.store.lanes_of(session.id)
        assert lane == Lane(back.address)
        # Again, and again: the threads that it left are the threads that it goes on in.
        assert "Handing" in await street.says("/handoff two", street.ann, back)
        await back.reads(THERE.format("telegram"))
        assert [lane.address for lane in await street.store.lanes_of(session.id)] == [thread.address]
        assert "Handing" in await street.says("/handoff slack", street.there, thread)
        await thread.reads_some(6)
        assert [lane.address for lane in await street.store.lanes_of(session.id)] == [back.address]


async def test_a_thread_that_is_used_for_something_else_is_left_alone(database: str) -> None:
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database):
        await street.says("/home")
        await street.talks()
        await street.says("/handoff two")
        thread = await street.home.sees_thread()
        await thread.reads(CATS)
        await street.dm.reads(THERE.format("telegram"))
        await street.says("/handoff slack", street.there, thread)
        back = await street.dm.sees_thread()
        await back.reads(CATS)
        await thread.reads("This conversation goes on in slack.one. /resume brings it back here.")
        await street.says("about dogs", street.there, thread)
        await street.says("/handoff two", street.ann, back)
        await back.reads(THERE.format("telegram"))
        assert await street.home.sees_thread() is not thread


async def test_a_platform_that_is_down_is_refused_at_once(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    street.home = street.destination.dm(street.there)
    async with street.opened(database) as gateway:
        await street.talks()
        [life] = [life for life in gateway._lives if life.name == "whatsapp.two"]
        life.health = Health(Reach.BROKEN, "it can't be reached (ConnectError).")
        assert await street.says("/handoff two") == (
            "destination: whatsapp.two isn't connected: it can't be reached (ConnectError). Try again when it is back."
        )


@pytest.mark.parametrize("call", [Call.OPEN_THREAD, Call.SEND])
async def test_a_platform_that_goes_down_says_its_own_reason(
    database: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.runtime.handoffs._OPENING", 0.3)
    street = Street(Slack("one"), Telegram("two"))
    street.home = street.destination.dm(street.there)
    street.patience = Patience(progress=60.0 if call is Call.OPEN_THREAD else 3.0)
    street.destination.misbehaves(Fault.SERVER_ERROR, call, times=None)
    async with street.opened(database):
        await street.talks()
        await street.says("/handoff two")
        text = await street.dm.reads_some(4)
        assert text[3].startswith("The handoff to telegram.two failed:")
        assert "500" in text[3]
        assert text[3].endswith(STAYS)


async def test_where_no_home_is_named_the_way_to_one_is_told(database: str) -> None:
    street = Street(Slack("one"), WhatsApp("two"))
    async with street.opened(database):
        await street.talks()
        assert (await street.says("/handoff")).startswith("No home is named yet where you are known.")
