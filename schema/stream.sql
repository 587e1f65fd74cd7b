-- Queries of tools/trace/call_stream.c and launch_stream.c, each for a single file of a trace. %s is the file's schema. If the file has no
-- stream names, ", stream_name" is removed from the queries.

-- name: site
SELECT thread.process_id, process.pid, thread.tid, function.layer, function.name, function.category, site.depth, site.status,
       status.name, site.status NOT IN (0, 600) AS has_failed,
       (SELECT max(begun_ns) FROM %s.segment WHERE segment.process_id = thread.process_id) AS recorded_ns
  FROM %s.site
 CROSS JOIN %s.thread   ON thread.thread_id = site.thread_id
 CROSS JOIN %s.process  ON process.process_id = thread.process_id
 CROSS JOIN %s.function ON function.function_id = site.function_id
  LEFT JOIN %s.status ON status.layer = function.layer AND status.status = site.status
 WHERE site.site_id = ?1;

-- Returns a row if the trace has the process. If a run was chosen, the view has only the processes of that run.
-- name: process
SELECT 1 FROM processes WHERE process_id = ?1;

-- Returns a row if the process is one of those with the pid ?2, or if ?2 is 0.
-- name: process_of
SELECT 1 FROM processes WHERE process_id = ?1 AND (?2 = 0 OR pid = ?2);

-- From when to when a process ran, or until the last call, or until ?2 if that is later.
-- name: process_time
SELECT started_ns,
       ifnull(ended_ns, max(started_ns,
                            ?2,
                            ifnull((SELECT call_id FROM calls ORDER BY call_id DESC LIMIT 1), 0),
                            ifnull((SELECT value FROM meta WHERE key = 'earlier_files_until_ns'), 0)))
  FROM processes
 WHERE process_id = ?1;

-- Launches that returned from ?1 to ?2.
-- name: launches
SELECT launch.call_id, call.duration_ns, launch.shape_id
  FROM %s.launch
 CROSS JOIN %s.call ON call.end_ns = launch.call_id
 WHERE launch.call_id BETWEEN ?1 AND ?2
 ORDER BY launch.call_id;

-- name: graph_launches
SELECT graph_launch.call_id, call.duration_ns, graph_launch.process_id, graph_launch.graph_exec, graph_launch.captured, graph_launch.kernel_nodes
  FROM %s.graph_launch
 CROSS JOIN %s.call ON call.end_ns = graph_launch.call_id
 WHERE graph_launch.call_id BETWEEN ?1 AND ?2
 ORDER BY graph_launch.call_id;

-- Long launches that returned after ?1, and began at ?2 or before.
-- name: late_launches
SELECT launch.call_id, call.duration_ns, launch.shape_id
  FROM %s.long_call
 CROSS JOIN %s.launch ON launch.call_id = long_call.call_id
 CROSS JOIN %s.call   ON call.end_ns = launch.call_id
 WHERE long_call.call_id > ?1 AND long_call.start_ns <= ?2
 ORDER BY long_call.call_id;

-- name: late_graph_launches
SELECT graph_launch.call_id, call.duration_ns, graph_launch.process_id, graph_launch.graph_exec, graph_launch.captured, graph_launch.kernel_nodes
  FROM %s.long_call
 CROSS JOIN %s.graph_launch ON graph_launch.call_id = long_call.call_id
 CROSS JOIN %s.call         ON call.end_ns = graph_launch.call_id
 WHERE long_call.call_id > ?1 AND long_call.start_ns <= ?2
 ORDER BY long_call.call_id;

-- The processes of launches before ?1, the last one first.
-- name: launches_before
SELECT call_id, process_id FROM %s.launch WHERE call_id < ?1 ORDER BY call_id DESC;

-- name: graph_launches_before
SELECT call_id, process_id FROM %s.graph_launch WHERE call_id < ?1 ORDER BY call_id DESC;

-- The processes of launches after ?1.
-- name: launches_after
SELECT call_id, process_id FROM %s.launch WHERE call_id > ?1 ORDER BY call_id;

-- name: graph_launches_after
SELECT call_id, process_id FROM %s.graph_launch WHERE call_id > ?1 ORDER BY call_id;

-- When processes ran that have launched, all of them or those with the pid ?1.
-- name: launching
SELECT process_id, started_ns, ifnull(ended_ns, 9223372036854775807)
  FROM processes
 WHERE process_id IN (SELECT process_id FROM totals WHERE layer = 'driver' AND stored > 0 AND (name GLOB 'cuLaunch*' OR name GLOB 'cuGraphLaunch*'))
   AND (?1 = 0 OR pid = ?1);

