"""Commands in orders that nobody thought of, and what is answered then."""

import time

import pytest

from segue.changes.commands.request import MORE
from segue.core.contracts.adapters import Accepted
from segue.core.lanes import Address, Identity, Place, Rules, Sharing
from segue.core.messages import Arrival, Speaker, Text
from segue.core.settings import GatewaySettings, Settings
from segue.errors import Refusal
from segue.testing import Matrix, Pause, ScriptedAgent, Slack, Telegram
from segue.testing.agents import said
from segue.testing.chats import Chat
from segue.testing.ledger import Message
from tests.stories.square import Square, both, everywhere, recalls

slack = pytest.mark.parametrize("square", [(Slack, "sqlite"), (Slack, "postgres")], indirect=True)
"""Where a reply is a thread of its own."""


@everywhere
async def test_where_nothing_was_said_each_command_says_so(square: Square) -> None:
    async with square.open():
        assert await square.says("/why") == "Nothing was said here yet."
        for typed in ("/undo", "/retry", "/compress", "/branch", "/title Cats", "/tree", "/status", "/export"):
            assert await square.says(typed) == Refusal.NOTHING_BOUND.value
        await square.says("/new")
        assert await square.says("/retry") == Refusal.NOTHING_TO_RETRY.value
        assert await square.says("/undo 2") == Refusal.NOTHING_TO_UNDO.value
        assert await square.says("/undo a bit") == "Type /undo, or /undo N to take back the last N exchanges."
        assert await square.says("/undo 0") == "Type /undo, or /undo N to take back the last N exchanges."


@pytest.mark.parametrize("square", [(Telegram, "sqlite"), (Matrix, "postgres")], indirect=True)
async def test_an_edit_runs_no_command(square: Square) -> None:
    async with square.open():
        for animal in ("ants", "bees", "cats"):
            await square.says(animal)
        await square.says("/title Animals")
        assert await square.says("/undo") == "Took back the last exchange."
        # Some platforms tell of an edit when they only add a preview.
        square.ann.edits(square.message("/undo"), "/undo ")
        square.ann.edits(square.message("/title Animals"), "/new")
        square.ann.edits(square.message("bees"), "/title Bees")
        await square.platform.settles()
        assert await square.says("/title") == "Animals"
        assert await square.texts() == [
            *("ants", "You said: ants", "bees", "You said: bees"),
            "edits what they said before:\n\n/title Bees",
        ]


@pytest.mark.parametrize("square", [(Telegram, "sqlite"), (Matrix, "postgres")], indirect=True)
async def test_an_edit_of_what_is_being_answered_follows_the_answer_and_asks_nothing(square: Square) -> None:
    pause = Pause()
    square.agent = agent = ScriptedAgent(["You said: ", pause, "teh cats"], otherwise=recalls)
    async with square.open():
        square.ann.says("teh cats", square.dm)
        await pause.reached()
        square.ann.edits(square.message("teh cats"), "the cats")
        await square.platform.settles()
        pause.over()
        await square.hears(square.dm, 1)
        await square.says("and dogs?")
        edit = "edits what they said before:\n\nthe cats"
        assert await square.texts() == ["teh cats", "You said: teh cats", edit, "and dogs?", "You said: and dogs?"]
    assert [said(work) for work in agent.works] == ["teh cats", "and dogs?"]


