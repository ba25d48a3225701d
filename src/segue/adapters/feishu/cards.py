"""Cards: what streams, and what has buttons.

Law: the changes of a card are numbered, each above the last, whoever makes them; so a number is the time, in tenths of
a second, which is also how many Feishu takes. A card streams from its first text until its final one, which replaces
all of it and ends that in one call: whoever takes over a reply sends the final text, and so ends its card.
"""

import json
import time
from typing import TypeVar

from segue.adapters.feishu.api import Api, Json, OutOfOrder, StreamEnded
from segue.adapters.shared.rates import Limiter, Rate
from segue.core.contracts.database import Clock
from segue.core.questions import label
from segue.errors import MessageGone, SendNever

T = TypeVar("T")
_TEXT = "text"
"""The id of the text in each card."""
_TICKS = 10
_NUMBERS = 1 << 31
_AHEAD = 3600 * _TICKS
"""As far as the clock of another machine may be ahead."""
_MANY = 1000
_SUMMARY = 60
_LONGEST_BUTTON = 200


class Cards:
    """The cards of one app."""

    def __init__(self, api: Api, limiter: Limiter, pace: Rate, clock: Clock = time.time) -> None:
        self._api = api
        self._limiter = limiter
        self._pace = pace
        self._clock = clock
        self._cards: dict[str, str] = {}
        """The card of each message; empty, if it is none."""
        self._made: dict[str, str] = {}
        """The card that was made for a message: the message's own, unless an earlier attempt had sent it already."""
        self._last: dict[str, int] = {}

    async def make(self, card: Json) -> str:
        """A new card, which isn't shown anywhere yet."""
        return str((await self._api.call("POST", "/cardkit/v1/cards", _as_json(card)))["card_id"])

    def is_none(self, message: str) -> None:
        """Remember that a message is no card."""
        _keep(self._cards, message, "")

    def made_for(self, message: str, card: str) -> None:
        """Remember the card that was made for a message."""
        _keep(self._made, message, card)

    def knows(self, message: str) -> bool:
        """Whether a message is one that was sent not long ago."""
        return message in self._cards or message in self._made

    async def of(self, message: str) -> str:
        """The card that a message is; empty, if it is none."""
        if message not in self._cards:
            try:
                found = await self._api.call("POST", "/cardkit/v1/cards/id_convert", {"message_id": message})
            except MessageGone:
                raise
            except SendNever:
                found = {}
            _keep(self._cards, message, str(found.get("card_id") or self._made.get(message, "")))
        return self._cards[message]

    async def grow(self, card: str, text: str, whole: Json) -> None:
        """Show more of a text that isn't final; a card that has ended meanwhile begins again."""
        try:
            await self._change(card, f"/elements/{_TEXT}/content", {"content": text})
        except StreamEnded:
            await self.replace(card, whole)

    async def replace(self, card: str, whole: Json) -> None:
        """Show another card in its place, which also says whether it streams."""
        await self._change(card, "", {"card": _as_json(whole)})

    async def _change(self, card: str, path: str, body: Json) -> None:
        await self._limiter.turn({f"card/{card}": self._pace})
        try:
            await self._api.call("PUT", f"/cardkit/v1/cards/{card}{path}", {**body, "sequence": self._number(card)})
        except OutOfOrder:
            # Somebody else changed it whose clock is ahead.
            self._last[card] = self._number(card) + _AHEAD
            await self._api.call("PUT", f"/cardkit/v1/cards/{card}{path}", {**body, "sequence": self._number(card)})

    def _number(self, card: str) -> int:
        tick = int(self._clock() * _TICKS) % _NUMBERS
        number = min(max(tick, self._last.get(card, 0) + 1), _NUMBERS - 1)
        _keep(self._last, card, number)
        return number


def card(text: str, thread: str, choices: tuple[str, ...] = (), *, streams: bool = False) -> Json:
    """A card with a text, and buttons beneath it; each says what was chosen, and where."""
    fit = [choice for choice in dict.fromkeys(choices) if 0 < len(choice) <= _LONGEST_BUTTON]
    buttons = [
        {
            "tag": "button",
            "text": {"tag": "plain_text", "content": label(choice)},
            "behaviors": [{"type": "callback", "value": {"choice": choice, "thread": thread}}],
        }
        for choice in fit
    ]
    config: Json = {"update_multi": True, "streaming_mode": streams, "enable_forward_interaction": False}
    if not streams:
        config["summary"] = {"content": text[:_SUMMARY]}
    elements = [{"tag": "markdown", "element_id": _TEXT, "content": text}, *buttons]
    return {"schema": "2.0", "config": config, "body": {"elements": elements}}


def _keep(known: dict[str, T], key: str, value: T) -> None:
    """Remember something, and forget what was remembered for longest."""
    known.pop(key, None)
    if len(known) >= _MANY:
        del known[next(iter(known))]
    known[key] = value


def _as_json(card: Json) -> Json:
    return {"type": "card_json", "data": json.dumps(card, ensure_ascii=False)}
