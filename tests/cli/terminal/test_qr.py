"""QR codes as a terminal shows them: read back from the screen, they are the code."""

import pyte
import segno

from segue.cli.terminal.qr import qr

LINK = "https://t.example/agent?start=CDFG-HJ34"


def test_what_is_on_the_screen_is_the_code() -> None:
    wanted = [
        [bool(module) for module in row] for row in segno.make(LINK, error="l", micro=False).matrix_iter(border=2)
    ]
    size = len(wanted)
    screen = pyte.Screen(size + 2, size)
    pyte.Stream(screen).feed(qr(LINK).replace("\n", "\r\n"))
    rows: list[list[bool]] = []
    for line in screen.display[: (size + 1) // 2]:
        cells = line.ljust(size)[:size]
        # Half blocks: what is drawn is light, and light stands for no module.
        rows.append([cell not in "█▀" for cell in cells])
        rows.append([cell not in "█▄" for cell in cells])
    assert rows[:size] == wanted
