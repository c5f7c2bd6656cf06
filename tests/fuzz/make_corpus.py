"""Writes the seeds of the fuzz targets into corpus/. What fuzzing adds lies beside them under names of hexadecimal digits."""

from __future__ import annotations

import pathlib
import struct
from typing import Any

import msgpack

HERE = pathlib.Path(__file__).parent / "corpus"
LIMITS = {"wall_ms": 5000, "cpu_ms": 5000, "memory_bytes": 1 << 29, "output_bytes": 1 << 20, "value_bytes": 1 << 20}


def pack(value: Any) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


def write(target: str, seeds: dict[str, bytes]) -> None:
    folder = HERE / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / f"seed-{name}").write_bytes(data)


EXT = msgpack.ExtType
VALUES = {
    "scalars": [None, True, 1, -1, 2**64 - 1, -(2**63), 1.5, "text", b"\xff", "é€😀"],
    "nested": {"a": [1, {"b": [2, {"c": [3]}]}]},
    "tuple": EXT(3, pack([1, 2])),
    "opaque": EXT(12, pack(["m.T", "<T>"])),
    "deep": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]],
    "long": ["x" * 300, b"y" * 300, list(range(40)), {str(i): i for i in range(20)}],
}
write("scan", {name: b"\x03\x40" + pack(value) for name, value in VALUES.items()})
write("scan", {"giant": b"\x01\x10\xdb\xff\xff\xff\xff", "reserved": b"\x01\x10\x91\xc1", "depth": b"\x02\x03" + b"\x91" * 9,
               "limit": b"\x80\x10\x92\xad" + b"a" * 13 + b"\xcd\x01\x02"})
write("reader", {name: pack(value) + b"\x07" for name, value in VALUES.items()})
write("reader", {
    "numbers": b"\xcc\x80\xcd\x01\x00\xce\x01\x00\x00\x00\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3" + b"\x7f" * 8 + b"\xca\x3f\x80\x00\x00",
    "extensions": b"\xd4\x01a\xd5\x02ab\xd6\x03abcd\xd7\xffabcdefgh\xd8\x05abcdefghijklmnop\xc7\x01\x06a\xc8\x00\x01\x07a\xc9\x00\x00\x00\x01\x08a",
    "long-heads": b"\xd9\x01a\xda\x00\x01a\xdb\x00\x00\x00\x01a\xc5\x00\x01a\xc6\x00\x00\x00\x01a\xdc\x00\x01\xdd\x00\x00\x00\x01\xde\x00\x01\xdf\x00\x00\x00\x00",
    "cut": b"\xdb\x00\x00\x00", "giant": b"\xdd\xff\xff\xff\xff\x01", "reserved": b"\x01\xc1", "none": b"",
})

START = {"profile": "p", "python": "", "preload": ["json"], "paths": ["/x"], "env": {"A": "b"}, "site_packages": True,
         "filter": True, "layers_given": 3, "uid": 1, "gid": 2, "workers_max": 4, "limits": LIMITS}
READY = {"layers": 5, "python": "3.11", "base_data_bytes": 1, "base_as_bytes": 2, "start_us": 3}
write("control", {
    "start": pack([1, START]), "ready": pack([2, READY]), "failed": pack([3, "import x", 2, "why"]), "fork": pack([4, 7, True]),
    "forked": pack([5, 7, 99]), "fork-failed": pack([6, 7, 11]), "exited": pack([7, 7, "signal", 11, 5, 6]),
    "exited-0": pack([7, 7, "exit", 0, 5, 6]),
})

ERROR = {"type": "ValueError", "message": "bad", "traceback": "Traceback", "line": 3}
CUT = {"what": "value", "kept_bytes": 1, "cut_bytes": 2, "reason": "long"}
write("result", {
    "least": pack([3, {"outcome": "ok"}]),
    "full": pack([3, {"value": VALUES["tuple"], "repr": "(1, 2)", "error": None, "exit_code": None, "outcome": "ok", "truncated": [CUT]}]),
    "error": pack([3, {"value": None, "repr": None, "error": ERROR, "exit_code": 3, "outcome": "error", "truncated": []}]),
    "parked": struct.pack("<I", 2) + pack([1]), "frame": struct.pack("<I", 13) + pack([3, {"outcome": "ok"}]),
})

RUN = {"code": "1", "name": "x", "inputs": {"a": VALUES["tuple"]}, "profile": "p", "limits": {"wall_ms": 5}, "stream": True}
write("client", {
    "run": pack([0, 1, "run", [RUN]]), "least": pack([0, 2, "run", [{"code": b"1"}]]), "cancel": pack([2, "cancel", [1]]),
    "hello": pack([0, 3, "hello", [{"version": 1, "client": "c"}]]), "status": pack([0, 4, "status", []]),
    "two": pack([0, 5, "status", []]) + pack([2, "cancel", [5]]), "limits": pack([0, 6, "run", [{"code": "1", "limits": LIMITS}]]),
})

write("config", {
    "all": b"[broodd]\nsocket = /s\nsocket_mode = 0660\nallow_users = root, 5\nlog_level = debug\nlog_format = json\nqueue = 7\n"
           b"request = 1m\nnesting = 9\ngrace = 1s\n[profile data]\npreload = numpy,\n  pandas ; both\npaths = /a,/b\n"
           b"site_packages = yes\nenv.TZ = UTC\nwall = 2s\nmemory = 1g\nparked = 2\nworkers = 5\nrequire = seccomp\n",
    "bare": b"[profile x]\n", "unknown": b"[broodd]\nspeed = 9\n", "long": b"[broodd]\nsocket = " + b"x" * 300 + b"\n",
    "bom": b"\xef\xbb\xbf[broodd]\nqueue: 3\n", "none": b"", "key-first": b"a = 1\n",
})
