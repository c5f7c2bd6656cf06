"""The Python side of a worker: runs one request and says how it went.

Compiled once in the zygote and inherited by every worker. Its globals hold a private copy of the builtins, made before
any user code ran, so that code which replaces or deletes builtins cannot break the answer. User code can still reach
and spoil all of this; then it spoils its own answer only.
"""
from __future__ import annotations

import _brood
import _random
import _thread
import atexit
import builtins
import enum
import errno
import io
import linecache
import os
import random
import reprlib
import sys
import threading
import traceback
import types
from _ast import Expr, Expression, PyCF_ONLY_AST
from importlib._bootstrap_external import decode_source
from typing import Any, Optional

import __future__ as futures

FUTURE_FLAGS = 0
for _name in futures.all_feature_names:
    FUTURE_FLAGS |= getattr(futures, _name).compiler_flag

OUR_FILE = (lambda: None).__code__.co_filename
RECURSION_LIMIT = sys.getrecursionlimit()
INT_DIGITS = sys.get_int_max_str_digits()
# Repr of an int costs the square of its digits: this many take some 50 ms.
REPR_INT_DIGITS = 100_000
OPAQUE_REPR_MAX = 4096
ERROR_TEXT_MAX = 64 * 1024
ERROR_TYPE_MAX = 1024
ABRIDGED = reprlib.Repr()
ABRIDGED.maxlist = ABRIDGED.maxtuple = ABRIDGED.maxset = ABRIDGED.maxfrozenset = ABRIDGED.maxdeque = ABRIDGED.maxdict = 20
ABRIDGED.maxstring = ABRIDGED.maxlong = ABRIDGED.maxother = 1000
# Given back when memory runs out, so that saying so finds some. Untouched until then, so it costs address space only.
reserve = [bytearray(4 * 1024 * 1024)]

EXT_BIGINT, EXT_DATE, EXT_TIME, EXT_DATETIME, EXT_TIMEDELTA, EXT_TYPED, EXT_OPAQUE, EXT_CUT = 1, 6, 7, 8, 9, 11, 12, 13

Cut = tuple[str, int, int, str]
ErrorRecord = tuple[bytes, bytes, bytes, Optional[int]]
# outcome, encoded value, repr, error, exit code, cuts
Answer = tuple[str, Optional[bytes], Optional[bytes], Optional[ErrorRecord], Optional[int], list[Cut]]


# --- standard streams ---


class Output(io.BufferedWriter):
    """Collects what one print() writes, and has it in the pipe by the time print() returns."""

    def write(self, data: Any, _write: Any = io.BufferedWriter.write, _soon: Any = _brood.flush_soon) -> int:
        written = _write(self, data)
        _soon(self)
        return written


def text_output(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(Output(raw), "utf-8", "backslashreplace", newline="\n", write_through=True)


def named(stream: io.TextIOWrapper, name: str, mode: str) -> io.TextIOWrapper:
    stream.mode = mode  # type: ignore[misc]
    stream.buffer.raw.name = name  # type: ignore[attr-defined]
    return stream


STDIN = named(io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), "utf-8"), "<stdin>", "r")
STDOUT = named(text_output(1), "<stdout>", "w")
STDERR = named(text_output(2), "<stderr>", "w")
SINK = text_output(0)  # descriptor 0 is /dev/null, open both ways


def set_streams(out: io.TextIOWrapper, err: io.TextIOWrapper) -> None:
    sys.stdin = sys.__stdin__ = STDIN  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = out  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = err  # type: ignore[misc]


def flush_streams() -> None:
    replaced = [getattr(sys, name, None) for name in ("stdout", "stderr")]
    for stream in (STDOUT, STDERR, *replaced):
        try:
            stream.flush()
        except BaseException:
            pass  # closed or replaced by the code


# --- rare values: called by the encoder and the decoder in C ---


def type_name(kind: type) -> str:
    try:
        return f"{type.__dict__['__module__'].__get__(kind)}.{type.__dict__['__qualname__'].__get__(kind)}"
    except BaseException:
        return "unknown"


def is_kind(kind: type, module: str, names: tuple[str, ...]) -> bool:
    """Whether it is one of these types, or a subclass, of a module that only the code may have imported."""
    loaded = sys.modules.get(module)
    return loaded is not None and any(issubclass(kind, getattr(loaded, name, Nothing)) for name in names)


