"""QR codes in a terminal."""

import io

import segno

_COLOURS, _RESET = "\x1b[97;40m", "\x1b[0m"
"""White on black: what is drawn is light."""


def qr(text: str) -> str:
    """A text as a QR code of half blocks, dark on light whatever colours the terminal has."""
    out = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(out, border=2, compact=True)
    return "\n".join(f"{_COLOURS}{line}{_RESET}" for line in out.getvalue().splitlines())
