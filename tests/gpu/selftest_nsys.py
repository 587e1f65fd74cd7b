#!/usr/bin/env python3
"""Tests compare_nsys.py on files that this script creates. This test needs no GPU and no nsys."""

import sqlite3
import sys
import unittest

sys.dont_write_bytecode = True
import compare_nsys
import selftest


class NsysTest(selftest.ComparisonBase):
    """Tests compare_nsys.py on a file like those of `nsys export`, which has the same work as the trace."""

    def setUp(self):
        super().setUp()
        self.nsys = sqlite3.connect(self.truth_path)
        self.addCleanup(self.nsys.close)
        self.nsys.executescript("""
            CREATE TABLE StringIds (id, value);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, mangledName, demangledName);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, copyKind);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end);
            INSERT INTO StringIds VALUES (1, '_Z3addPf'), (2, 'plain'), (3, 'add(float*)');
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 110, 1), (20, 120, 1), (30, 130, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (40, 140);""")
        kernels = 103 * [(1, 3)] + 5 * [(None, 2)]
        self.nsys.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?)",
                              [(1000 * number, 1000 * number + 100, *names) for number, names in enumerate(kernels)])

    def failures(self, statement=None):
        if statement:
            self.nsys.execute(statement)
        self.nsys.commit()
        compare_nsys.check_work(self.report, self.trace.database, self.truth_path)
        return self.report.failures

    def test_equal_work_passes(self):
        self.assertEqual(self.failures(), [], self.output.getvalue())
        self.assertIn("kernels: 108 of 2 names; nsys 108 of 2", self.output.getvalue())
        self.assertIn("kernels take 0.011 ms; nsys 0.011 ms; ratio 1.0000", self.output.getvalue())

    def test_another_kernel_fails(self):
        self.failures("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET mangledName = 2 WHERE rowid = 1")
        self.assert_one_failure("kernels: 108 of 2 names")

    def test_slightly_longer_kernels_pass(self):
        self.assertEqual(self.failures("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 1"), [], self.output.getvalue())

    def test_longer_kernels_fail(self):
        self.failures("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 2")
        self.assert_one_failure("kernels take")

    def test_a_missing_copy_fails(self):
        self.failures("DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE start = 10")
        self.assert_one_failure("copies: 3 of 1 names; nsys 2 of 1")

    def test_work_of_which_nsys_has_no_table_fails(self):
        self.failures("DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET")
        self.assert_one_failure("sets: 1 of 1 names; nsys 0 of 0")

    def stats(self, sets_ns):
        """Checks tables of `nsys stats` in which the sets take `sets_ns`."""
        tables = {"cuda_gpu_kern_sum": "Total Time (ns),Instances,Name\n10300,103,add\n500,5,plain\n",
                  "cuda_gpu_mem_time_sum": f"Total Time (ns),Count\n300,3\n{sets_ns},1\n",
                  "cuda_gpu_trace": "Duration (ns)\n" + 112 * "100\n"}
        files = {name: f"{self.truth_path}.{name}" for name in tables}
        for name, text in tables.items():
            with open(files[name], "w", encoding="utf-8") as file:
                file.write(text)
        compare_nsys.check_stats(self.report, self.trace.database, files)

    def test_equal_stats_pass(self):
        self.stats(100)
        self.assertEqual(self.report.failures, [], self.output.getvalue())

    def test_other_stats_fail(self):
        self.stats(101)
        self.assert_one_failure("nsys stats reads the export, cuda_gpu_mem_time_sum: 4 pieces of work")


if __name__ == "__main__":
    unittest.main()
