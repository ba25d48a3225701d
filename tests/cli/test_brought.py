"""A `Gateway` that is given to `segue serve MODULE:NAME`: nothing of it is dropped."""

import pytest
from msgspec.structs import replace

from segue.cli.gateway import merge_settings
from segue.core.lanes import Identity
from segue.core.settings import AccountSettings, Busy, GatewaySettings
from segue.errors import Invalid
from segue.runtime.gateway import Gateway
from segue.testing import Shelf
from segue.testing.agents import EchoAgent
from tests.cli.conftest import Home

ANN = Identity("http", "alpha", "ann")
OURS, THEIRS = AccountSettings(public=True), AccountSettings(public=False)


def brought(**settings: object) -> Gateway:
    return Gateway(agent=EchoAgent(), settings=GatewaySettings(**settings))  # type: ignore[arg-type]


@pytest.mark.usefixtures("home")
def test_its_settings_are_the_hosts_unless_the_host_says_otherwise() -> None:
    host = GatewaySettings(accounts={("http", "alpha"): OURS}, slots=7, data="/data")
    merged = merge_settings(host, brought(busy=Busy.STEER, slots=7, hosts=(ANN,), accounts={("http", "beta"): THEIRS}))
    accounts = {("http", "alpha"): OURS, ("http", "beta"): THEIRS}
    assert merged == replace(host, busy=Busy.STEER, hosts=(ANN,), accounts=accounts)


@pytest.mark.usefixtures("home")
def test_what_contradicts_the_hosts_settings_is_refused_by_name() -> None:
    host = GatewaySettings(accounts={("http", "alpha"): OURS}, slots=7)
    with pytest.raises(Invalid, match=r"the Gateway sets account http\.alpha, slots, which"):
        merge_settings(host, brought(slots=3, accounts={("http", "alpha"): THEIRS}))
    with pytest.raises(Invalid, match="the Gateway sets files, which"):
        merge_settings(host, Gateway(agent=EchoAgent(), files=Shelf()))


def test_without_a_gateway_of_its_own_nothing_changes(home: Home) -> None:
    host = GatewaySettings(data=str(home.path), zone="Europe/Berlin")
    assert merge_settings(host, brought()) == host
