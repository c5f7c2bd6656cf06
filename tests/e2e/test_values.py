"""The table of values in PROTOCOL.md, part 2, in both directions, and the rules for what does not fit."""

from __future__ import annotations

import datetime
import math
import unittest
from typing import Any

import msgpack

from tests.support.case import SupervisorCase
from tests.support.client import pack, request
from tests.support.values import TYPED, Cut, Opaque, Typed, to_wire

UTC = datetime.timezone.utc

# Travel both ways and compare equal.
PLAIN: list[Any] = [
    True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**60, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30, -(10**30), 7**5000,
    -(2**127), 2**127, 2**128 - 1,
    0.0, 1.5, 1e308, 5e-324, math.inf, -math.inf,
    "", "text", "é€😀", "a\0b", "x" * 70_000, "\ud800", "a\udfffb", "\ud83d\ude00 apart",
    b"", b"\x00\xff", bytes(range(256)), b"x" * 70_000,
    [], [1, [2, [3]]], list(range(70_000)), (), (1,), (1, (2, [3])), {}, {"a": 1}, {"b": 1, "a": 2}, {1: "int", (1, 2): "tuple"},
    {None: 0, True: 1, 2.5: 2, b"b": 3, "\ud800": 4, 2**70: 5, frozenset([1]): 6}, dict.fromkeys(range(70_000)),
    set(), {1, 2, 3}, {(1, 2), "x"}, frozenset(), frozenset([b"x", None]),
    datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.time(23, 59, 59, 999999), datetime.time(1, tzinfo=UTC),
    datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 1, 1, tzinfo=UTC),
    datetime.datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))),
    datetime.timedelta(0), datetime.timedelta(-1, 1, 1), datetime.timedelta.max, datetime.timedelta.min, 1j, complex(-0.0, math.inf),
]


class RoundTripTest(SupervisorCase):
    def test_there_and_back(self) -> None:
        for value in PLAIN:
            with self.subTest(value=repr(value)[:60]):
                record = self.ends("ok", "(type(x).__name__, x)", inputs={"x": value}, limits={"value_bytes": 1 << 20})
                self.assertEqual(record.value, (type(value).__name__, value))
                if type(value) is dict:
                    self.assertEqual(list(record.value[1]), list(value))

    def test_worker_agrees_about_the_input(self) -> None:
        """Not only the same bytes back: the code sees the value itself."""
        for value in PLAIN:
            if len(repr(value)) > 4000:
                continue
            with self.subTest(value=repr(value)):
                inputs = {"x": value, "shown": repr(value)}
                code = "import datetime, math\nfrom math import inf\neval(shown.replace('infj', 'inf*1j')) == x"
                if not isinstance(value, complex):
                    self.assertIs(self.value(code, inputs=inputs), True)

    def test_not_a_number_and_negative_zero(self) -> None:
        nan, zero = self.value("[x, y]", inputs={"x": math.nan, "y": -0.0})
        self.assertTrue(math.isnan(nan))
        self.assertEqual((zero, math.copysign(1, zero)), (0.0, -1.0))

    def test_the_value_of_a_report(self) -> None:
        value = self.value("{'a': 2**60, 'b': 10**30, 'c': {1, 2, 3}, 'd': b'\\x00\\xff', 'e': float('nan'), 'f': float('-inf'), 'g': -0.0}")
        self.assertTrue(math.isnan(value.pop("e")))
        self.assertEqual(math.copysign(1, value["g"]), -1.0)
        self.assertEqual(value, {"a": 2**60, "b": 10**30, "c": {1, 2, 3}, "d": b"\x00\xff", "f": -math.inf, "g": 0.0})

    def test_timestamp_becomes_a_moment(self) -> None:
        moment = datetime.datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
        call = self.client.request("run", {"code": "x", "inputs": {"x": msgpack.Timestamp.from_datetime(moment)}})
        self.assertEqual(self.client.record(call).value, moment)

    def test_inputs_of_types_that_do_not_travel_in(self) -> None:
        for ext in (msgpack.ExtType(TYPED, pack(["decimal.Decimal", "1"])), msgpack.ExtType(12, pack(["a", "b"])),
                    msgpack.ExtType(13, pack(["cycle", ""])), msgpack.ExtType(99, b"x")):
            with self.subTest(ext=ext):
                call = self.client.request("run", {"code": "x", "inputs": {"x": ext}})
                self.assertEqual(self.client.record(call).status, "error")
        # The packer of the tests makes no negative types: a fixext 1 of type -2, in place of the nil.
        self.client.send_raw(request(1000, "run", {"code": "x", "inputs": {"x": None}})[:-1] + b"\xd4\xfe\x00")
        self.assertEqual(self.client.record(1000).status, "error")

    def test_broken_payloads_of_inputs(self) -> None:
        """Well formed on the wire, but not what their type means."""
        for ext in (msgpack.ExtType(1, b""), msgpack.ExtType(2, b"\xff"), msgpack.ExtType(3, pack(1)), msgpack.ExtType(4, pack([[1]])),
                    msgpack.ExtType(6, pack("not a date")), msgpack.ExtType(9, pack(["a", "b", "c"])), msgpack.ExtType(10, pack([1]))):
            with self.subTest(ext=ext):
                call = self.client.request("run", {"code": "x", "inputs": {"x": ext}})
                record = self.client.record(call)
                self.assertIn(record.status, ("error", "ok"), dict(record))
                if ext.code != 1:
                    self.assertEqual(record.status, "error", dict(record))
                self.assertEqual(self.value("1 + 1"), 2)

    def test_inputs_become_globals(self) -> None:
        self.assertEqual(self.value("é + b", inputs={"é": 1, "b": 2}), 3)
        self.assertEqual(self.value("len(globals()['print'])", inputs={"print": [1]}), 1)
        for name in ("", "1x", "a b", "a.b"):
            with self.subTest(name=name):
                call = self.client.start("1", inputs={name: 1})
                self.assertEqual(self.client.record(call).status, "error")


