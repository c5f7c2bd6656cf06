"""Runs the 164 programs of HumanEval as calls of one broodd, and beside them in cold Pythons.

    run.py [--bin DIR] [--data HumanEval.jsonl.gz] [--only NUMBER …]

Each program is a task's prompt, its reference solution and its checks. It passes when it ends without an exception. Both ways run one program
after the other; cold Python is `python3 -I -S` of the interpreter that broodd embeds. Last line: `humaneval: PASSED/TASKS`.
Exit status 0 only if all pass; 77 if the data are not there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.client import Client  # noqa: E402
from tests.support.supervisor import Supervisor  # noqa: E402

HOW_TO_GET = """HumanEval is not here. It is public (MIT): the file data/HumanEval.jsonl.gz of https://github.com/openai/human-eval.
Put it into a directory and name that by --data FILE or BROOD_HUMANEVAL=DIRECTORY."""
CONFIG = "[profile default]\nwall = 60s\ncpu = 60s\nparked = 4\n"


def find_data(given: str | None) -> Path | None:
    places = [Path(given)] if given else []
    if "BROOD_HUMANEVAL" in os.environ:
        places.append(Path(os.environ["BROOD_HUMANEVAL"]))
    places.append(ROOT.parent / "shared" / "data" / "humaneval")
    for place in places:
        file = place / "HumanEval.jsonl.gz" if place.is_dir() else place
        if file.is_file():
            return file
    return None


def read_programs(file: Path) -> dict[str, str]:
    """Task names and whole programs."""
    programs = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            task = json.loads(line)
            programs[task["task_id"]] = "{prompt}{canonical_solution}\n{test}\ncheck({entry_point})\n".format(**task)
    return programs


def run_cold(programs: dict[str, str]) -> tuple[int, float]:
    """How many pass in a Python of their own, and the time of all."""
    passed, begin = 0, time.monotonic()
    for program in programs.values():
        passed += subprocess.run([sys.executable, "-I", "-S", "-"], input=program.encode(), capture_output=True, check=False).returncode == 0
    return passed, time.monotonic() - begin


def run_calls(client: Client, programs: dict[str, str]) -> tuple[int, float]:
    passed, begin = 0, time.monotonic()
    for name, program in programs.items():
        record = client.run(program, name=name)
        passed += record.status == "ok"
        if record.status != "ok":
            print(f"{name}: {record.status}: {record.message}\n{(record.error or {}).get('traceback', '')}", file=sys.stderr)
    return passed, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of broodd (default: BROOD_BIN, else the release build)")
    parser.add_argument("--data", help="HumanEval.jsonl.gz, or its directory")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="only these tasks")
    options = parser.parse_args()
    if options.bin:
        os.environ["BROOD_BIN"] = os.path.abspath(options.bin)
    data = find_data(options.data)
    if not data:
        print(f"SKIP: no HumanEval.jsonl.gz\n{HOW_TO_GET}")
        return 77
    programs = read_programs(data)
    if options.only:
        programs = {name: text for name, text in programs.items() if int(name.rpartition("/")[2]) in options.only}
    with Supervisor(CONFIG) as supervisor, supervisor.connect() as client:
        supervisor.wait_parked(4)
        before = client.status()["profiles"]["default"]
        passed, seconds = run_calls(client, programs)
        after = client.status()["profiles"]["default"]
    cold_passed, cold_seconds = run_cold(programs)
    hits = after["pool_hits"] - before["pool_hits"]
    print(f"calls through the pool: {passed} passed in {seconds:.2f} s, {seconds / len(programs) * 1e3:.1f} ms each; {hits} found a parked worker")
    print(f"cold Python, -I -S:     {cold_passed} passed in {cold_seconds:.2f} s, {cold_seconds / len(programs) * 1e3:.1f} ms each")
    print(f"ratio of the times:     {cold_seconds / seconds:.1f}")
    print(f"humaneval: {passed}/{len(programs)}")
    return 0 if passed == len(programs) == cold_passed else 1


if __name__ == "__main__":
    sys.exit(main())
