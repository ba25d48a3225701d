"""What WhatsApp may tell and answer, recorded from its documentation: all that crabline's Cloud API doesn't know."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from segue.adapters.whatsapp import WhatsApp, WhatsAppAccount
from segue.adapters.whatsapp.adapter import PROOF, signature
from segue.adapters.whatsapp.graph import Graph
from segue.adapters.whatsapp.incoming import OLDEST
from segue.adapters.whatsapp.markup import LONGEST, render
from segue.adapters.whatsapp.outgoing import WHOLE, interactive
from segue.config import load
from segue.core.contracts.adapters import StatusReport
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import Arrival, Citation, Citing, File, Pressed, SendStatus, plain_text
from segue.core.values import Secret
from segue.errors import Disconnected, Invalid, SendLater, SendNever, SendUnsure
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import HandClock, Shelf
from segue.testing.asgi import post
from segue.testing.contracts.base import a_delivery
from segue.testing.inbox import Inbox
from tests.clients import http_client
from tests.servers.whatsapp import APP_SECRET, NUMBER, PEOPLE, TOKEN, VERIFY, Between, change, refusal, whatsapp

Json = dict[str, Any]
ANN, NOW = PEOPLE["Ann"], 1_790_000_000.0
AT = Address("whatsapp", "main", "", ANN.number)


class Called:
    """An account, called without a network; what it sends goes to crabline."""

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.shelf, self.inbox, self.ticks = Shelf(), Inbox(), HandClock(0.0)
        graph = Graph(Secret(TOKEN), NUMBER, url)
        self.adapter = WhatsApp(
            "main",
            graph,
            self.shelf,
            app_secret=Secret(APP_SECRET),
            verify_token=Secret(VERIFY),
            clock=lambda: NOW,
            ticks=self.ticks,
        )

    async def tells(self, **value: Any) -> None:
        body = json.dumps(change(**value)).encode()
        proof = {PROOF: signature(Secret(APP_SECRET), body)}
        assert (await post(self.adapter.webhook(self.inbox.accept), "/", body, proof)).status == 200

    async def hears(self, **message: Any) -> Arrival | None:
        """What becomes of a message of Ann's."""
        said = {"id": f"wamid.{len(self.inbox.arrivals)}", "timestamp": str(int(NOW)), "from": ANN.number, **message}
        count = len(self.inbox.arrivals)
        await self.tells(contacts=[{"wa_id": ANN.number, "profile": {"name": "Ann"}}], messages=[said])
        return self.inbox.arrivals[-1] if len(self.inbox.arrivals) > count else None

    @property
    def sent(self) -> Json:
        return self.between.calls[-1][1]


@pytest.fixture
async def called(tmp_path: Path) -> AsyncIterator[Called]:
    async with whatsapp(tmp_path) as (between, url):
        account = Called(between, url)
        yield account
        await account.adapter.close()


async def test_a_number_and_a_user_id_are_one_person_and_one_chat(called: Called) -> None:
    text = {"type": "text", "text": {"body": "hello"}, "timestamp": str(int(NOW))}
    both = {"wa_id": ANN.number, "user_id": ANN.user, "profile": {"name": "Ann", "username": "@ann"}}
    await called.tells(
        contacts=[both], messages=[{**text, "id": "wamid.1", "from": ANN.number, "from_user_id": ANN.user}]
    )
    await called.tells(contacts=[{"user_id": ANN.user}], messages=[{**text, "id": "wamid.2", "from_user_id": ANN.user}])
    first, second = called.inbox.arrivals
    assert (first.place.address, first.chat_aliases) == (AT, (ANN.user,))
    assert (first.speaker.identity.user, first.speaker.aliases, first.speaker.name) == (ANN.number, (ANN.user,), "Ann")
    assert (second.place.address.chat, second.chat_aliases) == (ANN.user, ())
    assert second.speaker.identity == Identity("whatsapp", "main", ANN.user)