class Nothing:
    """What no value is an instance of."""


def encode_rare(value: Any) -> tuple[int, Any]:
    """The extension type of a value that the encoder does not know, and what goes into it."""
    kind = type(value)
    if isinstance(kind, enum.EnumMeta):
        return EXT_TYPED, [type_name(kind), str(value.name)]
    if issubclass(kind, int):
        magnitude = int.__invert__(value) if int.__lt__(value, 0) else value
        return EXT_BIGINT, int.to_bytes(value, int.bit_length(magnitude) // 8 + 1, "big", signed=True)
    if is_kind(kind, "datetime", ("date", "time", "timedelta")):
        return encode_time(value, kind, sys.modules["datetime"])
    if (
        is_kind(kind, "decimal", ("Decimal",))
        or is_kind(kind, "fractions", ("Fraction",))
        or is_kind(kind, "uuid", ("UUID",))
        or is_kind(kind, "pathlib", ("PurePath",))
    ):
        return EXT_TYPED, [type_name(kind), str(value)]
    return encode_opaque(value, kind)


def encode_time(value: Any, kind: type, datetime: Any) -> tuple[int, Any]:
    if issubclass(kind, datetime.datetime):
        return EXT_DATETIME, datetime.datetime.isoformat(value)
    if issubclass(kind, datetime.date):
        return EXT_DATE, datetime.date.isoformat(value)
    if issubclass(kind, datetime.time):
        return EXT_TIME, datetime.time.isoformat(value)
    return EXT_TIMEDELTA, [value.days, value.seconds, value.microseconds]


def encode_opaque(value: Any, kind: type) -> tuple[int, list[str]]:
    try:
        text = repr(value)
        return EXT_OPAQUE, [type_name(kind), str.__getitem__(text, slice(OPAQUE_REPR_MAX))]
    except BaseException as problem:
        return EXT_CUT, ["error", f"<repr of {type_name(kind)} failed: {type_name(type(problem))}>"]


def decode_rare(kind: int, payload: Any) -> Any:
    """The value of an extension that the decoder does not know. Inputs only."""
    import datetime

    if kind == EXT_DATE:
        return datetime.date.fromisoformat(payload)
    if kind == EXT_TIME:
        return datetime.time.fromisoformat(payload)
    if kind == EXT_DATETIME:
        return datetime.datetime.fromisoformat(payload)
    if kind == EXT_TIMEDELTA:
        days, seconds, microseconds = payload
        return datetime.timedelta(days, seconds, microseconds)
    if kind == -1:
        seconds, nanoseconds = payload
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return epoch + datetime.timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    raise ValueError(f"an input holds a value of extension type {kind}, which cannot be turned into Python")


# --- source ---


def source_text(source: str | bytes) -> str:
    """The source as tracebacks show it."""
    if isinstance(source, str):
        return source
    try:
        return decode_source(source)
    except BaseException:
        return source.decode("latin-1")


# What a call executes, in this order, and the expression whose value it has.
Program = tuple[list[types.CodeType], Optional[types.CodeType]]


def split_text(source: str, name: str) -> Optional[Program]:
    """Statements and last expression by text alone: the common case, without the cost of a syntax tree.

    If all lines before the last one that begins in column 0 compile as a program, that line begins a statement. If what
    it begins compiles as an expression, that is the last expression; if it compiles as a statement, there is none.
    Anything else, errors included, is left to split_tree.
    """
    end = len(source.rstrip())
    start = source.rfind("\n", 0, end) + 1
    while start > 0 and source[start] in " \t\n#":  # the body of a compound statement, blank lines, comments
        start = source.rfind("\n", 0, start - 1) + 1
    tail = source[start:end]
    if not tail or tail[0] in " \t\f)]}'\"\\" or "\r" in source or ";" in tail or "'''" in tail or '"""' in tail:
        return None
    if tail.startswith("from __future__"):
        return None
    head = source[:start]
    padded = "\n" * head.count("\n") + tail  # for the line numbers
    try:
        codes = [compile(head, name, "exec", 0, True)] if start else []
        flags = codes[0].co_flags & FUTURE_FLAGS if codes else 0
        if tail.startswith(STATEMENT_WORDS):
            return codes + [compile(padded, name, "exec", flags, True)], None
        try:
            return codes, compile(padded, name, "eval", flags, True)
        except SyntaxError:
            return codes + [compile(padded, name, "exec", flags, True)], None
    except BaseException:
        return None  # split_tree finds and raises what is wrong


# Only to save an attempt: whatever begins with one of these is no expression.
STATEMENT_WORDS = ("def ", "class ", "if ", "for ", "while ", "with ", "try:", "import ", "from ", "async ", "raise ", "assert ")


def split_tree(source: str | bytes, name: str) -> Program:
    tree = compile(source, name, "exec", PyCF_ONLY_AST, True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], Expr) else None
    body = compile(tree, name, "exec", 0, True)
    if last is None:
        return [body], None
    return [body], compile(Expression(last.value), name, "eval", body.co_flags & FUTURE_FLAGS, True)


