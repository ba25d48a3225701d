"""Matrix from end to end: people on a real homeserver, a real gateway, and what goes wrong between them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue.adapters.matrix import MatrixAccount, ciphers, homeserver
from segue.adapters.matrix.ciphers import ENCRYPTED
from segue.adapters.matrix.homeserver import Homeserver
from segue.core.accounts import Reach
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.agents import Agent
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Address, Kind
from segue.core.messages import Delivery, File, Text
from segue.core.settings import AccountSettings, Mentions, Streams
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.errors import Disconnected, Invalid, SendLater, SendNever
from segue.runtime.files.folder import Folder
from segue.runtime.gateway import Gateway
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Given
from segue.testing.inbox import Inbox
from tests.adapters.matrix import MatrixHarness, until
from tests.in_process import gateway_on
from tests.servers.homeserver import NAME, Synapse
from tests.stories.files import KilledAt, plans


@pytest.fixture
async def town(synapse: Synapse, tmp_path: Path) -> AsyncIterator[MatrixHarness]:
    town = await MatrixHarness.make(synapse, tmp_path)
    yield town
    await town.close()


@asynccontextmanager
async def running(
    town: MatrixHarness,
    agent: Agent,
    *,
    mentions: Mentions = Mentions.OPTIONAL,
    streams: Streams = Streams.WHOLE,
    probe: Probe = unheeded,
    reach: Reach = Reach.CONNECTED,
) -> AsyncIterator[Gateway]:
    """A gateway with the bot, on the database in the town's folder."""
    account = AccountSettings(public=True, mentions=mentions, streams=streams)
    adapter = town.adapter()
    more: Any = {"account": account, "probe": probe, "lease": 2.0, "grace": 0.1}
    async with gateway_on(town.folder, agent, adapter, files=Folder(town.folder), **more) as gateway:
        await until(lambda: gateway.accounts["matrix.main"].reach is reach)
        yield gateway
    await adapter.close()


async def room_of(town: MatrixHarness, kind: Kind = Kind.DM) -> str:
    return (await town.chat(kind)).chat


async def test_an_invitation_is_followed_and_what_was_said_since_is_answered(town: MatrixHarness) -> None:
    ann = town.people["Ann"]
    async with running(town, EchoAgent()):
        room = await ann.make_room(is_direct=True)
        await ann.says(room, "before you were here")
        await ann.call("POST", f"/rooms/{room}/invite", {"user_id": town.bot.id})
        await ann.says(room, "hello")
        await ann.reads(room, town.bot.id, "hello")
        await ann.says(room, "again")
        seen = await ann.reads(room, town.bot.id, "again")
    assert [message.text for message in seen] == ["hello", "again"]


async def test_what_was_said_before_it_ever_connected_is_not_answered(town: MatrixHarness) -> None:
    ann, room = town.people["Ann"], await room_of(town)
    await ann.says(room, "long ago")
    async with running(town, EchoAgent()):
        await ann.says(room, "now")
        seen = await ann.reads(room, town.bot.id, "now")
    assert [message.text for message in seen] == ["now"]


