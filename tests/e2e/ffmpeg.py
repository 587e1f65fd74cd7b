"""Traces a third-party program: Debian's ffmpeg, which uploads frames to the (simulated) device and downloads them again."""
from cudatrace_test import Session, check, equal, needs

needs("ffmpeg")

FRAMES = 50
SOURCE = ["-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-frames:v", str(FRAMES)]
QUIET = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"]


def upload(device="cuda=cu:0"):
    return QUIET + ["-init_hw_device", device, "-filter_hw_device", "cu"] + SOURCE + [
        "-vf", "format=nv12,hwupload_cuda,hwdownload,format=nv12", "-f", "framemd5", "-"]


with Session() as s:
    plain = s.run(*QUIET, *SOURCE, "-vf", "format=nv12", "-f", "framemd5", "-", preload=False).stdout
    untraced = s.run(*upload(), preload=False).stdout
    s.counts = s.dir / "counts-traced"
    s.counts.mkdir()
    s.start_daemon()
    traced = s.run(*upload()).stdout
    equal(untraced, plain, "the frames through the device, untraced")
    equal(traced, plain, "the frames through the device, traced")
    s.flush()
    s.check_identity()
    s.check_truth()
    # NV12 has 1.5 bytes per pixel, in two planes, so each frame needs two copies in each direction.
    size = 320 * 240 * 3 // 2
    for kind in ("HtoD", "DtoH"):
        count, total = s.rows("SELECT count(*), sum(bytes) FROM copies WHERE kind = ?", kind)[0]
        equal(total, FRAMES * size, f"bytes copied {kind}")
        equal(count, FRAMES * 2, f"copies {kind}")
    equal(s.value("SELECT exe LIKE '%ffmpeg' FROM processes"), 1, "the program")
    check(s.value("SELECT count(*) FROM allocations WHERE kind = 'device'") > 0, "device memory")
    print(*s.rows("SELECT name, calls FROM totals ORDER BY calls DESC LIMIT 5"), sep="\n")
