#!/usr/bin/env python3
"""Rewrites what cudatrace knows of the NVIDIA kernel driver's ioctl commands, from NVIDIA's own headers.

    tools/import/import_ioctl_names.py CLONE          # a git clone of NVIDIA/open-gpu-kernel-modules, with its tags

writes, from headers that are licensed as MIT,

    collector/source/shm/ioctl_names.def   numbers of escapes, RM control commands, RM classes and UVM commands to names
    hook/ioctl/ioctl_status.def            the offset of the RM status in their structs, over all releases
    schema/status_ioctl.sql     names of RM's status codes, and of errno values

A name is taken from the newest release that has the number, so that removed commands keep their names. The commands of
nvidia-modeset are renumbered occasionally, and have a row for each release that changed them. A release may have several names
for one number. For a control command, the first name containing CMD is used, or else the first name in the header. For a class,
the first name that g_allclasses.h does not mark as an alias is used, or else the first name in class/.

A C compiler measures the layout of each struct in each release. A struct has a row for each release that changed its layout.

The build does not run this script. Run it by hand when a new driver has new commands.
"""

import argparse
import errno
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from import_api import Failure, read_text, run, write_text  # noqa: E402: in the same folder

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SDK = "src/common/sdk/nvidia/inc"
UNIX = "src/nvidia/arch/nvalloc/unix/include"
COMMON = "kernel-open/common/inc"
UVM = "kernel-open/nvidia-uvm"
MODESET = "src/nvidia-modeset/interface/nvkms-api.h"
CLASSES = "src/nvidia/generated/g_allclasses.h"

# The struct and the status field of each escape that has one, from src/nvidia/arch/nvalloc/unix/src/escape.c and osapi.c.
# NV_ESC_STATUS_CODE is not listed, because it returns the status of another call instead of its own.
ESCAPES = [
    ("NV_ESC_RM_ALLOC_MEMORY", "nv_ioctl_nvos02_parameters_with_fd", "params.status"),
    ("NV_ESC_RM_ALLOC_OBJECT", "NVOS05_PARAMETERS", "status"),
    ("NV_ESC_RM_FREE", "NVOS00_PARAMETERS", "status"),
    ("NV_ESC_RM_CONTROL", "NVOS54_PARAMETERS", "status"),
    ("NV_ESC_RM_ALLOC", "NVOS21_PARAMETERS", "status"),
    ("NV_ESC_RM_ALLOC", "NVOS64_PARAMETERS", "status"),
    ("NV_ESC_RM_DUP_OBJECT", "NVOS55_PARAMETERS", "status"),
    ("NV_ESC_RM_SHARE", "NVOS57_PARAMETERS", "status"),
    ("NV_ESC_RM_I2C_ACCESS", "NVOS_I2C_ACCESS_PARAMS", "status"),
    ("NV_ESC_RM_IDLE_CHANNELS", "NVOS30_PARAMETERS", "status"),
    ("NV_ESC_RM_VID_HEAP_CONTROL", "NVOS32_PARAMETERS", "status"),
    ("NV_ESC_RM_ACCESS_REGISTRY", "NVOS38_PARAMETERS", "status"),
    ("NV_ESC_RM_MAP_MEMORY", "nv_ioctl_nvos33_parameters_with_fd", "params.status"),
    ("NV_ESC_RM_UNMAP_MEMORY", "NVOS34_PARAMETERS", "status"),
    ("NV_ESC_RM_GET_EVENT_DATA", "NVOS41_PARAMETERS", "status"),
    ("NV_ESC_RM_ALLOC_CONTEXT_DMA2", "NVOS39_PARAMETERS", "status"),
    ("NV_ESC_RM_MAP_MEMORY_DMA", "NVOS46_PARAMETERS", "status"),
    ("NV_ESC_RM_UNMAP_MEMORY_DMA", "NVOS47_PARAMETERS", "status"),
    ("NV_ESC_RM_BIND_CONTEXT_DMA", "NVOS49_PARAMETERS", "status"),
    ("NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO", "NVOS56_PARAMETERS", "status"),
    ("NV_ESC_ALLOC_OS_EVENT", "nv_ioctl_alloc_os_event_t", "Status"),
    ("NV_ESC_FREE_OS_EVENT", "nv_ioctl_free_os_event_t", "Status"),
    ("NV_ESC_QUERY_DEVICE_INTR", "nv_ioctl_query_device_intr_t", "status"),
    ("NV_ESC_EXPORT_TO_DMABUF_FD", "nv_ioctl_export_to_dma_buf_fd_t", "status"),
    ("NV_ESC_WAIT_OPEN_COMPLETE", "nv_ioctl_wait_open_complete_t", "adapterStatus"),
]

