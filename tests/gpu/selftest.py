#!/usr/bin/env python3
"""Tests the code that compares traces with CUPTI's counts, using databases and truth files that this script creates. This test needs no
GPU, no CUDA and no daemon."""

import contextlib
import io
import os
import sqlite3
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import attach
import compare
import compare_gpu_work
import compare_ioctls
import run

sys.path.append(os.path.join(run.HERE, "../../schema"))
import embed  # noqa: E402: makes the views

# Tables in place of a trace's views. They have only the columns that the comparisons read.
SCHEMA = """
CREATE TABLE processes (process_id, pid, state);
CREATE TABLE calls (call_id INTEGER PRIMARY KEY, process_id, layer, name, start_ns, end_ns, status, bytes);
CREATE TABLE launches (call_id, process_id, kernel, mangled, captured);
CREATE TABLE graph_launches (call_id, process_id, graph_exec, kernel_nodes, captured);
CREATE TABLE copies (call_id, process_id, kind, bytes, async, captured);
CREATE TABLE memsets (call_id, process_id, bytes, captured);
CREATE TABLE gpu_work (call_id, kind, mangled, gpu_start_ns, duration_ns, bytes, copy_kind);
CREATE TABLE totals (process_id, layer, name, calls, stored, lost, skipped);
CREATE TABLE losses (process_id, cause, calls);
CREATE TABLE open_calls (process_id, tid, name);
"""

TRUTH = """\
kernel\t_Z3addPf\t103
graph_kernel\t_Z3addPf\t100
kernel\tplain\t5
copy\tHtoD\tasync\t4096\t1
copy\tHtoD\tsync\t100\t2
memset\tasync\t64\t1
call\tcuLaunchKernel\t10
call\tcuInit\t0
dropped\t0
end
"""


class Trace:
    """A database in memory that agrees with TRUTH until a test modifies it."""

    def __init__(self):
        self.database = sqlite3.connect(":memory:")
        self.database.executescript(SCHEMA)
        self.database.execute("INSERT INTO processes VALUES (1, 42, 'exited')")
        self.time = 1000
        for _ in range(3):
            self.launch("_Z3addPf", "add(float*)")
        self.launch("_Z3addPf", "add(float*)", captured=1)
        self.launch("_Z3addPf", "add(float*)", captured=1)
        for _ in range(5):
            self.launch("plain", "plain")
        self.launch("plain", "plain", status=1)
        for _ in range(50):
            call = self.call("cuGraphLaunch")
            self.database.execute("INSERT INTO graph_launches VALUES (?, 1, 7, 2, 0)", (call,))
            for _ in range(2):
                self.work(call, "kernel", "_Z3addPf")
        self.copy("HtoD", 4096, 1)
        self.copy("HtoD", 40, 0)
        self.copy("HtoD", 60, 0)
        call = self.call("cuMemsetD8Async", size=64)
        self.database.execute("INSERT INTO memsets VALUES (?, 1, 64, 0)", (call,))
        self.work(call, "set", size=64)
        self.database.executescript(
            "INSERT INTO totals SELECT process_id, layer, name, count(*), count(*), 0, 0 FROM calls GROUP BY 1, 2, 3")

    def call(self, name, status=0, size=0, layer="driver"):
        self.time += 10
        self.database.execute("INSERT INTO calls VALUES (?, 1, ?, ?, ?, ?, ?, ?)",
                              (self.time, layer, name, self.time - 5, self.time, status, size))
        return self.time

    def launch(self, mangled, kernel, captured=0, status=0):
        call = self.call("cuLaunchKernel", status)
        self.database.execute("INSERT INTO launches VALUES (?, 1, ?, ?, ?)", (call, kernel, mangled, captured))
        if not captured and not status:
            self.work(call, "kernel", mangled)

    def copy(self, kind, size, is_async, captured=0):
        call = self.call("cuMemcpy", size=size)
        self.database.execute("INSERT INTO copies VALUES (?, 1, ?, ?, ?, ?)", (call, kind, size, is_async, captured))
        self.work(call, "copy", size=size, copy_kind=kind)

    def work(self, call, kind, mangled=None, size=0, copy_kind=None):
        self.database.execute("INSERT INTO gpu_work VALUES (?, ?, ?, ?, 100, ?, ?)", (call, kind, mangled, call, size, copy_kind))


