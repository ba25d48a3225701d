"""A sample of the hostile names; `make drill` goes on."""

from tests.drills import hostile_names


def test_five_thousand_messages_are_read_as_they_were_meant() -> None:
    assert not hostile_names.run(seed=7, count=5_000)


def test_a_prefix_would_be_found_out() -> None:
    assert hostile_names.run(seed=7, count=1_000, write=lambda said, _: f"[{said.author.name}] {said.text}")
