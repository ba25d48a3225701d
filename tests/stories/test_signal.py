"""Conversations on Signal, end to end: a real gateway, and crabline's daemon behind real sockets."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.signal import Signal
from segue.adapters.signal.daemon import Daemon
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Identity
from segue.core.messages import File, Text, plain_text
from segue.core.settings import AccountSettings, Blind, Mentions, Quotes
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.runtime.outbox import MAYBE
from segue.testing import EchoAgent, HandClock, Pause, ScriptedAgent, Shelf
from tests.in_process import gateway_on
from tests.servers.signal import NUMBER, PEOPLE, Between, Someone, edited, mentioning, quoting, signal, with_data
from tests.stories.files import KilledAt, plans
from tests.stories.idle import IDLE, ends_and_comes_back
from tests.stories.square import REMEMBERS

EVERYBODY = AccountSettings(public=True)
ANN, BEN = PEOPLE["Ann"], PEOPLE["Ben"]
DM = ANN.uuid
HOSTS = (Identity("signal", "main", ANN.number),)
"""By the number, as somebody writes it in segue.toml who knows no UUIDs."""
There = tuple[Between, str]


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[There]:
    async with signal(tmp_path) as (between, url):
        yield between, url


@asynccontextmanager
async def running(
    path: Path,
    there: There,
    agent: Agent,
    account: AccountSettings = EVERYBODY,
    probe: Probe = unheeded,
    files: Shelf | None = None,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """A gateway on Signal alone, which listens; Ann is its host."""
    between, url = there
    shelf = files or Shelf()
    adapter = Signal("main", Daemon(url, NUMBER), NUMBER, shelf)
    more: Any = {"account": account, "hosts": HOSTS, "probe": probe, "files": shelf, "grace": 0.1, **settings}
    try:
        async with gateway_on(path, agent, adapter, **more) as gateway:
            await between.listened()
            yield gateway
    finally:
        await adapter.close()
        await between.left()


async def until(between: Between, count: int, chat: str = DM) -> list[str]:
    """Wait until so much was said there."""
    await between.changes.until(
        lambda: len(between.texts(chat)) >= count or None, lambda: f"never {count}: {between.texts(chat)!r}"
    )
    return between.texts(chat)


async def answer(between: Between, text: str, chat: str = DM, **how: Any) -> str:
    """Say something and wait for the next thing that is said there."""
    before = len(between.texts(chat))
    await between.says(text, **how)
    return (await until(between, before + 1, chat))[before]


async def test_what_is_said_is_answered_with_its_styles(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, ScriptedAgent("**tea** for two")):
        assert await answer(between, "what is there?") == "tea for two"
    [sent] = [params for method, params in between.calls if method == "send"]
    assert (sent["recipient"], sent["textStyle"]) == ([ANN.uuid], ["0:3:BOLD"])
    assert "sendTyping" in [method for method, _ in between.calls]


async def test_one_chat_holds_several_conversations(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, REMEMBERS):
        assert await answer(between, "cats") == "cats"
        assert await answer(between, "/sessions new dogs") == "dogs"
        assert await answer(between, "/sessions") == "1. cats\n2. dogs (here)\n\n/sessions N opens one of them."
        assert await answer(between, "/sessions 1") == "Back in the session that began with “cats”."
        assert await answer(between, "purr") == "cats | purr"
    async with running(tmp_path, there, REMEMBERS):
        assert await answer(between, "/sessions close 2") == (
            "Closed the session that began with “dogs”. /undo opens it again."
        )
        assert await answer(between, "/title Cats") == "This session is called Cats."
        assert await answer(between, "/branch") != ""
        assert await answer(between, "meow") == "cats | purr | meow"
        assert await answer(between, "/resume Cats #1") == "Back in “Cats #1”."
        assert await answer(between, "hiss") == "cats | purr | hiss"
        assert await answer(between, "/undo") == "Took back the last exchange."
        assert (await answer(between, "/new")).startswith("A new session.")
        assert await answer(between, "birds") == "birds"


@pytest.mark.parametrize("quotes", [Quotes.OFF, Quotes.ONCE, Quotes.SWITCH])
async def test_a_reply_goes_to_the_session_that_wrote_the_message(there: There, tmp_path: Path, quotes: Quotes) -> None:
    between, _ = there
    async with running(tmp_path, there, REMEMBERS):
        await answer(between, "cats")
        await answer(between, "/sessions new dogs")
    [of_cats] = [seen.message for seen in between.read(DM) if seen.text == "cats"]
    async with running(tmp_path, there, REMEMBERS, quotes=quotes):
        went = quotes is not Quotes.OFF
        replied = await answer(between, "purr", doctor=quoting(of_cats))
        assert replied.startswith("cats | purr" if went else "dogs | purr")
        switched = quotes is Quotes.SWITCH
        before = "dogs | purr" if quotes is Quotes.OFF else "dogs"
        assert await answer(between, "woof") == ("cats | purr | woof" if switched else f"{before} | woof")
        # A message that Segue never sent, and one by somebody else at the same moment, change nothing.
        for unknown in ("1700", f"{of_cats}.{BEN.uuid}"):
            last = between.texts(DM)[-1]
            assert (await answer(between, "hm", doctor=quoting(unknown))).startswith(f"{last} | hm")


async def test_an_idle_session_ends_and_undo_goes_back_to_it(there: There, tmp_path: Path) -> None:
    between, _ = there
    clock = HandClock(time.time())
    async with running(tmp_path, there, REMEMBERS, clock=clock, **IDLE):
        await ends_and_comes_back(clock, partial(answer, between), partial(until, between))


async def test_in_a_group_it_answers_when_it_is_meant_and_each_person_apart(there: There, tmp_path: Path) -> None:
    between, _ = there
    club, polite = between.group(), AccountSettings(public=True, mentions=Mentions.NEEDED)
    async with running(tmp_path, there, REMEMBERS, polite):
        await between.says("to each other", "Ben", club)
        await between.says("/new", "Ben", club)
        asked = await between.says("\ufffc tea?", "Ben", club, mentioning())
        await between.shows(club, "tea?")
        at, _, author = asked.partition(".")
        [sent] = [params for method, params in between.calls if method == "send"]
        assert (sent["quoteTimestamp"], sent["quoteAuthor"], sent["quoteMessage"]) == (int(at), author, "tea?")
        assert await answer(between, "\ufffc cake?", club, group=club, doctor=mentioning()) == "cake?"
        [first] = [seen.message for seen in between.read(club) if seen.text == "tea?"]
        replied = await answer(between, "with milk", club, who="Ben", group=club, doctor=quoting(first))
        assert replied == "tea? | with milk"
        assert await answer(between, "\ufffc /title Tea", club, who="Ben", group=club, doctor=mentioning()) == (
            "This session is called Tea."
        )
        assert await answer(between, "in private", BEN.uuid, who="Ben") == "in private"


async def test_an_edit_and_a_deletion_reach_what_still_waits(there: There, tmp_path: Path) -> None:
    between, _ = there
    pause = Pause()
    agent = ScriptedAgent([pause, "first"], otherwise=lambda work: [plain_text(work.asked[0].parts)])
    async with running(tmp_path, there, agent):
        await between.says("begin")
        await pause.reached()
        said = await between.says("tea with mlik")
        changed = await between.says("tea with milky", doctor=edited(said))
        # Who changes it again names the last form of it.
        await between.says("tea with milk", doctor=edited(changed))
        gone = await between.says("and something silly")
        at = int(gone.partition(".")[0])
        await between.says("taken back", doctor=with_data(message=None, remoteDelete={"timestamp": at}))
        await between.says("/status")
        await between.changes.until(lambda: between.texts(DM) or None, lambda: "no status")
        pause.over()
        await between.changes.until(
            lambda: "tea with milk" in between.texts(DM) or None, lambda: f"{between.texts(DM)!r}"
        )
    assert between.texts(DM)[1:] == ["first", "tea with milk"]


async def test_what_is_forgotten_is_deleted_for_everybody(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, EchoAgent()):
        await answer(between, "a secret")
        await answer(between, "/forget session")
        await between.says("/yes")
        await between.changes.until(
            lambda: None if "a secret" in between.texts(DM) else True, lambda: f"it stays: {between.texts(DM)!r}"
        )
    assert "remoteDelete" in [method for method, _ in between.calls]


async def test_files_come_and_go(there: There, tmp_path: Path) -> None:
    between, _ = there
    shelf = Shelf()
    agent = ScriptedAgent([Text("Here."), await plans(shelf)], "Thanks.")
    between.files["abc.png"] = b"a picture"
    picture = {"id": "abc.png", "contentType": "image/png", "filename": None, "size": 9}
    async with running(tmp_path, there, agent, files=shelf):
        assert await answer(between, "the plans, please") == "Here."
        await between.changes.until(lambda: between.sent_files or None, lambda: "no file came")
        await between.says("look", doctor=with_data(message=None, attachments=[picture]))
        await between.changes.until(lambda: "Thanks." in between.texts(DM) or None, lambda: f"{between.texts(DM)!r}")
    assert between.sent_files == ["data:text/markdown;filename=plans.md;base64,IyBQbGFucw=="]
    [file] = [part for draft in agent.works[-1].asked for part in draft.parts if isinstance(part, File)]
    assert (file.name, await shelf.read(file)) == ("abc.png", b"a picture")


async def test_a_question_is_a_numbered_list_that_a_number_answers(there: There, tmp_path: Path) -> None:
    between, _ = there

    async def asks(work: Work) -> str:
        return f"{await work.ask('Which tea?', choices=('green', 'black'))} it is."

    async with running(tmp_path, there, as_agent(asks)):
        asked = await answer(between, "tea, please")
        assert asked.splitlines()[0] == "Which tea?"
        assert [line for line in asked.splitlines() if line[:2] in {"1.", "2."}] == ["1. green", "2. black"]
        await between.says("2")
        await between.shows(DM, asked, "Which tea?\n\nAnswered: black (Ann).", "black it is.")


async def test_who_was_taken_for_another_has_what_was_theirs(there: There, tmp_path: Path) -> None:
    """A number that was Bob's is shown by somebody else: the platform takes them for one, and that is undone."""
    between, _ = there
    uuid, number = "9f1c0ab2-6b1d-4a0e-8d3a-000000000777", "+4915100000777"
    by_number, by_uuid, both = Someone("", number), Someone(uuid, ""), Someone(uuid, number)

    async def says(text: str, who: Someone) -> str:
        def all_texts() -> list[str]:
            return [*between.texts(number), *between.texts(uuid)]

        before = len(all_texts())
        chats = {chat: len(between.texts(chat)) for chat in (number, uuid)}
        await between.says(text, who, name="Bob")
        await between.changes.until(lambda: len(all_texts()) > before or None, lambda: f"{text!r}: no answer")
        return next(between.texts(chat)[-1] for chat, count in chats.items() if len(between.texts(chat)) > count)

    async with running(tmp_path, there, REMEMBERS):
        assert await says("milk", by_number) == "milk"
        assert await says("bread", by_uuid) == "bread"
        # The lane last used stays, the older person does.
        assert await says("eggs", both) == "bread | eggs"
        listed = await says("/unlink", both)
        assert "because the platform says so" in listed
        assert f"The chat {uuid}, because" in listed
        assert "are two again" in await says("/unlink 1", both)
    async with running(tmp_path, there, REMEMBERS):
        assert await says("butter", by_number) == "milk | butter"
        # The same ids, told again, join nobody.
        assert await says("cheese", both) == "bread | eggs | cheese"
        assert await says("/unlink", both) == "You are linked with nobody."
        assert await says("salt", by_number) == "milk | butter | salt"


