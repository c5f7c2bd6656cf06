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


print("%d.%d" % sys.version_info[:2])
print(platform.python_version())
print(sys.base_prefix)
print(sysconfig.get_path("stdlib"))
print(dynload_dir())
print(site_dirs())
