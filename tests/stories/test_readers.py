"""What an agent's tools find is bounded by who reads the answer, and a terminal opens on nothing that others read."""

import asyncio
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from segue.agents.given import as_agent
from segue.core.contracts.agents import Work
from segue.core.lanes import Rules, Sharing
from segue.core.messages import ToolResult, plain_text
from segue.core.resets import Policies, Policy, When
from segue.core.settings import GatewaySettings, Settings
from segue.core.values import SessionId
from segue.errors import AgentFailed
from segue.testing import ScriptedAgent, Telegram, To
from segue.testing.agents import Pause, Step, Uses
from segue.testing.chats import Chat
from segue.testing.waits import PATIENCE
from tests.chatting import results
from tests.stories.square import DATABASES, Square, both, recalls

TOGETHER = GatewaySettings(routing=Settings(rules=Rules(groups=Sharing.TOGETHER)))


@both
async def test_in_a_shared_place_tools_reach_nothing_that_was_said_in_private(square: Square) -> None:
    lobby = square.platform.group("lobby")
    heard: list[str] = []

    def asks(work: Work) -> Iterable[Step]:
        if "tell" not in work.asked[0].text:
            return recalls(work)
        private = secret[0]
        return [
            Uses("a", "sessions_list"),
            Uses("b", "sessions_history", arguments={"session": private}),
            Uses("c", "sessions_send", arguments={"session": private, "message": "hello there"}),
            Uses("d", "schedules_list"),
            "that is all",
        ]

    secret: list[str] = []
    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        secret.append((await square.session()).id)
        await square.says("/title Diary")
        await square.says("/schedule in 2h look after the secret")
        await square.says("tell me", where=lobby)
        for entry in await square.store.path((await square.session(lobby)).id):
            heard += [str(part.content) for part in entry.parts if isinstance(part, ToolResult)]
        assert len(heard) == 4
        assert not any("secret" in told or "Diary" in told for told in heard)
        assert heard[1] == heard[2] == "No session of yours goes by that. sessions_list shows them."
        # In private the same tools reach all of it.
        await square.says("/sessions new")
        await square.says("tell me", answers=2)
        heard.clear()
        for entry in await square.store.path((await square.session()).id):
            heard += [str(part.content) for part in entry.parts if isinstance(part, ToolResult)]
        assert "Diary" in heard[0]
        assert "a secret" in heard[1]
        assert "look after the secret" in heard[3]


@both
async def test_what_another_session_is_asked_for_reaches_no_further_than_whoever_asks(square: Square) -> None:
    lobby = square.platform.group("lobby")
    known: list[str] = []

    def asks(work: Work) -> Iterable[Step]:
        told = plain_text(work.asked[0].parts)
        if "ask there" in told:
            return [Uses("a", "sessions_send", arguments={"session": known[0], "message": "list", "wait": 20}), "done"]
        return [Uses("b", "sessions_list"), "listed"] if "list" in told else recalls(work)

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        await square.says("/title Diary")
        await square.says("hello all", where=lobby)
        known.append((await square.session(lobby)).id)
        await square.says("/new")
        await square.says("plans")
        await square.says("/title Plans")
        await square.alone("/resume Plans", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        await square.says("ask there")
        [result] = await results(square.store, SessionId(known[0]))
        assert "Plans" in str(result.content)
        assert "Diary" not in str(result.content), "everyone in the lobby reads what comes of it"


@pytest.mark.parametrize("runs", ["list", "wait"])
@both
async def test_whoever_waits_behind_a_turn_reads_what_it_finds_though_they_have_left(square: Square, runs: str) -> None:
    lobby, pause = square.platform.group("lobby"), Pause()

    def asks(work: Work) -> Iterable[Step]:
        told = plain_text(work.asked[0].parts)
        found = [Uses("a", "sessions_list")] if told == "list" else []
        return [pause, *found, *recalls(work)] if told == runs else [*found, *recalls(work)]

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        await square.says("/title Diary")
        await square.says("/new")
        await square.says("plans")
        await square.says("/title Plans")
        session = (await square.session()).id
        await square.alone("/resume Plans", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        if runs == "wait":
            square.ann.says("wait", lobby, None, To.AGENT)
            await pause.reached()
        square.ann.says("list", square.dm, None, To.AGENT)
        await pause.reached()
        square.ann.says("and now?", lobby, None, To.AGENT)
        await square.says("/new", where=lobby)
        pause.over()
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "and now?" in text), None), lambda: f"{lobby.replies}"
        )
        [result] = await results(square.store, session)
        assert "Diary" not in str(result.content), "what is said next in the lobby goes on from it"
        await square.says("list")
        assert "Diary" in str((await results(square.store, session))[-1].content), "nobody else waits any more"


