"""The watchdog: what holds everybody up is named and counted, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from segue.runtime.telemetry.logs import Lines
from segue.runtime.telemetry.metrics import Metrics
from segue.runtime.telemetry.watchdog import Watchdog
from segue.testing.personas import Telegram
from tests.in_process import gateway_on

STALLS = "segue_event_loop_stalls_total"


def stalls(metrics: Metrics) -> float:
    lines = metrics.text().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{STALLS} "))


async def test_an_agent_that_blocks_is_named_by_its_turn_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def sleeps(text: str) -> str:
        while not (found := named()):
            time.sleep(0.01)  # noqa: ASYNC251 -- what agents must not do
        return f"slept over {text} {len(found)} time"

    def named() -> list[dict[str, Any]]:
        lines = [json.loads(Lines().format(record)) for record in caplog.records if "still" in record.getMessage()]
        return [line for line in lines if line["stack"][-1].endswith("in sleeps")]

    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with gateway_on(tmp_path, sleeps, platform) as gateway:
        before = stalls(gateway.metrics)
        ann.says("canary", dm)
        await dm.reads("slept over canary 1 time")
        assert stalls(gateway.metrics) > before
    [line] = named()
    assert "stands still in turn 1 of session" in line["event"]
    assert ", trace " in line["event"]
    assert line["stack"][-1].startswith(__file__)
    assert line["stack"][-1].endswith("in sleeps")
    assert "canary" not in json.dumps(line)


async def test_one_that_stands_is_counted_once_and_again_when_it_stands_again(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    watch = asyncio.create_task(Watchdog(metrics, 0.4).run())
    for _ in range(2):
        # Long enough for the loop to be heard of again.
        await asyncio.sleep(0.2)
        before = stalls(metrics)
        while stalls(metrics) == before:
            time.sleep(0.01)  # noqa: ASYNC251 -- the trouble itself
        time.sleep(0.3)  # noqa: ASYNC251 -- time to be counted again
        assert stalls(metrics) == before + 1
    watch.cancel()
    await asyncio.wait([watch])
    assert len(caplog.records) == stalls(metrics)


async def test_it_ends_with_its_loop_and_minds_no_waiting() -> None:
    metrics = Metrics()
    watch = asyncio.create_task(Watchdog(metrics, 30.0).run())
    await asyncio.sleep(0.1)
    [thread] = [thread for thread in threading.enumerate() if thread.name == "watchdog"]
    watch.cancel()
    await asyncio.wait([watch])
    await asyncio.to_thread(thread.join, 20.0)
    assert not thread.is_alive()
    assert stalls(metrics) == 0