class OneWayTest(SupervisorCase):
    """Values that travel out only."""

    def test_types_that_become_text(self) -> None:
        value = self.value("""
import datetime, decimal, fractions, uuid, enum, pathlib
class Colour(enum.Enum):
    RED = 1
class Number(enum.IntEnum):
    ONE = 1
(datetime.date(2024, 5, 6), datetime.datetime(2024, 5, 6, tzinfo=datetime.timezone.utc), datetime.timedelta(days=1), decimal.Decimal('1.10'),
 fractions.Fraction(1, 3), uuid.UUID(int=5), Colour.RED, Number.ONE, pathlib.PurePosixPath('/a/b'))
""")
        self.assertEqual(value, (
            datetime.date(2024, 5, 6), datetime.datetime(2024, 5, 6, tzinfo=UTC), datetime.timedelta(1), Typed("decimal.Decimal", "1.10"),
            Typed("fractions.Fraction", "1/3"), Typed("uuid.UUID", "00000000-0000-0000-0000-000000000005"),
            Typed("__main__.Colour", "RED"), Typed("__main__.Number", "ONE"), Typed("pathlib.PurePosixPath", "/a/b")))

    def test_anything_else_is_its_repr(self) -> None:
        value = self.value("class A:\n    def __repr__(self): return 'an A'\n[A(), len, ..., range(3), A]")
        self.assertEqual(value[0], Opaque("__main__.A", "an A"))
        self.assertEqual(value[1].repr, "<built-in function len>")
        self.assertEqual(value[2:4], [Opaque("builtins.ellipsis", "Ellipsis"), Opaque("builtins.range", "range(0, 3)")])

    def test_buffers_are_bytes(self) -> None:
        self.assertEqual(self.value("[bytearray(b'x'), memoryview(b'yz'), memoryview(bytearray(4))[1:3]]"), [b"x", b"yz", b"\0\0"])

    def test_subclasses_travel_as_their_base(self) -> None:
        value = self.value("""
import collections
def boom(self, *args): raise RuntimeError('called')
made = []
for base, data in ((int, 5), (float, 1.5), (str, 's'), (bytes, b'b'), (list, [1]), (tuple, (1,)), (dict, {1: 2}), (set, {1}), (int, 2**80)):
    names = ('__repr__', '__iter__', '__len__', '__getitem__', '__int__', '__index__', '__float__', '__str__', '__bytes__', 'keys', 'items')
    made.append(type('Sub', (base,), {name: boom for name in names})(data))
made + [collections.OrderedDict(a=1), collections.namedtuple('P', 'x y')(1, 2), collections.defaultdict(int, a=1), True]
""")
        self.assertEqual(value, [5, 1.5, "s", b"b", [1], (1,), {1: 2}, {1}, 2**80, {"a": 1}, (1, 2), {"a": 1}, True])

    def test_the_repr_beside_the_value(self) -> None:
        record = self.ends("ok", "[1, 'x', (2.5,)]")
        self.assertEqual(record.repr, "[1, 'x', (2.5,)]")
        for code in ("", "None", "x = 1", "x = 1\nNone", "def f(): pass", "import os"):
            with self.subTest(code=code):
                record = self.ends("ok", code)
                self.assertEqual((record.value, record.repr), (None, None))

    def test_which_expression_is_the_value(self) -> None:
        for code, expected in {
            "1; 2": 2, "1\n2\n": 2, "1\n2 # why\n# end\n\n": 2, "x = 3\nx": 3, "if True:\n    4": None, "(5\n+ 6)": 11, "lambda: 0": ...,
            "'''a\nb'''": "a\nb", "[n for n in (1,\n 2)]": [1, 2], "'doc'\n7": 7, "7\npass": None, "x = y = 8": None, "(z := 9)": 9,
            "1,": (1,), "1\\\n+ 1": 2, "f'{1}'": "1", "x = 1; x + 1": 2, "\ufeff10": 10, "if 1: pass\n11": 11, "\r\n12\r\n": 12, "13;": 13,
            "def f():\n    return 14\nf()": 14, "from __future__ import annotations\ndef f(x: y): 1\nf.__annotations__": {"x": "y"},
        }.items():
            with self.subTest(code=code):
                value = self.value(code)
                self.assertEqual(Opaque if expected is ... else value, expected if expected is not ... else type(value))

    def test_the_code_runs_in_a_main_module(self) -> None:
        self.assertEqual(self.value("import sys\n[__name__, sys.modules['__main__'].__dict__ is globals(), __builtins__ is not None]"),
                         ["__main__", True, True])
        self.assertEqual(self.value("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A"), True)