@both
async def test_why_an_agent_failed_is_not_told_before_whoever_waits_though_they_have_left(square: Square) -> None:
    lobby, pause, failed = square.platform.group("lobby"), Pause(), AgentFailed("The key X.", "Renew it.", passes=False)

    def asks(work: Work) -> Iterable[Step]:
        return [pause, failed] if plain_text(work.asked[0].parts) == "fail" else recalls(work)

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("plans")
        await square.says("/title Plans")
        await square.alone("/resume Plans", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        square.ann.says("fail", square.dm, None, To.AGENT)
        await pause.reached()
        square.ann.says("and now?", lobby, None, To.AGENT)
        await square.says("/new", where=lobby)
        pause.over()
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "and now?" in text), None), lambda: f"{lobby.replies}"
        )
        assert not [entry for entry in square.works[-1].transcript if "The key X" in str(entry.parts)]
        assert "The key X" in await square.says("fail"), "nobody else waits any more"


@both
async def test_what_a_child_finds_for_work_that_is_told_elsewhere_is_bounded_by_who_reads_there(square: Square) -> None:
    lobby, bob, kids = square.platform.group("lobby"), square.platform.person("Bob"), list[str]()
    bobs = square.platform.dm(bob)

    def asks(work: Work) -> Iterable[Step]:
        told = plain_text(work.asked[0].parts)
        if told == "begin":
            return [Uses("a", "sessions_spawn", arguments={"task": "wait", "mode": "session"}), "begun"]
        if "ask the child" in told:
            return [Uses("b", "sessions_send", arguments={"session": kids[0], "message": "list", "wait": 20}), "told"]
        return [Uses("c", "sessions_list"), "listed"] if told == "list" else recalls(work)

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(replace(TOGETHER, poll=0.05)) as gateway:
        await square.says("a secret", who=bob, where=bobs)
        await square.says("/title Diary", who=bob, where=bobs)
        await square.says("begin", who=bob, where=lobby, answers=2)
        [begun] = await results(square.store, (await square.session(lobby)).id)
        kids.append(begun.content["session"])
        await square.says("/schedule in 2h ask the child", who=bob, where=lobby)
        # The lobby speaks to a session of Ann's then, so the work is done in Bob's, and told in the lobby.
        await square.says("/new", where=lobby)
        square.passes(7300)
        await gateway._schedules.once()
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if text.startswith("told")), None), lambda: f"{lobby.replies}"
        )
        [result] = await results(square.store, SessionId(kids[0]))
        assert "Diary" not in str(result.content)


