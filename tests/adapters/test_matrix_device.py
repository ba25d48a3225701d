"""The bot's device among others, of which a homeserver in memory tells: what they send it, and what it sends them."""

import json
from typing import Any

import pytest
from nio.crypto import Olm, OutboundSession
from unpaddedbase64 import encode_base64

from segue.adapters.matrix.encryption.device import Device
from segue.adapters.matrix.encryption.keyring import Keyring
from segue.adapters.matrix.homeserver import Homeserver
from segue.core.values import Secret
from segue.errors import SendLater
from segue.testing import Chest

Json = dict[str, Any]
BOT, ANN, ROOM = "@segue:e.example", "@ann:e.example", "!room:e.example"


class Person:
    """Ann, on one device."""

    def __init__(self, id: str = "PHONE") -> None:
        self.olm = Olm(ANN, id, Keyring(Chest(), id, Secret("hers")))
        shown = self.olm.share_keys()
        self.device: Json = shown["device_keys"]
        self.one_time = dict([next(iter(shown["one_time_keys"].items()))])

    def sealed(self, bot: Olm, text: str) -> Json:
        """A text for the bot's device alone."""
        bot.account.generate_one_time_keys(1)
        *_, one_time = bot.account.one_time_keys["curve25519"].values()
        bot.mark_keys_as_published()
        key = bot.account.identity_keys["curve25519"]
        kind, ciphertext = OutboundSession(self.olm.account, key, one_time).encrypt(text).to_parts()
        content = {
            "algorithm": "m.olm.v1.curve25519-aes-sha2",
            "sender_key": self.olm.account.identity_keys["curve25519"],
            "ciphertext": {key: {"type": kind, "body": encode_base64(ciphertext)}},
        }
        return {"type": "m.room.encrypted", "sender": ANN, "content": content}

    def gives(self, bot: Olm, room: str) -> Json:
        """The key that she speaks with in a room."""
        self.olm.create_outbound_group_session(room)
        session = self.olm.outbound_group_sessions[room]
        key = {"algorithm": "m.megolm.v1.aes-sha2", "room_id": room, "session_id": session.id}
        told = {
            "sender": ANN,
            "sender_device": self.olm.device_id,
            "keys": {"ed25519": self.olm.account.identity_keys["ed25519"]},
            "recipient": BOT,
            "recipient_keys": {"ed25519": bot.account.identity_keys["ed25519"]},
            "type": "m.room_key",
            "content": {**key, "session_key": session.session_key},
        }
        return self.sealed(bot, json.dumps(told))


class Told(Homeserver):
    """A homeserver that knows a few devices, and may be unwell."""

    def __init__(self, *people: Person) -> None:
        super().__init__("http://127.0.0.1:1", BOT)
        self.devices = {one.olm.device_id: dict(one.device) for one in people}
        self.one_time = {one.olm.device_id: one.one_time for one in people}
        self.unwell: list[str] = []
        """Calls that fail, each once."""
        self.given: list[str] = []
        """Devices that the bot wrote to."""

    async def call(self, method: str, path: tuple[str, ...], body: Any = b"", *_: Any, **__: Any) -> Any:
        verb = path[1] if path[0] == "keys" else path[0]
        if verb in self.unwell:
            self.unwell.remove(verb)
            raise SendLater("It is unwell.")
        match verb:
            case "query":
                return {"device_keys": {ANN: json.loads(json.dumps(self.devices))}}
            case "claim":
                return {"one_time_keys": {ANN: {id: self.one_time[id] for id in body["one_time_keys"][ANN]}}}
            case "sendToDevice":
                self.given += body["messages"].get(ANN, [])
            case _:
                pass
        return {}


async def a_device(server: Homeserver, chest: Chest | None = None) -> tuple[Device, Olm]:
    device = Device(server, Keyring(chest or Chest(), "D", Secret("t")))
    machine = await device.open()
    machine.account.shared = True
    machine.save_account()
    await device.ring.keep()
    return device, machine


async def speaks(device: Device) -> Json:
    return await device.sealed(ROOM, [BOT, ANN], {}, {"msgtype": "m.text", "body": "hello"})


@pytest.mark.parametrize("unwell", ["query", "claim"])
async def test_a_message_waits_until_the_homeserver_told_whose_devices_can_read_it(unwell: str) -> None:
    server = Told(Person())
    device, _ = await a_device(server)
    server.unwell = [unwell]
    with pytest.raises(SendLater):
        await speaks(device)
    await speaks(device)
    assert server.given == ["PHONE"], "nobody could read it"


async def test_what_a_stranger_sends_to_the_device_stops_nothing() -> None:
    ann = Person()
    device, machine = await a_device(Told(ann))
    rooms = ["!\0:e.example", "!\ud800:e.example", "!a\n:e.example", f"!{'x' * 5000}:e.example"]
    odd = [ann.sealed(machine, "[" * 20_000), *(ann.gives(machine, room) for room in rooms)]
    batch = {"to_device": {"events": [*odd, ann.gives(machine, ROOM)]}}
    [(room, _)] = await device.heed(batch)
    assert room == ROOM


async def test_a_device_whose_key_is_none_is_passed_by() -> None:
    ann = Person()
    bad = Person("BAD")
    bad.device["keys"]["curve25519:BAD"] = ["no", "key"]
    del bad.device["signatures"]
    signature = bad.olm.sign_json(bad.device)
    bad.device["signatures"] = {ANN: {"ed25519:BAD": signature}}
    server = Told(bad, ann)
    device, _ = await a_device(server)
    await speaks(device)
    assert server.given == ["PHONE"]


async def test_a_device_that_was_gone_and_is_back_can_read_again() -> None:
    server = Told(Person(), Person("LAPTOP"))
    device, _ = await a_device(server)
    await speaks(device)
    laptop = server.devices.pop("LAPTOP")
    for given in ([], ["LAPTOP"]):
        server.devices |= dict.fromkeys(given, laptop)
        await device.heed({"device_lists": {"changed": [ANN]}})
        server.given.clear()
        await speaks(device)
        assert ("LAPTOP" in server.given) is bool(given)


async def test_a_process_speaks_once_another_has_made_the_device_known() -> None:
    server, chest = Told(Person()), Chest()
    other = Device(server, Keyring(chest, "D", Secret("t")))
    with pytest.raises(SendLater, match="doesn't know the device's keys yet"):
        await speaks(other)
    await a_device(server, chest)
    await speaks(other)
    assert server.given == ["PHONE"]


async def test_keys_of_rooms_are_not_kept_in_memory() -> None:
    ann = Person()
    device, machine = await a_device(Told(ann))
    for n in range(3):
        await device.heed({"to_device": {"events": [ann.gives(machine, f"!room{n}:e.example")]}})
    assert len(list(machine.inbound_group_store)) <= 1


async def test_keys_that_came_are_told_though_another_process_changes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ann, chest = Person(), Chest()
    device, machine = await a_device(Told(ann), chest)
    fill = Device._fill

    async def raced(self: Device, machine: Olm, batch: Json) -> None:
        monkeypatch.setattr(Device, "_fill", fill)
        await a_device(Told(ann), chest)
        self.ring.save_account(machine.account)
        await self.ring.keep()

    monkeypatch.setattr(Device, "_fill", raced)
    batch = {"to_device": {"events": [ann.gives(machine, ROOM)]}}
    assert len(await device.heed(batch)) == 1
    await speaks(device)


async def test_a_word_that_begins_a_session_anew_is_said_again_if_it_could_not_be_sent() -> None:
    ann = Person()
    server = Told(ann)
    device, machine = await a_device(server)
    await device._query(machine, [ANN])
    machine.wedged_devices.extend(machine.device_store.active_user_devices(ANN))
    server.unwell = ["sendToDevice"]
    for given in ([], ["PHONE"]):
        await device.heed({})
        assert server.given == given
