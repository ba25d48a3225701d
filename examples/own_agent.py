"""An agent of your own: a function answers, and keeps its conversation over a restart of the gateway."""

import asyncio
import sys
import tempfile
from pathlib import Path

from segue import Role, open_store
from segue.core.contracts.agents import Work
from segue.core.settings import AccountSettings, GatewaySettings
from segue.runtime.gateway import Gateway
from segue.testing import Telegram


async def reply(text: str, work: Work) -> str:
    before = [entry.text for entry in work.transcript if entry.author.role is Role.PERSON]
    return f"You said {text!r}; before that: {' '.join(before) or 'nothing'}"


async def main(database: str) -> None:
    platform = Telegram()  # a chat platform in memory, in Telegram's shape
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    settings = GatewaySettings(accounts={(platform.name, platform.account): AccountSettings(public=True)})
    for text, answer in [
        ("I like tea.", "You said 'I like tea.'; before that: nothing"),
        ("And cake.", "You said 'And cake.'; before that: I like tea."),
    ]:
        async with await open_store(database) as store, Gateway(store, reply, [platform.adapter()], settings):
            ann.says(text, chat)
            print("Ann:", text)
            print("Agent:", (await chat.reads(answer)).text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "segue.db")))
