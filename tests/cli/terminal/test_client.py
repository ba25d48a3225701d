"""Frames as a terminal reads them."""

from segue.cli.terminal.client import read_frame
from segue.core.messages import File
from segue.core.transcripts import Role, Tip
from segue.core.values import SessionId
from segue.runtime.windows.frames import EntriesFrame, ShownEntry, ShownSession, encode

TIP = Tip(SessionId("s"), 1)


def test_nothing_that_somebody_wrote_steers_the_terminal() -> None:
    evil = "a\x1b[31mb\x1b]0;c\x07\r\x9bd\u202e"
    entry = ShownEntry(TIP, Role.PERSON, evil, f"{evil}\n\tmore", 1.0, (File(evil, evil, evil),))
    read = read_frame(encode(EntriesFrame(ShownSession(SessionId("s"), evil), (entry,))))
    plain = "a[31mb]0;cd"
    clean = ShownEntry(TIP, Role.PERSON, plain, f"{plain}\n\tmore", 1.0, (File(plain, plain, plain),))
    assert read == EntriesFrame(ShownSession(SessionId("s"), plain), (clean,))