# The first expression that matches a name determines its category, one of those in proto/category.def. If no expression matches,
# the category is `control`.
CATEGORIES = [
    ("event", r"^NV_ESC_(ALLOC|FREE)_OS_EVENT$|^NV_ESC_RM_GET_EVENT_DATA$"),
    ("event", r"^NV01_EVENT|_CTRL_(CMD_)?EVENT_"),
    ("memory", r"^NV_ESC_RM_(ALLOC_MEMORY|VID_HEAP_CONTROL|(UN)?MAP_MEMORY(_DMA)?)$"),
    ("memory", r"_CTRL_(CMD_)?(FB|DMA|MEMORY|HEAP|VASPACE|VIRTUAL|FABRIC|MAP_MEMORY|UPDATE_SURFACE_INFO)_"),
    ("memory", r"^(?!.*_CTRL_).*(MEMORY|VASPACE|CONTEXT_DMA)"),
    ("memory", r"^UVM_(RESERVE_VA|RELEASE_VA|REGION_|MAP_|UNMAP_|FREE$|MEM_MAP|MIGRATE|ALLOC_|CREATE_EXTERNAL_RANGE)"),
    ("memory", r"^UVM_((UN)?SET_(PREFERRED|ACCESSED)|(EN|DIS)ABLE_READ_DUP|POPULATE|VALIDATE_VA|DISCARD|.*RANGE_GROUP)"),
]


class Release:
    """Reads the headers at one tag of the clone."""

    def __init__(self, clone, tag):
        self.clone = clone
        self.tag = tag
        self.version = tuple(int(part) for part in tag.split("."))

    def git(self, *arguments):
        return run(["git", "-C", self.clone, *arguments], f"{self.tag}: git {arguments[0]}")

    def text(self, path):
        return self.git("show", f"{self.tag}:{path}")

    def files(self, under):
        names = self.git("ls-tree", "-r", "--name-only", self.tag, "--", under + "/").split()
        return [name for name in names if name.endswith(".h")]

    def texts(self, under):
        """Returns {path: text} for the headers below a folder, sorted by path, with a single git command."""
        paths = sorted(self.files(under))
        blobs = subprocess.run(["git", "-C", self.clone, "cat-file", "--batch"], check=True, capture_output=True,
                               input="".join(f"{self.tag}:{path}\n" for path in paths).encode()).stdout
        texts, at = {}, 0
        for path in paths:
            line = blobs.index(b"\n", at)
            size = int(blobs[at:line].split()[-1])
            texts[path] = blobs[line + 1:line + 1 + size].decode(errors="replace")
            at = line + size + 2
        return texts

    def layout_key(self):
        """Returns a key that identifies the headers of the measured structs. Of several releases with the same key, only one is
        measured."""
        paths = [f"{SDK}/nvos.h", f"{COMMON}/nvlimits.h", f"{UVM}/uvm_ioctl.h", f"{UVM}/uvm_types.h",
                 f"{UNIX}/nv-ioctl.h", f"{UNIX}/nv_escape.h", f"{UNIX}/nv-ioctl-numbers.h"]
        return self.git("rev-parse", *(f"{self.tag}:{path}" for path in paths))


# ---- names ----


def defines(text, pattern):
    """Returns (name, value, rest of the line) for each #define whose name matches, in order."""
    line = re.compile(rf"^[ \t]*#define[ \t]+({pattern})[ \t]+\(?(0[xX][0-9a-fA-F]+|\d+)U?\)?(.*)$", re.M)
    return [(name, int(value, 16 if value[:2].lower() == "0x" else 10), rest) for name, value, rest in line.findall(text)]


def escapes_of(release):
    names = {}
    for name, value, _ in defines(release.text(f"{UNIX}/nv_escape.h"), r"NV_ESC_\w+"):
        names.setdefault(value, name)
    for path, text in release.texts(UNIX).items():
        if not path.endswith(("/nv-ioctl-numbers.h", "/nv-ioctl-numa.h")):
            continue
        for name, plus in re.findall(r"^#define\s+(NV_ESC_\w+)\s+\(NV_IOCTL_BASE\s*\+\s*(\d+)\)", text, re.M):
            names.setdefault(200 + int(plus), name)
    return names


