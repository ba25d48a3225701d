"""What a platform delivers, decoded."""

from segue.adapters.shared.decoding import text_in


def test_a_text_is_read_wherever_it_is_and_whatever_is_there_instead() -> None:
    told = {"topic": {"value": "Tea", "half": "a\ud800"}, "size": 7, "none": None}
    assert text_in(told, "topic", "value") == "Tea"
    assert text_in(told, "topic", "half") == "a?", "it could be told and not be written"
    nowhere = (("topic",), ("size",), ("none",), ("else",), ("size", "value"), ("topic", "value", "more"))
    assert [text_in(told, *path) for path in nowhere] == [""] * len(nowhere)
    assert not text_in(["topic"], "topic")
