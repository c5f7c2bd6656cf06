"""Values on the wire, by the table of PROTOCOL.md, part 2: to MessagePack and back."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import msgpack

BIGINT, SURROGATES, TUPLE, SET, FROZENSET, DATE, TIME, DATETIME, TIMEDELTA, COMPLEX, TYPED, OPAQUE, CUT = range(1, 14)


@dataclass(frozen=True)
class Typed:
    """A value that travels as the name of its type and its text."""

    type: str
    text: str


@dataclass(frozen=True)
class Opaque:
    """A value that travels as the name of its type and its repr."""

    type: str
    repr: str


@dataclass(frozen=True)
class Cut:
    """A place in a value that was cut."""

    reason: str
    text: str


@dataclass(frozen=True)
class Unknown:
    """An extension type that the protocol does not know."""

    code: int
    data: bytes


def _nested(data: bytes) -> Any:
    return msgpack.unpackb(data, ext_hook=from_ext, strict_map_key=False)


def from_ext(code: int, data: bytes) -> Any:
    """msgpack's ext_hook: the Python value of an extension."""
    if code == BIGINT:
        return int.from_bytes(data, "big", signed=True)
    if code == SURROGATES:
        return data.decode("utf-8", "surrogatepass")
    if not TUPLE <= code <= CUT:
        return Unknown(code, data)
    inner = _nested(data)
    makers: dict[int, Any] = {
        TUPLE: tuple, SET: set, FROZENSET: frozenset,
        DATE: datetime.date.fromisoformat, TIME: datetime.time.fromisoformat, DATETIME: datetime.datetime.fromisoformat,
        TIMEDELTA: lambda parts: datetime.timedelta(*parts), COMPLEX: lambda parts: complex(*parts),
        TYPED: lambda parts: Typed(*parts), OPAQUE: lambda parts: Opaque(*parts), CUT: lambda parts: Cut(*parts),
    }
    return makers[code](inner)


def _ext(code: int, inner: Any) -> msgpack.ExtType:
    return msgpack.ExtType(code, msgpack.packb(to_wire(inner)))


def _int_to_wire(value: int) -> Any:
    if -(2**63) <= value < 2**64:
        return value
    size = 1
    while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
        size += 1
    return msgpack.ExtType(BIGINT, value.to_bytes(size, "big", signed=True))


def _str_to_wire(value: str) -> Any:
    try:
        value.encode()
        return value
    except UnicodeEncodeError:
        return msgpack.ExtType(SURROGATES, value.encode("utf-8", "surrogatepass"))


def to_wire(value: Any) -> Any:
    """`value` in types that msgpack packs as the protocol wants them."""
    kind = type(value)
    if value is None or kind in (bool, float, bytes, msgpack.ExtType):
        return value
    if kind is int:
        return _int_to_wire(value)
    if kind is str:
        return _str_to_wire(value)
    if kind is list:
        return [to_wire(item) for item in value]
    if kind is dict:
        return {to_wire(key): to_wire(item) for key, item in value.items()}
    containers = {tuple: TUPLE, set: SET, frozenset: FROZENSET}
    if kind in containers:
        return _ext(containers[kind], list(value))
    moments = {datetime.date: DATE, datetime.time: TIME, datetime.datetime: DATETIME}
    if kind in moments:
        return _ext(moments[kind], value.isoformat())
    if kind is datetime.timedelta:
        return _ext(TIMEDELTA, [value.days, value.seconds, value.microseconds])
    if kind is complex:
        return _ext(COMPLEX, [value.real, value.imag])
    raise TypeError(f"{kind.__name__} does not travel as an input")