async def test_whoever_is_given_a_number_is_not_who_had_it(there: There, tmp_path: Path) -> None:
    between, _ = there
    carl = Someone("9f1c0ab2-6b1d-4a0e-8d3a-000000000555", ANN.number)
    async with running(tmp_path, there, REMEMBERS, AccountSettings(allow=frozenset({ANN.number}))):
        assert await answer(between, "tea") == "tea"
        told = await answer(between, "hello", carl.uuid, who=carl, name="Carl")
        assert "/link" in told, "somebody else reads on in what was Ann's"
        assert await answer(between, "sugar", who=ANN._replace(number="")) == "tea | sugar"


async def test_whoever_was_first_known_by_a_number_is_written_to_by_what_stays(there: There, tmp_path: Path) -> None:
    between, _ = there
    number = Someone("", ANN.number)
    async with running(tmp_path, there, REMEMBERS):
        assert await answer(between, "tea", ANN.number, who=number) == "tea"
        assert await answer(between, "sugar") == "tea | sugar"
        # From now on the number may be somebody else's.
        assert await answer(between, "milk", who=ANN._replace(number="")) == "tea | sugar | milk"
    assert between.texts(ANN.number) == ["tea"]


@pytest.mark.parametrize("blind", Blind)
async def test_killed_between_the_call_and_its_record_it_says_that_it_may_be_twice_or_asks(
    there: There, tmp_path: Path, blind: Blind
) -> None:
    between, _ = there
    killed = KilledAt(Point.SEND_CALLED, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed, blind=blind):
        await between.says("only once")
        await killed.dead.wait()
    assert between.texts(DM) == ["only once"]
    async with running(tmp_path, there, EchoAgent(), blind=blind):
        await between.changes.until(lambda: between.texts(DM)[1:] or None, lambda: "nothing came of it")
        if blind is Blind.AT_LEAST_ONCE:
            assert between.texts(DM)[1:] == [f"{MAYBE}only once"]
        else:
            [asked] = between.texts(DM)[1:]
            assert asked.startswith("Nobody knows whether this message arrived: “only once” Shall I send it again?")
            assert "only once" in await answer(between, "/yes")
    assert [text for text in between.texts(DM) if text == f"{MAYBE}only once"] == (
        [f"{MAYBE}only once"] if blind is Blind.AT_LEAST_ONCE else []
    )


