"""What somebody said, in few fields: each road has its own way to it, and one way leads from it to an arrival."""

import mimetypes
from collections.abc import Collection

from msgspec.structs import replace

from segue.adapters.shared.account import Account
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, File, Pressed, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid


class Carried(Value, frozen=True):
    """A file of a message, which lies with WhatsApp."""

    kind: str
    media: str = ""
    name: str = ""
    size: int = 0
    id: str = ""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        media = self.media.partition(";")[0].strip()
        return File(self.name or f"{self.kind}{mimetypes.guess_extension(media) or ''}", media, "", self.size)


class Said(Value, frozen=True):
    """A message; also one that only changes another, takes it back, or tells somebody's ids."""

    id: str
    people: tuple[str, ...]
    """Whoever wrote it, by each id that they have; by the first they are answered."""
    at: Moment
    group: str = ""
    """The group that it was written in; in a private chat there is none."""
    name: str = ""
    sole: str = ""
    """The id of theirs that is never given to anybody else."""
    text: str = ""
    quotes: str = ""
    edits: str = ""
    deletes: str = ""
    forwarded: bool = False
    mentions: tuple[str, ...] = ()
    choice: str = ""
    """The button that was pressed in the message that it quotes."""
    file: Carried | None = None
    remarks: tuple[str, ...] = ()

    def arrival(self, account: Account, me: Collection[str]) -> Arrival:
        """The arrival that it is for an account, which has these ids."""
        if not self.people:
            raise Invalid("people", "nobody wrote it", "A message says who sent it.")
        first, *others = self.people
        private = Place(account.address(first), Kind.DM, self.name)
        words = (Text(self.text),) if self.text else ()
        return Arrival(
            Place(account.address(self.group), Kind.GROUP) if self.group else private,
            f"deletes.{self.id}" if self.deletes else self.id,
            replace(account.speaker(first, self.name, tuple(others)), sole=self.sole),
            (*(() if self.forwarded else words), *((self.file.named,) if self.file else ())),
            self.at,
            quotes=self.quotes,
            edits=self.edits,
            deletes=self.deletes,
            mentions_agent=any(one in me for one in self.mentions),
            chat_aliases=() if self.group else tuple(others),
            cites=tuple(Citation(part.text, kind=Citing.FORWARD) for part in words) if self.forwarded else (),
            remarks=self.remarks,
            pressed=Pressed(self.quotes, self.choice) if self.choice and self.quotes else None,
        )
