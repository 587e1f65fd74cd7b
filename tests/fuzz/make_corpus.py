"""Writes the corpus of the fuzz targets, as tests/fuzz/corpus/TARGET/NAME. Each file is named after the case that it tests.

For `drain`, the corpus contains records of real programs. These records are read from the segments of running workloads, and converted to
steps. The corpus also contains scripts with a single wrong value, including each value that once caused a failure. If a fuzzer finds a
crash, add its input as another entry here.

    tests/fuzz/make_corpus.py [BUILD]        with a build directory, also records its workloads
"""
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
NUMBERS = ["RECORD", "PUBLISH", "FUNCTION", "BATCH", "POKE", "RAW", "CUT", "DIE", "ARM", "LANE", "HEADER", "REPLACE"]
WORDS = ["state", "tail", "depth", "tid", "tenancy", "loss_calls", "loss_first", "loss_last", "open_start", "open_function",
         "wake", "loss_seen", "lost_calls", "lost_ticks", "lost_bytes", "skipped_calls", "skipped_ticks", "skipped_bytes",
         "functions", "lanes", "flags", "unlaned_calls", "unlaned_first", "selections", "segments",
         "since", "skipped", "drop_key", "drop_calls", "drop_ticks", "drop_bytes",
         "since_longer", "level", "upto", "ring_lock", "complete"]
KINDS = ["PAD", "CALL", "LAUNCH", "TRANSFER", "ALLOC", "GRAPH", "STRING", "THREAD", "OBJECTS", "RANGE", "NODES", "NAME", "FIELDS", "GPU_WORK",
         "CORRELATION", "DEVICE"]
SLOT, HEAD = 16, 2  # bytes of a slot; slots of a record before its payload
START_AT, ANCHOR_AT, EXE_AT, READY_AT, MAKER_AT, RING_AT = 56, 96, 120, 1400, 1420, 0x42000  # offsets in a segment; RING_AT is in the first lane
MAX64, MIN64 = 2**64 - 1, 2**63


def step(name, lane=0, kind=0, slots=0, number=0, status=0, time=0, wide=0, more=0, data=b""):
    return struct.pack("<BBBBHiIQQB", NUMBERS.index(name), lane, kind, slots, number, status, time, wide, more,
                       len(data)) + data


def record(kind, data=b"", function=1, value=0, ticks=1000, flags=0, depth=0, status=0, lane=0, slots=None, time=1000):
    if slots is None:
        is_short = kind == "CALL" and not data and value == flags == 0 and ticks < 2**18
        slots = 1 if is_short else HEAD + (len(data) + SLOT - 1) // SLOT
    # The number of slots may not fit into one byte, so its high bits are stored above the kind.
    return step("RECORD", lane, KINDS.index(kind) | slots >> 8 << 6, slots & 255, function, status, time, value,
                (ticks & 2**56 - 1) | depth << 56 | flags << 60, data)


def head(number, kind, slots):
    return number | KINDS.index(kind) << 16 | slots << 22


def function(name, layer=0, category=0):
    return step("FUNCTION", kind=layer, slots=category, data=name)


def poke(word, value, lane=0, kind=0):
    return step("POKE", lane=lane, kind=kind, number=WORDS.index(word), wide=value)


def arm(point, then):
    return step("ARM", number=point) + then


PUBLISH, BATCH = step("PUBLISH"), step("BATCH", kind=1)
CALL = function(b"cuMemAlloc_v2") + record("THREAD", b"main".ljust(32, b"\0"), value=7) + record("CALL")
HONEST = CALL + PUBLISH + BATCH


