"""First simple figures: a call that hits the pool beside a cold Python that runs the same code, in one run on this machine.

    run.py [--bin DIR] [--samples 300] [--seconds 5] [--json FILE]

Latency: cold `python3 -I -S -c CODE` and calls of the same code take turns, in blocks of 20, so that whatever else the machine does falls
on both, and neither finds the other's memory in its caches only. A call goes the whole way: this client, the socket, broodd, a parked worker, and back; before each, the client waits 2 ms, so that the pool is full,
and the server's own count proves that every call found a parked worker. The client's share is shown by a row of its own: the round trip
of `hello`, which does nothing.
Throughput: as many clients as cores, each a process with one call at a time and no pause; likewise as many loops of cold Pythons.

The cold Python is the interpreter that runs this, which is to be the one that broodd embeds (make bench sees to it; the table says which).
Figures are medians. Ratios carry over to other machines better than microseconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msgpack  # noqa: E402

from tests.support.client import request  # noqa: E402
from tests.support.supervisor import Supervisor  # noqa: E402

PAUSE_S = 0.002
BLOCK = 20
PROGRAMS = {
    "expression": "sum(n * n for n in range(100))",
    "10-line function": """def primes(limit):
    found = []
    for n in range(2, limit):
        for p in found:
            if n % p == 0:
                break
        else:
            found.append(n)
    return found

