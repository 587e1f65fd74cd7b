"""Tests `meson install`. An installed tree must work in any folder, without files from the build or source folders."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from cudatrace_test import BUILD, equal, needs
from install_test import check_commands, check_completions, check_files

needs("meson")


def install(folder):
    """Installs into a staging folder, as packagers do. Returns (the path of the prefix in the staging folder, the prefix itself)."""
    # Restore the list of installed files afterwards, because `ninja uninstall` uses it to remove the files of the user's last installation.
    listed = BUILD / "meson-logs/install-log.txt"
    before = listed.read_bytes() if listed.exists() else None
    try:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
    finally:
        if before is not None:
            listed.write_bytes(before)
        else:
            listed.unlink(missing_ok=True)
    [command] = folder.rglob("bin/cudatrace")
    prefix = command.parents[1]
    return prefix, pathlib.Path("/", prefix.relative_to(folder))


def check_units(prefix, final):
    for unit in prefix.glob("lib/systemd/*/*.service"):
        [program] = re.findall(r"^ExecStart=(\S+)", unit.read_text(), re.M)
        equal(program, str(final / "bin/cudatraced"), unit)


with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as name:
    installed, final = install(pathlib.Path(name).resolve())
    check_files(installed)
    check_units(installed, final)
    # Move the tree to a different folder. The installed files must not depend on the folder's name.
    moved = pathlib.Path(name).resolve() / "elsewhere"
    shutil.move(installed, moved)
    for variable in ("CUDATRACE_HOOK", "CUDATRACE_DAEMON"):
        os.environ.pop(variable, None)
    check_commands(moved)
    check_completions(moved)
