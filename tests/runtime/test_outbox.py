"""What goes out: a platform that won't take it doesn't hold up what is said after it."""

from pathlib import Path

from segue import open_store
from segue.changes.exchange import deliveries
from segue.core.settings import AccountSettings, GatewaySettings
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, WhatsApp
from segue.testing.faults import Call, RateLimit


async def test_a_platform_that_asks_for_endless_patience_is_tried_once_more_and_given_up(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    accounts = {(platform.name, platform.account): AccountSettings(public=True)}
    settings = GatewaySettings(accounts=accounts, poll=0.05, give_up_after=0.2)
    platform.misbehaves(RateLimit(1e15), Call.SEND, None)
    async with (
        await open_store(tmp_path / "segue.db") as store,
        Gateway(store, EchoAgent(), [platform.adapter()], settings) as gateway,
        platform.reaching(gateway.webhooks()),
    ):
        ann.says("hello", dm)
        await platform.called(Call.SEND, 2)
        platform.recovers()
        ann.says("again", dm)
        await dm.reads("again")
        dead = await store.driver.read(deliveries.dead, 10)
    assert [letter.text for letter in dead] == ["hello"]
