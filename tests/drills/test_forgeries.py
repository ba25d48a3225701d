"""A seeded sample of forged and replayed webhooks; `make drill` takes a million."""

from pathlib import Path

from tests.drills import forgeries


async def test_no_forged_or_replayed_call_becomes_a_turn_also_after_a_restart(tmp_path: Path) -> None:
    found = await forgeries.run(tmp_path, count=8_000, seed=7)
    assert found.wrong == []
    statuses = [
        f"{name} {status}" for name in ("http", "telegram", "slack", "feishu", "whatsapp") for status in (200, 401)
    ]
    assert min(found.answers[each] for each in statuses) > 100


async def test_nor_does_one_that_comes_over_a_socket(tmp_path: Path) -> None:
    found = await forgeries.over_the_socket(str(tmp_path / "segue.db"), count=120, seed=7)
    assert found.wrong == []
