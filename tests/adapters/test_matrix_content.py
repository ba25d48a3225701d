"""What goes out on Matrix: whom it calls."""

import pytest

from segue.adapters.matrix.content import edited, mention, message


@pytest.mark.parametrize("user", ["@ann:example.org", "@ann_lee_:example.org:8448", "@a/n=n:example.org"])
def test_who_is_mentioned_by_their_id_is_called(user: str) -> None:
    said = f"{mention(user)}, {mention(user)}: look"
    sent = message(said)
    assert sent["m.mentions"] == {"user_ids": [user]}
    assert f">{user}</a>" in sent["formatted_body"]
    # Not again with each word that comes.
    grown = edited("$1", said)
    assert grown["m.mentions"] == {}
    assert grown["m.new_content"]["m.mentions"] == {"user_ids": [user]}


def test_who_is_only_named_is_not_called() -> None:
    for said in ("@ann:example.org", "see https://matrix.to/#/@ann:example.org", "[a room](https://matrix.to/#/!r:h)"):
        assert message(said)["m.mentions"] == {}
