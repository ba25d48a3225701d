"""Frames of the long connection: protobuf's wire format, for the nine fields that Feishu uses.

    Frame:  1 SeqID, 2 LogID, 3 service, 4 method, 5 headers (1 key, 2 value), 6 payload_encoding, 7 payload_type,
            8 payload, 9 LogIDNew

A field is a number with its kind, then a varint (kind 0) or a length and so many bytes (kind 2); no other kind is used.
"""

from collections.abc import Iterator, Mapping

from segue.core.values import Value
from segue.errors import Invalid

CONTROL, DATA = 0, 1
"""Methods of frames."""
_VARINT, _BYTES = 0, 2
_LONGEST_VARINT = 10
_WORD = 1 << 64


class Frame(Value, frozen=True):
    """One frame."""

    numbers: tuple[int, int, int, int] = (0, 0, 0, 0)
    """SeqID, LogID, service and method."""
    headers: Mapping[str, str] = {}
    payload: bytes = b""
    rest: tuple[tuple[int, bytes], ...] = ()
    """The fields that are only sent back."""

    @property
    def method(self) -> int:
        """Whether it is about the connection or carries something."""
        return self.numbers[3]


def encode(frame: Frame) -> bytes:
    """A frame as it is sent."""
    numbers = b"".join(_varint(n << 3 | _VARINT) + _varint(value) for n, value in enumerate(frame.numbers, 1))
    headers = b"".join(_field(5, _field(1, key.encode()) + _field(2, v.encode())) for key, v in frame.headers.items())
    return numbers + headers + b"".join(_field(n, value) for n, value in frame.rest) + _field(8, frame.payload)


def decode(raw: bytes) -> Frame:
    """The frame that was sent; raises `Invalid`."""
    numbers, headers, payload, rest = [0, 0, 0, 0], {}, b"", []
    for n, value in _fields(raw):
        match n, value:
            case ((1 | 2 | 3 | 4), int()):
                numbers[n - 1] = value
            case 5, bytes():
                header = dict(_fields(value))
                headers[_text(header.get(1))] = _text(header.get(2))
            case 8, bytes():
                payload = value
            case _, bytes():
                rest.append((n, value))
            case _:
                """A number that nobody needs."""
    return Frame((numbers[0], numbers[1], numbers[2], numbers[3]), headers, payload, tuple(rest))


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(raw):
        tag, at = _read(raw, at)
        value, at = _read(raw, at)
        if tag & 7 == _VARINT:
            yield tag >> 3, value
        elif tag & 7 == _BYTES and at + value <= len(raw):
            yield tag >> 3, raw[at : at + value]
            at += value
        else:
            raise _broken()


def _read(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n, byte in enumerate(raw[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return value % _WORD, at + n + 1
    raise _broken()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(n: int, value: bytes) -> bytes:
    return _varint(n << 3 | _BYTES) + _varint(len(value)) + value


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else ""


def _broken() -> Invalid:
    return Invalid("frame", "it isn't whole", "Segue may be older than what Feishu sends.")
