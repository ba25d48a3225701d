"""Who may read, where home is, why a message went where it went, what it cost, and a session as a file."""

import pytest
from msgspec.structs import replace

from segue.agents.given import as_agent
from segue.changes.rows import first
from segue.core.commands import GROUPS
from segue.core.contracts.agents import Usage
from segue.core.contracts.database import Transaction
from segue.core.destinations import spot
from segue.core.exports.jsonl import from_jsonl
from segue.core.lanes import Address, Kind, Place, Rules, Sharing
from segue.core.messages import plain_text
from segue.core.settings import GatewaySettings, Quotes, Settings
from segue.database.statements import q
from segue.errors import Refusal
from segue.testing import Discord, Pause, ScriptedAgent, Telegram, To
from tests.chatting import uses
from tests.stories.square import Square, both, everywhere, quoting, recalls

TOGETHER = GatewaySettings(routing=Settings(Rules(groups=Sharing.TOGETHER)))


async def private(square: Square) -> None:
    """Ann has a private conversation, and a group knows her and Bob."""
    await square.says("a secret")
    await square.says("/title Diary")


@quoting
async def test_an_agents_error_is_told_in_its_own_words_to_the_host_alone(square: Square) -> None:
    async def leaks(_text: str) -> str:
        raise PermissionError("the key sk-canary was refused")

    square.agent = as_agent(leaks)
    bob = square.platform.person("Bob")
    bobs = square.platform.dm(bob)
    async with square.open(GatewaySettings(attempts=1)):
        await square.says("hello")
        await square.says("/status")
        assert "sk-canary" in await square.says("/why")
        await square.says("hello", who=bob, where=bobs)
        await square.says("/status", who=bob, where=bobs)
        told = await square.says("/why", who=bob, where=bobs)
        assert "sk-canary" not in told
        assert "the host's log says why" in told


