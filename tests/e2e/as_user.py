"""Runs the most important end-to-end tests again as an ordinary user.

Root gives the supervisor more than most who run it have: another uid for workers, namespaces without asking. So when this runs as root, it
copies the programs and the tests to where everybody can read them, becomes `nobody`, and runs them there. As an ordinary user there is
nothing left to do, as the tests themselves have run so already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USER = 65534
TESTS = ["endings", "limits", "protocol", "hostile", "isolation", "pool", "lifecycle", "cli"]
SKIPPED = 77


def copy_programs(to: Path) -> None:
    source = Path(os.environ["BROOD_BIN"])
    to.mkdir()
    to.chmod(0o755)  # whatever the umask
    for name in ("brood", "broodd", "brood-zygote"):
        shutil.copy2(source / name, to / name)
        (to / name).chmod(0o755)


def copy_tests(to: Path) -> None:
    (to / "tests").mkdir()
    (to / "tests").chmod(0o755)
    for name in ("support", "e2e"):
        shutil.copytree(ROOT / "tests" / name, to / "tests" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (to / "tests").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def become_user() -> None:
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


def main() -> int:
    if os.getuid() != 0:
        print("SKIP: already an ordinary user: the other end-to-end tests have run as one")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="brood-user-") as folder:
        top = Path(folder)
        top.chmod(0o755)
        copy_programs(top / "bin")
        copy_tests(top)
        scratch = top / "tmp"
        scratch.mkdir()
        os.chown(scratch, USER, USER)
        environment = {"BROOD_BIN": str(top / "bin"), "BROOD_SANITIZED": os.environ.get("BROOD_SANITIZED", "0"), "TMPDIR": str(scratch),
                       "PATH": os.defpath, "HOME": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.update({key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")})
        run = subprocess.run([sys.executable, "-m", "unittest", "-v", *(f"tests.e2e.test_{name}" for name in TESTS)],
                             cwd=top, env=environment, preexec_fn=become_user, check=False)
        return run.returncode


if __name__ == "__main__":
    sys.exit(main())
