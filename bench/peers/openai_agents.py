"""openai-agents: its SQLiteSession, one object a conversation."""

import sqlite3
from pathlib import Path
from typing import Any

from agents import SQLiteSession

from bench.peers.peer import ANSWER, QUESTION, serve

_QUESTION: dict[str, Any] = {"role": "user", "content": QUESTION}
_ANSWER: dict[str, Any] = {"role": "assistant", "content": ANSWER}


class OpenaiAgents:
    def __init__(self, path: Path) -> None:
        self._path = path

    async def fill(self, conversations: int) -> None:
        await self._session(0).add_items([_QUESTION, _ANSWER])
        # One conversation was had through its own calls; the others are copies of its rows.
        with sqlite3.connect(self._path) as connection:
            for number in range(1, conversations):
                connection.execute(
                    "insert into agent_sessions select ?, created_at, updated_at from agent_sessions "
                    "where session_id = 'c0'",
                    (f"c{number}",),
                )
                connection.execute(
                    "insert into agent_messages (session_id, message_data, created_at) "
                    "select ?, message_data, created_at from agent_messages where session_id = 'c0'",
                    (f"c{number}",),
                )

    async def turn(self, conversation: int) -> None:
        session = self._session(conversation)
        await session.get_items()
        await session.add_items([_QUESTION])
        await session.add_items([_ANSWER])
        session.close()

    async def find(self, conversation: int) -> int:
        session = self._session(conversation)
        found = await session.get_items()
        session.close()
        return len(found)

    async def close(self) -> None:
        """Nothing stays open between two calls."""

    def _session(self, conversation: int) -> Any:
        return SQLiteSession(f"c{conversation}", self._path)


async def _open(path: Path) -> OpenaiAgents:
    return OpenaiAgents(path)


if __name__ == "__main__":
    serve(_open)
