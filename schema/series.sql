-- The files of a trace as one: the parts of which tools/trace/series.c makes temporary views over all of them, an arm for each
-- file, newest first. %s stands for a name.

-- These rows are in one file alone.
-- name: rows
SELECT * FROM %s.%s

-- These rows go on in later files: the newest that has one tells.
-- name: newest
SELECT * FROM %s.%s WHERE %s NOT IN (SELECT %s FROM %s.%s)

-- Sums go on too. What has expired in a file may lie in an earlier one: then it has not.
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