@both
async def test_a_number_that_no_list_has_shown_leads_nowhere(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        for typed in ("/resume 1", "/sessions 1", "/sessions close 1", "/handoff 1"):
            assert await square.says(typed) == Refusal.NOT_LISTED.value
        await square.says("/resume")
        for typed in ("/resume 2", "/resume 0", "/resume 99999999999999999999", "/sessions 1"):
            assert await square.says(typed) == Refusal.NOT_LISTED.value
        # More digits than Python makes a number of.
        for typed in ("/resume", "/sessions", "/sessions close", "/handoff"):
            assert await square.says(f"{typed} {'9' * 5000}") == Refusal.NOT_LISTED.value
        assert await square.says(f"/schedules cancel {'9' * 5000}") == Refusal.NO_SCHEDULE.value
        # The list that was shown last had no lines.
        await square.says("/sessions")
        await square.says("/sessions close 1")
        assert await square.says("/sessions") == "Nothing was said here yet."
        assert await square.says("/sessions 1") == Refusal.NOT_LISTED.value


@both
async def test_what_is_refused_leaves_nothing_behind(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        cats = await square.session()
        assert (await square.says("/branch 2024")).startswith("title: it is only digits.")
        assert "2." not in await square.says("/resume")
        await square.says("/new")
        ann = await square.store.person(square.ann.identity)
        await square.store.close_session(cats.id, ann)
        assert await square.says("/undo") == Refusal.CLOSED.value
        await square.store.reopen_session(cats.id, ann)
        # The move is still there to be taken back.
        assert (
            await square.says("/undo")
            == "Took back the last move: renew. You are in the session that began with “about cats”."
        )
        assert (await square.session()).id == cats.id


@both
async def test_a_title_that_nobody_gave_is_named_as_it_was_typed(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        said = await square.says("/resume Cats #9")
        assert said == "No session of yours is called “Cats #9”. Did you mean “Cats”?"


@both
async def test_a_new_session_may_begin_on_a_line_of_its_own(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        assert await square.says("/sessions NEW\nabout dogs\nand birds") == "You said: about dogs\nand birds"
        assert await square.texts() == ["about dogs\nand birds", "You said: about dogs\nand birds"]


@everywhere
async def test_what_was_closed_here_is_opened_again_here(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        await square.says("/sessions new about dogs")
        await square.says("/title Dogs")
        await square.says("/sessions")
        assert await square.says("/sessions close 1") == "Closed “Cats”. /undo opens it again."
        assert "Cats" not in await square.says("/sessions")
        # Nothing speaks to it, and still it is the last that was done here.
        assert await square.says("/undo") == "Took back the last move: close. You are in “Dogs”."
        assert "1. “Cats”" in await square.says("/sessions")
        assert await square.texts() == ["about dogs", "You said: about dogs"]
        await square.says("/sessions close 2")
        assert await square.says("/status") == Refusal.NOTHING_BOUND.value
        assert await square.says("/resume Dogs") == "Back in “Dogs”."
        assert await square.says("and puppies?") == "You said: and puppies?"
        assert (await square.texts())[:2] == ["about dogs", "You said: about dogs"]


@both
async def test_what_was_closed_comes_to_a_group_only_after_a_yes(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        await square.says("/sessions")
        await square.says("/sessions close 1")
        asked = await square.alone("/resume Cats", lobby)
        assert asked.startswith("Everyone in lobby could read “Cats” then: 2 messages")
        ann = await square.store.person(square.ann.identity)
        assert (await square.store.session(await square.store.find("Cats", ann), ann)).closed is not None
        assert await square.says("/yes", where=square.shown_alone(lobby)) == "Back in “Cats”."
        assert (await square.session(lobby, square.ann.identity)).closed is None


@everywhere
async def test_what_is_for_one_person_reaches_nobody_else_in_a_group(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        await square.says("the secret of the cats")
        await square.says("/title Cats")
        await square.says("the menu of the cats", where=lobby)
        await square.says("/title Menu", where=lobby)
        await square.store.index()
        listed = await square.alone("/resume", lobby)
        assert "“Cats”: the secret" in listed
        assert "“Menu” (here)" in listed
        found = await square.alone("/search cats", lobby)
        assert "menu" in found
        assert "secret" in found
        assert "You are in “Menu”" in await square.alone("/status", lobby)
        assert "cost nothing" in await square.alone("/usage", lobby)
        assert not [text for text in bob.sees(lobby) if "Cats" in text or "secret" in text or "status" in text]
        if square.shown_alone(lobby) is square.dm:
            # The numbers count where they are shown.
            line = listed[listed.index("“Cats”") - 3]
            assert await square.says(f"/resume {line}") == Refusal.ALREADY_THERE.value


@both
async def test_where_nobody_can_be_told_alone_the_private_part_is_left_out(square: Square) -> None:
    lobby, home = square.platform.group("lobby"), Address("elsewhere", "main", chat="ann")
    ann = Identity("elsewhere", "main", "ann")
    async with square.open(GatewaySettings(hosts=(ann,))) as gateway:
        said = Arrival(Place(home), "1", Speaker(ann, "Ann"), (Text("the secret of the cats"),), time.time())
        assert await gateway.accept(said) is Accepted.NEW
        await square.says("the menu of the cats", where=lobby)
        await square.says("/title Menu", where=lobby)
        await square.store.index()
        assert (await square.says("/resume", where=lobby)).splitlines() == [
            "1. “Menu” (here): the menu of the cats",
            "",
            "/resume N opens one of them.",
            MORE,
        ]
        found = await square.says("/search cats", where=lobby)
        assert "menu" in found
        assert "secret" not in found
        assert found.endswith(MORE)
        for typed in ("/usage", "/export", "/export jsonl"):
            assert (await square.says(typed, where=lobby)).endswith(MORE)
        assert (await square.says("/revoke", where=lobby)).startswith("Ask me in a private chat:")


@everywhere
async def test_what_a_groups_session_heard_in_private_stays_there(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        await square.says("the menu of the cats", where=lobby)
        await square.says("/title Menu", where=lobby)
        await square.says("/resume Menu")
        await square.says("the secret of the cats")
        await square.says("/sessions new about dogs", where=lobby)
        await square.store.index()
        for typed in ("/sessions", "/resume"):
            listed = await square.alone(typed, lobby)
            assert "“Menu”" in listed
        assert "secret" in await square.alone("/search cats", lobby)
        assert not [text for text in bob.sees(lobby) if "secret" in text]


@everywhere
async def test_scheduled_work_is_listed_for_its_person_alone(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        await square.says("hello")
        await square.says("/schedule every day at 8 buy the tulips")
        await square.says("/schedule every day at 9 buy the roses")
        await square.says("hello", where=lobby)
        await square.says("/schedule every day at 10 feed the cats", where=lobby)
        listed = await square.alone("/schedules", lobby)
        assert "cats" in listed
        assert "roses" in listed
        # Which of them is next depends on the time of day.
        numbers = {line.split()[-1]: line.split(".")[0] for line in listed.splitlines()[:3]}
        assert (await square.says(f"/schedules cancel {numbers['cats']}", where=lobby)) == "Cancelled: feed the cats"
        assert (await square.says(f"/schedules cancel {numbers['tulips']}", where=lobby)) == "Cancelled."
        assert not [text for text in bob.sees(lobby) if "tulips" in text or "roses" in text]
        left = await square.says("/schedules")
        assert "roses" in left
        assert "tulips" not in left


@both
async def test_no_private_title_is_offered_in_a_group(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open():
        await square.says("about the divorce")
        await square.says("/title Divorce")
        assert await square.says("/resume Divorces", where=lobby) == "No session of yours is called “Divorces”."


@both
async def test_a_home_is_called_by_its_name(square: Square) -> None:
    lobby = square.platform.group("the lobby")
    async with square.open():
        await square.says("/home", where=lobby)
        await square.says("about cats")
        assert "everyone in the lobby can read there" in await square.says("/handoff")


@slack
async def test_in_a_thread_that_another_began_the_host_is_told_that_it_isnt_theirs(square: Square) -> None:
    bob, lobby = square.platform.person("Bob"), square.platform.group("lobby")
    thread = bob.opens_thread("Dogs", lobby)
    async with square.open():
        await square.says("about dogs", who=bob, where=thread)
        for typed in ("/title Mine", "/export"):
            assert await square.says(typed, where=thread) == Refusal.NOT_ALLOWED.value
        assert await square.says("/title", where=thread) == "This session has no title. /title NAME gives it one."


def thread_of(chat: Chat, message: Message) -> Chat:
    """Where somebody writes who replies to a message."""
    return chat.within(message.id)


@slack
@pytest.mark.parametrize("kind", ["private", "group"])
async def test_where_a_reply_is_a_thread_rewind_and_why_mean_the_message_that_it_hangs_on(
    square: Square, kind: str
) -> None:
    chat = square.dm if kind == "private" else square.platform.group("lobby")
    who = None if kind == "private" else square.ann.identity
    async with square.open():
        for animal in ("ants", "bees", "cats"):
            await square.says(animal, where=chat)
        bees = thread_of(chat, square.message("You said: bees", chat))
        told = await square.says("/why", where=bees)
        assert "received from Ann" in told
        assert "queued as turn 2" in told
        assert (await square.says("/rewind", where=bees)).startswith("Went back to that message.")
        session = await square.session(chat, who)
        assert await square.texts(session) == ["ants", "You said: ants", "bees", "You said: bees"]
        # The thread has no session by that: it still begins as it would.
        assert len(await square.store.lanes_of(session.id)) == 1
        # One's own message will do, too.
        assert (await square.says("/rewind", where=thread_of(chat, square.message("ants", chat)))).startswith("Went")
        assert await square.texts(session) == ["ants"]
        left = thread_of(chat, square.message("You said: cats", chat))
        assert (await square.says("/rewind", where=left)).startswith("Went back to that message.")


@slack
async def test_a_thread_with_a_conversation_of_its_own_goes_back_to_where_it_began(square: Square) -> None:
    async with square.open():
        await square.says("ants")
        await square.says("bees")
        thread = thread_of(square.dm, square.message("You said: ants"))
        await square.says("about ants again", where=thread)
        assert "about ants again" in await square.texts(await square.session(thread))
        assert (await square.says("/rewind", where=thread)).startswith("Went back to that message.")
        assert await square.texts(await square.session(thread)) == ["ants", "You said: ants"]
        assert await square.texts() == ["ants", "You said: ants", "bees", "You said: bees"]
        # One that didn't begin with its message has none to go back to.
        lobby = square.platform.group("lobby")
        await square.says("wasps", where=lobby)
        apart = thread_of(lobby, square.message("You said: wasps", lobby))
        await square.says("about wasps", where=apart)
        assert (await square.says("/rewind", where=apart)).startswith("Reply with /rewind to the message")


@slack
async def test_nobody_goes_back_in_anothers_conversation_from_a_thread(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    square.agent = ScriptedAgent(otherwise=recalls)
    together = GatewaySettings(routing=Settings(rules=Rules(groups=Sharing.TOGETHER)))
    async with square.open(together):
        await square.says("ants", where=lobby)
        await square.says("bees", where=lobby)
        thread = thread_of(lobby, square.message("You said: ants", lobby))
        assert await square.says("/rewind", who=bob, where=thread) == Refusal.NOT_ALLOWED.value
        assert len(await square.texts(await square.session(lobby))) == 4
    apart = square.platform.group("apart")
    async with square.open():
        await square.says("ants", where=apart)
        thread = thread_of(apart, square.message("You said: ants", apart))
        # What another was told is no message of one's own conversation.
        assert await square.says("/rewind", who=bob, where=thread) == Refusal.NO_SUCH_MESSAGE.value
        assert await square.says("/why", who=bob, where=thread) == Refusal.NO_SUCH_MESSAGE.value


@both
async def test_nobody_goes_back_to_what_another_was_told_or_to_another_session(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        await square.says("ants", where=lobby)
        await square.says("/help", where=lobby)
        told, unknown = square.message("You said: ants", lobby), square.message("/help", lobby)
        # Whether one has a session there or not, what another was told reads like what nobody knows.
        for _ in range(2):
            for message in (told, unknown):
                assert await square.says("/rewind", message, bob, lobby) == Refusal.NO_SUCH_MESSAGE.value
            await square.says("bees", who=bob, where=lobby)
        before = await square.session(lobby, square.ann.identity)
        await square.says("/new", where=lobby)
        await square.says("cats", where=lobby)
        assert await square.says("/rewind", told, where=lobby) == Refusal.NO_SUCH_MESSAGE.value
        assert await square.texts(before) == ["ants", "You said: ants"]
        assert await square.texts(await square.session(lobby, square.ann.identity)) == ["cats", "You said: cats"]