async def test_a_call_that_breaks_off_may_be_twice(there: There, tmp_path: Path) -> None:
    between, _ = there
    broken: list[dict[str, Any]] = []

    async def breaks(method: str, params: dict[str, Any]) -> None:
        if method == "send" and not broken:
            broken.append(params)
            await asyncio.Event().wait()

    between.taken = breaks
    async with running(tmp_path, there, EchoAgent(), lease=0.5) as gateway:
        await between.says("hello")
        await between.changes.until(lambda: between.texts(DM) or None, lambda: "never sent")
        assert gateway.accounts["signal.main"].why == ""
    async with running(tmp_path, there, EchoAgent()):
        await between.shows(DM, "hello", f"{MAYBE}hello")


async def test_a_cut_line_and_a_daemon_that_is_started_anew_lose_and_double_nothing(
    there: There, tmp_path: Path
) -> None:
    between, _ = there
    async with running(tmp_path, there, EchoAgent()) as gateway:
        await answer(between, "one")
        await between.cut()
        await between.says("two")
        await between.says("three")
        async with asyncio.timeout(60):
            while not gateway.accounts["signal.main"].why:  # noqa: ASYNC110 -- nobody tells when
                await asyncio.sleep(0.01)
        between.down = False
        await between.listened()
        await between.changes.until(lambda: "three" in between.texts(DM)[-1] or None, lambda: f"{between.texts(DM)}")
        between.end()
        await between.signal.stop()
        await between.signal.start()
        await between.listened()
        await between.says("four")
        await between.changes.until(lambda: "four" in between.texts(DM)[-1] or None, lambda: f"{between.texts(DM)}")
        between.tell_again()
        assert await answer(between, "five") == "five"
    assert "\n".join(between.texts(DM)).replace("\n\n", "\n").split("\n") == ["one", "two", "three", "four", "five"]


async def test_what_came_while_it_was_dead_is_answered_once_by_the_next(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, EchoAgent()):
        await answer(between, "before")
    await between.says("meanwhile")
    async with running(tmp_path, there, EchoAgent()):
        await between.shows(DM, "before", "meanwhile")


async def test_a_stranger_is_told_how_to_be_let_in_and_nobody_else_hears_of_it(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, EchoAgent(), AccountSettings(allow=frozenset({ANN.number}))):
        told = await answer(between, "let me in", BEN.uuid, who="Ben")
        assert "/link" in told
        assert await answer(between, "it is me") == "it is me"
    assert between.texts(BEN.uuid) == [told]
