"""Checks that a build with -Dportable=true links libuv, SQLite and the demangler into the daemon and the tool."""
import re
import subprocess
import sys

for path in sys.argv[1:]:
    dynamic = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    foreign = [n for n in needed if not re.match(r"(libc|libm|libdl|libpthread|librt)\.so|ld-linux", n)]
    if foreign or not needed:
        sys.exit(f"{path} needs {foreign or 'nothing, which cannot be'}")