class ComparisonBase(unittest.TestCase):
    def setUp(self):
        self.trace = Trace()
        self.output = io.StringIO()
        self.report = compare.Report(self.output)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(lambda: self.trace.database.close())
        self.truth_path = os.path.join(scratch.name, "truth.42")

    def execute(self, *statements):
        for statement in statements:
            self.trace.database.execute(statement)

    def assert_one_failure(self, beginning):
        self.assertEqual(len(self.report.failures), 1, self.output.getvalue())
        self.assertIn(beginning, self.report.failures[0])


class ComparisonTest(ComparisonBase):
    def activity(self, truth=TRUTH, kernels=None):
        with open(self.truth_path, "w", encoding="utf-8") as file:
            file.write(truth)
        compare.check_activity(self.report, self.trace.database, [self.truth_path], kernels)
        return self.report.failures

    def test_equal_counts_pass(self):
        self.assertEqual(self.activity(kernels=108), [], self.output.getvalue())
        compare.check_database(self.report, self.trace.database)
        self.assertEqual(self.report.failures, [], self.output.getvalue())
        self.assertEqual(self.report.finish(), 0)
        self.assertIn("10 launches - 2 captured + 100 in 50 graph launches = 108; CUPTI 108", self.output.getvalue())

    def test_a_missing_launch_fails_in_total_and_by_name(self):
        self.execute("DELETE FROM launches WHERE call_id = (SELECT min(call_id) FROM launches)")
        self.assertEqual(len(self.activity()), 2)
        self.assertEqual(self.report.finish(), 1)
        self.assertTrue(self.output.getvalue().endswith(f"{self.report.passed} passed, 2 failed\n"))

    def test_a_wrong_name_fails_though_totals_agree(self):
        self.execute("UPDATE launches SET mangled = 'other' WHERE mangled = 'plain'")
        self.activity()
        self.assert_one_failure("kernels outside graphs")

    def test_a_launch_wrongly_taken_for_captured_fails(self):
        self.execute("UPDATE launches SET captured = 1 WHERE mangled = 'plain'")
        self.assertGreaterEqual(len(self.activity()), 2)

    def test_wrong_number_of_graph_nodes_fails(self):
        self.execute("UPDATE graph_launches SET kernel_nodes = 3")
        self.assertEqual(len(self.activity()), 2)

    def test_two_graphs_are_compared_in_total(self):
        self.execute("UPDATE graph_launches SET graph_exec = 8 WHERE call_id % 20 = 0")
        self.assertEqual(self.activity(), [], self.output.getvalue())
        self.assertIn("2 graphs", self.output.getvalue())

    def test_no_kernels_on_either_side_is_a_failure(self):
        self.execute("DELETE FROM launches", "DELETE FROM graph_launches")
        truth = "".join(line for line in TRUTH.splitlines(True) if "kernel" not in line)
        self.activity(truth)
        self.assert_one_failure("0 launches")

    def test_copied_bytes_must_agree(self):
        self.execute("UPDATE copies SET bytes = 41 WHERE bytes = 40")
        self.activity()
        self.assert_one_failure("copies HtoD")

    def test_copies_without_a_direction_are_only_warned_of(self):
        self.execute("UPDATE copies SET kind = 'unknown' WHERE bytes = 4096")
        self.assertEqual(self.activity(), [], self.output.getvalue())
        self.assertIn("warn  copies HtoD", self.output.getvalue())

    def test_captured_copies_are_no_copies(self):
        truth = TRUTH.replace("end\n", "copy\tDtoD\tasync\t80\t10\ngraph_copy\tDtoD\tasync\t80\t10\nend\n")
        self.trace.copy("DtoD", 8, 1, captured=1)
        self.assertEqual(self.activity(truth), [], self.output.getvalue())
        self.assertIn("graphs made 10 copies more", self.output.getvalue())

    def test_sets_must_agree(self):
        self.activity(TRUTH.replace("memset\tasync\t64", "memset\tasync\t65"))
        self.assert_one_failure("sets")

    def test_dropped_records_fail(self):
        self.activity(TRUTH.replace("dropped\t0", "dropped\t3"))
        self.assert_one_failure("CUPTI lost nothing")

    def test_a_cut_truth_fails(self):
        self.activity(TRUTH.replace("end\n", ""))
        self.assert_one_failure("CUPTI lost nothing")

    def test_an_error_fails_unless_the_process_did_nothing(self):
        self.activity(TRUTH.replace("end\n", "error\tcuptiActivityFlushAll(0)\t999\nend\n"))
        self.assert_one_failure("CUPTI lost nothing")

    def test_an_error_in_a_process_without_a_context_is_warned_of(self):
        self.execute("INSERT INTO processes VALUES (2, 7, 'exited')")
        self.activity()
        path = self.truth_path.replace(".42", ".7")
        with open(path, "w", encoding="utf-8") as file:
            file.write("dropped\t0\nerror\tcuptiActivityFlushAll(0)\t999\nend\n")
        compare.check_activity(self.report, self.trace.database, [self.truth_path, path])
        self.assertEqual(self.report.failures, [], self.output.getvalue())
        self.assertIn("pid 7: CUPTI saw nothing", self.output.getvalue())

    def test_a_process_that_is_not_in_the_database_fails(self):
        self.execute("UPDATE processes SET pid = 43")
        self.assertTrue(any("are in the database" in failure for failure in self.activity()))
        self.assertIn("pid 42: 108 kernels, 3 copies, 10 calls by CUPTI", self.output.getvalue())

    def test_no_truth_fails(self):
        compare.check_activity(self.report, self.trace.database, [])
        self.assertTrue(self.report.failures)

    def test_calls_differ_softly_unless_strict(self):
        with open(self.truth_path, "w", encoding="utf-8") as file:
            file.write("call\tcuLaunchKernel\t10\ncall\tcuInit\t1\ndropped\t0\nend\n")
        compare.check_calls(self.report, self.trace.database, [self.truth_path], strict=False)
        self.assertEqual(self.report.failures, [])
        compare.check_calls(self.report, self.trace.database, [self.truth_path], strict=True)
        self.assert_one_failure("driver calls by function: 4 differ")

    def runtime(self, lines, strict=True):
        """Runs check_calls() with the given lines in the truth file, and with driver calls that all agree. Returns the failures."""
        with open(self.truth_path, "w", encoding="utf-8") as file:
            for name, calls in self.trace.database.execute(
                    "SELECT name, count(*) FROM calls WHERE layer = 'driver' GROUP BY 1"):
                file.write(f"call\t{name}\t{calls}\n")
            file.write(lines + "dropped\t0\nend\n")
        self.execute("DELETE FROM totals", "INSERT INTO totals SELECT process_id, layer, name, count(*), count(*), 0, 0 "
                     "FROM calls GROUP BY 1, 2, 3")
        compare.check_calls(self.report, self.trace.database, [self.truth_path], strict)
        return self.report.failures

    def test_runtime_calls_must_agree_by_function(self):
        for name in ("cudaMalloc", "cudaMalloc", "cudaMemAdvise_v2"):
            self.trace.call(name, layer="runtime")
        self.assertEqual(self.runtime("runtime\tcudaMalloc\t2\nruntime\tcudaMemAdvise\t1\n"
                                      "runtime\t__cudaPushCallConfiguration\t7\nruntime_static\tcudaMalloc\t50\n"), [],
                         self.output.getvalue())
        self.assertIn("runtime calls by function: 0 differ of 2; cudatrace 3, CUPTI 3", self.output.getvalue())
        self.assertIn("linked into libraries: 50", self.output.getvalue())
        self.runtime("runtime\tcudaMalloc\t3\nruntime\tcudaMemAdvise\t1\n")
        self.assert_one_failure("runtime calls by function: 1 differ of 2")

    def test_runtime_calls_that_differ_are_warned_of_unless_strict(self):
        self.trace.call("cudaMalloc", layer="runtime")
        self.assertEqual(self.runtime("", strict=False), [])
        self.assertIn("warn  runtime calls by function: 1 differ", self.output.getvalue())

    def test_no_shared_runtime_is_no_failure(self):
        self.assertEqual(self.runtime("runtime_static\tcudaMalloc\t5\n"), [], self.output.getvalue())
        self.assertIn("no calls of a shared libcudart", self.output.getvalue())

    def test_a_loss_fails(self):
        self.execute("UPDATE totals SET calls = calls + 1, lost = 1 WHERE name = 'cuMemcpy'")
        compare.check_database(self.report, self.trace.database)
        self.assert_one_failure("nothing lost")

    def test_a_broken_identity_fails(self):
        self.execute("UPDATE totals SET calls = calls + 1 WHERE name = 'cuMemcpy'")
        compare.check_database(self.report, self.trace.database)
        self.assert_one_failure("calls = stored")

    def test_rows_out_of_order_fail(self):
        self.execute("UPDATE calls SET end_ns = start_ns - 30, start_ns = start_ns - 40 WHERE call_id = 1100")
        compare.check_database(self.report, self.trace.database)
        self.assert_one_failure("every row in the order")

    def test_a_call_left_open_fails(self):
        self.execute("INSERT INTO open_calls VALUES (1, 42, 'cuInit')")
        compare.check_database(self.report, self.trace.database)
        self.assert_one_failure("no call of a process that ended by itself")

    def test_the_views_have_the_columns(self):
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            for name in ("tables.sql", "views.sql", "views_gpu.sql", "views_probe.sql"):
                with open(os.path.join(run.HERE, "../../schema", name), encoding="utf-8") as sql:
                    database.executescript(embed.expanded(sql.read()))
            compare.check_database(self.report, database)
            compare.check_activity(self.report, database, [])
            compare.check_calls(self.report, database, [], strict=True)

    def test_mangled_and_missing_names_fail(self):
        for kernel in ("NULL", "''", "'_Z3addPf'"):
            with self.subTest(kernel):
                report = compare.Report(io.StringIO())
                self.execute(f"UPDATE launches SET kernel = {kernel} WHERE mangled = '_Z3addPf'")
                compare.check_database(report, self.trace.database)
                self.assertEqual(len(report.failures), 1)