async def test_a_gap_in_the_sync_is_filled(town: MatrixHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, room, inbox = town.people["Ann"], await room_of(town), Inbox()
    monkeypatch.setattr(homeserver, "_PAGE", 4)
    async with town.deliver(town.adapter(), inbox.accept):
        await ann.says(room, "first")
        await inbox.gets("first")
        await town.settles()
    texts = [f"number {n}" for n in range(15)]
    for text in texts:
        await ann.says(room, text)
    async with town.deliver(town.adapter(), inbox.accept):
        await inbox.gets(texts[-1])
    assert inbox.texts == ["first", *texts]
    assert not inbox.duplicates, "more was fetched than the gap"


async def test_a_new_room_is_read_from_the_invitation_on_however_much_was_said(
    town: MatrixHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    monkeypatch.setattr(homeserver, "_PAGE", 2)
    room = await ann.make_room(is_direct=True)
    await ann.says(room, "before you were asked")
    await ann.call("POST", f"/rooms/{room}/invite", {"user_id": town.bot.id})
    texts = [f"number {n}" for n in range(8)]
    for n, text in enumerate(texts):
        if n == 4:
            await town.bot.join(room)
        await ann.says(room, text)
    async with town.deliver(town.adapter(), inbox.accept):
        await inbox.gets(texts[-1])
    assert inbox.texts == texts


async def test_two_people_share_a_thread_and_nothing_else(town: MatrixHarness) -> None:
    ann, ben = town.people["Ann"], town.people["Ben"]
    room = await room_of(town, Kind.GROUP)
    root = await ann.says(room, "let us plan")
    agent = EchoAgent()
    async with running(town, agent) as gateway:
        await ann.says(room, "in the thread", root)
        await ann.reads(room, town.bot.id, "in the thread", thread=root)
        await ben.says(room, "me too", root)
        await ben.reads(room, town.bot.id, "me too", thread=root)
        await ben.says(room, "outside")
        await ben.reads(room, town.bot.id, "outside")
        bindings = await gateway.store.lanes()
    assert len({binding.session for binding in bindings}) == 2


async def test_a_reply_grows_by_edits_of_one_message(town: MatrixHarness) -> None:
    ann, room, pause = town.people["Ann"], await room_of(town), Pause()
    async with running(town, ScriptedAgent(["half", pause, " and **whole**"]), streams=Streams.LIVE):
        await ann.says(room, "go on")
        await ann.reads(room, town.bot.id, "half")
        pause.over()
        seen = await ann.reads(room, town.bot.id, "half and **whole**")
    assert len(seen) == 1
    final = (await ann.timeline(room))[-1]["content"]["m.new_content"]
    assert final["formatted_body"] == "<p>half and <strong>whole</strong></p>"
    assert final["m.mentions"] == {}, "somebody could be called by a name in the text"


async def test_an_answer_whose_growing_message_was_deleted_comes_as_a_new_one(town: MatrixHarness) -> None:
    ann, room, pause = town.people["Ann"], await room_of(town), Pause()
    async with running(town, ScriptedAgent(["half", pause, " and whole"]), streams=Streams.LIVE):
        await ann.says(room, "go on")
        [growing] = await ann.reads(room, town.bot.id, "half")
        await town.delete(Address("matrix", "main", NAME, room), growing.message)
        pause.over()
        [seen] = await ann.reads(room, town.bot.id, "half and whole")
    assert seen.message != growing.message


async def test_a_gateway_that_died_between_the_call_and_its_record_doubles_nothing(town: MatrixHarness) -> None:
    ann, room = town.people["Ann"], await room_of(town)
    called = asyncio.Event()

    def dies(point: Point) -> None:
        if point is Point.SEND_CALLED:
            called.set()
            raise RuntimeError("killed")

    async with running(town, EchoAgent(), probe=dies):
        await ann.says(room, "only once")
        await called.wait()
    async with running(town, EchoAgent()):
        await ann.says(room, "and then")
        seen = await ann.reads(room, town.bot.id, "and then")
    assert [message.text for message in seen] == ["only once", "and then"]


@pytest.mark.parametrize(("point", "times"), [(Point.SEND_RECORDED, 1), (Point.SEND_CALLED, 2)])
async def test_a_file_that_the_agent_gives_comes_once_over_a_kill_between_text_and_file(
    town: MatrixHarness, point: Point, times: int
) -> None:
    ann, room = town.people["Ann"], await room_of(town)
    killed, file = KilledAt(point, times), await plans(Folder(town.folder))
    async with running(town, ScriptedAgent(["Here are the plans.", file]), probe=killed):
        await ann.says(room, "the plans, please")
        await killed.dead.wait()
    async with running(town, EchoAgent()):
        await ann.says(room, "and then")
        seen = await ann.reads(room, town.bot.id, "and then")
    assert [message.text for message in seen] == ["Here are the plans.", "plans.md", "and then"]


async def test_another_replica_takes_the_bot_over(town: MatrixHarness) -> None:
    ann, room = town.people["Ann"], await room_of(town)
    async with AsyncExitStack() as first:
        await first.enter_async_context(running(town, EchoAgent()))
        async with running(town, EchoAgent(), reach=Reach.ELSEWHERE) as other:
            await ann.says(room, "before")
            await ann.reads(room, town.bot.id, "before")
            await first.aclose()
            await ann.says(room, "after")
            seen = await ann.reads(room, town.bot.id, "before", "after")
            assert other.accounts["matrix.main"].reach is Reach.CONNECTED
    assert len(seen) == 2


async def test_a_homeserver_that_was_killed_is_connected_again_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Synapse.own() as server:
        town = await MatrixHarness.make(server, tmp_path)
        ann, room, pause = town.people["Ann"], await room_of(town), Pause()
        async with running(town, ScriptedAgent("one", [pause, "two"], "three")) as gateway:
            await ann.says(room, "first")
            await ann.reads(room, town.bot.id, "one")
            await ann.says(room, "second")
            await pause.reached()
            server.kill()
            pause.over()
            await until(lambda: gateway.accounts["matrix.main"].reach is Reach.BROKEN)
            [problem] = gateway.problems()
            assert problem.startswith(f"matrix.main isn't connected: the homeserver at {server.url} ")
            await asyncio.to_thread(server.start)
            await ann.says(room, "third")
            seen = await ann.reads(room, town.bot.id, "one", "two", "three")
            assert gateway.problems() == []
        assert len(seen) == 3
        lines = [record.message for record in caplog.records if "connect" in record.message]
        assert [line for line in lines if "again" in line and "lost" not in line] == ["matrix.main is connected again"]
        assert len([line for line in lines if "lost its connection" in line]) == 1
        await town.close()


async def test_an_encrypted_room_is_refused_with_one_line_where_the_extra_is_missing(
    town: MatrixHarness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = town.people["Ann"]
    monkeypatch.setattr(ciphers, "find_spec", lambda _: None)
    sealed = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
    async with running(town, EchoAgent()):
        room = await ann.make_room(town.bot, is_direct=True, initial_state=[sealed])
        await ann.put(room, secret, "m.room.encrypted")
        await ann.reads(room, town.bot.id, ENCRYPTED)
    async with running(town, EchoAgent()) as gateway:
        await ann.put(room, secret, "m.room.encrypted")
        await ann.says(room, "in the clear")
        other = await room_of(town)
        await ann.says(other, "here we can talk")
        await ann.reads(other, town.bot.id, "here we can talk")
        assert gateway.problems() == []
        assert "run `segue install matrix`" in gateway.accounts["matrix.main"].words
    assert [message.text for message in await ann.sees(room, town.bot.id)] == [ENCRYPTED]
    assert caplog.text.count(f"{room} is encrypted") == 1, "it was said again after a restart"
    at, adapter = Address("matrix", "main", NAME, room), town.adapter()
    with pytest.raises(SendNever, match="encrypted"):
        await adapter.send(a_delivery(at, "hello"))
    with pytest.raises(SendNever, match="encrypted"):
        await adapter.open_thread(at, "Plans", "k")


async def test_in_a_group_it_answers_mentions_replies_and_its_own_threads(town: MatrixHarness) -> None:
    ann, room, inbox = town.people["Ann"], await room_of(town, Kind.GROUP), Inbox()
    adapter = town.adapter()
    at = Address("matrix", "main", NAME, room)
    mine = await adapter.send(a_delivery(at, "I am here"))
    thread = (await adapter.open_thread(at, "Plans", "k")).thread
    said: list[tuple[dict[str, Any], str, bool]] = [
        ({"body": "not for you"}, "", False),
        ({"body": "Segue: /status", "m.mentions": {"user_ids": [town.bot.id]}}, "", True),
        ({"body": "@room everybody", "m.mentions": {"room": True}}, "", False),
        ({"body": "Segue, old client"}, "", True),
        ({"body": "segueing is no name"}, "", False),
        ({"body": "a reply", "m.relates_to": {"m.in_reply_to": {"event_id": mine}}, "m.mentions": {}}, "", True),
        ({"body": "a thread", "m.mentions": {}}, thread, True),
    ]
    async with town.deliver(adapter, inbox.accept):
        for content, where, _ in said:
            relation = {"m.relates_to": {"rel_type": "m.thread", "event_id": where}} if where else {}
            await ann.put(room, {"msgtype": "m.text", **content, **relation})
        await inbox.gets("a thread")
    assert [arrival.mentions_agent for arrival in inbox.arrivals] == [meant for *_, meant in said]
    assert inbox.texts[1] == "/status", "a command can't be seen behind the agent's name"
    assert {arrival.speaker.name for arrival in inbox.arrivals} == {"Ann"}


async def test_bots_and_forgers_are_not_heard(town: MatrixHarness) -> None:
    ann, ben, room, inbox = town.people["Ann"], town.people["Ben"], await room_of(town, Kind.GROUP), Inbox()
    async with town.deliver(town.adapter(), inbox.accept):
        hers = await ann.says(room, "what I said")
        await ben.put(room, {"msgtype": "m.notice", "body": "I am a bot"})
        await ben.put(room, {"msgtype": "m.text", "body": "so am I", "org.matrix.msc3955.automated": True})
        await ben.edits(room, hers, "what Ann never said")
        gone = await ben.says(room, "I take this back")
        await inbox.gets("I take this back")
        await ben.call("PUT", f"/rooms/{room}/redact/{gone}/1")
        await town.redeliver()
        await ann.says(room, "done")
        await inbox.gets("done")
    assert inbox.texts == ["what I said", "I take this back", "done"]
    assert not inbox.letters


async def test_files_come_in_and_go_out(town: MatrixHarness) -> None:
    ann, room, inbox = town.people["Ann"], await room_of(town), Inbox()
    adapter, folder = town.adapter(), Folder(town.folder)
    kept = await ann.uploads(b"a picture", "image/png")
    picture = {"msgtype": "m.image", "url": kept, "info": {"mimetype": "image/png", "size": 9}}
    async with town.deliver(adapter, inbox.accept):
        await ann.put(room, {**picture, "body": "look", "filename": "cat.png"})
        arrival = await inbox.gets("look")
        await ann.put(room, {**picture, "body": "gone.png", "url": f"mxc://{NAME}/nothing"})
        await ann.says(room, "there?")
        await inbox.gets("there?")
    assert inbox.said[1].remarks == ("gone.png wasn't taken in. Its server answered 404.",)
    text, file = arrival.parts
    assert (text, isinstance(file, File)) == (Text("look"), True)
    assert isinstance(file, File)
    assert (file.name, file.media, await folder.read(file)) == ("cat.png", "image/png", b"a picture")
    delivery = msgspec.structs.replace(a_delivery(Address("matrix", "main", NAME, room), "yours"), file=file)
    message = await adapter.send(delivery)
    await adapter.send(delivery)
    texts = [event["content"] for event in await ann.timeline(room) if event["sender"] == town.bot.id]
    assert [(said["msgtype"], said["body"], said["filename"]) for said in texts] == [("m.image", "yours", "cat.png")]
    assert message


async def test_strangers_bring_it_into_no_group(town: MatrixHarness, caplog: pytest.LogCaptureFixture) -> None:
    ann, ben, inbox = town.people["Ann"], town.people["Ben"], Inbox()
    keys = msgspec.structs.replace(town.keys, public=False, inviters=(ann.id,))
    adapter = keys.adapter("main", Folder(town.folder))
    async with town.deliver(adapter, inbox.accept):
        bens = await ben.make_room(town.bot, ann)
        anns = await ann.make_room(town.bot, ben)
        await ben.join(anns)
        await ann.says(anns, "welcome")
        await inbox.gets("welcome")
    await adapter.close()
    rooms = (await town.bot.call("GET", "/joined_rooms"))["joined_rooms"]
    assert (anns in rooms, bens in rooms) == (True, False)
    assert f"{ben.id} invited it to {bens}, and may not." in caplog.text


async def upgraded(town: MatrixHarness, room: str) -> str:
    """Ann puts a newer version of a room in its place."""
    made = await town.people["Ann"].call("POST", f"/rooms/{room}/upgrade", {"new_version": "10"})
    return str(made["replacement_room"])


@pytest.mark.parametrize("away", ["", "away"])
async def test_a_conversation_goes_on_in_the_room_that_replaces_its_room(town: MatrixHarness, away: str) -> None:
    ann, agent = town.people["Ann"], ScriptedAgent("one", "two", "three")
    room = await room_of(town)
    async with AsyncExitStack() as gone:
        await gone.enter_async_context(running(town, agent))
        await ann.says(room, "first")
        await ann.reads(room, town.bot.id, "one")
        if away:
            await gone.aclose()
        new = await upgraded(town, room)
        await ann.call("POST", f"/rooms/{new}/invite", {"user_id": town.bot.id})
        await ann.says(new, "second")
        if not away:
            await ann.reads(new, town.bot.id, "two")
    async with running(town, agent):
        await ann.reads(new, town.bot.id, "two")
        await ann.says(new, "third")
        await ann.reads(new, town.bot.id, "two", "three")
    said = [entry.text for entry in agent.works[-1].transcript if entry.text]
    assert said[-4:] == ["first", "one", "second", "two"]


async def test_a_room_that_everybody_may_enter_is_followed_where_it_goes_on_and_read_from_its_beginning(
    town: MatrixHarness,
) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    room = await ann.make_room(preset="public_chat")
    await town.bot.join(room)
    new = await upgraded(town, room)
    await ann.says(new, "before it came")
    keys = msgspec.structs.replace(town.keys, public=False)
    adapter = keys.adapter("main", Folder(town.folder))
    async with town.deliver(adapter, inbox.accept):
        arrival = await inbox.gets("before it came")
        assert (arrival.place.address.chat, arrival.chat_aliases, arrival.place.kind) == (new, (room,), Kind.GROUP)
        at = Address("matrix", "main", NAME, room)
        first = await adapter.send(a_delivery(at, "to the old room"))
        await adapter.edit(a_delivery(at, "to the old room, or not").with_message(first))
        thread = await adapter.open_thread(at, "Plans", "k")
        await adapter.send(a_delivery(thread, "in a thread"))
        await adapter.send(a_delivery(Address("matrix", "main", NAME, room, "$gone"), "in a thread of the old room"))
        await adapter.typing(at)
    assert [seen.text for seen in await ann.sees(new, town.bot.id)] == [
        "to the old room, or not",
        "Plans",
        "in a thread of the old room",
    ]
    assert [seen.text for seen in await ann.sees(new, town.bot.id, thread.thread)] == ["in a thread"]
    assert await ann.sees(room, town.bot.id) == []
    await adapter.close()


async def test_a_group_stays_one_while_people_come_into_the_room_that_replaces_it(town: MatrixHarness) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    room = await room_of(town, Kind.GROUP)
    async with town.deliver(town.adapter(), inbox.accept):
        new = await upgraded(town, room)
        await ann.call("POST", f"/rooms/{new}/invite", {"user_id": town.bot.id})
        await ann.says(new, "nobody else is here yet")
        arrival = await inbox.gets("nobody else is here yet")
    assert (arrival.place.kind, arrival.chat_aliases) == (Kind.GROUP, (room,))


async def test_a_thread_is_opened_where_replies_come_from_though_its_parent_is_spelt_without_its_space(
    town: MatrixHarness,
) -> None:
    ann, inbox, adapter = town.people["Ann"], Inbox(), town.adapter()
    room = await room_of(town)
    thread = await adapter.open_thread(Address("matrix", "main", "", room), "Plans", "k")
    async with town.deliver(adapter, inbox.accept):
        await ann.says(room, "a reply", thread.thread)
        assert (await inbox.gets("a reply")).place.address == thread


async def test_an_invitation_to_where_its_room_goes_on_needs_no_inviter(town: MatrixHarness) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    room = await room_of(town, Kind.GROUP)
    adapter = msgspec.structs.replace(town.keys, public=False).adapter("main", Folder(town.folder))
    async with town.deliver(adapter, inbox.accept):
        new = await upgraded(town, room)
        await ann.call("POST", f"/rooms/{new}/invite", {"user_id": town.bot.id})
        await ann.says(new, "here we are")
        arrival = await inbox.gets("here we are")
    await adapter.close()
    assert arrival.chat_aliases == (room,)
    assert not any(heard.brings_agent for heard in inbox.arrivals)


async def test_nobody_takes_over_a_conversation_by_what_their_own_room_says(
    town: MatrixHarness, caplog: pytest.LogCaptureFixture
) -> None:
    ann, ben, inbox = town.people["Ann"], town.people["Ben"], Inbox()
    hers = await room_of(town)
    other = await ben.make_room(preset="public_chat")
    adapter = town.adapter()
    async with town.deliver(adapter, inbox.accept):
        claims = await ben.make_room(town.bot, is_direct=True, creation_content={"predecessor": {"room_id": hers}})
        await ben.says(claims, "I was hers")
        assert (await inbox.gets("I was hers")).chat_aliases == ()
        for target in (hers, other):
            mine = await ben.make_room(town.bot)
            await ben.says(mine, f"on the way to {target}")
            await inbox.gets(f"on the way to {target}")
            await ben.call("PUT", f"/rooms/{mine}/state/m.room.tombstone", {"replacement_room": target})
            await ben.says(mine, f"from here to {target}")
            assert (await inbox.gets(f"from here to {target}")).chat_aliases == ()
            await adapter.send(a_delivery(Address("matrix", "main", NAME, mine), f"not to {target}"))
        await ann.says(hers, "still here?")
        assert (await inbox.gets("still here?")).chat_aliases == ()
    assert await ann.sees(hers, town.bot.id) == []
    assert other not in (await town.bot.call("GET", "/joined_rooms"))["joined_rooms"]
    assert f"sent it to {other}, which doesn't continue" in caplog.text


async def test_whoever_brings_it_into_a_room_of_several_people_is_heard(town: MatrixHarness) -> None:
    ann, ben, inbox = town.people["Ann"], town.people["Ben"], Inbox()
    async with town.deliver(town.adapter(), inbox.accept):
        room = await ann.make_room(town.bot, ben)
        await ann.make_room(town.bot, is_direct=True)
        await ann.says(room, "welcome")
        await inbox.gets("welcome")
    [brought] = [arrival for arrival in inbox.arrivals if arrival.brings_agent]
    assert (brought.place.address.chat, brought.place.kind, brought.parts) == (room, Kind.GROUP, ())
    assert (brought.speaker.identity.user, brought.speaker.name) == (ann.id, "Ann")


async def test_a_room_that_it_was_removed_from_is_in_the_log(
    town: MatrixHarness, caplog: pytest.LogCaptureFixture
) -> None:
    ann, room, inbox = town.people["Ann"], await room_of(town), Inbox()
    adapter = town.adapter()
    async with town.deliver(adapter, inbox.accept):
        await ann.says(room, "hello")
        await inbox.gets("hello")
        await ann.call("POST", f"/rooms/{room}/kick", {"user_id": town.bot.id})
        other = await room_of(town)
        await ann.says(other, "elsewhere")
        await inbox.gets("elsewhere")
    assert f"matrix.main was removed from {room} by {ann.id}" in caplog.text
    with pytest.raises(SendNever, match="403"):
        await adapter.send(a_delivery(Address("matrix", "main", NAME, room), "hello?"))


@pytest.mark.parametrize(("marked", "kind"), [("marked", Kind.DM), ("", Kind.GROUP)])
async def test_a_room_whose_other_people_left_is_private_only_if_it_is_marked_so(
    town: MatrixHarness, marked: str, kind: Kind
) -> None:
    ann, ben, inbox = town.people["Ann"], town.people["Ben"], Inbox()
    room = await ann.make_room(town.bot, ben)
    for user in (ben, town.bot):
        await user.join(room)
    async with town.deliver(town.adapter(), inbox.accept):
        await ann.says(room, "with Ben")
        assert (await inbox.gets("with Ben")).place.kind is Kind.GROUP
        await ben.call("POST", f"/rooms/{room}/leave")
        if marked:
            await town.bot.call("PUT", f"/user/{town.bot.id}/account_data/m.direct", {ann.id: [room], "odd": 7})
        await ann.says(room, "without")
        assert (await inbox.gets("without")).place.kind is kind


async def test_an_invitation_to_a_private_chat_marks_it_as_one(town: MatrixHarness) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    async with town.deliver(town.adapter(), inbox.accept):
        rooms = [await ann.make_room(town.bot, is_direct=True) for _ in range(2)]
        for room in rooms:
            await ann.says(room, f"hello {room}")
            assert (await inbox.gets(f"hello {room}")).place.kind is Kind.DM
    assert await town.bot.call("GET", f"/user/{town.bot.id}/account_data/m.direct") == {ann.id: rooms}


async def test_the_homeservers_patience_is_asked_for_before_it_ends(tmp_path: Path) -> None:
    limited = {"per_second": 0.5, "burst_count": 3}
    with Synapse.own(rc_message=limited) as server:
        town = await MatrixHarness.make(server, tmp_path)
        at = Address("matrix", "main", NAME, await room_of(town))
        unaware = town.adapter()
        deliveries = [a_delivery(at, f"number {n}") for n in range(10)]
        with pytest.raises(SendLater) as told:
            await _send(unaware, deliveries)
        assert told.value.seconds is not None
        assert 0 < told.value.seconds <= 2.5
        with pytest.raises(SendLater, match="allows no more"):
            await unaware.send(a_delivery(at, "at once again"))
        await town.close()


async def _send(adapter: Adapter, deliveries: list[Delivery]) -> None:
    for delivery in deliveries:
        await adapter.send(delivery)


async def test_a_token_that_is_wrong_is_told(town: MatrixHarness) -> None:
    wrong = msgspec.structs.replace(town.keys, token=Secret("wrong")).adapter("main", Folder(town.folder))
    with pytest.raises(Disconnected, match="doesn't know the access token"):
        await wrong.run(Given(Inbox().accept))
    another = msgspec.structs.replace(town.keys, token=Secret(town.people["Ann"].token))
    hers = another.adapter("main", Folder(town.folder))
    with pytest.raises(Disconnected, match="not @"):
        await hers.run(Given(Inbox().accept))
    for adapter in (wrong, hers):
        await adapter.close()


async def test_nobody_at_home_is_for_later(tmp_path: Path) -> None:
    keys = MatrixAccount("http://127.0.0.1:1", "@segue:segue.test", Secret("t"))
    adapter = keys.adapter("main", Folder(tmp_path))
    with pytest.raises(SendLater, match="be reached"):
        await adapter.send(a_delivery(Address("matrix", "main", NAME, "!r"), "hello"))
    await adapter.close()


async def test_a_password_gives_a_token_and_the_bot_can_speak_first(town: MatrixHarness) -> None:
    ann, server = town.people["Ann"], Homeserver(town.server.url, town.bot.id, password=Secret("wrong"))
    with pytest.raises(SendNever, match="M_FORBIDDEN"):
        await server.log_in()
    server.password = Secret("p")
    token = await server.log_in()
    assert (await server.whoami())[0] == town.bot.id
    room = await server.begin_chat(ann.id)
    await server.close()
    await ann.join(room)
    adapter = msgspec.structs.replace(town.keys, token=token).adapter("main", Folder(town.folder))
    await adapter.send(a_delivery(Address("matrix", "main", NAME, room), "Hello, I am here."))
    await adapter.close()
    assert [message.text for message in await ann.sees(room, town.bot.id)] == ["Hello, I am here."]


@pytest.mark.parametrize(
    ("key", "value"), [("homeserver", "matrix.example.org"), ("homeserver", "http://:99999"), ("user", "segue")]
)
def test_a_mistake_in_an_account_names_its_key(key: str, value: str) -> None:
    right = {"homeserver": "https://matrix.example.org", "user": "@segue:example.org", key: value}
    with pytest.raises(Invalid) as told:
        MatrixAccount(right["homeserver"], right["user"], Secret("t"))
    assert told.value.field == key