def controls_of(release):
    """A comment at the end of the line, written by NVIDIA's generator, distinguishes commands from other constants."""
    names = {}
    for text in release.texts(f"{SDK}/ctrl").values():
        for name, value, rest in defines(text, r"NV\w+"):
            if '"(FINN_' not in rest or name.endswith("_MESSAGE_ID"):
                continue
            known = names.get(value)
            if known is None or ("_CMD_" in name and "_CMD_" not in known):
                names[value] = name
    return names


def classes_of(release):
    names = {}
    for name, value, rest in defines(release.text(CLASSES), r"[A-Z]\w+"):
        if "alias" not in rest:
            names.setdefault(value, name)
    for path, text in release.texts(f"{SDK}/class").items():
        number = re.search(r"cl([0-9a-f]{4})\.h$", path)
        for name, value, _ in defines(text, r"[A-Z]\w+"):
            if number and value == int(number[1], 16) and not re.search(r"_ID$|_SIZE$|_VERSION$", name):
                names.setdefault(value, name)
    return names


def uvm_header(release):
    """Returns the contents of uvm_ioctl.h without the Windows-specific parts."""
    return re.sub(r"^#if defined\(WIN32\).*?^#endif", "", release.text(f"{UVM}/uvm_ioctl.h"), flags=re.M | re.S)


def uvm_of(release):
    names = {}
    for name, value in re.findall(r"^#define\s+(UVM_\w+)\s+UVM_IOCTL_BASE\((\d+)\)", uvm_header(release), re.M):
        names.setdefault(int(value), name)
    for name, value, _ in defines(release.text(f"{UVM}/uvm_linux_ioctl.h"), r"UVM_(?:DE)?INITIALIZE"):
        names[value] = name
    return names


def modeset_of(release):
    """Returns the commands in an enum that counts from 0."""
    commands = re.search(r"enum NvKmsIoctlCommand \{(.*?)\};", release.text(MODESET), re.S)
    if not commands or "=" in commands[1]:
        raise Failure(f"{release.tag}: {MODESET} has another enum NvKmsIoctlCommand than is understood")
    return dict(enumerate(re.findall(r"^\s*(NVKMS_IOCTL_\w+)", commands[1], re.M)))


def modeset_rows(releases):
    """Returns the rows for nvidia-modeset's commands. `releases` begins with the newest release. A number's oldest name also applies to any
    release older than these."""
    histories = {}
    for release in reversed(releases):
        names = modeset_of(release)
        for number in names.keys() | histories.keys():
            history = histories.setdefault(number, [])
            name = names.get(number)
            if name and (not history or history[-1][1] != name):
                history.append((release.version if history else (0, 0), name))
    return [f"MODESET({number}, {version[0] * 1000 + version[1]}, {name})"
            for number, history in sorted(histories.items()) for version, name in reversed(history)]


SPACES = [("ESCAPE", escapes_of), ("CONTROL", controls_of), ("CLASS", classes_of), ("UVM", uvm_of)]


def category_of(name):
    return next((category for category, pattern in CATEGORIES if re.search(pattern, name)), "control")


def names_rows(releases, modeset):
    """Returns the rows for all names. `releases` begins with the newest release, and `modeset` contains the rows for nvidia-modeset."""
    rows = []
    for space, names_of in SPACES:
        names = {}
        for release in releases:
            for value, name in names_of(release).items():
                names.setdefault(value, name)
        rows += [f"IOCTL({space}, 0x{value:08x}, {category_of(name)}, {name})" for value, name in sorted(names.items())]
    return rows + modeset


# ---- layouts ----


def measure(release):
    """Returns {(space, number, struct size in bytes): offset of the status} for one release."""
    numbers = {name: value for value, name in escapes_of(release).items()}
    commands = uvm_of(release)
    uvm_text = uvm_header(release) + release.text(f"{UVM}/uvm_linux_ioctl.h")
    text = ["#include <stddef.h>", "#include <stdio.h>", "#include <stdint.h>", "#include <sys/types.h>", '#include "nvos.h"',
            '#include "nv-ioctl.h"', '#include "nv-unix-nvos-params-wrappers.h"', '#include "uvm_linux_ioctl.h"',
            "int main(void)", "{"]
    declared = release.text(f"{SDK}/nvos.h") + release.text(f"{UNIX}/nv-ioctl.h") + \
        release.text(f"{UNIX}/nv-unix-nvos-params-wrappers.h")
    for name, struct, field in ESCAPES:
        if name in numbers and re.search(rf"\b{struct}\s*;", declared):
            text.append(f'    printf("ESCAPE {numbers[name]} %zu %zu\\n", sizeof({struct}), offsetof({struct}, {field}));')
    for number, name in commands.items():
        if re.search(rf"\b{name}_PARAMS\s*;", uvm_text):
            text.append(f'    printf("UVM {number} %zu %zu\\n", sizeof({name}_PARAMS), offsetof({name}_PARAMS, rmStatus));')
    text += ["    return 0;", "}"]
    with tempfile.TemporaryDirectory() as scratch:
        release.git("archive", "-o", f"{scratch}/headers.tar", release.tag, SDK, UNIX, COMMON, UVM)
        run(["tar", "-x", "-C", scratch, "-f", f"{scratch}/headers.tar"], f"{release.tag}: its headers")
        write_text(f"{scratch}/measure.c", "\n".join(text) + "\n")
        include = [word for path in (SDK, UNIX, UVM, COMMON) for word in ("-I", f"{scratch}/{path}")]
        what = f"{release.tag}: the structs cannot be measured"
        run([os.environ.get("CC", "cc"), "-w", "-D__linux__", "-DNVRM", "-o", f"{scratch}/measure", *include, f"{scratch}/measure.c"], what)
        lines = run([f"{scratch}/measure"], what).splitlines()
    layouts = {}
    for space, *values in map(str.split, lines):
        number, size, offset = map(int, values)
        layouts[space, number, size] = offset
    return layouts