# The kernel's counts for the processes 42 and 43, which agree with the trace that IoctlTest makes.
IOCTL_TRUTH = """\
method\tptrace
ioctl\t42\tcontrol\t0xc020462a\t7
ioctl\t42\tcontrol\t0xc030462b\t2
ioctl\t42\tcontrol\t0xc90046c8\t1
ioctl\t42\tcontrol\t0x5401\t3
ioctl\t42\tuvm\t0x21\t4
ioctl\t42\tother\t0x5401\t9
ioctl\t42\tother\t0x21\t1
ioctl\t43\tuvm\t0x30000001\t1
lost\t0
end
"""


class AttachTest(unittest.TestCase):
    """Tests how attach.py computes the difference between the counts taken at two points in time."""

    THEIRS = {"cuLaunchKernel": 10, "cuMemAlloc_v2": 2, "cuMemGetAttribute": 3}

    def compare(self, ours, theirs=None):
        out = io.StringIO()
        report = compare.Report(out)
        attach.compare_calls(report, "calls", ours, theirs or self.THEIRS, {"cuMemGetAttribute"})
        return report.failed, out.getvalue()

    def test_equal_counts_pass_and_what_has_no_slot_is_listed(self):
        failed, said = self.compare({"cuLaunchKernel": 10, "cuMemAlloc_v2": 2})
        self.assertEqual(failed, 0, said)
        self.assertRegex(said, "have no slot.*\n.*\n +0 +3 +-3  cuMemGetAttribute")

    def test_calls_that_the_hook_makes_pass_and_more_than_were_made_fail(self):
        theirs = self.THEIRS | {"cuFuncGetName": 5}
        ours = {"cuLaunchKernel": 10, "cuMemAlloc_v2": 2}
        failed, said = self.compare(ours | {"cuFuncGetName": 1}, theirs)
        self.assertEqual(failed, 0, said)
        self.assertRegex(said, "the hook has called, too.*\n.*\n +1 +5 +-4  cuFuncGetName")
        self.assertEqual(self.compare(ours | {"cuFuncGetName": 6}, theirs)[0], 1)

    def test_a_call_too_few_too_many_or_of_another_function_fails(self):
        for ours in ({"cuLaunchKernel": 9, "cuMemAlloc_v2": 2}, {"cuLaunchKernel": 11, "cuMemAlloc_v2": 2}, {"cuLaunchKernel": 10},
                     {"cuLaunchKernel": 10, "cuMemAlloc_v2": 2, "cuMemFree_v2": 1},
                     {"cuLaunchKernel": 10, "cuMemAlloc_v2": 2, "cuMemGetAttribute": 4}, {}):
            self.assertEqual(self.compare(ours)[0], 1, ours)

    def test_nothing_on_either_side_is_a_failure(self):
        self.assertEqual(self.compare({}, {"cuGetExportTable": 1})[0], 1)

    def test_around_an_attach_only_more_than_was_made_fails(self):
        for ours, failed in (({"cuLaunchKernel": 4}, 0), ({"cuLaunchKernel": 11}, 1), ({"cuMemFree_v2": 1}, 1)):
            report = compare.Report(io.StringIO())
            attach.check_part(report, "calls", ours, self.THEIRS)
            self.assertEqual(report.failed, failed, ours)

    def test_a_step_belongs_to_the_first_phase_that_it_touches(self):
        report = compare.Report(io.StringIO())
        spans = [("attaching", 100, 200), ("recorded", 200, 300), ("leaving", 300, 400)]
        steps = [(10, 20), (90, 110), (190, 210), (210, 220), (290, 310), (410, 420), (250, 500)]
        found = attach.tell_steps(report, {"began_ns": [begun for begun, _ in steps], "ended_ns": [ended for _, ended in steps],
                                           "first_of_run": 1, "epoch_steps": 100}, spans)
        self.assertEqual({name: values["count"] for name, values in found.items() if values["count"]},
                         {"alone": 1, "attaching": 2, "leaving": 2, "recorded": 1, "between": 1})


