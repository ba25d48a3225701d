"""QR codes in a terminal."""

from __future__ import annotations

import io

import segno


def qr(text: str) -> str:
    """A text as a QR code of half blocks, dark on light whatever colours the terminal has."""
    out = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(out, border=2, compact=True)
    return out.getvalue()
