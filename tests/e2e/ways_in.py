"""Tests that the same calls result in the same rows, whether the program is linked to the driver or gets its functions from dlsym() or
cuGetProcAddress()."""
from cudatrace_test import Session, WORKLOADS, check, equal

with Session() as s:
    s.start_daemon()
    seen = {}
    for via in ("linked", "dlsym", "procaddress"):
        program = s.start(WORKLOADS / "calls", "--via", via, "--calls", 3000, "--threads", 2, "--mix", "training",
                          "--seed", 7, stdout=-3)
        equal(program.wait(), 0, via)
        s.flush()
        rows = dict(s.rows("SELECT totals.name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE pid = ? "
                           "GROUP BY totals.name", program.pid))
        rows.pop("cuGetProcAddress_v2", None)
        rows.pop("cuGetProcAddress", None)
        seen[via] = rows
        check(sum(rows.values()) >= 6000, via, rows)
    equal(seen["dlsym"], seen["linked"], "calls by dlsym and linked")
    equal(seen["procaddress"], seen["linked"], "calls by cuGetProcAddress and linked")
    s.check_identity()
    s.check_truth()
    equal(s.value("SELECT count(*) FROM launches WHERE kernel IS NULL OR kernel LIKE '\\_Z%' ESCAPE '\\'"), 0,
          "launches without a readable name")