len(primes(100))""",
}
CONFIG = "[broodd]\nlog_level = warning\n[profile default]\nparked = 4\n"


class Wire:
    """The client at its smallest: one request out, bytes in until the answer is whole."""

    def __init__(self, path: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)

    def round_trip(self, data: bytes) -> Any:
        self.sock.send(data)
        answer = self.sock.recv(65536)
        while True:
            try:
                return msgpack.unpackb(answer)
            except ValueError:  # not whole yet
                more = self.sock.recv(65536)
                if not more:
                    raise SystemExit("broodd closed the connection") from None
                answer += more


def timed_us(action: Callable[[], Any]) -> float:
    begin = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - begin) / 1000


def run_cold(code: str) -> None:
    """A whole Python process: the cheapest way to start one that there is from here."""
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(sys.executable, ["python3", "-I", "-S", "-c", code], os.environ, file_actions=null)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise SystemExit("cold Python failed")


def run_call(wire: Wire, data: bytes) -> None:
    answer = wire.round_trip(data)
    if answer[2] is not None or answer[3]["status"] != "ok":
        raise SystemExit(f"a call failed: {answer}")


def profile_counts(wire: Wire) -> dict[str, int]:
    return wire.round_trip(request(1, "status"))[3]["profiles"]["default"]


# --- what this machine is ---


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def syscall_us() -> float:
    """A system call, less what calling any function costs here."""
    def loop(function: Callable[[], Any], count: int = 20_000) -> float:
        begin = time.perf_counter_ns()
        for _ in range(count):
            function()
        return (time.perf_counter_ns() - begin) / 1000 / count
    rounds = [(loop(os.getppid), loop(sys.getrecursionlimit)) for _ in range(9)]
    return max(0.0, statistics.median(real - empty for real, empty in rounds))


def fork_us() -> float:
    """fork, _exit in the child, wait: of this small Python."""
    def once() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return statistics.median(timed_us(once) for _ in range(200))


def machine_card() -> dict[str, Any]:
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "python": f"{platform.python_version()} ({os.path.realpath(sys.executable)})",
            "system_call_us": round(syscall_us(), 2), "fork_exit_wait_us": round(fork_us(), 1)}


# --- latency ---


def latency(wire: Wire, code: str, samples: int) -> dict[str, Any]:
    """Medians of both ways, taking turns in blocks."""
    data = request(1, "run", {"code": code})
    cold, warm, hello = [], [], []
    before = profile_counts(wire)
    while len(cold) < samples:
        block = range(min(BLOCK, samples - len(cold)))
        cold.extend(timed_us(lambda: run_cold(code)) for _ in block)
        for _ in block:
            time.sleep(PAUSE_S)
            warm.append(timed_us(lambda: run_call(wire, data)))
        for _ in block:
            time.sleep(PAUSE_S)
            hello.append(timed_us(lambda: wire.round_trip(request(1, "hello", {}))))
    after = profile_counts(wire)
    return {"cold_us": statistics.median(cold), "call_us": statistics.median(warm), "call_p95_us": statistics.quantiles(warm, n=20)[-1],
            "hello_us": statistics.median(hello), "samples": samples, "hits": after["pool_hits"] - before["pool_hits"],
            "misses": after["pool_misses"] - before["pool_misses"]}


# --- throughput ---


def load(kind: str, path: str, code: str, seconds: float) -> int:
    """What one of the processes does: as many as it can, one after the other. Returns how many."""
    done, end = 0, time.monotonic() + seconds
    if kind == "call":
        wire, data = Wire(path), request(1, "run", {"code": code})
        while time.monotonic() < end:
            run_call(wire, data)
            done += 1
    else:
        while time.monotonic() < end:
            run_cold(code)
            done += 1
    return done


def throughput(kind: str, path: str, code: str, seconds: float, processes: int) -> float:
    """Runs a second, of `processes` processes at once. They begin together, by the end of their standard input."""
    command = [sys.executable, "-I", __file__, "--load", kind, path, code, str(seconds)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    for process in running:
        assert process.stdout
        process.stdout.readline()  # "ready"
    for process in running:
        assert process.stdin
        process.stdin.close()
    total = 0
    for process in running:
        assert process.stdout
        total += int(process.stdout.read())
        process.stdout.close()
        if process.wait() != 0:
            raise SystemExit("a load process failed")
    return total / seconds


def load_process(kind: str, path: str, code: str, seconds: str) -> int:
    print("ready", flush=True)
    select.select([sys.stdin], [], [])
    print(load(kind, path, code, float(seconds)))
    return 0


# --- the report ---


def show(results: dict[str, Any]) -> None:
    for key, value in results["machine"].items():
        print(f"{key.replace('_', ' '):<22} {value}")
    print(f"\n{'latency, µs, medians':<28}{'cold python3':>14}{'call':>10}{'p95':>10}{'hello':>10}{'ratio':>9}")
    for name, row in results["latency"].items():
        print(f"{name:<28}{row['cold_us']:>14.0f}{row['call_us']:>10.0f}{row['call_p95_us']:>10.0f}{row['hello_us']:>10.0f}{row['ratio']:>8.1f}x")
        print(f"  {row['samples']} samples of each; {row['hits']} calls found a parked worker, {row['misses']} did not")
    print(f"\n{'throughput, runs a second':<28}{'cold python3':>14}{'calls':>10}{'':>20}{'ratio':>9}")
    for name, row in results["throughput"].items():
        print(f"{name:<28}{row['cold_per_s']:>14.0f}{row['calls_per_s']:>10.0f}{'':>20}{row['ratio']:>8.1f}x")
    print(f"  {results['machine']['cores']} clients at once")


def measure(samples: int, seconds: float) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine_card(), "latency": {}, "throughput": {}}
    cores = results["machine"]["cores"]
    with Supervisor(CONFIG) as supervisor:
        supervisor.wait_parked(4)
        wire = Wire(supervisor.socket)
        for name, code in PROGRAMS.items():
            row = latency(wire, code, samples)
            row["ratio"] = row["cold_us"] / row["call_us"]
            results["latency"][name] = row
        wire.sock.close()
        for name, code in PROGRAMS.items():
            # In turns as well, in halves, so that a slow spell of the machine falls on both.
            rates: dict[str, list[float]] = {"cold": [], "call": []}
            for kind in ("cold", "call", "call", "cold"):
                rates[kind].append(throughput(kind, supervisor.socket, code, seconds / 2, cores))
            cold, calls = statistics.mean(rates["cold"]), statistics.mean(rates["call"])
            results["throughput"][name] = {"cold_per_s": cold, "calls_per_s": calls, "ratio": calls / cold}
    return results


def main() -> int:
    if sys.argv[1:2] == ["--load"]:
        return load_process(*sys.argv[2:6])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of broodd (default: BROOD_BIN, else the release build)")
    parser.add_argument("--samples", type=int, default=300, help="of each kind and program (at least 200 for a figure to be quoted)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of load, of each kind and program")
    parser.add_argument("--json", metavar="FILE", help="write all figures there as well")
    options = parser.parse_args()
    if options.bin:
        os.environ["BROOD_BIN"] = os.path.abspath(options.bin)
    results = measure(options.samples, options.seconds)
    show(results)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    missed = sum(row["misses"] for row in results["latency"].values())
    if missed:
        print(f"\n{missed} calls of the latency part did not find a parked worker: the medians hold, but the machine is too loaded for more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
