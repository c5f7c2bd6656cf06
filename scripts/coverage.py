"""Prints how many lines each folder's tests ran, from the JSON summary of gcovr on standard input.

Lines that run only in a zygote or a worker are not counted: those processes can neither see the build folder nor
write to it, which is the point of them.
"""

import json
import sys
from collections import defaultdict


def folder_of(path: str) -> str:
    """protocol/scan.c -> protocol; zygote/worker/value.c -> zygote/worker."""
    return path.rpartition("/")[0] or "."


def main() -> None:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for entry in json.load(sys.stdin)["files"]:
        for name in (folder_of(entry["filename"]), "all"):
            totals[name][0] += entry["line_covered"]
            totals[name][1] += entry["line_total"]
    for name in sorted(totals, key=lambda key: (key == "all", key)):
        covered, lines = totals[name]
        rate = 100 * covered / lines if lines else 0.0
        print(f"coverage: {name:<20} {rate:5.1f} % of {lines} lines")


main()