@pytest.mark.parametrize("first", ["readers", "agent"])
@both
async def test_a_yes_that_comes_when_a_place_has_moved_on_tells_it_nothing_more(square: Square, first: str) -> None:
    lobby = square.platform.group("lobby")

    def asks(work: Work) -> Iterable[Step]:
        if plain_text(work.asked[0].parts) != "list":
            return recalls(work)
        return [Uses("a", "ask", arguments={"question": "Shall I?"}), Uses("b", "sessions_list"), "listed"]

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        await square.says("/title Diary")
        for title in ("Plans", "Other"):
            await square.says("/new")
            await square.says("plans")
            await square.says(f"/title {title}")
        await square.says("/resume Plans")
        session = (await square.session()).id
        await square.alone("/resume Plans", lobby)
        await square.says("/yes")
        assert await square.says("list") == "Shall I?"
        asked = square.message("Shall I?")
        square.ann.says("and now?", lobby, None, To.AGENT)
        await square.says("/resume Other")
        await square.alone("/resume Other", lobby)
        for quoting in (None, asked) if first == "readers" else (asked, None):
            await square.says("/yes", quoting)
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "and now?" in text), None), lambda: f"{lobby.replies}"
        )

        async def has_moved_on() -> bool:
            return (await square.session(lobby)).id == (await square.session()).id != session

        async def missing() -> str:
            return f"{await square.session(lobby)} isn't {await square.session()}"

        # What each yes is answered may come in any order.
        await square.platform.changes.until_so(has_moved_on, missing)
        assert "Diary" not in str((await results(square.store, session))[-1].content)
        # Nor can anybody go back to more than that.
        await square.says("/rewind 3", where=lobby)
        await square.says("so?", where=lobby)
        assert not [text for text in lobby.replies if "Diary" in text]


@both
async def test_what_another_session_finds_is_bounded_by_who_waits_in_the_one_that_asks(square: Square) -> None:
    lobby, others = square.platform.group("lobby"), list[SessionId]()

    def asks(work: Work) -> Iterable[Step]:
        told = plain_text(work.asked[0].parts)
        if told == "ask there":
            send = Uses("b", "sessions_send", arguments={"session": others[0], "message": "list", "wait": 20})
            return [Uses("a", "ask", arguments={"question": "Shall I?"}), send, "told"]
        return [Uses("c", "sessions_list"), "listed"] if told.endswith("list") else recalls(work)

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        await square.says("/title Diary")
        await square.says("/new")
        await square.says("something else", where=lobby)
        others.append((await square.session(lobby)).id)
        await square.says("/new")
        await square.says("plans")
        await square.says("/title Plans")
        await square.alone("/resume Plans", lobby)
        await square.says("/yes")
        assert await square.says("ask there") == "Shall I?"
        asked = square.message("Shall I?")
        square.ann.says("and now?", lobby, None, To.AGENT)
        await square.platform.settles()
        await square.says("/new", where=lobby)
        await square.says("/yes", asked)
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "and now?" in text), None), lambda: f"{lobby.replies}"
        )
        [result] = await results(square.store, others[0])
        assert "Diary" not in str(result.content)


