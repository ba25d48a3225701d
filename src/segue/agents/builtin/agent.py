"""The built-in agent: no model, no network; it answers from what was said in the session, the same way every time.

What it understands, whoever says it and in capitals or not:

    hello                                  and: help
    what did I say first? (or: last?)      and: what did NAME say first?
    how many messages do you remember?
    remember SOMETHING                     and later: what do you remember?
    who is here?                           the people who spoke, by name
    where are we?                          what the gateway told it about this place
    sum up
    say SOMETHING                          exactly that
    add 2 and 3                            uses a tool, once even if the turn is tried again
    count to 20 slowly                     streams for five seconds; without "slowly" at once
    write 2000 words                       more than most platforms take in one message
    hang                                   says nothing until it is stopped
    fail                                   raises an error, so that the turn fails

Whatever else is said it repeats, with what was said before. What is said while it answers, and given to it by the
gateway, it answers at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from segue.agents.builtin.memory import Memory, sum_up
from segue.agents.builtin.replies import PAUSE, Hang, Wait, reply
from segue.core.contracts.agents import Event, SummedUp, Usage, Work
from segue.core.messages import Text, plain_text
from segue.core.transcripts import Draft, Entry
from segue.core.values import Value


class Builtin:
    """Answers without a model."""

    window = 0

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._todo: dict[tuple[str, int], list[Draft]] = {}

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """The reply, word by word."""
        todo = self._todo[work.session, work.turn] = list(work.asked)
        done: list[Draft] = []
        words = 0
        try:
            while todo:
                draft = todo.pop(0)
                if done:
                    yield Text("\n\n")
                for step in reply(draft, Memory(work, done, draft.author)):
                    if isinstance(step, Wait):
                        await self._sleep(PAUSE)
                    elif isinstance(step, Hang):
                        await asyncio.Event().wait()
                    else:
                        words += len(step.text.split()) if isinstance(step, Text) else 0
                        yield step
                        await asyncio.sleep(0)
                done.append(draft)
        finally:
            del self._todo[work.session, work.turn]
        read = sum(_words(entry) for entry in work.transcript) + sum(_words(draft) for draft in done)
        yield Usage("builtin", input=read, output=words, cost=0.0)

    async def summary(self, work: Work, focus: str) -> SummedUp:  # noqa: ARG002 -- it keeps the same whatever matters
        """What is worth keeping of what was said."""
        text = sum_up(work) or "Nobody said anything."
        read = sum(_words(entry) for entry in work.transcript)
        return SummedUp(text, (Usage("builtin", input=read, output=len(text.split()), cost=0.0),))

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Take in what was said meanwhile, to be answered next; False once everything is answered."""
        todo = self._todo.get((work.session, work.turn))
        if todo is None:
            return False
        todo += more
        return True


def _words(item: Entry | Draft) -> int:
    return len(plain_text(item.parts).split())


class BuiltinKeys(Value, frozen=True):
    """The built-in agent has nothing to set."""

    def agent(self) -> Builtin:
        """The agent that answers."""
        return Builtin()
