"""QR codes in a terminal."""

import io

import segno

_COLOURS, _RESET = "\x1b[97;40m", "\x1b[0m"
"""White on black: drawn blocks are light."""


def qr(text: str) -> str:
    """Render a QR code with half blocks, dark on light in any terminal theme."""
    out = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(out, border=2, compact=True)
    return "\n".join(f"{_COLOURS}{line}{_RESET}" for line in out.getvalue().splitlines())