@pytest.mark.parametrize("kind", ["user_changed_number", "user_changed_user_id"])
async def test_changed_ids_are_told_with_those_before_and_nobody_is_answered(called: Called, kind: str) -> None:
    system = {"type": kind, "user_id": "DE.new", "previous_user_id": ANN.user, "body": "Ann changed"}
    sender = {}
    if kind == "user_changed_number":
        system["wa_id"], sender = "4915100000999", {"from": ANN.number}
    await called.tells(
        messages=[{"id": "wamid.s", "timestamp": str(int(NOW)), "type": "system", "system": system, **sender}]
    )
    [moved] = called.inbox.arrivals
    ids = {moved.place.address.chat, *moved.chat_aliases}
    assert ids == {moved.speaker.identity.user, *moved.speaker.aliases}
    assert ids == {"DE.new", ANN.user, *([ANN.number, "4915100000999"] if sender else [])}
    assert moved.heard.parts == ()


async def test_a_reply_a_press_and_a_forward_are_told_apart(called: Called) -> None:
    reply = await called.hears(type="text", text={"body": "yes"}, context={"from": "1555", "id": "wamid.ours"})
    assert reply is not None
    assert (reply.quotes, reply.pressed) == ("wamid.ours", None)
    for kind in ("button_reply", "list_reply"):
        pressing = {"type": kind, kind: {"id": "/yes", "title": "Yes"}}
        press = await called.hears(type="interactive", interactive=pressing, context={"id": "wamid.ours"})
        assert press is not None
        assert press.pressed == Pressed("wamid.ours", "/yes")
        assert plain_text(press.heard.parts) == "/yes"
    passed_on = await called.hears(type="text", text={"body": "/stop"}, context={"forwarded": True})
    assert passed_on is not None
    assert (passed_on.parts, passed_on.cites) == ((), (Citation("/stop", kind=Citing.FORWARD),))


async def test_what_is_no_text_is_told_in_words(called: Called) -> None:
    place = await called.hears(type="location", location={"latitude": 52.5, "longitude": 13.4, "name": "Cafe"})
    assert place is not None
    assert plain_text(place.parts) == "Location: 52.5, 13.4 (Cafe)"
    card = {"name": {"formatted_name": "Ben"}, "phones": [{"phone": "+49 151"}]}
    contact = await called.hears(type="contacts", contacts=[card])
    assert contact is not None
    assert plain_text(contact.parts) == "Contact: Ben, +49 151"
    unknown = await called.hears(type="unsupported", errors=[{"code": 131051, "title": "unsupported"}])
    assert unknown is not None
    assert unknown.remarks == ("They sent something that WhatsApp doesn't pass on (unsupported).",)
    assert await called.hears(type="reaction", reaction={"message_id": "wamid.1", "emoji": "👍"}) is None


async def test_a_picture_is_fetched_with_the_token_and_from_whatsapp_alone(called: Called) -> None:
    called.between.files["media-1"] = b"a picture"
    image = {"id": "media-1", "mime_type": "image/jpeg", "caption": "look", "sha256": "x"}
    seen = await called.hears(type="image", image=image)
    assert seen is not None
    [file] = [part for part in seen.parts if isinstance(part, File)]
    assert (file.name, file.media, await called.shelf.read(file)) == ("image.jpg", "image/jpeg", b"a picture")
    assert plain_text(seen.parts) == "look"
    called.between.url = "http://127.0.0.1:1"
    called.between.files["media-2"] = b"elsewhere"
    lost = await called.hears(type="document", document={"id": "media-2", "filename": "a.pdf"})
    assert lost is not None
    assert lost.remarks == ("a.pdf wasn't taken in. It isn't kept by WhatsApp.",)


