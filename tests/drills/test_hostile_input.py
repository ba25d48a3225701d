"""A sample of the hostile input; `make drill` makes a million cases."""

import random
from pathlib import Path
from typing import Any

import pytest

from segue import Gateway, adapters
from segue.adapters.discord.payloads import Deleted, Guild, Interaction, Message
from segue.adapters.http.incoming import Sent
from segue.adapters.matrix.events import Content, Event
from segue.adapters.signal.envelopes import Envelope
from segue.adapters.slack.events import Callback, Command, Press
from segue.adapters.telegram.updates import Update
from segue.adapters.whatsapp.payloads import Change
from segue.adapters.whatsapp.payloads import Message as WhatsAppMessage
from segue.core.commands import SPECS
from segue.runtime.windows.frames import Asked
from tests.drills import hostile_input
from tests.drills.hostile_feishu import READ as READ_BY_FEISHU
from tests.drills.payloads import Payloads, fields_of
from tests.drills.planting import Bug

FOUND_BY_HOSTILE_INPUT = {
    Bug.COMMAND_RAISES: ("command", "KeyError"),
    Bug.PATTERN_EXPLODES: ("command", "it took"),
    Bug.LIST_QUOTES_TOO_MUCH: ("command", "its answer has"),
    Bug.TOOL_RAISES: ("tool", "tool sessions_history: KeyError"),
    Bug.UPDATE_RAISES: ("telegram", "update: AssertionError("),
    Bug.SYNC_RAISES: ("matrix", "matrix event: "),
    Bug.EVENT_RAISES: ("slack", "slack_event: AssertionError("),
    Bug.LISTS_BELIEVED: ("discord", "discord_event: "),
    Bug.CONTENT_BELIEVED: ("feishu", "feishu_event: "),
    Bug.FRAME_RAISES: ("frame", "a window ended by"),
}
"""The kind of cases that finds it, and its name."""


async def test_whatever_comes_to_the_door_is_handled_quickly(tmp_path: Path) -> None:
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=600, seed=7)
    assert found.wrong == []
    assert {
        "telegram update",
        "matrix event",
        "slack event",
        "discord event",
        "signal event",
        "whatsapp event",
        "feishu event",
        "http body",
        "frame",
    } <= found.cases.keys()


async def test_payloads_are_understood(tmp_path: Path) -> None:
    kinds = tuple(kind for kind in hostile_input.KINDS if kind not in {"command", "tool", "frame"})
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=300, seed=7, kinds=kinds)
    assert found.wrong == []
    assert found.arrivals > 20, "by one in eight, whatever the seed"


async def test_every_tool_is_called(tmp_path: Path) -> None:
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=800, seed=7, kinds=("tool",))
    assert found.wrong == []
    assert found.cases.keys() == {f"tool {name}" for name in Gateway()._turns._answering._toolbox.with_notebook}


async def test_every_command_is_typed(tmp_path: Path) -> None:
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=400, seed=7, kinds=("command",))
    assert found.wrong == []
    assert {f"/{spec.name}" for spec in SPECS} == found.cases.keys()


def test_every_platform_has_a_door() -> None:
    platforms = {file.name for file in Path(adapters.__path__[0]).iterdir() if (file / "adapter.py").exists()}
    assert platforms <= set(hostile_input.KINDS)


READ = (
    Update,
    Event,
    Content,
    Sent,
    Asked,
    Callback,
    Command,
    Press,
    Message,
    Deleted,
    Interaction,
    Guild,
    Envelope,
    Change,
    WhatsAppMessage,
    *READ_BY_FEISHU,
)


@pytest.mark.parametrize("kind", READ, ids=str)
def test_every_field_and_every_frame_is_made(kind: Any) -> None:
    payloads, wanted = Payloads(random.Random(7), {}), fields_of(kind)
    for _ in range(20_000):
        payloads.of(kind)
        if payloads.made == wanted:
            return
    assert wanted - payloads.made == set()


@pytest.mark.parametrize("bug", FOUND_BY_HOSTILE_INPUT, ids=lambda bug: bug.name)
async def test_a_planted_mistake_is_found_by_name(tmp_path: Path, bug: Bug) -> None:
    kind, told = FOUND_BY_HOSTILE_INPUT[bug]
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=8_000, seed=7, bug=bug, kinds=(kind,))
    assert told in found.wrong[0]
