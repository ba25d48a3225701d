"""A seeded sample of forged and replayed webhooks; `make drill` takes a million for each proof."""

import importlib
import pkgutil
from inspect import isfunction
from pathlib import Path
from typing import get_args

from segue import adapters
from segue.adapters.http.signature import Version
from tests.drills import forgeries
from tests.drills.forgers import FORGERS


def test_every_webhook_has_somebody_who_forges_its_proof() -> None:
    modules = [each.name for each in pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}.")]
    known = [value for name in modules for value in vars(importlib.import_module(name)).values()]
    called = {each for each in known if isinstance(each, type) and isfunction(vars(each).get("webhook"))}
    assert {forger.adapter for forger in FORGERS.values()} == called
    assert {f"http {version}" for version in get_args(Version)} < set(FORGERS)


async def test_no_forged_or_replayed_call_becomes_a_turn_also_after_a_restart(tmp_path: Path) -> None:
    found = await forgeries.run(tmp_path, count=1_000, seed=7)
    assert found.wrong == []
    for proof, forger in FORGERS.items():
        refused = sum(found.answers.get(f"{proof} {status}", 0) for status in (401, 403))
        assert refused + found.answers.get(f"{proof} 200", 0) == 1_000
        assert refused == 1_000 if not forger.taken else 500 < refused < 950


async def test_nor_does_one_that_comes_over_a_socket(tmp_path: Path) -> None:
    found = await forgeries.over_the_socket(str(tmp_path / "segue.db"), count=120, seed=7)
    assert found.wrong == []