@both
async def test_a_name_that_nobody_has_offers_no_title_that_was_given_elsewhere(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open(TOGETHER):
        await square.says("hello", where=lobby)
        await square.says("/title Club", where=lobby)
        near = await square.says("/resume Clubb", where=lobby)
        assert "Did you mean “Club”?" in near
        await square.says("/resume Club")
        await square.says("/new", where=lobby)
        await square.says("/title Diary night")
        told = await square.says("/resume Diary nigh", where=lobby)
        assert "Diary night" not in told
        alone = await square.says("/resume Diary nigh")
        assert "Did you mean “Diary night”?" in alone


@both
async def test_nobody_goes_back_to_what_others_have_not_read(square: Square) -> None:
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    bobs = square.platform.dm(bob)
    async with square.open(TOGETHER):
        await square.says("a secret", who=bob, where=bobs)
        session = await square.session(bobs)
        [secret] = [entry.tip.n async for entry in square.store.entries(session.id) if entry.text == "a secret"]
        await square.says("/undo", who=bob, where=bobs)
        await square.says("all may know", who=bob, where=bobs)
        await square.says("/title Plans", who=bob, where=bobs)
        await square.says("hello", who=bob, where=lobby)
        await square.says("/resume Plans", who=bob, where=lobby)
        await square.says("/yes", who=bob, where=bobs)
        assert (await square.session(lobby)).id == session.id
        # Neither the host nor its owner, who wasn't asked whether the others may read it.
        for who in (square.ann, bob):
            told = await square.says(f"/rewind {secret}", who=who, where=lobby)
            assert told == f"No message here has the number {secret}. /tree numbers them."
        reply = square.message("a secret", bobs)
        for typed, quoting in ((f"/rewind {secret}", None), ("/rewind", reply)):
            assert (await square.says(typed, quoting, bob, bobs)).startswith("Others read this session who haven't")
        await square.says("/new", who=bob, where=lobby)
        assert (await square.says(f"/rewind {secret}", who=bob, where=bobs)).startswith("Went back to that message.")


@both
async def test_whoever_goes_back_is_asked_again_who_reads_when_it_comes_to_pass(square: Square) -> None:
    lobby, pause = square.platform.group("lobby"), Pause()
    square.agent = ScriptedAgent(
        otherwise=lambda work: [pause, "done"] if "wait" in work.asked[0].text else recalls(work)
    )
    async with square.open(TOGETHER):
        await square.says("a secret")
        session = await square.session()
        [secret] = [entry.tip.n async for entry in square.store.entries(session.id) if entry.text == "a secret"]
        await square.says("/undo")
        await square.says("all may know")
        await square.says("/title Plans")
        await square.says("hello", where=lobby)
        square.ann.says("wait", square.dm)
        await pause.reached()
        square.ann.says(f"/rewind {secret}", square.dm)
        await square.platform.settles()
        await square.alone("/resume Plans", lobby)
        await square.says("/yes")
        assert (await square.session(lobby)).id == session.id
        pause.over()
        await square.platform.changes.until(
            lambda: next((text for text in square.dm.replies if text.startswith("Others read this session")), None),
            lambda: f"it went back: {square.dm.replies}",
        )
        assert "a secret" not in await square.texts()


@both
async def test_an_agent_knows_who_reads_as_soon_as_they_do_and_not_of_homes_any_more(square: Square) -> None:
    lobby, seen = square.platform.group("lobby"), list[Work]()

    def listens(work: Work) -> Iterable[Step]:
        seen.append(work)
        return recalls(work)

    square.agent = ScriptedAgent(otherwise=listens)
    async with square.open(TOGETHER):
        await square.says("/home")
        await square.says("about cats")
        await square.says("/title Cats")
        assert "Home of" in seen[-1].context
        await square.says("hello", where=lobby)
        await square.alone("/resume Cats", lobby)
        await square.says("/yes")
        await square.says("and dogs?")
        assert {place.name for place in seen[-1].readers} == {"lobby", "Ann"}
        assert "lobby" in seen[-1].context
        assert "Home of" not in seen[-1].context
        context = seen[-1].context
        await square.says("birds", where=lobby)
        assert seen[-1].context == context
        await square.says("/new", where=lobby)
        await square.says("fish")
        assert [place.name for place in seen[-1].readers] == ["Ann"]


@both
async def test_whoever_has_left_and_waits_for_an_answer_is_among_its_readers(square: Square) -> None:
    lobby, seen, pause = square.platform.group("lobby"), list[Work](), Pause()

    def listens(work: Work) -> Iterable[Step]:
        seen.append(work)
        return [pause, "done"] if "wait" in work.asked[0].text else recalls(work)

    square.agent = ScriptedAgent(otherwise=listens)
    async with square.open(TOGETHER):
        await square.says("about cats", where=lobby)
        await square.says("/title Cats", where=lobby)
        square.ann.says("wait", lobby, None, To.AGENT)
        await pause.reached()
        await square.says("/resume Cats")
        square.ann.says("mine", square.dm)
        await square.platform.settles()
        square.ann.says("theirs", lobby, None, To.AGENT)
        await square.platform.settles()
        await square.says("/new", where=lobby)
        pause.over()
        await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "theirs" in text), None), lambda: f"{lobby.replies}"
        )
        [mine] = [work for work in seen if "mine" in work.asked[0].text]
        assert "lobby" in {place.name for place in mine.readers}
        assert "Home of" not in mine.context


