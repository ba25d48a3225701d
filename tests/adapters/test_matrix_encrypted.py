"""Encrypted rooms on a real homeserver, with people whose clients are built on another library (mautrix, libolm)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nio.crypto import Olm, OlmAccount, OlmDevice, OutboundSession

from segue.adapters.matrix import Matrix
from segue.adapters.matrix.encryption.device import Device
from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.homeserver import Homeserver
from segue.core.accounts import Reach
from segue.core.contracts.adapters import Accepted
from segue.core.contracts.lockers import Thing
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.messages import File, Text
from segue.core.settings import Streams
from segue.core.values import Secret
from segue.errors import Disconnected, Invalid
from segue.runtime.files.folder import Folder
from segue.testing import Chest, Given
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent
from segue.testing.contracts.base import a_delivery
from segue.testing.inbox import Inbox
from tests.adapters.encrypting import Encrypting
from tests.adapters.matrix import MatrixHarness, User, until
from tests.adapters.test_matrix import running
from tests.servers.homeserver import NAME, Synapse
from tests.stories.files import KilledAt, plans

Json = dict[str, Any]
KEPT_BEFORE = (
    "000102030405060708090a0b0c0d0e0fa7ef5a3b66fc1218a6d1e21f93b1c53f9df314083257dc76389e7cf06c7d341dbef658681476"
    "5ffec6e571b21d18ebb1c8f7617121fe09b763ec47cbc75962b1d9a64faf39d8bdbaf3fe861228b29d7abe1f97cd133b15bb76aec34a"
    "2f529e78b5423cad55f21ab4ca7038ac37ce3ed94f47ac7feb7f9fb192c6e4341a4d5ab83f0050bed07e37b14e7d9c0015f8c76d0de0"
    "1e9a5769498647f2e4c9f56655fdab11f9ebc530c5d870fec279009a2b200cadf6c5c20fbebee56a8befec771d755b146deb78"
)


@pytest.fixture
async def town(synapse: Synapse, tmp_path: Path) -> AsyncIterator[MatrixHarness]:
    town = await MatrixHarness.make(synapse, tmp_path)
    yield town
    await town.close()


@pytest.fixture
async def eve(synapse: Synapse) -> AsyncIterator[Encrypting]:
    async with Encrypting.on(synapse, "Eve") as eve:
        yield eve


async def entered(town: MatrixHarness, eve: Encrypting, *others: Encrypting, **encryption: Any) -> str:
    """An encrypted room that the bot has come into."""
    room = await eve.room(town.bot, *others, direct=not others, **encryption)
    for other in others:
        await other.does("join", room=room)
    for one in (eve, *others):
        for there in (town.bot.id, eve.id, *(other.id for other in others)):
            await one.does("joined", room=room, user=there)
    return room


async def all_encrypted(person: Encrypting, room: str) -> bool:
    return await person.user.timeline(room) == []


async def test_a_private_chat_is_answered_by_a_device_that_its_account_vouches_for(
    town: MatrixHarness, eve: Encrypting
) -> None:
    pause = Pause()
    agent = ScriptedAgent(["half", pause, " and **whole**"], ["Here.", await plans(Folder(town.folder))], "in a thread")
    async with running(town, agent, streams=Streams.LIVE) as gateway:
        room = await entered(town, eve)
        first = await eve.says(room, "hello")
        await eve.reads(room, "half")
        pause.over()
        [seen] = await eve.reads(room, "half and **whole**")
        await eve.edits(room, first, "hello, I meant")
        await eve.attaches(room, "cat.png", b"a picture")
        *_, sent = await eve.reads(room, "half and **whole**", "Here.", "plans.md")
        assert await eve.fetches(sent["content"]["file"]) == b"# Plans"
        await eve.says(room, "come along", thread=first)
        await eve.reads(room, "in a thread", thread=first)
        assert gateway.accounts["matrix.main"].why == ""
    assert seen["session"], "it came in the clear"
    assert await all_encrypted(eve, room)
    [(_, trust)] = (await eve.does("trust", user=town.bot.id)).items()
    assert trust == "CROSS_SIGNED_TOFU", "nobody vouches for the bot's device"
    said = [part for entry in agent.works[-1].transcript for part in entry.parts]
    assert "hello, I meant" in [part.text for part in said if isinstance(part, Text)]
    [kept, _] = [part for part in said if isinstance(part, File)]
    assert (kept.name, await Folder(town.folder).read(kept)) == ("cat.png", b"a picture")


async def test_keys_change_when_somebody_leaves_and_after_as_many_messages_as_the_room_says(
    synapse: Synapse, town: MatrixHarness, eve: Encrypting
) -> None:
    inbox, adapter = Inbox(), town.adapter()
    async with Encrypting.on(synapse, "Ben") as ben, town.deliver(adapter, inbox.accept):
        small, large = await entered(town, eve, ben, rotation_period_msgs=2), await entered(town, eve, ben)

        async def keys(room: str, *texts: str) -> list[str]:
            for text in texts:
                await adapter.send(a_delivery(Address("matrix", "main", NAME, room), text))
            return [one["session"] for one in await eve.reads(room, *texts)]

        first, second, third = await keys(small, "one", "two", "three")
        assert first == second != third, "its key lasts for two messages here"
        before = await keys(large, "with Ben", "once more")
        await ben.reads(large, "with Ben", "once more")
        assert len(set(before)) == 1
        await ben.does("leave", room=large)
        await eve.says(large, "he is gone")
        await inbox.gets("he is gone")
        *_, after = await keys(large, "without Ben")
        assert after not in before, "Ben could read on"
    assert await all_encrypted(eve, large)


async def test_a_conversation_goes_on_over_restarts_and_when_another_replica_takes_over(
    town: MatrixHarness, eve: Encrypting
) -> None:
    async with running(town, EchoAgent()):
        room = await entered(town, eve)
        await eve.says(room, "one")
        await eve.reads(room, "one")
    await eve.says(room, "two, while nobody is there")
    async with AsyncExitStack() as first:
        await first.enter_async_context(running(town, EchoAgent()))
        await eve.reads(room, "one", "two, while nobody is there")
        async with running(town, EchoAgent(), reach=Reach.ELSEWHERE):
            await eve.says(room, "three, to either of two")
            await eve.reads(room, "three, to either of two")
            await first.aclose()
            await eve.does("rotate", room=room)
            await eve.says(room, "four, with a new key")
            seen = await eve.reads(room, "four, with a new key")
    assert [one["text"] for one in seen] == [
        "one",
        "two, while nobody is there",
        "three, to either of two",
        "four, with a new key",
    ]
    assert await all_encrypted(eve, room)


async def test_a_gateway_that_is_killed_around_a_send_doubles_nothing_and_uses_no_key_twice(
    town: MatrixHarness, eve: Encrypting, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, post, unkept = asyncio.Event(), Device._post, list[str]()

    async def dies(self: Device, messages: Json) -> None:
        unkept.extend(self.ring.changed)
        if not killed.is_set():
            killed.set()
            await asyncio.Event().wait()
        await post(self, messages)

    monkeypatch.setattr(Device, "_post", dies)
    async with running(town, EchoAgent()):
        room = await entered(town, eve)
        await eve.says(room, "between the ratchet and the send")
        await killed.wait()
    after = KilledAt(Point.SEND_CALLED, 1)
    async with running(town, EchoAgent(), probe=after):
        await after.dead.wait()
    async with running(town, EchoAgent()):
        await eve.says(room, "and then")
        seen = await eve.reads(room, "and then")
    assert [one["text"] for one in seen] == ["between the ratchet and the send", "and then"]
    sent = [event["content"] for event in await sealed_events(eve.user, room) if event["sender"] == town.bot.id]
    assert len(sent) == 2
    assert len({one["session_id"] for one in sent}) == 2, "two processes spoke with one key"
    assert unkept == [], "something left before what it was made with was kept"


async def sealed_events(user: User, room: str) -> list[Json]:
    page = await user.call("GET", f"/rooms/{room}/messages", query={"dir": "f", "limit": "500"})
    return [event for event in page["chunk"] if event["type"] == "m.room.encrypted"]


async def test_processes_that_speak_by_turns_take_no_step_of_a_ratchet_twice(
    town: MatrixHarness, eve: Encrypting
) -> None:
    inbox, adapter, other = Inbox(), town.adapter(), town.adapter()
    async with town.deliver(adapter, inbox.accept):
        # Each message has a key of its own, which is given to Eve's device by one session that both share.
        room = await entered(town, eve, rotation_period_msgs=1)
        at = Address("matrix", "main", NAME, room)
        said = [f"number {n}" for n in range(4)]
        for n, text in enumerate(said):
            await (other if n % 2 else adapter).send(a_delivery(at, text))
            await eve.reads(room, text)
        assert [one["text"] for one in await eve.reads(room, *said)] == said
        await asyncio.gather(adapter.send(a_delivery(at, "one")), other.send(a_delivery(at, "another")))
        assert {one["text"] for one in await eve.does("sees", room=room, count=6)} == {*said, "one", "another"}


def late_keys(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], asyncio.Event]:
    """Keys that are on their way while an event is set."""
    sync, held, hold = Homeserver.sync, list[Any](), asyncio.Event()

    async def late(self: Homeserver, since: str, wait: int) -> Json:
        batch = await sync(self, since, min(wait, 500))
        if hold.is_set():
            held.extend(batch.pop("to_device", {}).get("events", []))
        elif held:
            batch["to_device"] = {"events": [*held, *batch.get("to_device", {}).get("events", [])]}
            held.clear()
        return batch

    monkeypatch.setattr(Homeserver, "sync", late)
    return held, hold


async def test_a_message_is_taken_in_though_the_gateway_ended_just_when_its_key_came(
    town: MatrixHarness, eve: Encrypting, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, (held, hold) = Inbox(), late_keys(monkeypatch)

    async def ends(_: object) -> Accepted:
        raise Disconnected("that is all")

    async with town.deliver(town.adapter(), inbox.accept):
        room = await entered(town, eve)
        hold.set()
        await eve.says(room, "its key is late")
        await until(lambda: bool(held) and any(name.startswith("unread/") for name in town.chest.things))
    hold.clear()
    with pytest.raises(Disconnected, match="that is all"):
        await town.adapter().run(Given(ends, town.cursor))
    async with town.deliver(town.adapter(), inbox.accept):
        await inbox.gets("its key is late")


async def test_what_its_author_takes_back_before_it_can_be_read_is_not_answered(
    town: MatrixHarness, eve: Encrypting, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, (_, hold) = Inbox(), late_keys(monkeypatch)
    async with town.deliver(town.adapter(), inbox.accept):
        room = await entered(town, eve)
        hold.set()
        slip = await eve.says(room, "a slip")
        await eve.says(room, "what I meant")
        await until(lambda: sum(name.startswith("unread/") for name in town.chest.things) == 2)
        await eve.user.call("PUT", f"/rooms/{room}/redact/{slip}/1")
        await until(lambda: any(arrival.deletes == slip for arrival in inbox.arrivals))
        hold.clear()
        await inbox.gets("what I meant")
        await until(lambda: not any(name.startswith("unread/") for name in town.chest.things))
    assert "a slip" not in inbox.texts


async def test_what_cannot_be_read_is_said_once_and_a_key_that_comes_late_opens_what_waits(
    town: MatrixHarness, eve: Encrypting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.adapters.matrix.ciphers._PATIENCE", 0.2)
    monkeypatch.setattr("segue.adapters.matrix.adapter._SOON", 200)
    held, hold = late_keys(monkeypatch)
    room = await eve.room(town.bot, direct=True)
    # mautrix gives its keys to those alone who are there.
    await eve.says(room, "before it came")
    await eve.says(room, "and once more")
    unread = "I can't read some of what was said here: its keys never came to me. Please write it again."
    async with running(town, EchoAgent()):
        await eve.does("joined", room=room, user=town.bot.id)
        await eve.reads(room, unread)
        hold.set()
        await eve.says(room, "its key is late")
        await until(lambda: bool(held))
        await eve.says(room, "here, too")
        hold.clear()
        seen = await eve.reads(room, "here, too")
    assert [one["text"] for one in seen][:1] == [unread]
    assert sorted(one["text"] for one in seen[1:]) == ["here, too", "its key is late"]


async def test_a_session_with_a_device_that_was_lost_is_begun_anew(town: MatrixHarness, eve: Encrypting) -> None:
    inbox = Inbox()
    async with town.deliver(town.adapter(), inbox.accept):
        room = await entered(town, eve)
        await eve.says(room, "hello")
        await inbox.gets("hello")
    town.chest.things = {name: thing for name, thing in town.chest.things.items() if "/olm/" not in name}
    adapter = town.adapter()
    async with town.deliver(adapter, inbox.accept):
        await eve.does("rotate", room=room)
        await eve.says(room, "its key can't be read")
        await until(lambda: any("/olm/" in name for name in town.chest.things))
        await adapter.send(a_delivery(Address("matrix", "main", NAME, room), "once more?"))
        await eve.reads(room, "once more?")
        await eve.does("rotate", room=room)
        await eve.says(room, "now it can")
        await inbox.gets("now it can")


async def test_nobody_speaks_in_the_clear_or_for_another_in_an_encrypted_room(
    town: MatrixHarness, eve: Encrypting
) -> None:
    inbox, adapter = Inbox(), town.adapter()
    async with town.deliver(adapter, inbox.accept):
        room = await entered(town, eve)
        await eve.user.says(room, "as if from Eve")
        await eve.says(room, "from Eve")
        await inbox.gets("from Eve")
        [event] = await sealed_events(eve.user, room)
        device = await adapter._ciphers.device()
        assert device is not None
        assert await device.opened(room, event) is not None
        with pytest.raises(Invalid, match="its key isn't @ann"):
            await device.opened(room, {**event, "sender": "@ann:segue.test"})
        with pytest.raises(Invalid, match="Duplicate message index"):
            await device.opened(room, {**event, "event_id": "$again"})
        state = await adapter._incoming._read(room, {**event, "state_key": ""})
        assert state.type == "m.room.encrypted", "somebody could say in secret who is in the room"
    assert inbox.texts == ["from Eve"]
    assert [letter.why for letter in inbox.letters] == [
        "event: it came in the clear into an encrypted room. Nobody knows who wrote it."
    ]


async def test_a_room_that_was_encrypted_stays_so_whatever_its_homeserver_says(
    town: MatrixHarness, eve: Encrypting, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, adapter, state = Inbox(), town.adapter(), Homeserver.state

    async def forgetful(self: Homeserver, room: str) -> list[Json]:
        return [event for event in await state(self, room) if event["type"] != "m.room.encryption"]

    async with town.deliver(adapter, inbox.accept):
        room = await entered(town, eve)
        await eve.says(room, "hello")
        await inbox.gets("hello")
    monkeypatch.setattr(Homeserver, "state", forgetful)
    other = town.adapter()
    other.remember(town.chest)
    await other.send(a_delivery(Address("matrix", "main", NAME, room), "still a secret"))
    await eve.reads(room, "still a secret")
    assert await all_encrypted(eve, room)


async def test_keys_that_another_client_made_vouch_for_the_device_by_their_recovery_key(
    synapse: Synapse, town: MatrixHarness
) -> None:
    elsewhere = await town.bot.call("POST", "/login", login(town.bot.id))
    client = User(town.bot.client, town.bot.id, elsewhere["access_token"])
    async with Encrypting.of(synapse, client, elsewhere["device_id"]) as element:
        recovery = await element.does("recovery")
        wrong = (("", "another client made"), ("EsTj nonsense", "opens nothing"), (recovery * 2, "opens nothing"))
        for given, trouble in (*wrong, (recovery, "")):
            keys = msgspec.structs.replace(town.keys, recovery=Secret(given))
            adapter = keys.adapter("main", Folder(town.folder))
            async with town.deliver(adapter, Inbox().accept):
                await until(lambda adapter=adapter: adapter._ciphers.follows)  # type: ignore[misc]
                await town.settles()
            assert any(trouble in one for one in adapter.troubles) if trouble else adapter.troubles == []
            await adapter.close()
        trusted = await element.does("trust", user=town.bot.id)
    assert trusted[(await town.bot.call("GET", "/account/whoami"))["device_id"]] != "UNVERIFIED"


def login(user: str) -> Json:
    return {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": user}, "password": "p"}


async def test_a_device_whose_keys_are_lost_says_so_and_speaks_in_the_clear_elsewhere(town: MatrixHarness) -> None:
    ann, inbox = town.people["Ann"], Inbox()
    async with town.deliver(town.adapter(), inbox.accept):
        await town.settles()
    town.chest = Chest()
    adapter: Matrix = town.adapter()
    async with town.deliver(adapter, inbox.accept):
        room = await ann.make_room(town.bot, is_direct=True)
        await ann.says(room, "hello")
        await inbox.gets("hello")
    [trouble] = adapter.troubles
    assert "are lost, or with another program. Take its table out of segue.toml" in trouble


class Killed(Exception):
    """The end of a process."""


class KilledOnceShared(Chest):
    """A locker of a process that is killed when the homeserver knows its keys, before it can note that."""

    async def keep(self, things: Mapping[str, Thing]) -> None:
        if any(name.endswith("/account") and '"shared":true' in thing.value for name, thing in things.items()):
            raise Killed
        await super().keep(things)


async def test_a_device_is_itself_again_if_it_was_killed_right_after_its_keys_were_sent(
    town: MatrixHarness, eve: Encrypting
) -> None:
    town.chest = chest = KilledOnceShared()
    with pytest.raises(Killed):
        await town.adapter().run(Given(Inbox().accept))
    town.chest, inbox = Chest(), Inbox()
    town.chest.things |= chest.things
    adapter: Matrix = town.adapter()
    async with town.deliver(adapter, inbox.accept):
        await eve.says(await entered(town, eve), "hello")
        await inbox.gets("hello")
    assert adapter.troubles == []


async def test_sessions_are_found_again_whatever_their_ids_and_the_newest_of_many_alone() -> None:
    chest, account, other = Chest(), OlmAccount(), OlmAccount()
    other.generate_one_time_keys(50)
    ring, ids = Keyring(chest, "D", Secret("t")), []
    for one_time_key in other.one_time_keys["curve25519"].values():
        session = OutboundSession(account, other.identity_keys["curve25519"], one_time_key)
        ring.save_session("a/key", session)
        ids.append(session.id)
    assert any("/" in id for id in ids)
    await ring.keep()
    again = Keyring(chest, "D", Secret("t"))
    await again.open()
    found = [session.id for session in again.load_sessions()["a/key"]]
    assert found == ids[:-9:-1], "nobody fills the locker by beginning anew"
    await again.keep()
    assert len(chest.things) == 8


async def test_keys_open_by_the_account_s_secret_alone(town: MatrixHarness) -> None:
    async with town.deliver(town.adapter(), Inbox().accept):
        await town.settles()
    [name] = [name for name in town.chest.things if name.endswith("/account")]
    ring = Keyring(town.chest, name.split("/")[1], Secret("another"))
    await ring.open()
    with pytest.raises(Disconnected, match="were kept with another token"):
        ring.load_account()


async def test_the_identity_is_found_again_as_it_was_kept_before() -> None:
    """Seeds of sevens and eights, as the first version with encryption kept them for the token "t"."""
    chest = Chest()
    await chest.keep({"keys/D/identity": Thing(KEPT_BEFORE, 0)})
    seeds = await Keyring(chest, "D", Secret("t")).identity()
    assert (seeds["master"], seeds["self_signing"]) == (b"7" * 32, b"8" * 32)
    new = await Keyring(chest, "E", Secret("t")).identity()
    assert new == await Keyring(chest, "E", Secret("t")).identity() != seeds


async def test_a_device_with_nonsense_for_keys_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    good, told = Olm("@ann:e.example", "GOOD", Keyring(Chest(), "GOOD", Secret("t"))), dict[str, Any]()
    server = Homeserver("http://127.0.0.1:1", "@segue:e.example")

    async def call(_: str, path: tuple[str, ...], *__: Any) -> Json:
        return told if path != ("keys", "claim") else {"one_time_keys": {good.user_id: {"BAD": {}, "GOOD": one_time}}}

    server.call = call  # type: ignore[method-assign, assignment]
    shown = good.share_keys()
    one_time = dict([next(iter(shown["one_time_keys"].items()))])
    right = shown["device_keys"]
    nonsense = {"A": 7, "B": {}, "BAD": {**right, "device_id": "BAD"}, "C": {**right, "unsigned": 7}}
    told["device_keys"] = {good.user_id: {**nonsense, "GOOD": {**right, "unsigned": 7}}}
    device = Device(server, Keyring(Chest(), "D", Secret("t")))
    machine = await device.open()
    await device._query(machine, [good.user_id])
    assert [one.id for one in machine.device_store.active_user_devices(good.user_id)] == ["GOOD"]
    machine.device_store.add(OlmDevice(good.user_id, "BAD", {"ed25519": "x", "curve25519": "y"}))
    await device._claim(machine, {good.user_id: ["BAD", "GOOD"]})
    assert machine.session_store.get(right["keys"]["curve25519:GOOD"]) is not None
    assert "one-time key of @ann:e.example's device BAD can't be used" in caplog.text
