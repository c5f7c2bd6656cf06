"""Runs CPython's own regression tests in plain Python and inside Brood's workers, and compares.

    run.py [--bin DIR] [--only PATTERN …] [--jobs 2] [--timeout 60] [--verbose]

Which modules count is found by running them, not by choosing them. Every test_*.py of the package `test` (Debian:
libpython3.11-testsuite) runs in a plain Python first (`-I`, the interpreter that broodd embeds, in an empty directory, with no
optional resource, as `nobody` when this is run as root), under an audit hook that writes down which rights its tests use:

    subprocess   starting a process: fork, exec, posix_spawn, system, subprocess.Popen
    network      making a socket, of whatever kind
    disk         opening a file for writing, making, changing or removing files and directories (/dev/null excepted)

A module counts when plain Python finished it within the time, ran at least one test that was not skipped, had no failure, and used
none of these rights. Then the same text (driver.py) runs as one call of a worker, with wider limits than usual. It is the
*same* when every single test has the same outcome there: ok, skipped, expected failure, failed, error. The number of tests alone
would not do.

Each module prints a line: tests run, passed, skipped, outside and inside. A difference prints the tests that differ and its
reason from differences.txt (`module: reason`, reviewed by hand), or `unexplained`. Modules that do not count are listed by the
right that they use. Last line: `cpython-tests: same N of M modules`. Exit status 0 when no difference is unexplained, 77 without the
package.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tests.support import processes  # noqa: E402
from tests.support.client import RpcError  # noqa: E402
from tests.support.supervisor import Supervisor  # noqa: E402

DRIVER = (HERE / "driver.py").read_text(encoding="utf-8")
CONFIG = "[profile default]\nwall = 180s\ncpu = 180s\nmemory = 2g\noutput = 16m\nvalue = 16m\nparked = 2\nworkers = 8\n" \
         "site_packages = yes\n"  # as plain Python has them: some tests use numpy where it is
NOBODY = 65534

# Around the driver, outside only: which rights are used is written down, and the result goes to a descriptor of its own.
RIGHTS_HOOK = '''
import sys
RIGHTS = set()
def _watch(event, args, _write=frozenset("wax+"), _rights=RIGHTS, _str=(str, bytes)):
    if event == "open":
        path, mode, flags = args
        if isinstance(path, _str) and path not in ("/dev/null", b"/dev/null"):
            if (mode and _write & set(mode)) or (mode is None and flags & 0o1103):
                _rights.add("disk")
    elif event in _EVENTS:
        _rights.add(_EVENTS[event])
_EVENTS = {name: "subprocess" for name in ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")}
_EVENTS.update({name: "network" for name in ("socket.__new__", "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname")})
_EVENTS.update({name: "disk" for name in ("os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
                                         "os.utime", "os.setxattr", "os.removexattr", "tempfile.mkstemp", "tempfile.mkdtemp", "shutil.rmtree")})
sys.addaudithook(_watch)
'''
PLAIN_END = '''
import json, os
_result = run_module(sys.argv[1])
_result["rights"] = sorted(RIGHTS)
with open(int(sys.argv[2]), "w") as _file:
    json.dump(_result, _file)
os._exit(0)
'''


@dataclass
class Outcome:
    """What became of one module on one side."""

    failure: str = ""  # why there is no result at all
    outcomes: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    rights: list[str] = field(default_factory=list)

    def count(self, *names: str) -> int:
        return sum(outcome in names for outcome in self.outcomes.values())

    def line(self) -> str:
        if self.failure:
            return self.failure
        return f"run {len(self.outcomes)}, passed {self.count('ok', 'expected failure')}, skipped {self.count('skipped')}, " \
               f"failed {self.count('failed', 'error')}"


@dataclass
class Module:
    name: str
    plain: Outcome
    inside: Outcome | None = None  # None: does not count

    def why_not(self) -> str:
        """Why a module does not count; empty when it does."""
        if self.plain.failure:
            return self.plain.failure.partition(":")[0]
        if self.plain.count("failed", "error"):
            return "fails in plain Python"
        if not self.plain.count("ok", "expected failure"):
            return "no test runs in plain Python"
        return "uses " + ", ".join(self.plain.rights) if self.plain.rights else ""

    def differing(self) -> list[str]:
        assert self.inside
        if self.inside.failure:
            return [self.inside.failure]
        names = sorted(set(self.plain.outcomes) | set(self.inside.outcomes))
        return [f"{name}: {self.plain.outcomes.get(name, 'not run')} -> {self.inside.outcomes.get(name, 'not run')}"
                f" ({self.inside.details.get(name, '')})"
                for name in names if self.plain.outcomes.get(name) != self.inside.outcomes.get(name)]


def to_outcome(result: dict[str, Any]) -> Outcome:
    if "import" in result:
        return Outcome(failure=f"not imported: {result['import']}")
    return Outcome(outcomes=result["outcomes"], details=result["details"], rights=result.get("rights", []))


def run_plain(name: str, timeout: float) -> Outcome:
    """In a Python of its own, in an empty directory; whatever it started is ended with it."""
    read_fd, write_fd = os.pipe()
    mark = uuid.uuid4().hex
    # Not as root: some tests would set the clock or read the shadow file, and a worker is not root either.
    ids: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="brood-cpython-", ignore_cleanup_errors=True) as folder, open(read_fd, encoding="utf-8") as reader:
        if ids:
            os.chown(folder, NOBODY, NOBODY)
        process = subprocess.Popen([sys.executable, "-I", "-c", RIGHTS_HOOK + DRIVER + PLAIN_END, name, str(write_fd)], pass_fds=[write_fd],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
                                   env={**os.environ, "TMPDIR": folder, "HOME": folder, "BROOD_TEST_MARK": mark}, start_new_session=True, **ids)
        os.close(write_fd)
        with ThreadPoolExecutor(1) as pool:
            text = pool.submit(reader.read)
            try:
                process.wait(timeout)
                timed_out = False
            except subprocess.TimeoutExpired:
                timed_out = True
                process.kill()
                process.wait()
            kill_marked(mark)
            result = text.result()
    if timed_out:
        return Outcome(failure=f"too long: more than {timeout:g} s")
    if not result:
        return Outcome(failure=f"no result: ended with {process.returncode}")
    return to_outcome(json.loads(result))


def kill_marked(mark: str) -> None:
    """Ends what tests left running: processes of ours that inherited the mark, in whatever session they hide."""
    for pid in processes.descendants(os.getpid()):
        try:
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # gone, or not ours


def reap_orphans(supervisor: Supervisor) -> None:
    """Those that were killed above became our zombies; all of our own children but broodd have ended by now."""
    for pid in processes.children(os.getpid()):
        if pid != supervisor.pid:
            os.waitpid(pid, 0)


def run_inside(supervisor: Supervisor, name: str) -> Outcome:
    with supervisor.connect() as client:
        client_wait = 200.0
        call = client.start(DRIVER + "\nrun_module(MODULE)\n", inputs={"MODULE": name}, name="driver.py")
        try:
            while call not in client.answers:
                message = client.receive(client_wait)
                client.answers[message[1]] = [(message[2], message[3])]
            record = client.record(call)
        except RpcError as error:
            return Outcome(failure=f"refused: {error}")
    if record.status != "ok" or not isinstance(record.value, dict):
        text = record.error["traceback"].splitlines()[-1] if record.error and record.error["traceback"] else record.message
        return Outcome(failure=f"{record.status}: {text} {record.truncated or ''}".strip())
    return to_outcome(record.value)


def run_module(supervisor: Supervisor, name: str, timeout: float) -> Module:
    module = Module(name, run_plain(name, timeout))
    if not module.why_not():
        module.inside = run_inside(supervisor, name)
        if module.differing():
            # A test that depends on chance or on load is no difference: once more on both sides.
            again = Module(name, run_plain(name, timeout))
            if not again.why_not():
                again.inside = run_inside(supervisor, name)
                module = again
    return module


def read_reasons() -> dict[str, str]:
    reasons = {}
    for line in (HERE / "differences.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(":")
            reasons[name.strip()] = reason.strip()
    return reasons


def find_modules(patterns: list[str]) -> list[str]:
    folder = Path(sysconfig.get_path("stdlib")) / "test"
    names = sorted(path.stem for path in folder.glob("test_*.py"))
    return [name for name in names if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def report(module: Module, reasons: dict[str, str], verbose: bool) -> str:
    """Prints a module that counts; returns same, explained or unexplained."""
    assert module.inside
    differing = module.differing()
    if not differing:
        print(f"{module.name}: same: {module.plain.line()}")
        return "same"
    reason = reasons.get(module.name)
    print(f"{module.name}: differs: {reason or 'unexplained'}")
    print(f"    outside: {module.plain.line()}\n    inside:  {module.inside.line()}")
    shown = differing if verbose else differing[:5]
    for text in shown:
        print(f"    {text}")
    if len(shown) < len(differing):
        print(f"    and {len(differing) - len(shown)} more")
    return "explained" if reason else "unexplained"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of broodd (default: BROOD_BIN, else the release build)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="only these modules, for example 'test_a*'")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that plain Python may take for a module")
    parser.add_argument("--verbose", action="store_true", help="all tests that differ, not only the first five of a module")
    options = parser.parse_args()
    if options.bin:
        os.environ["BROOD_BIN"] = os.path.abspath(options.bin)
    names = find_modules(options.only)
    if not names:
        print("SKIP: CPython's tests are not installed (Debian: libpython3.11-testsuite), or none matches --only")
        return 77
    reasons = read_reasons()
    counts: collections.Counter[str] = collections.Counter()
    left_out: dict[str, list[str]] = {}
    with Supervisor(CONFIG) as supervisor, ThreadPoolExecutor(options.jobs) as pool:
        for module in pool.map(lambda name: run_module(supervisor, name, options.timeout), names):
            why = module.why_not()
            if why:
                left_out.setdefault(why, []).append(module.name)
            else:
                counts[report(module, reasons, options.verbose)] += 1
            sys.stdout.flush()
        reap_orphans(supervisor)
    print("\nDo not count:")
    for why, modules in sorted(left_out.items()):
        print(f"  {why} ({len(modules)}): {' '.join(modules)}")
    print(f"\n{len(names)} modules tried, {sum(counts.values())} count; "
          f"{counts['explained']} differences with a reason, {counts['unexplained']} unexplained")
    print(f"cpython-tests: same {counts['same']} of {sum(counts.values())} modules")
    return 1 if counts["unexplained"] else 0


if __name__ == "__main__":
    sys.exit(main())
