-- Reads the files of a trace as one. tools/trace/series.c combines these statements into temporary views over all files,
-- with one SELECT per file, newest first. Each %s is replaced with a name.

-- Rows that exist in only one file.
-- name: rows
SELECT * FROM %s.%s

-- For rows that are continued in later files: only the row in the newest file counts.
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

-- Work may be stored before its call, so its call may be in a later file. A call that is older than all calls in the oldest
-- file was in a file that has been removed.
-- name: gpu_work
SELECT process_id, nullif(max(coalesce(call_id, NULL%s), (SELECT ifnull(min(end_ns), 0) - 1 FROM %s.call)),
                          (SELECT ifnull(min(end_ns), 0) - 1 FROM %s.call)) AS call_id,
       kind, kernel, device, context, stream, gpu_start_ns, gpu_end_ns, duration_ns, queued_ns, graph, node, bytes, copy_kind, mangled,
       recording, correlation
  FROM %s.gpu_work AS work

-- name: gpu_work_call
, (SELECT found.call_id FROM %s.correlation AS found WHERE found.process_id = work.process_id AND found.correlation = work.correlation)

-- The time of a run's processes. A call may be a little later than the end of its process.
-- name: run_from
SELECT started_ns FROM runs WHERE run_id = ?1

-- name: run_to
SELECT ended_ns + 1000000000 FROM runs WHERE run_id = ?1

-- The fields of each hook in a file, for views with a column for each field (tools/trace/hook_views.c). A hook has a
-- view only if its name needs no quotes. A field's column gets a longer name if another column already has the field's
-- name.
-- name: hook_fields
SELECT function.name AS hook,
       field.name    AS field,
       iif(lower(field.name) IN ('call_id', 'process_id', 'pid', 'tid', 'thread', 'depth', 'status', 'start_ns', 'end_ns',
                                 'duration_ns'),
           'field_', '') || field.name AS column_name
  FROM %s.field
  JOIN %s.function ON function.function_id = field.function_id
 WHERE function.layer <> 'kernel' AND function.name <> '' AND function.name NOT GLOB '*[^A-Za-z0-9_]*' AND lower(function.name) <> 'fields'

-- name: hook_fields_of_all
SELECT hook, field, column_name FROM (%z) GROUP BY hook COLLATE NOCASE, field COLLATE NOCASE LIMIT 1000

-- name: hook_view
CREATE TEMP VIEW "hook_%w" AS SELECT call_id, process_id, pid, tid, thread

-- name: hook_view_field
, (SELECT value FROM hook_fields WHERE hook_fields.call_id = hooks.call_id AND field = %Q COLLATE NOCASE) AS "%w"

-- name: hook_view_end
, depth, status, start_ns, end_ns, duration_ns FROM hooks WHERE name = %Q COLLATE NOCASE;