-- name: shape
SELECT shape.process_id, shape.captured, name.demangled, name.mangled, grid_x, grid_y, grid_z, block_x, block_y, block_z
  FROM %s.shape
  LEFT JOIN %s.kernel ON kernel.process_id = shape.process_id AND kernel.number = shape.kernel
  LEFT JOIN %s.name   ON name.name_id = kernel.name_id
 WHERE shape.shape_id = ?1;

-- ?3 is the maximum number of rows, or -1 for no limit.
-- name: calls
SELECT end_ns, duration_ns, site_id, bytes FROM %s.call WHERE end_ns BETWEEN ?1 AND ?2 ORDER BY end_ns LIMIT ?3;

-- name: calls_back
SELECT end_ns, duration_ns, site_id, bytes FROM %s.call WHERE end_ns BETWEEN ?1 AND ?2 ORDER BY end_ns DESC LIMIT ?3;

-- name: last_call
SELECT max(end_ns) FROM %s.call;

-- Calls longer than a tenth of a second, ordered by start time, with the same columns as the query `calls`.
-- name: long_calls
SELECT call.end_ns, call.duration_ns, call.site_id, call.bytes
  FROM %s.long_call
 CROSS JOIN %s.call ON call.end_ns = long_call.call_id
 WHERE long_call.call_id BETWEEN ?1 AND ?2
 ORDER BY long_call.start_ns;

-- name: shape_of
SELECT shape_id FROM %s.launch WHERE call_id = ?1;

-- name: launch
SELECT kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, stream_name, captured
  FROM %s.launches
 WHERE call_id = ?1;

-- name: graph_launch
SELECT graph_exec, kernel_nodes, stream, stream_name, captured FROM %s.graph_launches WHERE call_id = ?1;

-- name: copy
SELECT kind, async, stream, stream_name, captured FROM %s.copies WHERE call_id = ?1;

-- name: range
SELECT message, domain, category AS range_category, kind FROM %s.ranges WHERE call_id = ?1;

-- The fields of a hook or of an event of a fence: the name and the value of each.
-- name: hook
SELECT max(field) FILTER (WHERE place = 1), max(value) FILTER (WHERE place = 1),
       max(field) FILTER (WHERE place = 2), max(value) FILTER (WHERE place = 2),
       max(field) FILTER (WHERE place = 3), max(value) FILTER (WHERE place = 3),
       max(field) FILTER (WHERE place = 4), max(value) FILTER (WHERE place = 4),
       max(field) FILTER (WHERE place = 5), max(value) FILTER (WHERE place = 5),
       max(field) FILTER (WHERE place = 6), max(value) FILTER (WHERE place = 6),
       max(field) FILTER (WHERE place = 7), max(value) FILTER (WHERE place = 7),
       max(field) FILTER (WHERE place = 8), max(value) FILTER (WHERE place = 8)
  FROM %s.hook_fields
 WHERE call_id = ?1
 GROUP BY call_id;

-- name: set
SELECT address, async, stream, stream_name, captured FROM %s.memsets WHERE call_id = ?1;

-- name: addresses
SELECT source, destination FROM %s.transfer WHERE call_id = ?1;

-- name: allocation
SELECT kind, address, pool FROM %s.allocations WHERE call_id = ?1;

-- In place of the string ID of a `kernel`, a call's object is the kernel's name.
-- macro: object(role, handle)
iif(:role = (SELECT role FROM %s.role WHERE name = 'kernel'),
           (SELECT demangled
              FROM %s.kernel
              JOIN %s.name ON name.name_id = kernel.name_id
             WHERE kernel.process_id = subject.process_id AND kernel.number = :handle),
           :handle)

-- The objects of a call, at most three.
-- name: subject
SELECT (SELECT name FROM %s.role WHERE role = role_1 AND role_1 <> 0), object(role_1, handle_1),
       (SELECT name FROM %s.role WHERE role = role_2 AND role_2 <> 0), object(role_2, handle_2),
       (SELECT name FROM %s.role WHERE role = role_3 AND role_3 <> 0), object(role_3, handle_3),
       captured
  FROM %s.call_subject
  JOIN %s.subject ON subject.subject_id = call_subject.subject_id
 WHERE call_subject.call_id = ?1;

-- Counts the calls that were stored after later calls.
-- name: count_late
SELECT count(*) FROM %s.late_call;

-- name: late_calls
SELECT call_id FROM %s.late_call WHERE call_id BETWEEN ?1 AND ?2 ORDER BY call_id;

-- name: expired_before
SELECT value FROM %s.meta WHERE key = 'expired_before_ns';

-- name: realtime_offset
SELECT value FROM %s.meta WHERE key = 'realtime_offset_ns';