def words(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def text_range(message, domain=b"", lengths=None):
    lengths = lengths or (len(message), len(domain), 0)
    return record("RANGE", struct.pack("<6IQ", *lengths, 3, 5, 4, 0) + message + domain)


def fields(*values, types=b"", count=None, texts=b""):
    """Returns the payload of a call with fields. `texts` contains the fields' names and strings."""
    return words(*values, *[0] * (8 - len(values))) + struct.pack("<8sB5xH", types, len(values) if count is None else count, len(texts)) + texts


def gpu_payload(kind, size=7, queued=5, node=0, copy=1, device=0):
    return words(size, queued, node) + struct.pack("<5I2B2x", 1, device, 1, 7, 3, kind, copy)


def gpu_work(kind, correlation=1 << 32 | 1, ticks=1000, **payload):
    return record("GPU_WORK", gpu_payload(kind, **payload), function=0, value=correlation, ticks=ticks)


def header(offset, data):
    return step("HEADER", number=offset, data=data)


LIES = {  # name: script
    "calls": HONEST + record("CALL") * 20 + PUBLISH + BATCH + step("DIE") + BATCH,
    "details": CALL + record("STRING", b"_Z6kernelPfi\0", value=1) +
    record("LAUNCH", struct.pack("<8I", 1, 4, 1, 1, 256, 1, 1, 0), value=5) +
    record("TRANSFER", words(5, 4096, 8192, 1), value=100) + record("ALLOC", words(4096, 0, 0, 0), value=64) +
    record("ALLOC", words(4096, 0, 0, 0), flags=2) + record("GRAPH", words(7, 3, 0, 0)) +
    record("NODES", words(7, 1, 2, 3, 4, 5, 6, 7)) + record("OBJECTS", words(1, 2, 3, 0x010203)) +
    text_range(b"epoch\0", b"domain\0") + PUBLISH + BATCH,
    "fields": CALL + record("FIELDS", fields()) + record("FIELDS", fields(MAX64, MIN64, types=b"\0\1", texts=b"a\0b\0")) +
    record("FIELDS", fields(3, 0, 1, types=b"\2\2\2", texts=b"a\0b\0c\0\xff'\0\0")) * 2 + PUBLISH + BATCH,
    "fields-that-are-none": CALL + b"".join(record("FIELDS", payload) for payload in (
        b"", fields(1, texts=b"a b\0"), fields(1, texts=b"a\0b\0"), fields(1, 2, texts=b"a\0A\0"), fields(1, count=9), fields(1, count=255),
        fields(1, types=b"\3", texts=b"a\0"), fields(MAX64, types=b"\2", texts=b"a\0b\0"), fields(300, types=b"\2", texts=b"a\0b\0"),
        fields(2, types=b"\2", texts=b"a\0bc"), fields(1, texts=b"a" * 24 + b"\0"), fields(1, texts=b"\0"))) + PUBLISH + BATCH,
    "gpu-work": CALL + record("STRING", b"_Z6kernelPfi\0", value=1) + record("CORRELATION", value=1 << 32 | 1) +
    b"".join(gpu_work(kind) for kind in (0, 1, 2, 3, 255)) + PUBLISH + BATCH + record("CALL") + PUBLISH + BATCH +
    record("CORRELATION", value=1 << 32 | 2) + gpu_work(0, 1 << 32 | 2) + PUBLISH + BATCH,
    "gpu-work-at-limits": CALL + record("CORRELATION", value=MIN64) + record("CORRELATION", value=MAX64) +
    b"".join(gpu_work(1, value, 2**56 - 1, size=MAX64, queued=MAX64, node=MIN64, copy=255, device=2**32 - 1) for value in (0, MIN64, MAX64)) +
    gpu_work(255, 0, size=MAX64) * 3 + PUBLISH + BATCH,
    "gpu-work-of-no-kind": CALL + gpu_work(4) + PUBLISH + BATCH,
    "devices": CALL + b"".join(record("DEVICE", bytes([gpu]) * 36 + bytes(12), value=value) + gpu_work(0, device=value & 0xffffffff)
                               for gpu, value in ((0, 0), (1, 1), (1, 2), (255, 2**32 - 1), (3, 2**32), (4, MAX64))) + PUBLISH + BATCH,
    "device-too-short": CALL + record("DEVICE", words(1, 2)) + gpu_work(0) + PUBLISH + BATCH,
    "gpu-work-too-short": CALL + record("GPU_WORK", words(1, 2)) + PUBLISH + BATCH,
    "correlation-of-no-call": record("CORRELATION", function=0, value=1) + gpu_work(0, 1) + PUBLISH + BATCH,
    "open-calls": HONEST + poke("depth", 3) +
    b"".join(poke("open_start", 1000 + d, kind=d) + poke("open_function", d, kind=d) for d in range(3)) + BATCH,
    "wraps-around": HONEST + (record("CALL") * 40 + record("PAD", slots=255) * 16 + PUBLISH + BATCH) * 3,
    "words-that-stand-for-null": CALL + record("LAUNCH", words(0, 0, 0, 0), value=MIN64) +
    record("STRING", b"kernel\0", value=MIN64) + record("TRANSFER", words(MIN64, MIN64, MIN64, 1), value=MIN64) +
    record("GRAPH", words(MIN64, 0, 0, 0), value=MIN64) + record("NODES", words(MIN64, *[0] * 7), value=MIN64) +
    record("ALLOC", words(MIN64, MIN64, MIN64, 4), value=MIN64) + record("OBJECTS", words(MIN64, MIN64, MIN64, 0x010101)) +
    PUBLISH + BATCH,
    "lost-calls-all": HONEST + poke("lost_calls", MAX64, lane=1) + poke("loss_calls", MAX64) + BATCH,
    "lost-calls-shrink": HONEST + poke("lost_calls", 9, lane=1) + BATCH + poke("lost_calls", 3, lane=1) + BATCH,
    "lost-time-overflows": HONEST + b"".join(
        poke(word, MAX64, lane=1) for word in ("lost_ticks", "lost_bytes", "skipped_ticks", "skipped_bytes")) +
    poke("lost_calls", 1, lane=1) + poke("skipped_calls", 1, lane=1) + BATCH,
    "counters-of-a-lane": HONEST + b"".join(
        poke("drop_key", 1 << 2 | n, kind=n) + poke("drop_calls", n + 1, kind=n) + poke("drop_ticks", MAX64, kind=n) +
        poke("drop_bytes", MAX64, kind=n) for n in range(4)) + poke("skipped", 1) + BATCH,
    "counters-of-a-lane-shrink": HONEST + poke("drop_key", 1 << 2 | 2) + poke("drop_calls", 9) + poke("skipped", 1) + BATCH +
    poke("drop_calls", 3) + poke("skipped", 2) + BATCH,
    "counters-of-a-lane-overflow": HONEST + b"".join(
        poke("drop_key", 1 << 2 | 1, kind=n) + poke("drop_calls", MAX64, kind=n) for n in range(4)) + poke("loss_calls", 1) + BATCH,
    "counters-of-no-function": HONEST + poke("drop_key", MAX64) + poke("drop_calls", 1) + poke("skipped", MAX64) + BATCH,
    "losses-of-many-owners": HONEST + b"".join(
        poke("tenancy", n) + poke("loss_calls", 2**48 - 1) + BATCH for n in range(1, 5)),
    "losses-in-the-future": HONEST + poke("loss_calls", 1) + poke("loss_first", MAX64) + poke("loss_last", MIN64) +
    poke("unlaned_calls", 1) + poke("unlaned_first", MAX64) + BATCH,
    "open-since-the-future": HONEST + poke("depth", 40) + poke("open_start", MIN64) + poke("open_function", MAX64) + BATCH,
    "durations-overflow": CALL + record("CALL", ticks=2**56 - 1) * 20 + PUBLISH + BATCH,
    "bytes-overflow": CALL + record("CALL", value=MAX64, flags=1) * 3 + PUBLISH + BATCH,
    "returned-before-time": CALL + PUBLISH + BATCH + record("CALL", time=0) * 2 + PUBLISH +
    step("RAW", time=RING_AT + 6 * SLOT, data=words(1000 << 32 | 1 << 22 | 1 << 16 | 1, 0)) + BATCH,
    "all-at-one-time": HONEST + record("CALL", time=0) * 200 + PUBLISH + BATCH,
    "late": HONEST + BATCH + b"".join(
        record("CALL", time=0) + PUBLISH + step("RAW", time=RING_AT + SLOT * (5 + n) + 8, data=words(1)) + BATCH
        for n in range(6)),
    "announces-for-ever": HONEST + (step("PUBLISH", kind=1) + BATCH + record("CALL")) * 6,
    "position-out-of-ring": HONEST + poke("state", MAX64) + BATCH,
    "position-goes-back": HONEST + poke("state", 0) + BATCH,
    "tail-beyond-all": poke("tail", MIN64) + BATCH,
    **{f"{word.replace('_', '-')}-{name}": HONEST + record("CALL") * 20 + PUBLISH + poke(word, position) + BATCH * 3
       for word in ("since", "since_longer", "level", "upto", "ring_lock")
       for name, position in {"nothing": 0, "within": 10, "behind": 4096, "all-there-is": MAX64}.items()},
    "functions-without-number": HONEST + poke("functions", 2**32 - 1) + BATCH,
    # If the daemon did not check the lengths of these records, it would read past its copy of the ring.
    "record-longer-than-any": CALL + b"".join(
        step("RAW", time=RING_AT + SLOT * (5 + 1023 * n), data=struct.pack("<IiQQQ", head(1, "NAME", 1023), 0, 1000, 0, 7) +
             struct.pack("<II24x", 1, 12700 + 200 * n)) for n in range(3)) + poke("state", 3074 << 1) + BATCH,
    "record-without-length": CALL + record("CALL", slots=0) + PUBLISH + BATCH,
    "function-unknown": CALL + record("CALL", function=65535) + PUBLISH + BATCH,
    "text-longer-than-record": CALL + text_range(b"short", lengths=(2**32 - 1, 7, 2**31)) + PUBLISH + BATCH,
    "texts-that-are-none": function(b"\xff\xfe\x01" * 24) + record("THREAD", b"\xc3" * 32) +
    record("STRING", b"_Z\xff\xc3(\0", value=1) + text_range(b"\xf0\x9f\x98\0", b"\xed\xa0\x80\0") + PUBLISH + BATCH,
    "record-too-long": CALL + record("CALL") * 50 + record("RANGE", slots=255) + poke("state", 60 << 1) + BATCH,
    "two-lanes": HONEST + step("LANE") + record("CALL", lane=1) * 3 + step("PUBLISH", lane=1) + BATCH,
    "string-without-end": CALL + record("STRING", b"x" * 64, value=1) + PUBLISH + BATCH,
    "threads-by-the-hundred": CALL + record("THREAD", b"t".ljust(32, b"\0")) * 200 + PUBLISH + BATCH,
    "header-without-end": header(EXE_AT, b"x" * 255) + header(EXE_AT + 255, b"y" * 255) + HONEST,
    "times-negative": header(START_AT, words(MIN64, MIN64)) + HONEST,
    "created-in-the-future": header(ANCHOR_AT, words(MAX64, MAX64, 0)) + HONEST,
    "a-probe": header(MAKER_AT, struct.pack("<I", 1)) + HONEST + poke("complete", MAX64) + record("CALL") + PUBLISH + BATCH +
    step("DIE") + record("CALL") + PUBLISH + poke("complete", 1) + poke("unlaned_calls", 3) + BATCH +
    poke("flags", 4) + record("CALL") + PUBLISH + BATCH + record("CALL") + PUBLISH + BATCH,
    "cut-in-the-ring": CALL + record("CALL") * 50 + PUBLISH + step("CUT", time=RING_AT + SLOT) + BATCH,
    "cut-while-drained": CALL + record("CALL") * 50 + PUBLISH + arm(3, step("CUT", time=4096)) + BATCH,
    "replaced-and-broken": HONEST + step("REPLACE") + poke("state", MAX64) + BATCH,
    "length-grows-when-checked": CALL + record("CALL") * 5 + PUBLISH +
    arm(2, step("RAW", time=RING_AT + 6 * SLOT, data=b"\xff" * 32)) +
    arm(3, step("RAW", time=RING_AT + 7 * SLOT, data=b"\xff" * 32)) + BATCH,
    "functions-taken-back-when-drained": CALL + record("CALL") * 5 + PUBLISH + arm(4, poke("functions", 1)) + BATCH,
    "depth-grows-when-read": HONEST + poke("depth", 3) + arm(1, poke("depth", 2**32 - 1)) + BATCH,
    "writes-on-when-told-to-go": HONEST + step("BATCH", kind=3) + (record("PAD", slots=255) * 14 + PUBLISH + BATCH) * 6,
    "written-after-its-end": HONEST + step("DIE") + arm(1, record("CALL") + PUBLISH) + record("CALL") + PUBLISH + BATCH,
    "segments-without-number": HONEST + (record("CALL") + PUBLISH + poke("segments", 99) + BATCH) * 3,
}


def real(path):
    """Converts a program's segment to steps: first its functions, then the records in its lanes' rings."""
    data = path.read_bytes()
    functions_slots, _, lane_offset, stride = struct.unpack_from("<IIQQ", data, 16)
    _, _, lanes, functions = struct.unpack_from("<4I", data, READY_AT)
    script = b""
    for i in range(1, min(functions, functions_slots)):
        name, layer, category = struct.unpack_from("<72sB3xI", data, 4096 + 128 * i)
        script += function(name.rstrip(b"\0"), layer, category)
    for lane in range(min(lanes, 4)):
        at = lane_offset + lane * stride
        state, = struct.unpack_from("<Q", data, at)
        position, taken = 0, 0
        script += step("LANE") if lane else b""
        while position < min(state >> 1, (stride - 4096) // SLOT) and taken < 60:
            place = at + 4096 + position * SLOT
            head, brief = struct.unpack_from("<II", data, place)
            number, kind, slots = head & 0xffff, head >> 16 & 63, head >> 22
            if not slots:
                break
            _, status, _, span, value = struct.unpack_from("<IiQQQ", data, place)
            if slots == 1:
                status, span, value = brief >> 18 & 1023, brief & 2**18 - 1 | brief >> 28 << 56, 0
            script += step("RECORD", lane, kind | slots >> 8 << 6, slots & 255, number, status, 500, value, span,
                           data[place + HEAD * SLOT:place + max(HEAD, slots) * SLOT][:255])
            position, taken = position + slots, taken + 1
        script += step("PUBLISH", lane=lane) + BATCH
    return script


STRINGS = {
    "plain": b"vector_add", "mangled": b"_Z9transposeILi32EfEvPKT0_PS0_ii",
    "templates": b"_ZN7cutlass7Kernel2I66cutlass_80_tensorop_s16816gemm_f16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn_align8EEvNT_6ParamsE",
    "stands-for-gigabytes": b"_Z1f" + b"".join(b"1xI" + b"S%d_" % i for i in range(30)) + b"E" * 30,
    "deep": b"_Z1f" + b"P" * 8000 + b"i", "unfinished": b"_Z1fI" * 200, "not-utf-8": b"\xff\xfe\xc3(\xed\xa0\x80\xf4\x90\x80\x80",
    "ioctl": b"RM_CONTROL 0x20800102", "ioctl-without-end": b"UVM 99999999999999999999999999",
}
SELECTIONS = {
    "all": b"layers=driver,nvtx calls=cuMem*,!cuMemcpy* sample=10", "refused": b"layers=driver,,x",
    "stars": b"calls=" + b"*a" * 200, "too-long": b"calls=" + b"a" * 1100, "name": b"cudatrace.0.default.1234.17f3a",
    "name-of-system": b"cudatrace.1000.a-b_c.system.1234.0", "name-of-bell": b"cudatrace.0.default.bell",
    "name-of-none": b"cudatrace.0.default.99999999999.1",
}


def real_traffic(build):
    import os
    os.environ["CUDATRACE_BUILD"] = str(pathlib.Path(build).resolve())
    sys.path.insert(0, str(HERE.parent / "e2e"))
    import glob
    import signal
    from cudatrace_test import Session, WORKLOADS, fifo
    found = {}
    for name, program in {"driver": ["calls", "--calls", "40"], "launch": ["calls", "--calls", "40", "--mix", "launch"]}.items():
        with Session() as s, fifo(s.dir, "hold") as hold:
            s.start_daemon()
            s.daemon.send_signal(signal.SIGSTOP)
            child = s.start(WORKLOADS / program[0], *program[1:], "--hold", hold, stdout=-1)
            child.stdout.readline()
            segment, = glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{child.pid}.*")
            found[name] = real(pathlib.Path(segment))
            with open(hold, "wb"):
                pass
            child.wait()
            s.daemon.send_signal(signal.SIGCONT)
    return found


# The types of events in recordings, as defined in collector/ledger/dump.h.
DUMP = ["PROCESS", "FUNCTION", "THREAD", "NOTE", "CALL", "LANE", "LOSS", "UNSENT", "NOTHING_OPEN", "OPEN", "END", "META", "GPU",
        "GPU_SAMPLE", "GPU_PROCESS"]


def event(name, form, *values, tail=b"", tail_bytes=None):
    body = struct.pack("<" + form, *values) + tail
    body += bytes(-len(body) % 8)
    return struct.pack("<HHI", DUMP.index(name), len(tail) if tail_bytes is None else tail_bytes, len(body)) + body


def frame(*events):
    data = b"".join(events)
    return struct.pack("<H", len(data) // 8) + data


def told(kind="CALL", end=2000, duration=100, value=0, thread=1, function=1, segment=1, payload=b""):
    number = KINDS.index(kind) if kind in KINDS else len(KINDS)
    is_note = kind in ("STRING", "NAME", "GPU_WORK", "CORRELATION", "DEVICE")
    return event("NOTE" if is_note else "CALL", "qqqQQQiBBBB", segment, thread, function, end, duration, value, 0, number, 0, 0, 0, tail=payload)


PROCESS = event("PROCESS", "qqQQQQqiI", 1, 1, 5, 6, 7, 0, 7, 100, 0, tail=b"/bin/p\0p -x\0seg\0")
BEGIN = PROCESS + event("FUNCTION", "q", 1, tail=b"driver\0cuMemAlloc_v2\0memory\0") + event("THREAD", "qqQ", 1, 1, 100, tail=b"main\0")
END = event("END", "qQ", 1, 4000, tail=b"exited\0")
BEHIND = (event("LANE", "qqQQ", 1, 1, 0, 9) + event("LOSS", "qIIIIQQQ", 1, 0, 0, 100, 0, 3, 10, 20) +
          event("UNSENT", "qqQQQQQQQ", 1, 1, 1, 3, 30, 0, 2, 20, 0) + event("NOTHING_OPEN", "qqqQQ", 1, 0, 0, 0, 0) +
          event("OPEN", "qqqQQ", 1, 1, 1, 0, 3000) + END + event("META", "q", 5, tail=b"realtime_offset_ns\0"))
UNKNOWN = -2**63
GPU = event("GPU", "5q", 0, 2**36, 1, UNKNOWN, UNKNOWN, tail=b"GPU-0\0" b"0000:3b:00.0\0Name\0" b"580\0" b"\0")
INSTANCE = event("GPU", "5q", 0, 2**33, UNKNOWN, 1, 0, tail=b"MIG-0\0" b"0000:3b:00.0\0Name\0" b"580\0" b"GPU-0\0")
GPU_SAMPLE = event("GPU_SAMPLE", "23q", 1000, 50, UNKNOWN, *range(20), tail=b"GPU-0\0")
EACH_KIND = b"".join(told(kind, 2000 + i, payload=bytes(48)) for i, kind in enumerate(KINDS) if kind not in ("PAD", "STRING", "THREAD"))
RECORDINGS = {name: b"\1" + data for name, data in {
    "session": frame(BEGIN, EACH_KIND) + frame(told(end=2500), BEHIND),
    "late": frame(BEGIN, told(end=5000)) + frame(*20 * [told(end=4000)]),
    "names": frame(BEGIN, told("STRING", value=3, payload=b"_Z3foov\0"),
                   told("NAME", value=1, payload=struct.pack("<II24x", 1, 3) + b"ab\0"), EACH_KIND),
    "fields": frame(BEGIN, told("FIELDS", payload=fields(1, 2, types=b"\0\2", texts=b"a\0b\0x\0")),
                    told("FIELDS", payload=fields(1, 9, types=b"\0\2", texts=b"a\0b\0x\0"))),
    "gpu-work": frame(BEGIN, told("STRING", value=1, payload=b"_Z3foov\0"), told(), told("CORRELATION", value=9),
                      told("GPU_WORK", value=9, payload=gpu_payload(0)),
                      told("GPU_WORK", 3000, MAX64, 9, thread=0, payload=gpu_payload(1, MAX64, MAX64, MAX64)),
                      told("GPU_WORK", payload=gpu_payload(255, MAX64)) * 2),
    "gpu-work-of-no-kind": frame(BEGIN, told("GPU_WORK", payload=gpu_payload(4))),
    "gpu-work-too-short": frame(BEGIN, told("GPU_WORK", payload=bytes(40))),
    "moment-largest": frame(BEGIN, told(end=2**62, duration=MAX64, value=MAX64), told(end=2**62), told(end=0)),
    "moment-too-large": frame(BEGIN, told(end=2**62 + 1)),
    "unknown-thread": frame(BEGIN, told(thread=2)),
    "unknown-function": frame(BEGIN, told(function=2)),
    "unknown-segment": frame(BEGIN, told(segment=2)),
    "unknown-kind": frame(BEGIN, told("PAD")) + frame(told("THREAD")),
    "no-thread": frame(BEGIN, told(thread=0)),
    "note-without-thread": frame(PROCESS, told("STRING", thread=0, payload=b"k\0")),
    "tail-too-long": frame(event("FUNCTION", "q", 1, tail=b"a\0b\0c\0", tail_bytes=60000)),
    "texts-without-end": frame(event("FUNCTION", "q", 1, tail=b"abcdefgh")),
    "texts-no-utf8": frame(BEGIN, event("FUNCTION", "q", 2, tail=b"\xff\0\xc0\0\xfe\0"), told(function=2)),
    "losses-too-many": frame(BEGIN, event("LOSS", "qIIIIQQQ", 1, 0, 0, 1, 0, MAX64, 1, 2)),
    "unsent-too-many": frame(BEGIN, event("UNSENT", "qqQQQQQQQ", 1, 1, 1, *[2**60] * 6)),
    "cause-unknown": frame(BEGIN, event("LOSS", "qIIIIQQQ", 1, 0, 0, 1, 9, 1, 1, 2)),
    "sums-largest": frame(BEGIN, *(event("UNSENT", "qqQQQQQQQ", 1, 1, i, *[2**48, 2**60, 2**60] * 2) for i in range(3))),
    "ended-twice": frame(BEGIN, BEHIND) + frame(told(end=9000), END),
    "gpus": frame(GPU, INSTANCE, GPU_SAMPLE, event("GPU_PROCESS", "5q", 1000, 1, 2**60, 9, UNKNOWN, tail=b"MIG-0\0")) + frame(GPU, GPU_SAMPLE),
    "gpu-unknown": frame(GPU_SAMPLE),
    "gpu-instance-of-unknown": frame(INSTANCE),
    "gpu-value-too-large": frame(GPU, event("GPU_SAMPLE", "23q", 1000, 2**60 + 1, *21 * [0], tail=b"GPU-0\0")),
    "gpu-value-negative": frame(GPU, event("GPU_PROCESS", "5q", 1000, -1, 0, 0, 0, tail=b"GPU-0\0")),
    "gpu-without-time": frame(GPU, event("GPU_SAMPLE", "23q", UNKNOWN, *22 * [0], tail=b"GPU-0\0")),
    "gpu-text-too-long": frame(event("GPU", "5q", 0, 0, 0, 0, 0, tail=96 * b"x" + 5 * b"\0")),
    "gpu-no-utf8": frame(event("GPU", "5q", 0, 0, 0, 0, 0, tail=b"\xff" + 5 * b"\0")),
    "told-again": frame(BEGIN, told()) + frame(BEGIN, told(end=3000)),
    "segment-of-another": frame(BEGIN, event("PROCESS", "qqQQQQqiI", 2, 2, 9, 9, 9, 0, 9, 101, 0, tail=b"e\0c\0seg\0"),
                                event("THREAD", "qqQ", 2, 2, 101, tail=b"x\0"), told(segment=2, thread=2)),
}.items()} | {"file-empty": b"\0", "file-other": b"\0SQLite format 3\0", "file-short": b"\0CUDTREC1" + bytes(8)}
LINES = {
    "minimal": b'{"ts":1e-6,"op_id":0,"phase":"B","name":"cuInit"}\n{"ts":5e-5,"op_id":0,"phase":"E","name":"cuInit","details":{"status":3}}\n',
    "launch": b'{"ts":0,"op_id":9,"phase":"B","pid":7,"tid":8,"name":"cuLaunchKernel","layer":"driver","details":{"depth":1,"category":'
    b'"launch","kernel":"k","grid_x":1,"block_x":32,"shared_bytes":5,"stream":-3,"stream_name":"s","captured":1}}\n'
    b'{"ts":1e-9,"op_id":9,"phase":"E","pid":7,"tid":8,"name":"cuLaunchKernel","layer":"driver","details":{"duration_ns":1,"status":0}}\n',
    "graph": b'{"ts":0,"op_id":9,"phase":"B","name":"cuGraphLaunch","details":{"graph_exec":-1,"kernel_nodes":4294967296,"stream":1}}\n'
    b'{"ts":2,"op_id":9,"phase":"E","name":"cuGraphLaunch"}\n',
    "copy": b'{"ts":0,"op_id":9,"phase":"E","name":"cuMemcpy","details":{"kind":"HtoD","async":1,"bytes":9223372036854775807}}\n' * 2,
    "range": b'{"ts":0,"op_id":9,"phase":"B","name":"nvtxRangePush","details":{"message":"\\u00e9","domain":"d","range_category":"c"}}\n'
    b'{"ts":1,"op_id":9,"phase":"E","name":"nvtxRangePush"}\n',
    "fields": b'{"ts":0,"op_id":9,"phase":"B","name":"f","layer":"hook","details":{"fields":{"n":-1,"t":"\\u00e9","none":null,"other":[1.5]}}}\n'
    b'{"ts":1,"op_id":9,"phase":"E","name":"f","layer":"hook"}\n',
    "fields-that-are-none": b'{"ts":0,"op_id":9,"phase":"E","name":"f","layer":"hook","details":{"fields":{"a b":1}}}\n'
    b'{"ts":0,"op_id":8,"phase":"E","name":"f","layer":"hook","details":{"fields":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}}\n'
    b'{"ts":0,"op_id":7,"phase":"E","name":"f","layer":"hook","details":{"fields":"x"}}\n',
    "open": b'{"ts":0,"op_id":9,"phase":"B","name":"cudaMalloc"}\n' * 3,
    "largest": b'{"ts":4611686017,"op_id":4611686018427387904,"phase":"E","name":"a","details":{"duration_ns":4611686018427387904}}\n',
    "cut": b'{"ts":0,"op_id":9,"phase":"B","name":"cudaMalloc"}\n{"ts":',
}


def write(target, files):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        assert re.fullmatch(r"[a-z0-9-]+", name)
        (folder / name).write_bytes(data)


write("drain", LIES)
write("replay", RECORDINGS | {f"lines-{name}": b"\0" + lines for name, lines in LINES.items()})
write("lines", LINES)
write("strings", STRINGS)
write("selection", SELECTIONS)
if len(sys.argv) > 1:
    write("drain", {"real-" + name: script for name, script in real_traffic(sys.argv[1]).items()})
files = [path for path in CORPUS.rglob("*") if path.is_file()]
print(len(files), "files,", sum(path.stat().st_size for path in files), "bytes")