async def test_what_is_another_numbers_or_too_old_is_not_taken_in(called: Called) -> None:
    assert await called.hears(type="text", text={"body": "replayed"}, timestamp=str(int(NOW - OLDEST - 1))) is None
    body = change(messages=[{"id": "wamid.1", "from": "1", "timestamp": "1", "type": "text"}])
    body["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = "2"
    raw = json.dumps(body).encode()
    proof = {PROOF: signature(Secret(APP_SECRET), raw)}
    answer = await post(called.adapter.webhook(called.inbox.accept), "/", raw, proof)
    assert answer.status == 200
    assert not called.inbox.arrivals
    assert not called.inbox.letters


async def test_what_became_of_a_message_is_told_with_its_key(called: Called) -> None:
    fault = {"code": 131047, "title": "Re-engagement message", "error_data": {"details": "24 hours"}}
    busy = {"code": 131056, "title": "Pair rate limit hit"}
    about = {"timestamp": "1", "recipient_id": ANN.number, "biz_opaque_callback_data": "key"}
    await called.tells(
        statuses=[
            {"id": "wamid.1", "status": "delivered", **about},
            {"id": "wamid.2", "status": "failed", "errors": [fault], **about},
            {"id": "wamid.3", "status": "failed", "errors": [busy], **about},
            {"id": "wamid.4", "status": "warning", **about},
        ]
    )
    sent, never, later = called.inbox.reports
    assert sent == StatusReport("whatsapp", "main", "wamid.1", SendStatus.SENT, "", "key")
    assert (never.fate, "24 hours" in never.why) == (SendStatus.NEVER, True)
    assert later.fate is SendStatus.LATER


async def test_a_person_is_written_to_by_the_newest_user_id_that_they_have(called: Called) -> None:
    delivery = a_delivery(AT, "hello")
    await called.adapter.send(delivery)
    assert called.sent["to"] == ANN.number
    assert called.sent["biz_opaque_callback_data"] == delivery.key
    known = ("DE.old", "4915100000999", ANN.user)
    await called.adapter.send(replace(delivery, chats=known))
    assert (called.sent["recipient"], "to" in called.sent) == (ANN.user, False)
    await called.adapter.send(replace(delivery, chats=("4915100000999",)))
    assert called.sent["to"] == "4915100000999"


async def test_a_question_has_three_buttons_or_a_list(called: Called) -> None:
    await called.adapter.send(replace(a_delivery(AT, "May I?"), choices=("/yes", "/no")))
    buttons = called.sent["interactive"]["action"]["buttons"]
    assert [button["reply"] for button in buttons] == [{"id": "/yes", "title": "Yes"}, {"id": "/no", "title": "No"}]
    four = ("one", "two", "three", "the fourth of all of them")
    await called.adapter.send(replace(a_delivery(AT, "Which?"), choices=four))
    [section] = called.sent["interactive"]["action"]["sections"]
    assert section["rows"][0] == {"id": "one", "title": "One"}
    assert section["rows"][3]["description"] == "The fourth of all of them"
    assert len(section["rows"][3]["title"]) <= 24
    await called.adapter.send(replace(a_delivery(AT, "Which?"), choices=tuple(f"choice {n}" for n in range(11))))
    assert called.sent["text"]["body"].endswith("11. choice 10")
    assert interactive("x" * 1025, ("a", "b")) is not None
    assert interactive("x" * (LONGEST + 1), ("a", "b")) is None


async def test_a_very_long_answer_is_one_document(called: Called) -> None:
    text = "**A long answer.** " + "word " * 2000
    await called.adapter.send(a_delivery(AT, text))
    uploaded, sent = called.between.calls[-2:]
    assert uploaded == ("media", {"type": "text/plain", "name": "answer.txt"})
    document = sent[1]["document"]
    assert called.between.files[document["id"]].decode() == text
    assert document["caption"].startswith("*A long answer.* word")
    assert document["caption"].endswith(WHOLE)


@pytest.mark.parametrize(
    ("name", "media", "kind"),
    [("cat.png", "image/png", "image"), ("a.csv", "text/csv", "document"), ("a.zip", "application/zip", "document")],
)
async def test_a_file_is_shown_as_what_it_is(called: Called, name: str, media: str, kind: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"content"

    file = await called.shelf.keep(name, media, chunks())
    await called.adapter.send(replace(a_delivery(AT, "here"), file=file))
    assert called.sent["type"] == kind
    assert called.sent[kind]["caption"] == "here"
    assert called.between.files[called.sent[kind]["id"]] == b"content"


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        (131047, 400, SendNever),
        (131026, 400, SendNever),
        (130429, 429, SendLater),
        (131056, 400, SendLater),
        (190, 401, SendLater),
        (131000, 500, SendUnsure),
        (2, 503, SendUnsure),
    ],
)
async def test_a_refusal_says_what_becomes_of_the_message(
    called: Called, code: int, status: int, outcome: type[Exception]
) -> None:
    called.between.refuse = lambda _what, _body: refusal(code, "no", status)
    with pytest.raises(outcome):
        await called.adapter.send(a_delivery(AT, "hello"))


async def test_no_more_is_written_than_whatsapp_allows(called: Called) -> None:
    for n in range(45):
        await called.adapter.send(a_delivery(AT, str(n)))
    with pytest.raises(SendLater) as patience:
        await called.adapter.send(a_delivery(AT, "too many"))
    assert patience.value.seconds is not None
    assert 0 < patience.value.seconds <= 6
    called.ticks.now += 6
    await called.adapter.send(a_delivery(AT, "in time"))


