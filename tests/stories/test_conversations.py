"""Several conversations in one flat chat, only for those who ask for them."""

import pytest

from segue.core.moves import Limits, Why
from segue.core.settings import GatewaySettings, Mentions, Quotes, Settings
from segue.errors import Refusal
from segue.testing import Pause, ScriptedAgent
from tests.chatting import uses
from tests.stories.square import Square, both, everywhere, quoting, recalls


@everywhere
async def test_sessions_are_begun_listed_switched_and_closed_by_their_numbers(square: Square) -> None:
    async with square.open():
        assert await square.says("/sessions") == "Nothing was said here yet."
        await square.says("about cats")
        assert await square.says("/sessions new") == "A new session."
        assert "2." not in await square.says("/sessions")
        await square.says("about dogs")
        assert await square.says("/sessions new about birds") == "You said: about birds"
        assert (await square.says("/sessions")).splitlines() == [
            "1. about cats",
            "2. about dogs",
            "3. about birds (here)",
            "",
            "/sessions N opens one of them.",
        ]
        assert await square.says("/sessions 1") == "Back in the session that began with “about cats”."
        assert await square.texts() == ["about cats", "You said: about cats"]
        assert await square.says("/sessions 1") == "You are already in that session."
        assert (
            await square.says("/sessions close 2")
            == "Closed the session that began with “about dogs”. /undo opens it again."
        )
        assert "dogs" not in await square.says("/sessions")
        assert (await square.says("/resume")).splitlines() == [
            "1. about birds",
            "2. about cats (here)",
            "",
            "Closed:",
            "",
            "3. about dogs",
            "",
            "/resume N opens one of them.",
        ]
        assert await square.says("/resume 3") == "Back in the session that began with “about dogs”."
        assert "Closed" not in await square.says("/resume")
        assert await square.says("/sessions 9") == Refusal.NOT_LISTED.value
        assert "Type /sessions" in await square.says("/sessions open")


@everywhere
async def test_line_three_is_line_three_of_the_list_that_was_shown(square: Square) -> None:
    async with square.open():
        for animal in ("ants", "bees", "cats"):
            await square.says(f"/sessions new {animal}")
            await square.says(f"/title {animal}")
        assert "3. “ants”" in await square.says("/resume")
        await square.says("/sessions new something newer")
        await square.says("/title newer")
    # A list that was shown is as good after a restart.
    async with square.open():
        assert await square.says("/resume 3") == "Back in “ants”."
        assert "4. “ants” (here)" in await square.says("/resume")


@both
async def test_a_chat_has_as_many_sessions_at_once_as_the_host_lets_it(square: Square) -> None:
    async with square.open(GatewaySettings(routing=Settings(limits=Limits(live_per_lane=2)))):
        await square.says("one")
        # One in which nothing was said isn't listed, so it is in nobody's way.
        await square.says("/sessions new")
        await square.says("/sessions new")
        await square.says("/sessions new two")
        refused = "Too many sessions are open here. Close one with /sessions close N first."
        assert await square.says("/sessions new three") == refused
        assert await square.texts() == ["two", "You said: two"]
        await square.says("/sessions")
        await square.says("/sessions close 1")
        assert await square.says("/sessions new three") == "You said: three"


@everywhere
async def test_a_chat_in_which_nobody_asked_for_another_session_is_one_stream(square: Square) -> None:
    one_at_most = Settings(limits=Limits(live_per_lane=1))
    async with square.open(GatewaySettings(routing=one_at_most, quotes=Quotes.SWITCH)):
        said = [f"message {n}" for n in range(5)]
        for text in said:
            await square.says(text)
        session = await square.session()
        path, bindings = await square.texts(), await square.store.history(session.id)
    # Nothing was delivered but the answers, and they are one session.
    answers = [f"You said: {text}" for text in said]
    assert square.dm.replies == answers
    assert path == [line for pair in zip(said, answers, strict=True) for line in pair]
    assert [binding.why for binding in bindings] == [Why.FIRST]


@pytest.mark.parametrize("quotes", [Quotes.OFF, Quotes.ONCE, Quotes.SWITCH])
@quoting
async def test_a_reply_goes_to_the_session_that_wrote_the_message_if_the_host_says_so(
    square: Square, quotes: Quotes
) -> None:
    async with square.open(GatewaySettings(quotes=quotes)):
        await square.says("about cats")
        cats = await square.session()
        await square.says("/new")
        await square.says("about dogs")
        dogs = await square.session()
        reply = await square.says("purr?", square.message("You said: about cats"))
        # Where the place goes on with another session, the reply says whose it is.
        mark = "\n\n(This is from the session before.)" if quotes is Quotes.ONCE else ""
        assert reply == f"You said: purr?{mark}"
        after = await square.says("woof?")
        assert after == "You said: woof?"
        in_cats, in_dogs = await square.texts(cats), await square.texts(dogs)
        # A command doesn't switch, whatever it quotes, and neither does a message that nobody knows.
        before = await square.session()
        await square.says("/status", square.message("You said: about dogs"))
        await square.says("hm", square.message("about dogs"))
        assert (await square.session()).id == before.id
        bindings = await square.store.history(before.id)
    asked = {Quotes.OFF: [], Quotes.ONCE: ["purr?"], Quotes.SWITCH: ["purr?", "woof?"]}[quotes]
    assert [text for text in in_cats if text in ("purr?", "woof?")] == asked
    assert [text for text in in_dogs if text in ("purr?", "woof?")] == [
        text for text in ("purr?", "woof?") if text not in asked
    ]
    assert (bindings[0].why is Why.QUOTE) == (quotes is Quotes.SWITCH)


