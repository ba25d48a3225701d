"""A gateway without a free file descriptor for a while: `python -m tests.drills.descriptors PATH COUNT BUG`.

Meanwhile people talk. Each message that was accepted is answered, once; nobody waits for a commit that was done.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from segue.errors import StoreError
from segue.testing.waits import PATIENCE
from tests.drills.planting import Bug, planted
from tests.drills.room import Wall, said, settings
from tests.in_process import gateway_on
from tests.today import file_of_today

ROOT = Path(__file__).parents[2]


def run(where: str, messages: int, bug: Bug = Bug.NONE) -> list[str]:
    """Run it in a process of its own; returns what is wrong."""
    command = [sys.executable, "-m", "tests.drills.descriptors", where, str(messages), bug.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"it ended with {done.returncode}: {done.stderr[-1000:]}"]
    wrong: list[str] = json.loads(done.stdout)
    return wrong


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Use up every file descriptor that this process may have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    used: list[int] = []
    try:
        while True:
            try:
                used.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for descriptor in used:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def _play(where: str, messages: int, patience: float) -> list[str]:
    wall, names = Wall(lambda _what, _of: None), [f"chat-{n % 7}-{n}" for n in range(messages)]

    def all_answered() -> bool:
        return all(wall.answers(name) for name in names)

    async with gateway_on(file_of_today(Path(where)), _repeat, wall, settings=settings()) as gateway:

        async def say(name: str) -> None:
            while True:
                try:
                    await gateway.accept(said(name.rpartition("-")[0], name))
                except StoreError:
                    await asyncio.sleep(0.01)
                else:
                    return

        with no_descriptors():
            calls = {name: asyncio.create_task(say(name)) for name in names}
            _, unheard = await asyncio.wait(calls.values(), timeout=patience)
        wrong = [f"whoever sent {name} never heard whether it is kept" for name in names if calls[name] in unheard]
        for call in unheard:
            call.cancel()
        if not wrong and not await _comes(all_answered, patience):
            wrong = [f"{name} was never answered" for name in names if not wall.answers(name)]
    return wrong + [f"{name} was answered twice" for name in names if len(wall.answers(name)) > 1]


async def _repeat(text: str) -> str:
    return text


async def _comes(so: Callable[[], bool], patience: float) -> bool:
    for _ in range(int(patience / 0.01)):
        if so():
            return True
        await asyncio.sleep(0.01)
    return False


if __name__ == "__main__":
    _, there, count, name = sys.argv
    chosen = Bug[name]
    with planted(*chosen.patches):
        found = asyncio.run(_play(there, int(count), PATIENCE if chosen is Bug.NONE else 3.0))
    sys.stdout.write(json.dumps(found))