@both
async def test_what_was_said_after_a_reset_is_not_asked_where_others_read(square: Square) -> None:
    lobby = square.platform.group("lobby")
    idle = replace(TOGETHER.routing, resets=Policies(Policy(When.IDLE, idle_minutes=60)))
    async with square.open(GatewaySettings(routing=idle)):
        await square.says("about cats")
        await square.says("/title Cats")
        await square.says("hello", where=lobby)
        await square.alone("/resume Cats", lobby)
        await square.says("/yes")
        square.passes(3601)
        await square.says("a secret")
        assert await square.says("/undo") == (
            "Took back the reset. You are in “Cats” again. Everyone in lobby reads this session. /branch goes on alone."
            " Your message wasn't asked again there."
        )
        assert await square.texts() == ["about cats", "You said: about cats"]


@both
async def test_among_others_nobody_is_told_what_somebody_is_asked_alone(square: Square) -> None:
    async def travels(work: Work) -> str:
        return f"Off to {await work.ask('Where to?', ('Berlin', 'Paris'))}."

    square.agent = as_agent(travels)
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open(TOGETHER):
        await square.says("a trip please")
        assert "1. Where to?" in await square.alone("/questions", lobby)
        assert "1. Berlin" in await square.alone("/answer 1 nowhere", lobby)
        square.ann.says("/answer 1 2", lobby)
        await square.platform.changes.until(
            lambda: "Off to Paris." in square.dm.replies or None, lambda: f"it never went: {square.dm.replies}"
        )
        assert "Answered: Paris (Ann)" in await square.alone("/answer 1 1", lobby)
        assert not [text for text in bob.sees(lobby) if "Where" in text or "Berlin" in text or "Paris" in text]


@both
async def test_work_is_not_delivered_to_somebody_who_has_only_typed_commands(square: Square) -> None:
    bob = square.platform.person("Bob")
    bobs = square.platform.dm(bob)
    async with square.open():
        await square.says("/who", who=bob, where=bobs)
        await square.says("a secret")
        told = await square.says(f"/schedule in 2h tell it --to {square.platform.name}:{bobs.address.chat}")
        assert "others read there who haven't read this session" in told


def _tells(work: Work) -> list[Step]:
    """All that the agent knows."""
    said = [entry.parts for entry in work.transcript] + [draft.parts for draft in work.asked]
    return [" | ".join(map(plain_text, said))]


@pytest.mark.parametrize("square", [pytest.param((Telegram, name), id=name) for name in DATABASES], indirect=True)
async def test_words_that_are_changed_alone_are_not_told_to_whoever_has_left_and_waits(square: Square) -> None:
    lobby, pause = square.platform.group("lobby"), Pause()

    def waits(work: Work) -> Iterable[Step]:
        return [pause, *_tells(work)] if plain_text(work.asked[0].parts) == "wait" else _tells(work)

    square.agent = ScriptedAgent(otherwise=waits)
    async with square.open(TOGETHER):
        await square.says("plans")
        await square.says("/title Plans")
        await square.alone("/resume Plans", lobby)
        await square.says("/yes", where=square.shown_alone(lobby))
        square.ann.says("wait", lobby, None, To.AGENT)
        await pause.reached()
        square.ann.says("and now?", lobby, None, To.AGENT)
        await square.says("/new", where=lobby)
        square.ann.edits(square.message("plans"), "a secret")
        await square.platform.settles()
        pause.over()
        told = await square.platform.changes.until(
            lambda: next((text for text in lobby.replies if "and now?" in text), None), lambda: f"{lobby.replies}"
        )
        assert "secret" not in told, "the lobby had left when it was written"
        assert "a secret" in await square.says("and here?")


async def _handed_away(square: Square, lobby: Chat) -> None:
    """Hand the lobby's conversation off to the private chat."""
    before = len(square.dm.replies)
    to = f"/handoff {square.platform.name}:{square.dm.address.chat}"
    assert "This conversation goes on in" in await square.says(to, where=lobby, answers=2)
    await square.hears(square.dm, before + 1)


