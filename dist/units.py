"""Checks that systemd accepts every line of the units, and that `systemd-analyze security` rates their exposure no higher than EXPOSURE."""
import pathlib
import subprocess
import sys
import tempfile

EXPOSURE = {"cudatraced.service": 6.6, "cudatraced@.service": 3.0}  # of 10; less is better

analyze, built, daemon = sys.argv[1], pathlib.Path(sys.argv[2]), str(pathlib.Path(sys.argv[3]).resolve())
with tempfile.TemporaryDirectory() as folder:
    for name, most in EXPOSURE.items():
        text = (built / name).read_text()
        command = next(line.split()[0].removeprefix("ExecStart=") for line in text.splitlines() if line.startswith("ExecStart="))
        unit = pathlib.Path(folder) / name.replace("@", "@default")
        unit.write_text(text.replace(command, daemon))
        scope = [] if "@" in name else ["--user"]
        done = subprocess.run([analyze, *scope, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60,
                              env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": folder, "HOME": folder})
        print(f"verify {name}: status {done.returncode}\n{done.stderr}", end="")
        mine = [line for line in done.stderr.splitlines() if name.split("@")[0].split(".")[0] in line]
        assert done.returncode == 0 and not mine, "systemd does not take it as it is"
        done = subprocess.run([analyze, "security", "--offline=true", f"--threshold={int(most * 10)}", "--no-pager", str(unit)],
                              capture_output=True, text=True, timeout=60)
        print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr
