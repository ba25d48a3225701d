"""Files that an agent gives: one message each, once, wherever people are."""

import json
import time
from pathlib import Path

import httpx2
import pytest

from segue.adapters.http import HttpAccount
from segue.core.contracts.probes import Point
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, File, Speaker, Text
from segue.core.transcripts import Entry
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.runtime.server.app import make_app
from segue.runtime.windows.local import Local
from segue.testing import EchoAgent, ScriptedAgent, Shelf, WhatsApp
from tests.adapters.platform import Platform, platform, signed
from tests.in_process import gateway_on
from tests.stories.files import KilledAt, plans

SECRET = "a secret"
POINTS = [(Point.SEND_RECORDED, 1), (Point.SEND_CALLED, 2)]


async def said(gateway: Gateway, text: str) -> None:
    person = {"id": "u1", "name": "Ann"}
    body = json.dumps({"id": text, "chat": "c", "chat_kind": "dm", "person": person, "text": text}).encode()
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(make_app(gateway)), base_url="http://localhost"
    ) as ask:
        assert (
            await ask.post("/in/http/a", content=body, headers=signed(SECRET, body, time.time()))
        ).status_code == 202


async def sends(there: Platform, *wanted: str) -> list[dict[str, object]]:
    """What the platform was sent, each key once, as soon as all of these texts are among it."""
    while True:
        there.called.clear()
        calls = {call["key"]: call for call in there.calls}
        if set(wanted) <= {call["text"] for call in calls.values()}:
            return list(calls.values())
        await there.called.wait()


@pytest.mark.parametrize(("point", "times"), POINTS)
async def test_over_http_it_comes_once_and_can_be_fetched_with_the_signature(
    tmp_path: Path, point: Point, times: int
) -> None:
    shelf, killed = Shelf(), KilledAt(point, times)
    file = await plans(shelf)
    calls: list[dict[str, object]] = []
    async with platform() as there:
        for probe, agent in ((killed, ScriptedAgent(["Here are the plans.", file])), (unheeded, EchoAgent())):
            adapter = HttpAccount(Secret(SECRET), there.url).adapter("a", shelf)
            async with gateway_on(tmp_path, agent, adapter, probe=probe, files=shelf, lease=1.0, grace=0.1) as gateway:
                await said(gateway, f"by {type(agent).__name__}")
                if probe is killed:
                    await killed.dead.wait()
                    continue
                calls = await sends(there, "by EchoAgent")
                given = [call["file"] for call in calls if call["file"]]
                await fetched(gateway, given)
            await adapter.close()
    assert [call["text"] for call in calls] == ["Here are the plans.", "", "by EchoAgent"]


async def fetched(gateway: Gateway, given: list[object]) -> None:
    [offer] = given
    assert isinstance(offer, dict)
    assert (offer["name"], offer["media"]) == ("plans.md", "text/markdown")
    app = httpx2.ASGITransport(make_app(gateway))
    async with httpx2.AsyncClient(transport=app, base_url="http://localhost") as ask:
        proven = signed(SECRET, offer["url"].encode(), time.time())
        answer = await ask.get(offer["url"], headers=proven)
        assert (answer.status_code, answer.content) == (200, b"# Plans")
        for headers in ({}, signed(SECRET, b"", time.time()), signed("guess", offer["url"].encode(), time.time())):
            assert (await ask.get(offer["url"], headers=headers)).status_code == 401
        other = offer["url"][:-4] + "0000"
        assert (await ask.get(other, headers=proven)).status_code == 401
        assert (await ask.get(other, headers=signed(SECRET, other.encode(), time.time()))).status_code == 404


@pytest.mark.parametrize("kind", ["terminal", "web"])
@pytest.mark.parametrize(("point", "times"), POINTS)
async def test_a_window_has_it_in_its_transcript_once(tmp_path: Path, kind: str, point: Point, times: int) -> None:
    shelf, killed, shown = Shelf(), KilledAt(point, times), list[Delivery]()
    file = await plans(shelf)
    place = Place(Address(kind, "local", chat="here"), Kind.DM)
    arrival = Arrival(place, "m1", Speaker(Identity(kind, "local", "host")), (Text("the plans, please"),), 1.0)
    path: list[Entry] = []
    for probe in (killed, unheeded):
        local = Local(kind)
        local.look("here", shown.append)
        agent = ScriptedAgent(["Here are the plans.", file])
        async with gateway_on(tmp_path, agent, local, probe=probe, files=shelf, lease=1.0, grace=0.1) as gateway:
            await gateway.accept(arrival)
            if probe is killed:
                await killed.dead.wait()
                continue
            outbox = gateway._outboxes[kind, "local"]
            await outbox.flush(10)
            [session] = await gateway.store.sessions(await gateway.store.person(arrival.speaker.identity))
            path = await gateway.store.path(session.id)
    assert [part for entry in path for part in entry.parts if isinstance(part, File)] == [file]
    assert [one.file for one in {one.key: one for one in shown}.values()] == [None, file]


async def test_where_no_files_are_taken_a_line_says_where_it_is(tmp_path: Path) -> None:
    whatsapp, shelf = WhatsApp(), Shelf()
    ann = whatsapp.person("Ann")
    file = await plans(shelf)
    async with gateway_on(tmp_path, ScriptedAgent([file]), whatsapp, files=shelf, grace=0.1):
        ann.says("the plans, please", whatsapp.dm(ann))
        assert await whatsapp.dm(ann).reads_some() == [
            f"plans.md can't be sent here: it is {file.where} in the data folder."
        ]
