"""langgraph: a graph of one node with its SQLite saver."""

import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.peers.peer import ANSWER, QUESTION, serve


async def _answer(_: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(ANSWER)]}


class Langgraph:
    def __init__(self, path: Path, connection: aiosqlite.Connection, graph: Any) -> None:
        self._path = path
        self._connection = connection
        self._graph = graph

    async def fill(self, conversations: int) -> None:
        await self.turn(0)
        # One conversation was had through its own calls; the others are copies of its rows.
        with sqlite3.connect(self._path) as connection:
            for table in ("checkpoints", "writes"):
                columns = [name for _, name, *_ in connection.execute(f"pragma table_info({table})")][1:]
                copied = ", ".join(columns)
                for number in range(1, conversations):
                    connection.execute(
                        f"insert into {table} (thread_id, {copied}) select ?, {copied} from {table} "
                        "where thread_id = 'c0'",
                        (f"c{number}",),
                    )

    async def turn(self, conversation: int) -> None:
        await self._graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, _config(conversation))

    async def find(self, conversation: int) -> int:
        state = await self._graph.aget_state(_config(conversation))
        return len(state.values["messages"])

    async def close(self) -> None:
        await self._connection.close()


def _config(conversation: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"c{conversation}"}}


async def _open(path: Path) -> Langgraph:
    connection = await aiosqlite.connect(path)
    graph = StateGraph(MessagesState)
    graph.add_node("answer", _answer)
    graph.add_edge(START, "answer")
    return Langgraph(path, connection, graph.compile(checkpointer=AsyncSqliteSaver(connection)))


if __name__ == "__main__":
    serve(_open)