class MisfitTest(SupervisorCase):
    """Cyclic, deep, enormous, exploding: cut by rule, and said so."""

    def test_cycles(self) -> None:
        cut = Cut("cycle", "")
        self.assertEqual(self.value("x = [1]\nx.append(x)\nx"), [1, cut])
        self.assertEqual(self.value("x = {}\nx['self'] = x\nx"), {"self": cut})
        self.assertEqual(self.value("x = []\nx.append((x, [x]))\nx"), [(cut, [cut])])
        self.assertEqual(self.value("x = [1]\n[x, x]"), [[1], [1]])

    def test_depth(self) -> None:
        for depth in (1, 63, 64, 65, 1000, 50_000):
            for opening, closing in (("[", "]"), ("(", ",)"), ("{0:", "}")):
                with self.subTest(depth=depth, opening=opening):
                    code = f"x = 7\nfor _ in range({depth}): x = {opening}x{closing}\nx"
                    value, seen = self.value(code), 0
                    while isinstance(value, (list, tuple, dict)):
                        value, seen = value[0], seen + 1
                    self.assertEqual(seen, min(depth, 64))
                    self.assertEqual(value, 7 if depth <= 64 else Cut("depth", ""))

    def test_exploding_repr(self) -> None:
        record = self.ends("ok", "class A:\n    def __repr__(self): raise RuntimeError('boom')\nA()")
        self.assertIsInstance(record.value, Cut)
        self.assertEqual(record.value.reason, "error")
        self.assertIn("failed", record.repr)
        for body in ("return 5", "raise SystemExit(3)", "raise KeyboardInterrupt", "raise MemoryError", "return repr([self])",
                     "import sys; sys.setrecursionlimit(50); return repr(self)"):
            with self.subTest(body=body):
                record = self.ends("ok", f"class A:\n    def __repr__(self): {body}\n[A(), 1]")
                self.assertIsInstance(record.value[0], Cut)
                self.assertEqual(record.value[1], 1)

    def test_value_too_large(self) -> None:
        record = self.ends("ok", "'x' * 5000", limits={"value_bytes": 1024})
        self.assertIsNone(record.value)
        self.assertIsNotNone(record.cut("value"))
        cut = record.cut("repr")
        assert cut and record.repr
        self.assertEqual((record.repr, cut["kept_bytes"], cut["cut_bytes"]), ("'" + "x" * 1023, 1024, 5002 - 1024))

    def test_value_that_just_fits(self) -> None:
        # A str of n >= 256 bytes takes n + 3.
        self.assertEqual(self.value("'x' * (1024 - 3)", limits={"value_bytes": 1024}), "x" * 1021)
        self.assertIsNone(self.value("'x' * (1024 - 2)", limits={"value_bytes": 1024}))

    def test_repr_is_cut_between_characters(self) -> None:
        record = self.ends("ok", "'€' * 5000", limits={"value_bytes": 1024})
        assert record.repr
        self.assertEqual(record.repr, "'" + "€" * 341)

    def test_enormous(self) -> None:
        for code in ("list(range(1_000_000))", "'x' * 50_000_000", "b'x' * 50_000_000", "2 ** 50_000_000", "[[0] * 1000] * 2000"):
            with self.subTest(code=code):
                record = self.ends("ok", code, limits={"wall_ms": 5000})
                self.assertIsNone(record.value)
                self.assertIsNotNone(record.cut("value"))
                self.assertLessEqual(len((record.repr or "").encode()), 1 << 20)

    def test_long_repr_of_an_opaque_value(self) -> None:
        value = self.value("class A:\n    def __repr__(self): return 'é' * 10_000\n[A()]")
        self.assertEqual(value[0].repr, "é" * 4096)

    def test_integers_of_many_digits(self) -> None:
        record = self.ends("ok", "7 ** 20000")
        self.assertEqual(record.value, 7**20000)
        self.assertTrue(record.repr)
        error = self.ends("error", "str(7 ** 20000)").error
        self.assertEqual(error["type"], "ValueError")
        self.assertIn("4300", error["message"])

    def test_value_changed_while_it_is_read(self) -> None:
        record = self.ends("ok", "x = []\nclass A:\n    def __repr__(self): x.clear(); return 'gone'\nx.extend([A(), 1, 2])\nx")
        self.assertEqual(record.value[0], Opaque("__main__.A", "gone"))
        self.assertEqual(len(record.value), 3)

    def test_surrogates(self) -> None:
        self.assertEqual(self.value("['\\ud800', {'\\udc00': ('\\udfff',)}]"), ["\ud800", {"\udc00": ("\udfff",)}])
        self.assertEqual(self.ends("ok", "'\\ud800'").repr, "'\\ud800'")

    def test_to_wire_is_what_the_worker_writes(self) -> None:
        """The encoder of the tests and that of the worker agree on every byte that matters."""
        for value in (PLAIN[15], "\ud800", (1, 2), {1}, datetime.date(2024, 1, 2)):
            self.assertIsInstance(to_wire(value), msgpack.ExtType)
            self.assertEqual(self.value("x", inputs={"x": value}), value)


if __name__ == "__main__":
    unittest.main()