class IoctlTest(unittest.TestCase):
    """Tests the comparison of the ioctl layer with the kernel's counts."""

    def setUp(self):
        self.database = sqlite3.connect(":memory:")
        self.addCleanup(lambda: self.database.close())
        self.database.executescript(SCHEMA)
        self.database.executescript("INSERT INTO processes VALUES (1, 42, 'exited'), (2, 43, 'exited')")
        self.database.executemany("INSERT INTO totals VALUES (?, ?, ?, ?, ?, 0, 0)", [
            (process, layer, name, calls, calls) for process, layer, name, calls in (
                (1, "driver", "cuInit", 1),
                (1, "ioctl", "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2", 5),
                (1, "ioctl", "RM_CONTROL 0xfffffffe", 2),
                (1, "ioctl", "RM_ALLOC NV01_ROOT_CLIENT", 2),
                (1, "ioctl", "NV_ESC_CARD_INFO", 1),
                (1, "ioctl", "UVM_MAP_EXTERNAL_ALLOCATION", 4),
                (2, "ioctl", "UVM_INITIALIZE", 1))])
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.truth_path = os.path.join(scratch.name, "truth")

    def failures(self, truth=IOCTL_TRUTH):
        self.output = io.StringIO()
        report = compare.Report(self.output)
        with open(self.truth_path, "w", encoding="utf-8") as file:
            file.write(truth)
        compare_ioctls.check_ioctls(report, self.database, self.truth_path)
        return report.failures

    def test_equal_counts_pass(self):
        self.assertEqual(self.failures(), [], self.output.getvalue())
        self.assertIn("ioctls of 2 processes: 15; the kernel counted 15 (and 13 on other files)", self.output.getvalue())

    def test_perf_tells_no_files(self):
        truth = "".join(line for line in IOCTL_TRUTH.splitlines(keepends=True) if "other" not in line)
        truth = truth.replace("\tcontrol\t", "\t?\t").replace("\tuvm\t", "\t?\t")
        self.assertEqual(self.failures(truth), [], self.output.getvalue())

    def test_a_missing_ioctl_fails_in_total_and_by_request(self):
        self.database.execute("UPDATE totals SET calls = 3 WHERE name = 'UVM_MAP_EXTERNAL_ALLOCATION'")
        self.assertEqual(len(self.failures()), 2, self.output.getvalue())
        self.assertIn("process 42: uvm 0x21: 3; the kernel 4", self.output.getvalue())

    def test_a_wrong_name_fails_by_request(self):
        self.database.execute("UPDATE totals SET name = 'NV_ESC_REGISTER_FD' WHERE name = 'NV_ESC_CARD_INFO'")
        self.assertEqual(len(self.failures()), 1, self.output.getvalue())

    def test_a_process_that_is_missing_fails(self):
        self.database.execute("DELETE FROM totals WHERE process_id = 2")
        self.assertEqual(len(self.failures()), 2, self.output.getvalue())

    def test_transfers_and_others_are_compared_in_total_alone(self):
        self.database.execute("UPDATE totals SET name = 'RM other' WHERE name = 'NV_ESC_CARD_INFO'")
        self.assertEqual(self.failures(), [], self.output.getvalue())
        self.assertEqual(self.failures(IOCTL_TRUTH.replace("0xc90046c8", "0xc01046d3")), [], self.output.getvalue())

    def test_a_truth_that_is_cut_or_lost_something_or_saw_nothing_fails(self):
        for truth in (IOCTL_TRUTH.replace("end\n", ""), IOCTL_TRUTH.replace("lost\t0", "lost\t5")):
            self.assertEqual(len(self.failures(truth)), 1, self.output.getvalue())
        self.assertIn("trusted", self.failures("method\tperf\nlost\t0\nend\n")[0])


