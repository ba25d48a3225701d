"""google-adk: its SQLite session service."""

import sqlite3
from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part

from bench.peers.peer import ANSWER, QUESTION, serve

_APP = "bench"


class GoogleAdk:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._service = SqliteSessionService(str(path))

    async def fill(self, conversations: int) -> None:
        await self._service.create_session(app_name=_APP, user_id="u0", session_id="c0")
        await self.turn(0)
        # One conversation was had through its own calls; the others are copies of its rows.
        with sqlite3.connect(self._path) as connection:
            for number in range(1, conversations):
                ids = (f"u{number}", f"c{number}")
                connection.execute(
                    "insert into sessions select app_name, ?, ?, state, create_time, update_time from sessions "
                    "where id = 'c0'",
                    ids,
                )
                connection.execute(
                    "insert into events select id, app_name, ?, ?, invocation_id, timestamp, event_data from events "
                    "where session_id = 'c0'",
                    ids,
                )

    async def turn(self, conversation: int) -> None:
        session = await self._session(conversation)
        asked = Event(author="user", invocation_id="i", content=Content(role="user", parts=[Part(text=QUESTION)]))
        await self._service.append_event(session, asked)
        answer = Event(author="agent", invocation_id="i", content=Content(role="model", parts=[Part(text=ANSWER)]))
        await self._service.append_event(session, answer)

    async def find(self, conversation: int) -> int:
        return len((await self._session(conversation)).events)

    async def close(self) -> None:
        """Nothing stays open between two calls."""

    async def _session(self, conversation: int) -> Any:
        return await self._service.get_session(app_name=_APP, user_id=f"u{conversation}", session_id=f"c{conversation}")


async def _open(path: Path) -> GoogleAdk:
    return GoogleAdk(path)


if __name__ == "__main__":
    serve(_open)
