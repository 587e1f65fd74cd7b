-- Queries of tools/trace/gpu_runs.c and gpu_calls.c, each for a single file of a trace. %s is the file's schema. Together,
-- they return the same as the view `gpu_work`. The properties of a task are read only once, so that SQLite sorts short rows.

-- ?1 is the pid whose tasks are wanted, or 0. If a run was chosen, `processes` has only its processes.
-- name: tasks
SELECT gpu_task.gpu_task_id,
       gpu_task.process_id,
       ifnull(gpu_device.number, 1000 * gpu_task.process_id + gpu_task.device),
       gpu_task.context,
       gpu_task.stream,
       gpu_task.graph,
       ?1 = 0 OR gpu_task.process_id IN (SELECT process_id FROM processes WHERE pid = ?1) AS is_wanted,
       CASE WHEN gpu_task.kind IN ('kernel', 'set', 'graph') THEN gpu_task.kind ELSE 'copy' END,
       name.demangled,
       name.mangled,
       CASE WHEN gpu_task.kind NOT IN ('kernel', 'set', 'graph') THEN gpu_task.kind END
  FROM %s.gpu_task
  LEFT JOIN %s.kernel ON kernel.process_id = gpu_task.process_id AND kernel.number = gpu_task.kernel
  LEFT JOIN %s.name ON name.name_id = kernel.name_id
  LEFT JOIN %s.gpu_device ON gpu_device.process_id = gpu_task.process_id AND gpu_device.device = gpu_task.device
 WHERE gpu_task.process_id IN (SELECT process_id FROM processes)
 ORDER BY gpu_task.gpu_task_id;

-- name: by_start
SELECT start_ns, duration_ns, gpu_task_id, correlation, queued_ns, bytes FROM %s.gpu_run ORDER BY start_ns, duration_ns;

-- The function looks up the call, which is faster than a join with `correlation`. ?1 is the file in the function's form.
-- Work that starts before ?2 is not in any queue after that time.
-- name: by_launch
SELECT gpu_launched_ns(?1, gpu_task_id, correlation, start_ns) AS launched_ns, start_ns, gpu_task_id
  FROM %s.gpu_run
 WHERE start_ns >= ?2
 ORDER BY launched_ns;

-- name: calls
SELECT correlation, call_id
  FROM %s.correlation
 WHERE process_id = ?1 AND correlation BETWEEN ?2 AND ?3
   AND call_id >= ifnull((SELECT value FROM %s.meta WHERE key = 'expired_before_ns'), 0);

-- The calls of work in an earlier file.
-- name: later_calls
SELECT correlation, call_id FROM %s.correlation WHERE process_id = ?1 AND correlation BETWEEN ?2 AND ?3;

-- name: oldest_call
SELECT ifnull(min(end_ns), 0) FROM %s.call;
