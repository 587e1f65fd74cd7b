"""Measures the cost of each part of the hook's fast path, and how much of that cost is hidden by the reads of the counter."""
import pathlib
import shutil
import statistics
import subprocess

from figures import emit, rounds_of, spread

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The flags with which meson.build compiles the hook's own fast path.
PATH_FLAGS = ["-fvisibility=hidden", "-ftls-model=initial-exec", "-fno-stack-protector", "-mgeneral-regs-only",
              "-falign-functions=64"]
GROWING = [
    ("trampoline", "stub, trampoline, an empty wrapper"),
    ("and_counters", "and two counter reads"),
    ("and_lookup", "and row, thread and number put to use"),
    ("and_depth", "and the thread's stack of open calls"),
    ("and_open_call", "and the open call in the lane"),
    ("and_state", "and announcing and publishing"),
    ("and_record", "and the record"),
    ("and_guard", "and busy flag, room, doorbell"),
    ("whole", "and the ring's lines ahead: the whole way"),
]
RINGS = ("whole", "without_prefetch", "ring_1m", "ring_1m_without_prefetch", "ring_1m_read", "ring_1m_read_without_prefetch")


def build_programs(folder):
    """Builds hook_parts, hook_cost and the driver that hook_cost calls in a folder, because the machine may have a compiler but no build of
    these programs."""
    folder = pathlib.Path(folder)
    compiler = [shutil.which("gcc") or "cc", "-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-fno-strict-aliasing",
                *(f"-I{header}" for header in (*sorted((ROOT / "hook").glob("*/")), ROOT / "proto"))]
    commands = [
        [*compiler, "-fPIE", *PATH_FLAGS, "-c", "-o", folder / "paths.o", HERE / "hook_parts_paths.c"],
        [*compiler, "-fPIE", "-o", folder / "hook_parts", HERE / "hook_parts.c", folder / "paths.o", "-lpthread"],
        [*compiler, "-fPIC", "-shared", "-fvisibility=hidden", "-fno-ipa-icf", "-Wl,-soname,libcuda.so.1",
         "-o", folder / "libcuda.so.1", HERE / "null_driver.c", HERE / "probed.c"],
        [*compiler, "-o", folder / "hook_cost", HERE / "hook_cost.c", HERE / "peers.c", folder / "libcuda.so.1",
         "-lpthread", "-ldl"],
    ]
    for command in commands:
        subprocess.run(command, check=True)


def row(values):
    figures = spread(values, lambda value: round(value, 1))
    return f"{figures['median']:8.1f}  ({figures['min']:.1f}-{figures['max']:.1f})"


def table(added, instructions, perf):
    """Returns a table of the figures: for each part, the cost that it adds to the path before it, and the cost of the whole path without
    it."""
    text = ["ns that a call costs more than the bare one, median (least-most)", ""]
    text += [f"  {name:<28}{row(added[name])}" for name in ("wrapper", "two_counter_reads")]
    text += ["", "The way, growing by a part, and what the part added:"]
    before = None
    for name, what in GROWING:
        step = [] if before is None else [a - b for a, b in zip(added[name], added[before])]
        text.append(f"  {what:<50}{row(added[name]):<28}{'+' + row(step).strip() if step else ''}")
        before = name
    text += ["", "The whole way without a part, and what is saved:"]
    for name in sorted(name for name in added if name.startswith("without_")):
        saved = [a - b for a, b in zip(added["whole"], added[name])]
        text.append(f"  {name.replace('_', ' '):<50}{row(added[name]):<28}-{row(saved).strip()}")
    text += ["", "Rings: in the first-level cache; 1 MiB; 1 MiB that another processor has read since:"]
    text += [f"  {name.replace('_', ' '):<50}{row(added[name])}" for name in RINGS if name in added]
    if "ring_1m_read" not in added:
        text.append("  no ring that another processor reads: there is only one processor")
    text += ["", f"Hidden behind the counter's reads: {row(added['hidden']).strip()} ns, "
             f"{100 * statistics.median(added['hidden_share']):.0f} % of what the rest costs alone", "",
             "Instructions by themselves, ns (cycle: one addition, the core's clock):"]
    text += [f"  {name:<28}{row(values):<28}" for name, values in instructions.items()]
    text += ["", "The processor's counts:"]
    text += [f"  {line}" for line in perf]
    return "\n".join(text)


def report(program):
    """Runs the program, prints the figures as JSON lines, and returns the table."""
    said = subprocess.run([program], capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
    perf = [line[len("perf "):] for line in said if line.startswith("perf ")]
    rounds = rounds_of("\n".join(line for line in said if not line.startswith("perf ")))
    instructions = {name[len("instructions_"):]: values for name, values in rounds.items() if name.startswith("instructions_")}
    added = {name: [value - bare for value, bare in zip(values, rounds["bare"])] for name, values in rounds.items()
             if not name.startswith("instructions_")}
    # The hidden time is the sum of the two costs measured separately, minus the cost measured for both together.
    counters = [both - wrapper for both, wrapper in zip(added["two_counter_reads"], added["wrapper"])]
    added["hidden"] = [reads + rest - whole for reads, rest, whole in
                       zip(counters, added["without_counters"], added["whole"])]
    added["hidden_share"] = [hidden / rest for hidden, rest in zip(added["hidden"], added["without_counters"])]
    for name, values in added.items():
        emit("hook_parts", name if name == "hidden_share" else f"{name}_added_ns", values,
             "ratio" if name == "hidden_share" else "ns")
    for name, values in instructions.items():
        emit("hook_parts", f"{name}_ns", values, "ns")
    return table(added, instructions, perf)


def run(build, _options):
    print(report(build / "tests/bench/hook_parts"))