def compile_source(source: str | bytes, name: str) -> Program:
    if isinstance(source, str):
        if source.startswith("\ufeff"):
            source = source[1:]
        program = split_text(source, name)
        if program is not None:
            return program
    return split_tree(source, name)


# --- errors ---


def cut_text(text: str, most: int, what: str, cuts: list[Cut]) -> bytes:
    data = str.encode(text, "utf-8", "backslashreplace")
    if len(data) <= most:
        return data
    kept = data[:most].decode("utf-8", "ignore").encode()
    cuts.append((what, len(kept), len(data) - len(kept), f"beyond {most} bytes"))
    return kept


def error_type(error: BaseException) -> str:
    return type_name(type(error)).removeprefix("builtins.").removeprefix("__main__.")


def error_message(error: BaseException) -> str:
    try:
        return str(error) + ""
    except BaseException:
        return f"<str() of {type_name(type(error))} failed>"


def error_line(error: BaseException, name: str) -> Optional[int]:
    line = None
    if isinstance(error, SyntaxError) and error.filename == name and type(error.lineno) is int:
        line = error.lineno
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line if type(line) is int and 0 <= line < 2**31 else None


def strip_ours(error: BaseException) -> None:
    """Takes our own frames off the outer end of the traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == OUR_FILE:
        trace = trace.tb_next
    error.__traceback__ = trace


def plain_traceback(error: BaseException) -> str:
    """By our own means, where the library's fail: a file name that cannot be looked up, a module that the code spoilt."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        lines.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}\n')
        trace = trace.tb_next
    head = "Traceback (most recent call last):\n" if lines else ""
    return f"{head}{''.join(lines)}{error_type(error)}: {error_message(error)}\n"


def error_traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return plain_traceback(error)


def describe_error(error: BaseException, name: str, cuts: list[Cut]) -> ErrorRecord:
    strip_ours(error)
    ignored: list[Cut] = []
    return (
        cut_text(error_type(error), ERROR_TYPE_MAX, "error", ignored),
        cut_text(error_message(error), ERROR_TEXT_MAX, "error", cuts),
        cut_text(error_traceback(error), ERROR_TEXT_MAX, "error", cuts),
        error_line(error, name),
    )


def outcome_of(error: BaseException, compiling: bool) -> str:
    # The compiler says MemoryError for source that nests too deeply.
    if isinstance(error, MemoryError) and not compiling:
        return "memory"
    # What mmap and the like say.
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "memory"
    if isinstance(error, PermissionError) and error.errno == errno.EPERM:
        return "denied"
    return "error"


# --- the value ---


def value_repr(value: Any) -> str:
    try:
        return str.__str__(repr(value))
    except ValueError:
        pass  # perhaps the limit on an int's digits, which is for the code, not for its answer
    except BaseException as problem:
        return failed_repr(value, problem)
    sys.set_int_max_str_digits(REPR_INT_DIGITS)
    try:
        return str.__str__(repr(value))
    except BaseException as problem:
        return hex(value) if type(value) is int else failed_repr(value, problem)
    finally:
        sys.set_int_max_str_digits(INT_DIGITS)


def abridged_repr(value: Any) -> str:
    """Of a value that is too large to be sent: its whole repr could take more time and memory than the call has."""
    if type(value) in (str, bytes, int):
        return value_repr(value)  # takes no more than a few times what the value has
    try:
        return ABRIDGED.repr(value)
    except BaseException as problem:
        return failed_repr(value, problem)


def failed_repr(value: Any, problem: BaseException) -> str:
    return f"<repr of {type_name(type(value))} failed: {error_type(problem)}: {error_message(problem)}>"


