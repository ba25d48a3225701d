"""What one person says in one session stays there: everything that leaves the process is searched for it."""

import asyncio
import re
from pathlib import Path

import httpx2

from segue.core.transcripts import Role
from tests.drills.gateways import SECRET
from tests.stories.conftest import Stage

PEOPLE = ("ann", "bob", "cem", "dea")


def canaries(text: str) -> set[str]:
    """Whose words are in a text."""
    return set(re.findall(r"canary-([a-z]+)", text))


async def test_no_words_of_one_session_are_in_another_or_in_a_log_metric_or_error(stage: Stage, tmp_path: Path) -> None:
    town = stage.town
    log, spy = tmp_path / "log", tmp_path / "spy"
    answers = []
    async with stage.gateway(log=str(log), spy=str(spy), pace=0.01):
        for n in range(3):
            said = [
                town.call(
                    name,
                    f"{name}-message-{n}",
                    person={"id": f"canary-{name}-id", "name": f"canary-{name}-name"},
                    text=f"{'please raise ' if n == 1 else ''}canary-{name}-text {n}",
                )
                for name in PEOPLE
            ]
            answers += [answer.text for answer in await asyncio.gather(*said)]
            for name in PEOPLE:
                await town.hears(name, "I stopped trying" if n == 1 else f"canary-{name}-text {n}")
        # What can't be understood is told to the caller who sent it, and to nobody else.
        await town.call("ann", "ann-message-9", chat_kind="canary-ann-broken")
        await town.call("ann", "ann-message-9", person="canary-ann")
        forged = httpx2.post(f"http://127.0.0.1:{town.port}/in/http/alpha", content=b"canary-ann-forged")
        answers.append(forged.text)
        answers.append(await town.health(200))
        answers.append(httpx2.get(f"http://127.0.0.1:{town.port}/metrics").text)
    for name in PEOPLE:
        assert all(canaries(text) <= {name} for text in town.texts(name))
    works = spy.read_text().splitlines()
    assert len(works) >= 3 * len(PEOPLE)
    assert all(len(canaries(work)) == 1 for work in works)
    lines = log.read_text()
    assert "failed" in lines
    assert not canaries(lines)
    assert SECRET not in lines
    assert not canaries("".join(answers))
    assert Role.PERSON in works[-1]