@both
async def test_what_isnt_meant_for_the_agent_switches_nothing(square: Square) -> None:
    lobby = square.platform.group()
    async with square.open(GatewaySettings(quotes=Quotes.SWITCH), mentions=Mentions.NEEDED):
        await square.says("about cats", where=lobby)
        await square.says("/new", where=lobby)
        await square.says("about dogs", where=lobby)
        dogs = await square.session(lobby, square.ann.identity)
        square.ann.says("nice", lobby, square.message("You said: about cats", lobby))
        # A command is no exception: other bots may know the same.
        square.ann.says("/new", lobby)
        square.ann.says("/home", lobby)
        await square.platform.settles()
        assert (await square.session(lobby, square.ann.identity)).id == dogs.id
        assert lobby.replies[-1] == "You said: about dogs"


@both
async def test_a_reply_to_what_another_was_told_changes_nothing(square: Square) -> None:
    lobby, bob = square.platform.group(), square.platform.person("Bob")
    async with square.open(GatewaySettings(quotes=Quotes.SWITCH)):
        await square.says("about cats", where=lobby)
        await square.says("about dogs", who=bob, where=lobby)
        dogs = await square.session(lobby, bob.identity)
        await square.says("and?", square.message("You said: about cats", lobby), bob, lobby)
        assert (await square.session(lobby, bob.identity)).id == dogs.id
        assert (await square.texts(dogs))[-1] == "You said: and?"


@everywhere
async def test_a_reply_that_comes_after_a_resume_goes_where_it_was_asked_and_says_whose_it_is(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("meow", [pause, "purr"], otherwise=recalls)
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        cats = await square.session()
        square.ann.says("do they purr?", square.dm)
        await pause.reached()
        await square.says("/new")
        pause.over()
        assert (await square.hears(square.dm, 4))[-1] == "purr\n\n(This is from “Cats”.)"
        assert await square.texts(cats) == ["about cats", "meow", "do they purr?", "purr"]
        assert await square.says("about dogs") == "You said: about dogs"


@both
async def test_what_segue_itself_says_of_a_session_that_was_left_names_it_too(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("meow", [pause, "they talked of cats"], otherwise=recalls)
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        cats = await square.session()
        square.ann.says("/compress", square.dm)
        await pause.reached()
        await square.says("/new")
        pause.over()
        said = (await square.hears(square.dm, 4))[-1]
        assert said.startswith("A summary stands for 2 messages now.")
        assert said.endswith("\n\n(This is from “Cats”.)")
        # A summary stays in its session and adds no number.
        assert await square.says("/resume Cats") == "Back in “Cats”."
        assert (await square.session()).id == cats.id


@both
async def test_a_session_without_a_title_is_known_by_its_first_question(square: Square) -> None:
    async with square.open():
        await square.says("about " + "👩‍👩‍👧" * 70)
        await square.says("and more")
        [line, *_] = (await square.says("/resume")).splitlines()
        assert line == "1. about " + "👩‍👩‍👧" * 53 + "… (here)"
        # It is no title: nobody resumes by it.
        assert (await square.says("/resume and more")).startswith("No session of yours is called")
    async with square.open(GatewaySettings(labels=False)):
        assert (await square.says("/resume")).startswith("1. an untitled session (here)")


@both
async def test_search_shows_a_session_once_with_the_words_around_and_a_number_that_opens_it(square: Square) -> None:
    async with square.open():
        await square.says("about " + "nothing " * 20 + "the walrus and the carpenter")
        await square.says("the walrus again")
        await square.says("/new")
        await square.says("about oysters")
        await square.says("/title Walrus and friends")
        await square.store.index()
        titled, said, _, how = (await square.says("/search walrus")).splitlines()
        assert titled == "1. “Walrus and friends”"
        assert said.startswith("2. the session that began with “about nothing nothing")
        assert said.endswith("…”: You said: the walrus again")
        assert how == "/resume N opens one of them."
        assert "“about nothing" in await square.says("/resume 2")
        assert "…" in (await square.says("/search carpenter")).splitlines()[0].rpartition("”: ")[2]


@both
async def test_children_are_listed_in_the_tree_alone(square: Square) -> None:
    spawn = uses("sessions_spawn", task="count", mode="session", label="sheep")
    square.agent = ScriptedAgent([spawn, "begun"], otherwise=recalls)
    async with square.open():
        await square.says("spawn one", answers=2)
        assert sorted(square.dm.replies) == ["You said: count\n\n(This is from “sheep”.)", "begun"]
        assert await square.says("/resume") == "1. spawn one (here)\n\n/resume N opens one of them."
        assert "sheep" in await square.says("/tree")