@everywhere
async def test_a_private_session_comes_to_a_group_only_after_its_owner_said_yes(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open(TOGETHER):
        await private(square)
        await square.says("hello all", who=bob, where=lobby)
        there = square.shown_alone(lobby)
        asked = await square.alone("/resume Diary", lobby)
        assert asked == (
            "Everyone in lobby could read “Diary” then: 2 messages; 1 other person has spoken "
            f"{'here' if there is lobby else 'there'} so far. "
            "Type /yes within five minutes to allow it, /no to leave it."
        )
        assert not any("Diary" in text for text in bob.sees(lobby))
        assert await square.says("/yes", who=bob, where=lobby) == "Nothing was asked of you here."
        elsewhere = square.dm if there is lobby else lobby
        assert await square.says("/yes", where=elsewhere) == "Nothing was asked of you here."
        assert (await square.session(lobby)).title == ""
        assert await square.says("/no", where=there) == "All stays as it is."
        assert await square.says("/yes", where=there) == "Nothing was asked of you here."
        await square.alone("/resume Diary", lobby)
        square.passes(301)
        assert "more than five minutes ago" in await square.says("/yes", where=there)
        assert (await square.session(lobby)).title == ""
        await square.alone("/resume Diary", lobby)
        assert await square.says("/yes", where=there) == "Back in “Diary”."
        assert (await square.session(lobby)).title == "Diary"
        assert await square.says("/yes", where=there) == "Nothing was asked of you here."


@both
async def test_nobody_but_its_owner_brings_a_session_or_sees_it_listed(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open(TOGETHER):
        await private(square)
        await square.says("hello all", who=bob, where=lobby)
        unknown = await square.says("/resume Nothing", who=bob, where=lobby)
        assert await square.says("/resume Diary", who=bob, where=lobby) == unknown.replace("Nothing", "Diary")
        await square.alone("/resume Diary", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        await square.says("/sessions new", where=lobby)
        await square.says("something else", where=lobby)
        # Anybody there may switch among what everyone there has read whole.
        listed = await square.says("/sessions", who=bob, where=lobby)
        assert "secret" not in listed
        assert "2. “Diary”" in listed
        assert await square.says("/sessions 2", who=bob, where=lobby) == "Back in “Diary”."
        assert (
            await square.says("/sessions 1", who=bob, where=lobby) == "Back in the session that began with “hello all”."
        )
        # What was said elsewhere since is not for them: nobody but its owner brings it, and is asked anew.
        await square.says("another secret")
        assert await square.says("/undo", who=bob, where=lobby) == Refusal.NOT_FOUND.value
        assert await square.says("/sessions 2", who=bob, where=lobby) == Refusal.NOT_FOUND.value
        assert "Diary" not in await square.says("/sessions", who=bob, where=lobby)
        assert await square.says("/undo", where=lobby) == Refusal.NEEDS_YES.value
        asked = await square.alone("/resume Diary", lobby)
        assert asked.startswith("Everyone in lobby could read “Diary” then: 2 messages; 1 other person has spoken")
        assert await square.says("/yes", where=square.shown_alone(lobby)) == "Back in “Diary”."
        assert "2. “Diary”" in await square.says("/sessions", who=bob, where=lobby)


@both
async def test_who_is_alone_is_told_once_that_others_read_along(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open(TOGETHER):
        await square.says("hello all", where=lobby)
        await square.says("/title Plans", where=lobby)
        await square.says("hello you")
        told = "Back in “Plans”. Everyone in lobby reads this session. /branch goes on alone."
        assert await square.says("/resume Plans") == told
        assert await square.says("/branch") == "You go on in “Plans #2”; the original stays as it is."


@both
async def test_a_reply_in_private_takes_no_words_to_where_others_read(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open(replace(TOGETHER, quotes=Quotes.ONCE)):
        await private(square)
        diary = square.message("You said: a secret")
        await square.says("hello all", where=lobby)
        await square.says("/new")
        assert "from “Diary”" in await square.says("one more", quoting=diary), "nobody else reads it"
        await square.alone("/resume Diary", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        assert await square.says("only you", quoting=diary) == "You said: only you"
        assert "only you" in await square.texts()
        assert "only you" not in await square.texts(await square.session(lobby))


@both
async def test_a_title_that_was_given_elsewhere_is_not_told_where_others_read(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open(TOGETHER):
        await square.says("hello all", where=lobby)
        await square.says("hello you")
        await square.says("/resume")
        assert (await square.says("/resume 2")).startswith("Back in")
        await square.says("/sessions new", where=lobby)
        await square.says("something else", where=lobby)
        await square.says("/title Divorce")
        bob = square.platform.person("Bob")
        await square.says("hello you two", who=bob, where=lobby)
        for command in ("/sessions", "/resume", "/search hello", "/tree", "/status", "/title"):
            assert "Divorce" not in await square.says(command, who=bob, where=lobby)
            await square.says(command, where=lobby)
        assert not any("Divorce" in text for text in bob.sees(lobby))
        assert "Divorce" in await square.says("/sessions")


@both
async def test_the_hosts_yes_to_a_home_is_not_everybodys(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open(TOGETHER):
        await square.says("/home", where=lobby)
        await square.says("a secret", who=bob, where=his)
        await square.says("/title Diary", who=bob, where=his)
        await square.says("/resume Diary", who=bob, where=lobby)
        assert his.replies[-1].startswith("Everyone in lobby could read “Diary” then: 2 messages")
        await private(square)
        assert await square.says("/resume Diary", where=lobby) == "Back in “Diary”."


@both
async def test_the_answer_to_a_question_passes_what_runs_and_waits(square: Square) -> None:
    lobby, pause = square.platform.group("lobby"), Pause()
    square.agent = ScriptedAgent("kept", [pause, "at last"], otherwise=recalls)
    async with square.open(TOGETHER):
        await private(square)
        square.ann.says("take your time", lobby, to=To.AGENT)
        await pause.reached()
        assert "Everyone in lobby could read “Diary”" in await square.alone("/resume Diary", lobby)
        assert await square.says("/yes", where=square.shown_alone(lobby)) == "Back in “Diary”."
        pause.over()
        assert (await square.hears(lobby, 2))[-1] == "at last\n\n(This is from the session before.)"


@everywhere
async def test_a_home_is_named_and_says_who_can_read_it(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    name = square.platform.name
    async with square.open(TOGETHER):
        assert await square.says("/home") == f"This is the home on {name} now. Only you can read what comes here."
        await square.says("hello all", who=bob, where=lobby)
        assert await square.says("/home", who=bob, where=lobby) == "You may not do that here."
        assert await square.says("/home", where=lobby) == (
            f"This is the home on {name} now. Everyone in lobby can read what comes here; "
            "1 other person has spoken here so far."
        )
        home = await square.store.home(name, square.platform.account)
        assert home is not None
        assert (home.place.address, home.place.kind) == (lobby.address, Kind.GROUP)
        # Naming a home is the yes to who can read it.
        await private(square)
        assert await square.says("/resume Diary", where=lobby) == "Back in “Diary”."


@quoting
async def test_why_tells_the_path_of_a_message(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        asked = square.message("about cats")
        # What is sent to one place goes in order: once this is there, the record of the answer is.
        await square.says("/status")
        told = (await square.says("/why")).splitlines()
        by_reply = (await square.says("/why", square.message("You said: about cats"))).splitlines()
        assert (await square.says("/why", asked)).splitlines() == told == by_reply
        session = await square.session()
        assert "received from Ann" in told[0]
        assert told[0].endswith("this chat is one conversation")
        assert f"of session {session.id}" in told[1]
        assert told[1].endswith(": first (it was the first message there)")
        assert told[2].endswith("answered")
        sent = square.message("You said: about cats")
        assert told[3].endswith(f"sent to {spot(square.dm.address)} as {sent.id}, 1 attempt")
        unknown = "That message isn't part of what was said here. Reply to one that is."
        assert await square.says("/why", square.message("/why")) == unknown


@everywhere
async def test_a_session_is_exported_as_a_file(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        told = await square.says("/export")
        taken = "[Cats.md]" if square.platform.name == "http" else "Cats.md can't be sent here: it is files/"
        assert told.startswith(f"Here is “Cats”.\n{taken}")
        [markdown] = square.files.kept.values()
        assert b"about cats" in markdown
        assert "Cats.md" in await square.says("/export md")
        assert "Cats.jsonl" in await square.says("/export jsonl")
        whole = from_jsonl(list(square.files.kept.values())[-1].decode())
        assert (whole.title, len(whole.path)) == ("Cats", 3)
        assert await square.says("/export pdf") == "Type /export, /export markdown or /export jsonl."


@everywhere
async def test_status_and_usage_tell_where_one_is_and_what_it_cost(square: Square) -> None:
    square.agent = ScriptedAgent(
        ["meow", Usage("small", 1200, 30, 10, 1000, 100, 0.0125)], ["purr", Usage("small", 2400, 60, 0, 2000, 0, 0.02)]
    )
    async with square.open():
        await square.says("about cats")
        assert "untitled" in await square.says("/status")
        await square.says("/title Cats")
        await square.says("do they purr?")
        status = await square.says("/status")
        assert status.startswith("You are in “Cats”, begun ")
        assert status.endswith(": 4 messages. It is open here. Nothing is waiting.")
        assert await square.says("/usage") == (
            "small: 2 turns, 3,600 tokens in (3,000 read from the cache, 100 written to it), "
            "90 out (10 of it reasoning), $0.0325\nThe last request came to 2,460 tokens."
        )
        assert await square.says("/who") == "You are Ann, host here."


@both
async def test_who_tells_who_else_has_spoken_here(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        await square.says("hello", who=bob, where=lobby)
        await square.says("hello", where=lobby)
        assert await square.says("/who", who=bob, where=lobby) == "You are Bob, owner here. Here have spoken, too: Ann."


@both
async def test_start_greets_in_two_lines(square: Square) -> None:
    async with square.open():
        assert (await square.says("/start")).splitlines() == [
            "Hello, Ann. Write to me, and I answer here.",
            "/new begins another conversation, /help shows all that you can type.",
        ]


@both
async def test_a_blank_title_takes_the_title_away(square: Square) -> None:
    async with square.open():
        await square.says("hello")
        await square.says("/title Diary")
        assert await square.says('/title ""') == "This session has no title now."
        assert await square.says("/title") == "This session has no title. /title NAME gives it one."


@both
async def test_help_tells_all_that_can_be_typed_and_other_names_for_it(square: Square) -> None:
    async with square.open() as gateway:
        groups = [group.splitlines() for group in (await square.says("/help")).split("\n\n")]
        assert [name for name, *_ in groups] == [f"{name}:" for name in GROUPS]
        assert len([line for _, *lines in groups for line in lines]) == len(gateway.commands)
        assert await square.says("/help fork") == (
            "/branch [NAME]: Go on in a copy of this session and leave the original as it is. Also: /fork."
        )
        assert await square.says("/help nonsense") == "There is no such command. /help lists what there is."
        names = {spec.name for spec in gateway.commands}
        assert {"rewind", "compress", "tree", "why", "export", "home", "yes", "no"} <= names


@pytest.mark.parametrize("square", [(Discord, "sqlite"), (Telegram, "postgres")], indirect=True)
async def test_a_thread_in_the_home_is_at_home_and_opens_its_threads_there(square: Square) -> None:
    lobby = square.platform.group("lobby")
    square.agent = ScriptedAgent(
        otherwise=lambda work: (
            [uses("sessions_spawn", task="count", mode="session", thread=True, label="sheep"), "begun"]
            if "spawn" in plain_text(work.asked[-1].parts)
            else ["noted"]
        )
    )
    async with square.open(TOGETHER):
        await square.says("/home", where=lobby)
        await private(square)
        inside = square.ann.opens_thread("Plans", lobby)
        assert await square.says("/resume Diary", where=inside) == "Back in “Diary”."
        assert await square.says("spawn one", where=inside) == "begun"
        await lobby.within(lobby.threads[-1].thread).reads("noted")
        assert [thread.title for thread in lobby.threads] == ["Plans", "sheep"]
        place = await square.store.driver.read(_known, lobby.threads[-1].address)
        assert place is not None
        assert place.around == lobby.address


def _known(address: Address) -> Transaction[Place | None]:
    return (yield from first(Place, q.address(address=address.key)))


@both
async def test_the_host_is_told_of_anothers_session_only_what_the_place_knows(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open(TOGETHER):
        await square.says("hello")
        await square.says("an abandoned secret", who=bob, where=his)
        await square.says("/undo", who=bob, where=his)
        await square.says("for everybody", who=bob, where=his)
        await square.says("/title Plans", who=bob, where=his)
        await square.says("/resume Plans", who=bob, where=lobby)
        await square.says("/yes", who=bob, where=his)
        await square.says("hello all", where=lobby)
        await square.says("/branch Divorce", who=bob, where=his)
        await square.says("a private word", who=bob, where=his)
        for command in ("/tree", "/sessions", "/status"):
            told = await square.alone(command, lobby)
            assert not any(word in told for word in ("abandoned secret", "Divorce", "private word")), (command, told)
