"""Calls of a platform's HTTP API say what became of them."""

import json
from collections.abc import AsyncIterator

import pytest
from starlette.responses import JSONResponse, Response

from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.web import Web, form
from segue.core.messages import Sending
from segue.errors import Disconnected, SendError, SendLater, SendNever, SendUnsure
from tests.adapters.platform import Platform, platform


@pytest.fixture
async def there() -> AsyncIterator[Platform]:
    async with platform() as here:
        yield here


async def test_a_call_is_json_both_ways_below_one_address(there: Platform) -> None:
    web = Web("the platform", there.url)
    answer = await web.call("POST", "/say?to=all", {"text": "hello"}, {"X-More": "yes"})
    assert (answer.status, web.told(answer)) == (200, {"id": "m1", "thread": "t1"})
    assert there.calls == [{"text": "hello"}]
    assert (there.headers[0]["content-type"], there.headers[0]["x-more"]) == ("application/json", "yes")
    await web.close()


@pytest.mark.parametrize(
    ("status", "sending", "becomes", "seconds"),
    [
        (429, Sending.KEYED, SendLater, 7.0),
        (429, Sending.BLIND, SendLater, 7.0),
        (503, Sending.KEYED, SendLater, 7.0),
        (503, Sending.EDIT, SendLater, 7.0),
        (500, Sending.KEYED, SendLater, None),
        (500, Sending.EDIT, SendUnsure, None),
        (500, Sending.BLIND, SendUnsure, None),
        (404, Sending.KEYED, SendNever, None),
        (302, Sending.BLIND, SendNever, None),
    ],
)
async def test_a_status_means_what_the_sending_class_makes_of_it(
    there: Platform, status: int, sending: Sending, becomes: type[SendError], seconds: float | None
) -> None:
    web = Web("the platform", there.url, sending)
    there.answer = Response("no", status, {"Retry-After": "7"} if seconds else {})
    with pytest.raises(becomes, match=f"the platform answered {status}") as told:
        web.taken(await web.call("GET"))
    assert getattr(told.value, "seconds", None) == seconds
    await web.close()


@pytest.mark.parametrize(("status", "becomes"), [(200, SendUnsure), (502, SendLater), (403, SendNever)])
async def test_what_is_no_json_is_judged_by_its_status(there: Platform, status: int, becomes: type[SendError]) -> None:
    web = Web("the platform", there.url)
    there.answer = Response("<html>", status)
    with pytest.raises(becomes):
        web.told(await web.call("GET"))
    await web.close()


async def test_half_a_surrogate_pair_is_told(there: Platform) -> None:
    web = Web("the platform", there.url)
    there.answer = Response(r'{"text": "\ud800"}')
    assert web.told(await web.call("GET")) == {"text": "\ud800"}
    await web.close()


async def test_nobody_there_is_for_later_and_ends_a_connection_in_words() -> None:
    web = Web("the platform", "http://127.0.0.1:1")
    with pytest.raises(SendLater, match=r"the platform can't be reached \(ConnectionRefusedError\)"):
        await web.call("GET")
    with pytest.raises(Disconnected, match="the platform can't be reached"), connecting():
        await web.call("GET")


async def test_a_form_has_its_fields_and_files(there: Platform) -> None:
    web = Web("the platform", there.url)
    there.answer = JSONResponse({})
    body, headers = form({"text": "hello", "more": {"a": 1}}, {"photo": ("cat.png", b"\x89PNG")})
    await web.call("POST", "", body, headers)
    sent = there.bodies[0]
    for part in (b'name="text"\r\n\r\nhello', json.dumps({"a": 1}).encode(), b'filename="cat.png"', b"\x89PNG"):
        assert part in sent
    assert there.headers[0]["content-type"].startswith("multipart/form-data; boundary=")
    await web.close()
