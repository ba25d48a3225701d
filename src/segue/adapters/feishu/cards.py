"""Cards: what streams, and what has buttons.

Law: the changes of a card are numbered, each above the last, whoever makes them; so a number is the time, in tenths of
a second, which is also how many Feishu takes. A card streams from its first text until its final one, which replaces
all of it and ends that in one call: whoever takes over a reply sends the final text, and so ends its card.
"""

import json

from segue.adapters.feishu.api import Api, Json, OutOfOrder, StreamEnded
from segue.adapters.shared.lookups import Recent
from segue.adapters.shared.rates import Limiter, Rate
from segue.core.contracts.database import Clock
from segue.core.questions import buttons
from segue.errors import MessageGone, SendNever

_TEXT = "text"
"""The id of the text in each card."""
_TICKS = 10
_NUMBERS = 1 << 31
_AHEAD = 3600 * _TICKS
"""As far as the clock of another machine may be ahead."""
_MANY = 1000
_SUMMARY = 60
_LONGEST_BUTTON = 200


class Card:
    """The card that a message is."""

    def __init__(self, id: str, *, is_sure: bool) -> None:
        self.id = id
        """Empty, if the message is none."""
        self.is_sure = is_sure
        """Whether an earlier attempt can't have sent the message with another card."""
        self.last = 0
        """The number of its last change."""


class Cards:
    """The cards of one app."""

    def __init__(self, api: Api, limiter: Limiter, pace: Rate, clock: Clock) -> None:
        self._api = api
        self._limiter = limiter
        self._pace = pace
        self._clock = clock
        self._cards = Recent[str, Card](_MANY)
        """By the messages that were sent or changed not long ago."""

    async def make(self, shown: Json) -> str:
        """A new card, which isn't shown anywhere yet."""
        return str((await self._api.call("POST", "/cardkit/v1/cards", _as_json(shown)))["card_id"])

    def sent(self, message: str, id: str = "") -> None:
        """Remember a message, and the card that was made for it."""
        self._cards[message] = Card(id, is_sure=not id)

    def knows(self, message: str) -> bool:
        """Whether a message is one that was sent not long ago."""
        return message in self._cards

    async def of(self, message: str) -> Card:
        """The card that a message is, as Feishu says; else the one that was made for it."""
        card = self._cards.get(message) or Card("", is_sure=False)
        if not card.is_sure:
            try:
                found = await self._api.call("POST", "/cardkit/v1/cards/id_convert", {"message_id": message})
            except MessageGone:
                raise
            except SendNever:
                found = {}
            card = self._cards[message] = Card(str(found.get("card_id") or card.id), is_sure=True)
        return card

    async def grow(self, card: Card, text: str, whole: Json) -> None:
        """Show more of a text that isn't final; a card that has ended meanwhile begins again."""
        try:
            await self._change(card, f"/elements/{_TEXT}/content", {"content": text})
        except StreamEnded:
            await self.replace(card, whole)

    async def replace(self, card: Card, whole: Json) -> None:
        """Show another card in its place, which also says whether it streams."""
        await self._change(card, "", {"card": _as_json(whole)})

    async def _change(self, card: Card, path: str, body: Json) -> None:
        await self._limiter.turn({f"card/{card.id}": self._pace})
        try:
            await self._numbered(card, path, body)
        except OutOfOrder:
            # Somebody else changed it whose clock is ahead.
            card.last += _AHEAD
            await self._numbered(card, path, body)

    async def _numbered(self, card: Card, path: str, body: Json) -> None:
        tick = int(self._clock() * _TICKS) % _NUMBERS
        card.last = min(max(tick, card.last + 1), _NUMBERS - 1)
        await self._api.call("PUT", f"/cardkit/v1/cards/{card.id}{path}", {**body, "sequence": card.last})


def shown(text: str, thread: str, choices: tuple[str, ...] = (), *, streams: bool = False) -> Json:
    """A card with a text, and buttons beneath it; each says what was chosen, and where."""
    elements: list[Json] = [{"tag": "markdown", "element_id": _TEXT, "content": text}]
    for choice, words in buttons(choices, _LONGEST_BUTTON):
        pressed = [{"type": "callback", "value": {"choice": choice, "thread": thread}}]
        elements.append({"tag": "button", "text": {"tag": "plain_text", "content": words}, "behaviors": pressed})
    config: Json = {"update_multi": True, "streaming_mode": streams, "enable_forward_interaction": False}
    if not streams:
        config["summary"] = {"content": text[:_SUMMARY]}
    return {"schema": "2.0", "config": config, "body": {"elements": elements}}


def _as_json(card: Json) -> Json:
    return {"type": "card_json", "data": json.dumps(card, ensure_ascii=False)}