class GpuWorkTest(ComparisonBase):
    """Tests compare_gpu_work.py."""

    def failures(self, *statements, truth=TRUTH):
        self.execute(*statements)
        with open(self.truth_path, "w", encoding="utf-8") as file:
            file.write(truth)
        compare_gpu_work.check_gpu_work(self.report, self.trace.database, [self.truth_path])
        return self.report.failures

    def test_equal_work_passes(self):
        self.assertEqual(self.failures(), [], self.output.getvalue())
        self.assertIn("kernels: 108 of 2 names; CUPTI 108 of 2", self.output.getvalue())
        self.assertIn("HtoD: 3 of 4196 bytes; CUPTI 3 of 4196", self.output.getvalue())

    def test_a_missing_kernel_fails(self):
        self.failures("DELETE FROM gpu_work WHERE rowid = (SELECT min(rowid) FROM gpu_work)")
        self.assert_one_failure("kernels: 107 of 2 names")

    def test_a_copy_of_another_size_fails(self):
        self.failures("UPDATE gpu_work SET bytes = 1 WHERE bytes = 4096")
        self.assert_one_failure("HtoD: 3 of 101 bytes")

    def test_a_set_that_cupti_did_not_see_fails(self):
        self.failures(truth=TRUTH.replace("memset\tasync\t64\t1\n", ""))
        self.assert_one_failure("set: 1 of 64 bytes; CUPTI 0 of 0")

    def test_work_without_a_call_fails(self):
        self.failures("UPDATE gpu_work SET call_id = NULL WHERE kind = 'set'")
        self.assert_one_failure("each of 112 rows of gpu_work has its call")

    def test_work_before_its_call_fails(self):
        self.failures("UPDATE gpu_work SET gpu_start_ns = gpu_start_ns - 6 WHERE kind = 'set'")
        self.assert_one_failure("work begins after its call begins")

    def test_dropped_records_fail(self):
        self.failures("INSERT INTO losses VALUES (1, 'cupti', 3)")
        self.assert_one_failure("CUPTI dropped no record")

    def test_copies_of_graphs_are_not_compared(self):
        self.assertEqual(self.failures("DELETE FROM gpu_work WHERE kind = 'copy'", truth="graph_copy\tHtoD\tasync\t4\t1\n" + TRUTH), [],
                         self.output.getvalue())


