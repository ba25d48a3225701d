"""Conversations on WhatsApp, end to end: a real gateway, and crabline's Cloud API behind real sockets."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.whatsapp import WhatsApp
from segue.adapters.whatsapp.graph import Graph
from segue.agents.given import as_agent
from segue.changes.exchange import deliveries
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import File, Text
from segue.core.settings import AccountSettings, Quotes
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.runtime.outbox import MAYBE, SILENT
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import EchoAgent, HandClock, ScriptedAgent, Shelf
from tests.contracts.test_whatsapp import BRISK
from tests.in_process import gateway_on
from tests.servers.whatsapp import (
    APP_SECRET,
    NUMBER,
    PEOPLE,
    TOKEN,
    VERIFY,
    Between,
    Doctor,
    change,
    known_by,
    whatsapp,
    with_,
)
from tests.stories.files import KilledAt, plans
from tests.stories.idle import IDLE, ends_and_comes_back
from tests.stories.square import REMEMBERS

EVERYBODY = AccountSettings(public=True)
ANN, BEN = PEOPLE["Ann"], PEOPLE["Ben"]
HOSTS = (Identity("whatsapp", "main", ANN.number),)
CHAT = Address("whatsapp", "main", "", ANN.number)
There = tuple[Between, str]


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[There]:
    async with whatsapp(tmp_path) as (between, url):
        yield between, url


@asynccontextmanager
async def running(
    path: Path,
    there: There,
    agent: Agent,
    account: AccountSettings = EVERYBODY,
    probe: Probe = unheeded,
    files: Shelf | None = None,
    free: int = 1000,
    within: float = 1.0,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """A gateway on WhatsApp alone, which is called; Ann is its host."""
    between, url = there
    shelf, graph = files or Shelf(), Graph(Secret(TOKEN), NUMBER, url)
    adapter = WhatsApp("main", graph, shelf, app_secret=Secret(APP_SECRET), verify_token=Secret(VERIFY), pace=BRISK)
    adapter.reports_within, adapter.free_a_month = within, free
    more: Any = {"account": account, "hosts": HOSTS, "probe": probe, "files": shelf, "grace": 0.1, **settings}
    listener = Listener("127.0.0.1", 0)
    try:
        async with (
            gateway_on(path, agent, adapter, **more) as gateway,
            serving(Mounted(adapter.webhook(gateway.accept)), listener, 0.1),
        ):
            between.webhook = listener.url
            yield gateway
            between.webhook = ""
    finally:
        between.webhook = ""
        await adapter.close()


def texts(between: Between, chat: str = ANN.number) -> list[str]:
    return [seen.text for seen in between.read(Address("whatsapp", "main", "", chat))]


async def until(between: Between, count: int) -> list[str]:
    """Wait until Ann was told so much."""
    await between.changes.until(lambda: len(texts(between)) >= count or None, lambda: f"{texts(between)!r}")
    return texts(between)


async def answer(between: Between, text: str, doctor: Doctor = lambda body: body) -> str:
    """Ann says something, and waits for the next thing that she is told."""
    before = len(texts(between))
    await between.says(ANN.number, text, doctor=doctor)
    return (await until(between, before + 1))[before]


def quoting(message: str) -> Doctor:
    return with_(context={"from": NUMBER, "id": message})


async def test_one_chat_holds_several_conversations(there: There, tmp_path: Path) -> None:
    between, _ = there
    async with running(tmp_path, there, REMEMBERS):
        assert await answer(between, "cats") == "cats"
        assert await answer(between, "/sessions new dogs") == "dogs"
        assert await answer(between, "/sessions") == "1. cats\n2. dogs (here)\n\n/sessions N opens one of them."
        assert await answer(between, "/sessions 1") == "Back in the session that began with “cats”."
        assert await answer(between, "purr") == "cats | purr"
    async with running(tmp_path, there, REMEMBERS):
        closed = await answer(between, "/sessions close 2")
        assert closed == "Closed the session that began with “dogs”. /undo opens it again."
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
    [of_cats] = [seen.message for seen in between.read(CHAT) if seen.text == "cats"]
    async with running(tmp_path, there, REMEMBERS, quotes=quotes):
        went = quotes is not Quotes.OFF
        replied = await answer(between, "purr", quoting(of_cats))
        assert replied.startswith("cats | purr" if went else "dogs | purr")
        before = "dogs | purr" if quotes is Quotes.OFF else "dogs"
        switched = quotes is Quotes.SWITCH
        assert await answer(between, "woof") == ("cats | purr | woof" if switched else f"{before} | woof")
        last = texts(between)[-1]
        assert (await answer(between, "hm", quoting("wamid.unknown"))).startswith(f"{last} | hm")


async def test_an_idle_session_ends_and_undo_goes_back_to_it(there: There, tmp_path: Path) -> None:
    between, _ = there
    clock = HandClock(time.time())
    async with running(tmp_path, there, REMEMBERS, clock=clock, **IDLE):
        await ends_and_comes_back(clock, partial(answer, between), partial(until, between))


async def test_a_question_has_buttons_that_answer_it(there: There, tmp_path: Path) -> None:
    between, _ = there

    async def asks(work: Work) -> str:
        return f"{await work.ask('Which tea?', choices=('green', 'black'))} it is."

    async with running(tmp_path, there, as_agent(asks)):
        assert await answer(between, "tea, please") == "Which tea?"
        [shown] = [body["interactive"] for _, body in between.calls if body.get("type") == "interactive"]
        assert [button["reply"]["id"] for button in shown["action"]["buttons"]] == ["green", "black"]
        [asked] = [seen.message for seen in between.read(CHAT)]
        press = {"type": "button_reply", "button_reply": {"id": "black", "title": "Black"}}
        await between.says(ANN.number, "x", doctor=with_(type="interactive", interactive=press, context={"id": asked}))
        await between.changes.until(lambda: "black it is." in texts(between) or None, lambda: f"{texts(between)!r}")


async def test_files_come_and_go(there: There, tmp_path: Path) -> None:
    between, _ = there
    shelf = Shelf()
    agent = ScriptedAgent([Text("Here."), await plans(shelf)], "Thanks.")
    between.files["abc"] = b"a picture"
    image = {"id": "abc", "mime_type": "image/png", "caption": "look"}
    async with running(tmp_path, there, agent, files=shelf):
        assert await answer(between, "the plans, please") == "Here."
        await until(between, 2)
        assert await answer(between, "look", with_(type="image", image=image)) == "Thanks."
    assert ("media", {"type": "text/plain", "name": "plans.md"}) in between.calls
    [file] = [part for draft in agent.works[-1].asked for part in draft.parts if isinstance(part, File)]
    assert (file.name, await shelf.read(file)) == ("image.png", b"a picture")


async def test_who_has_another_number_and_user_id_goes_on_where_they_were(there: There, tmp_path: Path) -> None:
    between, _ = there
    ann = known_by(ANN.number, ANN.user)
    async with running(tmp_path, there, REMEMBERS):
        assert await answer(between, "tea", ann) == "tea"
        assert await answer(between, "milk", known_by(ANN.user)) == "tea | milk"
        moved = {"type": "user_changed_number", "wa_id": "4915100000999", "user_id": "DE.999", "body": "changed"}
        system = {"id": "wamid.moved", "type": "system", "from": ANN.number, "timestamp": str(int(time.time()))}
        between.tell(change(messages=[{**system, "system": {**moved, "previous_user_id": ANN.user}}]))
        await between.says(ANN.number, "sugar", doctor=known_by("4915100000999", "DE.999"))
        await between.changes.until(
            lambda: texts(between, "DE.999") or None, lambda: f"nobody was answered at the new id: {between.calls[-3:]}"
        )
        assert texts(between, "DE.999") == ["tea | milk | sugar"]


def moves(before: tuple[str, str], now: tuple[str, str]) -> dict[str, Any]:
    """Word of WhatsApp that somebody has another number, and so another user id."""
    told = {"type": "user_changed_number", "wa_id": now[0], "user_id": now[1], "previous_user_id": before[1]}
    system = {"id": "wamid.moved", "type": "system", "from": before[0], "timestamp": str(int(time.time()))}
    return change(messages=[{**system, "system": {**told, "body": "changed"}}])


async def hears(between: Between, who: tuple[str, ...], text: str) -> str:
    """Somebody says something, and is answered at their user id."""
    *_, user = who
    before = len(texts(between, user))
    await between.says(ANN.number, text, doctor=known_by(*who))
    told = await between.changes.until(
        lambda: texts(between, user)[before:] or None, lambda: f"{user} wasn't answered: {between.calls[-3:]}"
    )
    return told[0]


@pytest.mark.parametrize("moved", [True, False])
async def test_whoever_is_given_a_number_is_not_who_had_it(there: There, tmp_path: Path, *, moved: bool) -> None:
    between, _ = there
    ann, anew, carl = ("4915100000700", "DE.700"), ("4915100000701", "DE.701"), ("4915100000700", "DE.555")
    async with running(tmp_path, there, REMEMBERS):
        assert await hears(between, ann, "tea") == "tea"
        if moved:
            between.tell(moves(ann, anew))
        assert await hears(between, carl, "hello") == "hello", "somebody else reads on in what was Ann's"
        assert await hears(between, anew if moved else ann[1:], "sugar") == "tea | sugar"
        assert await hears(between, carl, "again") == "hello | again"


async def test_whoever_moves_to_a_number_has_nothing_of_who_had_it(there: There, tmp_path: Path) -> None:
    between, _ = there
    dora, ann, anew = ("4915100000701", "DE.900"), ("4915100000700", "DE.700"), ("4915100000701", "DE.701")
    async with running(tmp_path, there, REMEMBERS):
        assert await hears(between, dora, "salt") == "salt"
        assert await hears(between, ann, "tea") == "tea"
        between.tell(moves(ann, anew))
        assert await hears(between, anew, "sugar") == "tea | sugar"
        assert await hears(between, dora[1:], "pepper") == "salt | pepper"


async def test_who_was_taken_for_another_has_what_was_theirs(there: There, tmp_path: Path) -> None:
    between, _ = there
    number, user = "4915100000777", "DE.777"
    by_number, by_user, both = known_by(number), known_by(user), known_by(number, user)

    async def says(text: str, who: Doctor) -> str:
        before = {chat: len(texts(between, chat)) for chat in (number, user)}

        def told() -> str | None:
            return next((texts(between, chat)[-1] for chat in before if len(texts(between, chat)) > before[chat]), None)

        await between.says(ANN.number, text, doctor=who)
        return await between.changes.until(told, lambda: f"{text!r}: no answer")

    async with running(tmp_path, there, REMEMBERS):
        assert await says("milk", by_number) == "milk"
        assert await says("bread", by_user) == "bread"
        # The lane last used stays, the older person does.
        assert await says("eggs", both) == "bread | eggs"
        listed = await says("/unlink", both)
        assert "because the platform says so" in listed
        assert "are two again" in await says("/unlink 1", both)
    async with running(tmp_path, there, REMEMBERS):
        assert await says("butter", by_number) == "milk | butter"
        # The same ids, told again, join nobody: whoever is named first wrote it.
        assert await says("salt", by_user) == "bread | eggs | salt"
        assert await says("pepper", by_number) == "milk | butter | pepper"


@pytest.mark.parametrize("told", [True, False])
async def test_killed_between_the_call_and_its_record(there: There, tmp_path: Path, *, told: bool) -> None:
    between, _ = there
    between.status = lambda _: {"status": "sent"} if told else None
    killed = KilledAt(Point.SEND_CALLED, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed):
        await between.says(ANN.number, "only once")
        await killed.dead.wait()
    assert texts(between) == ["only once"]
    between.status = lambda _: {"status": "sent"}
    async with running(tmp_path, there, EchoAgent()):
        assert (await answer(between, "and now?")) == ("and now?" if told else f"{MAYBE}only once")
        await between.changes.until(lambda: texts(between)[-1] == "and now?" or None, lambda: f"{texts(between)!r}")
    assert texts(between).count("only once") == 1


async def test_word_of_a_message_whose_sender_died_is_waited_for(there: There, tmp_path: Path) -> None:
    between, _ = there
    between.status = lambda _: None
    killed = KilledAt(Point.SEND_CALLED, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed):
        await between.says(ANN.number, "only once")
        await killed.dead.wait()
    [message] = [seen.message for seen in between.read(CHAT)]
    [key] = [body["biz_opaque_callback_data"] for _, body in between.calls if "text" in body]
    between.status = lambda _: {"status": "sent"}
    async with running(tmp_path, there, EchoAgent(), within=600.0):
        # A resend that waits for nothing would go out before the answer to somebody who writes later.
        await between.says(BEN.number, "hello")
        await between.changes.until(lambda: texts(between, BEN.number) or None, lambda: "Ben hears nothing")
        assert texts(between) == ["only once"]
        between.report(message, key=key, status="delivered")
        assert await answer(between, "and now?") == "and now?"
    assert texts(between) == ["only once", "and now?"]


async def test_only_the_word_that_it_was_sent_is_a_receipt(there: There, tmp_path: Path) -> None:
    between, _ = there
    between.status = lambda _: None
    async with running(tmp_path, there, EchoAgent()) as gateway:
        await answer(between, "hello")
        await _is_dead(gateway, SILENT)
        [lost] = [seen.message for seen in between.read(CHAT)]
        between.report(lost, status="sent")
        await _is_dead(gateway, "")
        fault = {"code": 131042, "title": "Business eligibility payment issue"}
        between.status = lambda _: {"status": "failed", "errors": [fault]}
        await answer(between, "are you there?")
        await _is_dead(gateway, "no payment method")
    assert texts(between) == ["hello", "are you there?"]


async def test_the_months_messages_are_counted_and_the_host_is_warned_before_the_free_ones_end(
    there: There, tmp_path: Path
) -> None:
    between, _ = there
    account = AccountSettings(public=True, home=Place(CHAT, Kind.DM))
    async with running(tmp_path, there, EchoAgent(), account, free=20) as gateway:
        await answer(between, "one")
        await answer(between, "two")
        # What was said first counts by now, since the second waited for it.
        assert re.search(
            r"^whatsapp.main: [12] of 20 free messages this month.$", await answer(between, "/usage"), re.MULTILINE
        )
        assert gateway.accounts["whatsapp.main"].why == ""
        for n in range(15):
            await answer(between, str(n))
        assert len(texts(between)) == 18
    async with running(tmp_path, there, EchoAgent(), account, free=20) as gateway:
        await answer(between, "the last one?")
        await between.changes.until(
            lambda: [text for text in texts(between) if "free messages this month" in text][1:] or None,
            lambda: f"nobody was warned: {texts(between)!r}",
        )
        warned = texts(between)[-1]
        assert re.match(r"whatsapp.main: 1[89] of 20 free messages this month. Beyond them each one costs", warned)
        assert gateway.accounts["whatsapp.main"].why == warned
    async with running(tmp_path, there, EchoAgent(), account, free=20):
        await answer(between, "and another")
        await answer(between, "and one more")
    assert sum("free messages this month" in text for text in texts(between)) == 2, "it was said again"


async def _is_dead(gateway: Gateway, why: str) -> None:
    """Wait until the last message is a dead letter for this reason, or until there is none."""

    async def told() -> str:
        dead = await gateway.store.driver.read(deliveries.dead, 10)
        return dead[0].error if dead else ""

    async with asyncio.timeout(60):
        while not (why in (error := await told()) and bool(error) is bool(why)):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.05)