async def test_typing_says_that_the_newest_message_was_read(called: Called) -> None:
    await called.adapter.typing(AT)
    assert not called.between.calls
    message = await called.between.says(ANN.number, "hello")
    await called.hears(id=message, type="text", text={"body": "hello"})
    await called.adapter.typing(AT)
    assert called.sent["message_id"] == message
    assert (called.sent["status"], called.sent["typing_indicator"]) == ("read", {"type": "text"})


async def test_only_who_knows_the_word_shakes_hands(called: Called) -> None:
    listener = Listener("127.0.0.1", 0)
    app = Mounted(called.adapter.webhook(called.inbox.accept))
    async with serving(app, listener, 0.1), http_client() as client:
        asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": VERIFY}
        right = await client.get(listener.url, params=asked)
        assert (right.status_code, right.text) == (200, "1158201444")
        for wrong in ({"hub.verify_token": "guess"}, {"hub.verify_token": ""}, {"hub.mode": "unsubscribe"}):
            answer = await client.get(listener.url, params={**asked, **wrong})
            assert (answer.status_code, "1158201444" in answer.text) == (403, False)


def test_markdown_reads_well() -> None:
    text = "# Head\n\n**bold** _it_ ~~no~~ `x`\n\n- one\n- two\n\n> said\n\n[here](https://example.org)"
    assert render(text) == ("*Head*\n\n*bold* _it_ ~no~ `x`\n\n• one\n• two\n\n> said\n\nhere (https://example.org)")
    assert render("| a | b |\n| - | - |\n| 1 | 2 |") == "```\na | b\n1 | 2\n```"


async def test_an_account_is_added_once_whatsapp_knows_it(tmp_path: Path) -> None:
    async with whatsapp(tmp_path) as (_, url):
        answers = {"number": NUMBER, "token": TOKEN, "app_secret": APP_SECRET, "verify_token": "", "api": url}
        added = await WhatsAppAccount.added(answers)
        assert "15550000000" in added.says
        assert added.secrets["verify_token"].reveal() in added.says
        with pytest.raises(Disconnected, match="doesn't take the token"):
            await WhatsAppAccount.added({**answers, "token": "wrong"})
        account = WhatsAppAccount(NUMBER, Secret(TOKEN), Secret(APP_SECRET), Secret(VERIFY), api=url)
        assert "Write to 15550000000" in await account.greet("main", ANN.number)
    with pytest.raises(Invalid, match="number"):
        await WhatsAppAccount.added({**answers, "number": "+49 151"})
    said = WhatsAppAccount.questions()[0].asks
    assert "bar personal use" in said
    assert "1,000 free messages a month" in said


def test_settings_name_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "segue.toml"
    file.write_text(
        '[whatsapp.main]\nnumber = "1"\ntoken = "env:T"\napp_secret = "env:S"\nverify_token = "env:V"\npublic = true\n'
    )
    environ = {"T": "x", "S": "y", "V": "z", "SEGUE_HOME": str(tmp_path)}
    [account] = load(file, environ).accounts
    assert isinstance(account.keys, WhatsAppAccount)
    with pytest.raises(Invalid, match="number"):
        WhatsAppAccount("one", Secret("x"), Secret("y"), Secret("z"))
    with pytest.raises(Invalid, match="app_secret"):
        WhatsAppAccount("1", Secret("x"), Secret(""), Secret("z"))


async def test_a_call_of_another_shape_is_a_letter(called: Called) -> None:
    raw = b"{half"
    proof = {PROOF: signature(Secret(APP_SECRET), raw)}
    answer = await post(called.adapter.webhook(called.inbox.accept), "/", raw, proof)
    assert answer.status == 200
    assert [letter.raw for letter in called.inbox.letters] == ['"{half"']


async def test_a_group_is_no_private_chat(called: Called) -> None:
    group = await called.hears(type="text", text={"body": "@1555 hello"}, group_id="Y2FwaV9n")
    assert group is not None
    assert (group.place.address.chat, group.place.kind, group.chat_aliases) == ("Y2FwaV9n", Kind.GROUP, ())
    assert group.mentions_agent
    await called.adapter.send(a_delivery(group.place.address, "hello all"))
    assert (called.sent["recipient_type"], called.sent["to"]) == ("group", "Y2FwaV9n")
