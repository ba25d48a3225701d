"""A fresh process that takes one message in: `python -m bench.first segue|raw DATABASE SESSIONS`."""

import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path

from bench.ours import Segue
from bench.raw import RawStore, who
from bench.texts import ANSWER, QUESTION


async def segue(path: Path, number: int) -> float:
    began = time.perf_counter()
    store = await Segue.sqlite(path)
    run = await store.accept(number)
    routed = time.perf_counter() - began
    await store.finish(run)
    await store.close()
    return routed


async def raw(path: Path, number: int) -> float:
    chat, owner = who(number)
    began = time.perf_counter()
    store = RawStore(path)
    session, seq = store.raw.accept(chat, owner, f"first.{began}", QUESTION)
    routed = time.perf_counter() - began
    store.raw.finish(chat, session, seq, QUESTION, ANSWER)
    store.close()
    return routed


def memory() -> int:
    """Bytes that this process holds now, or has held at most where the system doesn't tell."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    which = {"segue": segue, "raw": raw}[sys.argv[1]]
    taken = asyncio.run(which(Path(sys.argv[2]), random.randrange(int(sys.argv[3]))))
    print(json.dumps({"routed": taken, "memory": memory()}))
