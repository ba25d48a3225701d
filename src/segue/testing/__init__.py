"""For authors of adapters and agents: working fakes, and the contracts that adapters and agents must keep.

The contracts are in `segue.testing.contracts`. Only they need pytest and pytest-asyncio.
"""

from segue.testing.agents import Doom, EchoAgent, Pause, ScriptedAgent, Slowly, SteeredAgent, Uses
from segue.testing.asgi import post
from segue.testing.chats import Chat, Someone, To
from segue.testing.fake_harness import FakeHarness
from segue.testing.faults import Call, Fault, RateLimit
from segue.testing.harness import Bookmark, Chest, Edits, Forges, Given, Harness, Quotes, Seen, living
from segue.testing.inbox import Inbox, Shelf
from segue.testing.personas import PERSONAS, Discord, Feishu, Matrix, Persona, Signal, Slack, Telegram, WhatsApp
from segue.testing.platform import Platform
from segue.testing.waits import HandClock, NeverCame

__all__ = [
    "PERSONAS",
    "Bookmark",
    "Call",
    "Chat",
    "Chest",
    "Discord",
    "Doom",
    "EchoAgent",
    "Edits",
    "FakeHarness",
    "Fault",
    "Feishu",
    "Forges",
    "Given",
    "HandClock",
    "Harness",
    "Inbox",
    "Matrix",
    "NeverCame",
    "Pause",
    "Persona",
    "Platform",
    "Quotes",
    "RateLimit",
    "ScriptedAgent",
    "Seen",
    "Shelf",
    "Signal",
    "Slack",
    "Slowly",
    "Someone",
    "SteeredAgent",
    "Telegram",
    "To",
    "Uses",
    "WhatsApp",
    "living",
    "post",
]