# A fake `cudatrace run --db DB --session NAME -- COMMAND` that copies a given database and a given truth file, and runs COMMAND.
FAKE_CUDATRACE = f"""#!{sys.executable}
import os, shutil, subprocess, sys
at = sys.argv.index("--")
shutil.copy(os.environ["FAKE_DATABASE"], sys.argv[sys.argv.index("--db") + 1])
if "CUPTI_TRUTH_OUT" in os.environ:
    shutil.copy(os.environ["FAKE_TRUTH"], os.environ["CUPTI_TRUTH_OUT"] + ".42")
print("cudatrace: a line of its own", file=sys.stderr)
sys.exit(subprocess.run(sys.argv[at + 1:] + os.environ.get("FAKE_ARGUMENTS", "").split()).returncode)
"""


class BenchTest(unittest.TestCase):
    """Tests run.py on a single program, with a fake `cudatrace`."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        os.makedirs(f"{self.scratch}/tools")
        os.makedirs(f"{self.scratch}/out")
        with open(f"{self.scratch}/tools/cudatrace", "w", encoding="utf-8") as file:
            file.write(FAKE_CUDATRACE)
        os.chmod(f"{self.scratch}/tools/cudatrace", 0o755)
        with contextlib.closing(sqlite3.connect(f"{self.scratch}/fake.db")) as database:
            trace = Trace()
            trace.database.backup(database)
            trace.database.close()
        with open(f"{self.scratch}/fake.truth", "w", encoding="utf-8") as file:
            file.write(TRUTH)
        os.environ.update(FAKE_DATABASE=f"{self.scratch}/fake.db", FAKE_TRUTH=f"{self.scratch}/fake.truth")
        os.environ.pop("FAKE_ARGUMENTS", None)
        without_nsys = unittest.mock.patch.object(run, "find_nsys", lambda: None)
        without_nsys.start()
        self.addCleanup(without_nsys.stop)
        self.output = io.StringIO()
        self.report = compare.Report(self.output)

    def bench(self, command, limit_s=30, **options):
        given = dict(build=self.scratch, out=f"{self.scratch}/out", quick=False, strict_calls=False, only=None, mode=None)
        given.update(options)
        bench = run.Bench(self.report, types.SimpleNamespace(**given), self.scratch, "libcupti_truth.so")
        bench.run_program(run.Program("fake", command, limit_s, 108))
        return self.report.failures

    def test_an_unchanged_program_passes(self):
        counted = 'echo checksum; [ -z "$CUPTI_TRUTH_OUT" ] || cp "$FAKE_TRUTH" "$CUPTI_TRUTH_OUT.42"'
        self.assertEqual(self.bench(["sh", "-c", counted]), [], self.output.getvalue())
        kept = os.listdir(f"{self.scratch}/out")
        for name in ("fake.activity.db", "fake.calls.db", "fake.activity.truth.42", "fake.gpu.truth.42", "fake.untraced.log"):
            self.assertIn(name, kept)

    def test_a_changed_output_fails(self):
        os.environ["FAKE_ARGUMENTS"] = "changed"
        self.addCleanup(os.environ.pop, "FAKE_ARGUMENTS")
        failures = self.bench(["echo", "checksum"], quick=True)
        self.assertEqual(len(failures), 1, self.output.getvalue())
        self.assertIn("same output", failures[0])

    def test_a_program_that_varies_cannot_be_compared(self):
        failures = self.bench(["sh", "-c", "date +%N"], quick=True)
        self.assertEqual(len(failures), 1, self.output.getvalue())
        self.assertIn("cannot be told", failures[0])

    def test_a_program_that_fails_untraced_is_not_traced(self):
        failures = self.bench(["false"])
        self.assertEqual(len(failures), 1, self.output.getvalue())
        self.assertIn("runs untraced", failures[0])

    def test_a_program_that_hangs_is_killed(self):
        failures = self.bench(["sleep", "100"], limit_s=0.2)
        self.assertIn("runs untraced", failures[0])

    def test_a_missing_program_fails_only_when_asked_for(self):
        self.assertEqual(self.bench(None), [])
        self.assertEqual(len(self.bench(None, only=["fake"])), 1)


if __name__ == "__main__":
    unittest.main()