def describe_value(value: Any, most: int, cuts: list[Cut]) -> tuple[Optional[bytes], Optional[bytes]]:
    """The value encoded, and its repr."""
    if value is None:
        return None, None
    try:
        encoded = _brood.encode(value, most)
        if encoded is None:
            cuts.append(("value", 0, 0, f"its encoding is longer than {most} bytes"))
            return None, cut_text(abridged_repr(value), most, "repr", cuts)
    except BaseException as problem:
        encoded = None
        cuts.append(("value", 0, 0, f"it could not be encoded: {type_name(type(problem))}"))
    return encoded, cut_text(value_repr(value), most, "repr", cuts)


# --- the run ---


def exit_code(code: Any) -> int:
    """What sys.exit(code) means, its text printed as Python would."""
    if code is None:
        return 0
    if isinstance(code, int):
        number = int(code)
        return number if -(2**63) <= number < 2**63 else -1
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def new_main(name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    namespace = module.__dict__
    namespace["__builtins__"] = builtins
    namespace["__file__"] = name
    for key, value in inputs.items():
        if not key.isidentifier():
            raise ValueError(f"an input's name must be a Python identifier, not {key!r}")
        namespace[key] = value
    return namespace


def remember_source(source: str | bytes, name: str) -> None:
    text = source_text(source)
    # As the tokenizer counts lines, not as str.splitlines does (form feeds and the like end none).
    lines = [line + "\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[name] = (len(text), None, lines, name)


def restore() -> None:
    """What user code may have set against us."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    sys.settrace(None)
    sys.setprofile(None)


def finish() -> None:
    """What Python does at the end of a script: waits for threads, then runs the exit handlers."""
    try:
        if _thread._count() or threading._threading_atexits:
            threading._shutdown()
    except BaseException:
        pass
    try:
        if atexit._ncallbacks():
            atexit._run_exitfuncs()
    except BaseException:
        pass
    flush_streams()


def execute(source: str | bytes, name: str, inputs: bytes, value_bytes: int) -> Answer:
    cuts: list[Cut] = []
    error = code = value = None
    outcome = "ok"
    compiling = False
    try:
        namespace = new_main(name, _brood.decode(inputs) if inputs else {})
        remember_source(source, name)
        compiling = True
        codes, last = compile_source(source, name)
        compiling = False
        for code_object in codes:
            exec(code_object, namespace)
        if last is not None:
            value = eval(last, namespace)
    except SystemExit as ending:
        restore()
        code = exit_code(ending.code)
        value = None
    except BaseException as problem:
        restore()
        if isinstance(problem, MemoryError):
            reserve.clear()
        outcome = outcome_of(problem, compiling)
        error = describe_error(problem, name, cuts)
    restore()
    encoded, shown = describe_value(value, value_bytes, cuts)
    return outcome, encoded, shown, error, code, cuts


def run(source: str | bytes, name: str, inputs: bytes, value_bytes: int) -> Answer:
    """One call, from its source to all that the answer holds but what the supervisor measures."""
    answer = execute(source, name, inputs, value_bytes)
    finish()
    return answer


def rehearse(source: str | bytes, name: str, inputs: bytes, value_bytes: int) -> Answer:
    """As run(), for the warm-up, but nothing comes to its end: threads and exit handlers of preloaded modules stay as they are."""
    answer = execute(source, name, inputs, value_bytes)
    flush_streams()
    return answer


# --- a new worker ---

# What nearly every call does, and no more: each page that a worker touches costs it, whether the call needs it or not.
# Its input is n = 3.
WARM_UP = """
def f(k):
    total = 0
    for i in range(k):
        total += i * n
    return [str(total), total / 2, {'k': k}]
print(f(n))
f(2)
"""


def settle() -> None:
    """In the zygote, last: what every worker would have to do alike. What the preload printed goes out here."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    atexit._clear()
    sys.argv = [""]
    set_streams(SINK, SINK)  # for the warm-up of workers


def start_worker() -> None:
    """In the child, before it parks: renews the random state that a fork duplicates."""
    _random.Random.seed(random._inst)
    random._inst.gauss_next = None
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def finish_warm_up() -> None:
    """Leaves no trace of the warm-up but warm memory."""
    flush_streams()
    linecache.cache.pop("<warm-up>", None)
    sys.modules.pop("__main__", None)
    set_streams(STDOUT, STDERR)
