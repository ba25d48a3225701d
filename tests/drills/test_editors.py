"""A short sample of the drill with two editors, Telegram and the page; `make drill` says 200 things."""

from tests.drills import editors
from tests.servers import modules


async def test_one_session_in_editors_telegram_and_the_page_loses_doubles_and_mixes_nothing() -> None:
    modules()
    found = await editors.run(each=5, kills=3, seed=7)
    assert found.wrong == []
    assert len(found.kills) == 3
