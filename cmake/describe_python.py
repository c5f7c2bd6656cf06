"""Prints, one a line, what BroodPython.cmake wants to know of the interpreter that runs this."""

import os
import platform
import site
import sys
import sysconfig


def dynload_dir() -> str:
    """Where the standard library's extension modules lie."""
    named = sysconfig.get_config_var("DESTSHARED")
    if named and os.path.isdir(named):
        return named
    return os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload")


def site_dirs() -> str:
    """The site-packages (Debian: dist-packages) directories that exist, as they stand on sys.path."""
    return ":".join(d for d in site.getsitepackages() if os.path.isdir(d)) or "-"


def static_library() -> str:
    """The interpreter as an archive of position-independent code, if there is one. Debian's has a name of its own."""
    folder, name = sysconfig.get_config_var("LIBPL") or "", sysconfig.get_config_var("LIBRARY") or ""
    for candidate in (name.replace(".a", "-pic.a"), name):
        path = os.path.join(folder, candidate)
        if candidate.endswith(".a") and os.path.isfile(path):
            return path
    return "-"


def static_libraries() -> str:
    """What the archive needs besides."""
    words = " ".join(str(sysconfig.get_config_var(name) or "") for name in ("MODLIBS", "LIBS", "SYSLIBS")).split()
    return ":".join(dict.fromkeys(word for word in words if word.startswith("-l"))) or "-"


print("%d.%d" % sys.version_info[:2])
print(platform.python_version())
print(sys.base_prefix)
print(sysconfig.get_path("stdlib"))
print(dynload_dir())
print(site_dirs())
print(static_library())
print(static_libraries())
