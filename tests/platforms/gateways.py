"""Gateways as a segue.toml describes them, each a process of its own that can be killed at any moment or at a label.

What they are given to answer is written down, a line of JSON a turn.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from segue.adapters.feishu import Feishu, FeishuAccount
from segue.adapters.slack import Slack, SlackAccount
from segue.adapters.telegram import Telegram, TelegramAccount, TelegramByWebhook
from segue.adapters.whatsapp import WhatsApp, WhatsAppAccount
from segue.cli.gateway import gateway
from segue.config import load
from segue.config.accounts import AccountTable
from segue.core.contracts.adapters import Files
from segue.core.contracts.agents import Agent, Event, Work
from segue.core.contracts.probes import Point
from segue.core.handoffs import Patience
from segue.core.messages import Aside, Text, ToolCall, plain_text
from segue.core.values import Value
from segue.runtime.server.listeners import Listener
from segue.runtime.telemetry import logs
from tests import forge
from tests.contracts.test_feishu import BRISK as BRISK_FEISHU
from tests.contracts.test_slack import BRISK as BRISK_SLACK
from tests.contracts.test_telegram import BRISK
from tests.contracts.test_whatsapp import BRISK as BRISK_WHATSAPP
from tests.drills.gateways import sent

WIRE = "wire.jsonl"
"""In the home: what the agent was given."""
DEADLY = "deadly"
"""In the home: the label at which the process kills itself, and the how-manieth time; removed when it does."""
LOG = "log.txt"


class Plan(Value, frozen=True):
    """How a gateway is to be run."""

    home: str
    """The folder of its segue.toml, where it also keeps what it remembers."""
    port: int


class Recalls:
    """An agent that says again what it was asked, tells in a new place all that it remembers, and starts sessions.

    It has no memory of an earlier attempt: it never looks at the journal, and gives every call a new id.
    """

    def __init__(self, wire: Path) -> None:
        self._wire = wire

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        with self._wire.open("a") as wire:
            wire.write(f"{sent(work)}\n")
        said = [plain_text(draft.parts) for draft in work.asked]
        if any(isinstance(part, Aside) and "just moved" in part.text for draft in work.asked for part in draft.parts):
            yield Text("Here I am. ")
            await asyncio.sleep(0)
            yield Text("I remember: " + " | ".join(entry.text for entry in work.transcript if entry.text))
        elif said[0].startswith("start "):
            task = said[0].removeprefix("start ")
            # Without a label, which no second one could have: only the call's own key keeps it from being made twice.
            arguments = {"task": task, "mode": "session", "thread": True}
            call = ToolCall(os.urandom(8).hex(), "sessions_spawn", arguments)
            yield call
            yield await work.tools.call(call)
            yield Text(f"Started: {task}")
        else:
            yield Text("You said: ")
            await asyncio.sleep(0)
            yield Text(" + ".join(said))


class MakesRecalls(Value, frozen=True):
    """The agent, in the place of what segue.toml says."""

    wire: Path

    def agent(self) -> Agent:
        return Recalls(self.wire)


class Brisk(Value, frozen=True):
    """A Telegram account that may write as fast as it can: crabline allows it."""

    keys: TelegramAccount

    def adapter(self, account: str, files: Files) -> Telegram:
        token, api, webhook = self.keys.token, self.keys.api, self.keys.webhook
        if webhook:
            return TelegramByWebhook(account, token, files, api, webhook=webhook, pace=BRISK)
        return Telegram(account, token, files, api, pace=BRISK)


class BriskSlack(Value, frozen=True):
    """A Slack account that may write as fast as it can: local-slack allows it."""

    keys: SlackAccount

    def adapter(self, account: str, files: Files) -> Slack:
        return self.keys.adapter(account, files, BRISK_SLACK)


class BriskWhatsApp(Value, frozen=True):
    """A WhatsApp account that may write as fast as it can, and doesn't wait long for word of what it wrote."""

    keys: WhatsAppAccount

    def adapter(self, account: str, files: Files) -> WhatsApp:
        made = self.keys.adapter(account, files, BRISK_WHATSAPP)
        assert isinstance(made, WhatsApp)
        made.reports_within = 3.0
        return made


class BriskFeishu(Value, frozen=True):
    """A Feishu account that may write as fast as it can: crabline allows it."""

    keys: FeishuAccount

    def adapter(self, account: str, files: Files) -> Feishu:
        return self.keys.adapter(account, files, BRISK_FEISHU)


def _hurried(account: AccountTable) -> AccountTable:
    keys = account.keys
    if isinstance(keys, WhatsAppAccount):
        return msgspec.structs.replace(account, keys=BriskWhatsApp(keys))
    if isinstance(keys, FeishuAccount):
        return msgspec.structs.replace(account, keys=BriskFeishu(keys))
    if isinstance(keys, SlackAccount):
        return msgspec.structs.replace(account, keys=BriskSlack(keys))
    return msgspec.structs.replace(account, keys=Brisk(keys)) if isinstance(keys, TelegramAccount) else account


def die_at(home: Path, label: str, times: int) -> None:
    """Have the gateway of a home kill itself at a label; whoever reads this meanwhile reads all of it or nothing."""
    (home / f"{DEADLY}.new").write_text(f"{label} {times}")
    (home / f"{DEADLY}.new").rename(home / DEADLY)


def _probe(home: Path) -> Callable[[Point], None]:
    deadly = home / DEADLY

    def probe(point: Point) -> None:
        with contextlib.suppress(FileNotFoundError):
            label, times = deadly.read_text().rsplit(" ", 1)
            if label != point:
                return
            if int(times) > 1:
                die_at(home, label, int(times) - 1)
                return
            deadly.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    return probe


async def _run(plan: Plan) -> None:
    home = Path(plan.home)
    config = load(home / "segue.toml", {"SEGUE_HOME": plan.home})
    accounts = tuple(map(_hurried, config.accounts))
    # Where the machine has much else to do, a gateway that died may take a minute to be there again.
    patient = msgspec.structs.replace(config.gateway, handoff=Patience(progress=300.0))
    config = msgspec.structs.replace(config, agents={"": MakesRecalls(home / WIRE)}, accounts=accounts, gateway=patient)
    async with gateway(config, Listener("127.0.0.1", plan.port), _probe(home)) as running:
        await asyncio.wait(running.tasks, return_when=asyncio.FIRST_COMPLETED)


def _main(plan: Plan) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.start((Path(plan.home) / LOG).open("a", buffering=1), [])  # as long as the process
    asyncio.run(_run(plan))


def start(plan: Plan) -> BaseProcess:
    """Start a gateway as a process of its own."""
    return forge.start(_main, plan)