@both
async def test_an_answer_that_went_nowhere_and_was_taken_back_is_not_told_to_others(square: Square) -> None:
    lobby = square.platform.group("lobby")
    square.agent = ScriptedAgent(otherwise=_tells)
    async with square.open(TOGETHER):
        await square.says("hello")
        await square.says("plans", where=lobby)
        await square.says("/title Plans", where=lobby)
        session = (await square.session(lobby)).id
        await square.says("/schedule in 1h look", where=lobby)
        await _handed_away(square, lobby)
        await square.says("a secret")
        await square.says("/new")
        square.passes(3700.0)
        async with asyncio.timeout(PATIENCE):
            while "look" not in (await square.store.path(session))[-1].text:  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.02)
        assert "a secret" in await square.says("/resume Plans"), "the work was done and told nobody yet"
        assert await square.says("/undo 2") == "Took back the last 2 exchanges."
        assert await square.says("/resume Plans", where=lobby) == "Back in “Plans”."
        assert not any("secret" in reply for reply in lobby.replies)


@both
async def test_repeated_work_is_told_where_it_was_asked_for_until_something_is_said_elsewhere(square: Square) -> None:
    lobby = square.platform.group("lobby")
    square.agent = ScriptedAgent(otherwise=_tells)

    def told() -> list[str]:
        return [reply for reply in lobby.replies if reply.startswith("plans | ") and "look around" in reply]

    async def passes(answers: int) -> None:
        square.passes(7200.0)
        await square.platform.changes.until(lambda: len(told()) >= answers or None, lambda: f"{lobby.replies}")

    async with square.open(TOGETHER):
        await square.says("hello")
        await square.says("plans", where=lobby)
        session = (await square.session(lobby)).id
        await square.says("/schedule every 2h look around", where=lobby)
        await _handed_away(square, lobby)
        for answers in (1, 2, 3):
            await passes(answers)
        await square.says("a secret")
        length = len(await square.store.path(session))
        square.passes(7200.0)
        async with asyncio.timeout(PATIENCE):
            while len(await square.store.path(session)) < length + 2:  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.02)
        await square.platform.settles()
        assert len(told()) == 3
        assert not any("secret" in reply for reply in lobby.replies)


@both
async def test_a_child_that_a_result_led_to_after_its_place_had_left_is_not_that_places(square: Square) -> None:
    lobby, found = square.platform.group("lobby"), Pause()

    def asks(work: Work) -> Iterable[Step]:
        told, kept = plain_text(work.asked[0].parts), {"label": "kept"}
        if told == "begin":
            return [Uses("a", "sessions_spawn", arguments={"task": "find it"}), "begun"]
        if told == "find it":
            return [found, "found"]
        if "From your child" in told:
            return [Uses("b", "sessions_spawn", arguments={"task": "keep a secret", "mode": "session", **kept}), "done"]
        if told == "ask the child":
            send = Uses("c", "sessions_send", arguments={"message": "say it", "wait": 20, **kept})
            return [Uses("d", "sessions_list"), Uses("e", "sessions_history", arguments=kept), send, "asked"]
        return recalls(work)

    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("hello")
        await square.says("begin", where=lobby)
        await square.says("/title Plans", where=lobby)
        session = (await square.session(lobby)).id
        await _handed_away(square, lobby)
        await square.says("a secret")
        await square.says("/new")
        found.over()
        async with asyncio.timeout(PATIENCE):
            while (await square.store.path(session))[-1].text != "done":  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.02)
        await square.says("/resume Plans")
        assert await square.says("/undo 2") == "Took back the last 2 exchanges."
        assert await square.says("/resume Plans", where=lobby) == "Back in “Plans”."
        await square.says("ask the child", where=lobby)
        heard = await results(square.store, session)
        assert [told.id for told in heard] == ["d", "e", "c"]
        assert not any("secret" in str(told.content) for told in heard)
