"""The built-in agent with more requests: "hang" says nothing until it is stopped, "fail" raises, "ask" asks back."""

import asyncio
from collections.abc import AsyncIterator

from segue.agents.builtin.agent import Builtin
from segue.core.contracts.agents import Event, Work
from segue.core.messages import Text
from segue.testing.agents import said


class Troubled(Builtin):
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        if said(work) == "hang":
            await asyncio.Event().wait()
        if said(work) == "ask":
            yield Text(f"Tea with {await work.ask('Milk or lemon?', choices=('milk', 'lemon'))}.")
            return
        if said(work) == "fail":
            raise RuntimeError("I was asked to fail.")
        async for event in super().answer(work):
            yield event


agent = Troubled()
