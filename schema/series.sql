-- Reads the files of a trace as one. tools/trace/series.c combines these parts into temporary views over all files,
-- with one arm per file, newest first. %s is a name.

-- Rows that exist in only one file.
-- name: rows
SELECT * FROM %s.%s

-- Rows that are continued in later files. Only the row in the newest file counts.
-- name: newest
SELECT * FROM %s.%s WHERE %s NOT IN (SELECT %s FROM %s.%s)

-- Sums are also continued. A call that counts as expired in one file may be in an earlier file, in which case the call
-- has not expired.
-- name: totals
SELECT process_id, layer, name, calls, stored, lost, skipped, total_ns, min_ns, max_ns, bytes, category, failed,
       expired%s AS expired
  FROM %s.totals
 WHERE process_id NOT IN (SELECT process_id FROM %s.process)

-- name: newest_totals
SELECT process_id, layer, name, calls, stored, lost, skipped, total_ns, min_ns, max_ns, bytes, category, failed,
       expired%s AS expired
  FROM %s.totals

-- name: found_earlier
 - ifnull((SELECT total.calls - total.expired
             FROM %s.total
             JOIN %s.function ON function.function_id = total.function_id
            WHERE total.process_id = totals.process_id
              AND function.layer = totals.layer AND function.name = totals.name), 0)