def layout_rows(releases):
    """Returns the rows for struct layouts. `releases` begins with the newest release. A number's oldest layout also applies to any release
    older than these."""
    histories, measured = {}, {}
    for release in reversed(releases):
        key = release.layout_key()
        if key not in measured:
            measured[key] = measure(release)
        for layout, offset in measured[key].items():
            history = histories.setdefault(layout[:2] if layout[0] == "UVM" else layout, [])
            if not history or history[-1][1] != (layout[2], offset):
                history.append((release.version if history else (0, 0), (layout[2], offset)))
    rows = []
    for (space, number, *_), history in sorted(histories.items()):
        for version, (size, offset) in reversed(history):
            rows.append(f"LAYOUT({space}, 0x{number:x}, {version[0] * 1000 + version[1]}, {size}, {offset})")
    return rows


# ---- status codes ----


def status_rows(releases):
    names = {}
    for release in releases:
        for name, value in re.findall(r"^NV_STATUS_CODE\(\s*(NV_\w+)\s*,\s*(0x[0-9a-fA-F]+)",
                                      release.text(f"{SDK}/nvstatuscodes.h"), re.M):
            names.setdefault(int(value, 16), name)
    names.update({-number: name for number, name in errno.errorcode.items()})
    rows = [f"    ('ioctl', {number:6d}, '{name}')," for number, name in sorted(names.items())]
    return ["INSERT INTO status(layer, status, name) VALUES", *rows[:-1], rows[-1][:-1] + ";"]


# ---- files ----


def head_of(path, releases):
    """Returns the text before a file's rows, with the release numbers updated. The rest of this text is maintained by hand."""
    head = re.match(r"(?:/\*.*?\*/\n|(?:--[^\n]*\n)*\n?)", read_text(path), re.S)[0]
    newest = releases[0]
    commit = newest.git("rev-parse", f"{newest.tag}^{{commit}}").strip()
    head = re.sub(r"(open-gpu-kernel-modules) \S+ \(commit \w+\)", rf"\1 {newest.tag} (commit {commit[:12]})", head)
    return re.sub(r"releases [\d.]+ to [\d.]+\d", f"releases {releases[-1].tag} to {newest.tag}", head)


def find_releases(clone):
    tags = [tag for tag in run(["git", "-C", clone, "tag"], clone).split() if re.fullmatch(r"\d+\.\d+(\.\d+)?", tag)]
    if not tags:
        raise Failure(f"{clone}: no clone with the tags of open-gpu-kernel-modules")
    return sorted((Release(clone, tag) for tag in tags), key=lambda release: release.version, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", help="a git clone of NVIDIA/open-gpu-kernel-modules, with its tags")
    arguments = parser.parse_args()
    try:
        releases = find_releases(arguments.clone)
        newest_of = {}
        for release in releases:
            newest_of.setdefault(release.version[0], release)
        branches = list(newest_of.values())
        for path, rows in (
                ("collector/source/shm/ioctl_names.def", names_rows(branches, modeset_rows(releases))),
                ("hook/ioctl/ioctl_status.def", layout_rows(releases)),
                ("schema/status_ioctl.sql", status_rows(branches))):
            head = head_of(os.path.join(ROOT, path), releases)
            write_text(os.path.join(ROOT, path), head + "\n".join(rows) + "\n")
            print(f"{path}: {len(rows)} rows")
    except Failure as failure:
        print(f"import_ioctl_names: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
