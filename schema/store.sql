-- The named statements of the daemon's store. They are prepared in this order. C code refers to a statement as
-- CT_SQL_name, and binds its parameters by number.

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: count_pages
PRAGMA page_count;

-- name: schema_version
PRAGMA schema_version;

-- Returns whether a table has no index, and has exactly the given columns.
-- name: table_is_plain
SELECT (SELECT group_concat(name) FROM pragma_table_info(?1)) = ?2
   AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1);

-- name: insert_calls
INSERT INTO call (end_ns, duration_ns, site_id, bytes)
SELECT c1, c2, c3, c4 FROM new_calls;

-- Inserts a placeholder row whose blob, ?2, fills a page. The page's actual rows are written over it later
-- (collector/store/page_loader.h). The placeholder's key is the key of the last of these rows.
-- name: fill_call
INSERT INTO call (end_ns, duration_ns, site_id) VALUES (?1, ?2, 0);

-- name: unfill_call
DELETE FROM call WHERE end_ns = ?1;

-- name: newest_call
SELECT max(end_ns) FROM call;

-- name: fill_launch
INSERT INTO launch (call_id, shape_id, process_id) VALUES (?1, ?2, 0);

-- name: unfill_launch
DELETE FROM launch WHERE call_id = ?1;

-- name: newest_launch
SELECT max(call_id) FROM launch;

-- name: fill_transfer
INSERT INTO transfer (call_id, route_id) VALUES (?1, ?2);

-- name: unfill_transfer
DELETE FROM transfer WHERE call_id = ?1;

-- name: newest_transfer
SELECT max(call_id) FROM transfer;

-- name: fill_call_subject
INSERT INTO call_subject (call_id, subject_id) VALUES (?1, ?2);

-- name: unfill_call_subject
DELETE FROM call_subject WHERE call_id = ?1;

-- name: newest_call_subject
SELECT max(call_id) FROM call_subject;

-- name: fill_gpu_run
INSERT INTO gpu_run (run_id, gpu_task_id, start_ns, duration_ns) VALUES (?1, ?2, 0, 0);

-- name: unfill_gpu_run
DELETE FROM gpu_run WHERE run_id = ?1;

-- name: newest_gpu_run
SELECT max(run_id) FROM gpu_run;

-- name: find_call
SELECT 1 FROM call WHERE end_ns = ?1;

-- name: mark_late_call
INSERT INTO late_call (call_id, behind_ns) VALUES (?1, ?2);

-- name: insert_long_calls
INSERT INTO long_call (call_id, start_ns) SELECT c1, c2 FROM new_long_calls;

-- name: insert_site
INSERT INTO site (site_id, thread_id, function_id, depth, status) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: insert_thread
INSERT INTO thread (thread_id, process_id, tid, comm, name)
VALUES (?1, ?2, ?3, ?4,
        ifnull((SELECT object_name.name
                  FROM object_name
                 WHERE object_name.process_id = ?2 AND handle = ?3
                   AND object_name.role = (SELECT role FROM role WHERE role.name = 'thread')
                 ORDER BY named_ns DESC
                 LIMIT 1), ?4));

-- The hook sends all names again for each segment. A name that is already known adds no row.
-- name: name_object
INSERT OR REPLACE INTO object_name (process_id, role, handle, named_ns, name)
SELECT ?1, ?2, ?3, ?4, nullif(?5, '')
 WHERE nullif(?5, '') IS NOT (SELECT name
                                FROM object_name
                               WHERE process_id = ?1 AND role = ?2 AND handle = ?3
                               ORDER BY named_ns DESC
                               LIMIT 1);

-- name: name_thread
UPDATE thread SET name = ?3 WHERE thread_id = (SELECT max(thread_id) FROM thread WHERE process_id = ?1 AND tid = ?2);

-- Finds the row of a thread that another source of the process has stored.
-- name: find_thread
SELECT ifnull(max(thread_id), 0) FROM thread WHERE process_id = ?1 AND tid = ?2;

-- name: add_to_thread
UPDATE thread
   SET calls = calls + ?2, driver_ns = min(CAST(driver_ns + ?3 AS INTEGER), 9223372036854775807)
 WHERE thread_id = ?1;

-- name: find_function
SELECT function_id FROM function WHERE layer = ?1 AND name = ?2;

-- name: insert_function
INSERT INTO function (layer, name, category) VALUES (?1, ?2, ?3)
    ON CONFLICT (layer, name) DO UPDATE SET name = excluded.name
    RETURNING function_id;

-- Adds the run that began at a time, unless it has processes already.
-- name: begin_run
INSERT INTO run (began_unix_ns) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM run WHERE began_unix_ns = ?1);

-- name: insert_process
INSERT INTO process (pid, start_ticks, image_ns, uid, started_ns, exe, cmdline, state, run_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'running', (SELECT max(run_id) FROM run))
    RETURNING process_id;

-- Finds a process that is known from an earlier daemon or file. (An upsert would use up an ID each time.)
-- name: find_process
UPDATE process SET ended_ns = NULL, state = 'running' WHERE pid = ?1 AND start_ticks = ?2 AND image_ns = ?3 AND uid = ?4
    RETURNING process_id;

-- name: save_gpu_recording
UPDATE process SET gpu_recording = ?2 WHERE process_id = (SELECT process_id FROM segment WHERE segment_id = ?1);

-- An image that ended without a notification was killed, unless its process continued as another image (exec), or
-- reported its exit in another segment after leaving this one.
-- name: end_process
UPDATE process
   SET ended_ns = ?2,
       state = CASE WHEN ?3 = 'killed'
                     AND (state = 'exited' OR EXISTS (SELECT 1 FROM process AS later
                                                       WHERE later.pid = process.pid
                                                         AND later.start_ticks = process.start_ticks
                                                         AND later.uid = process.uid
                                                         AND later.image_ns > process.image_ns))
                    THEN 'exited' ELSE ?3 END
 WHERE process_id = ?1;

-- Marks earlier images as exited if their end was recorded before the next image was found.
-- name: forgive_earlier_execs
UPDATE process SET state = 'exited' WHERE pid = ?1 AND start_ticks = ?2 AND image_ns < ?3 AND uid = ?4 AND state = 'killed';

-- Returns whether a segment does not belong to the process that it names: another process's segment has the same
-- name, or the segment is new and was created after the process had ended. A process that the hook has left may
-- create another segment.
-- name: doubt_segment
SELECT EXISTS (SELECT 1
                 FROM segment
                 JOIN process ON process.process_id = segment.process_id
                WHERE segment.name = ?6
                  AND (process.pid, process.start_ticks, process.image_ns, process.uid) <> (?1, ?2, ?3, ?4))
    OR EXISTS (SELECT 1
                 FROM process
                WHERE pid = ?1 AND start_ticks = ?2 AND image_ns = ?3 AND uid = ?4 AND ended_ns < ?5 AND state <> 'detached'
                  AND NOT EXISTS (SELECT 1 FROM segment
                                   WHERE segment.process_id = process.process_id AND segment.name = ?6));

-- name: insert_segment
INSERT INTO segment (process_id, begun_ns, absent_ns, name) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
    RETURNING segment_id;

-- name: find_lane
SELECT lane.position, lane.thread_id, thread.tid, lane.call_id
  FROM lane
  LEFT JOIN thread ON thread.thread_id = lane.thread_id
 WHERE segment_id = ?1 AND lane = ?2;

-- name: save_lane
INSERT INTO lane (segment_id, lane, position, thread_id, call_id) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (segment_id, lane)
    DO UPDATE SET position = excluded.position, thread_id = excluded.thread_id, call_id = excluded.call_id;

-- name: find_losses
SELECT cause, CAST(total(calls) AS INTEGER) FROM loss WHERE segment_id = ?1 AND lane = ?2 AND tenancy < ?3 GROUP BY cause;

-- name: save_loss
INSERT INTO loss (segment_id, lane, tenancy, tid, calls, first_ns, last_ns, cause)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (segment_id, lane, tenancy, cause)
    DO UPDATE SET calls = excluded.calls, last_ns = excluded.last_ns;

-- A report contains the number of records dropped since the previous report. As for other losses without a lane, the
-- lane is the highest lane number, and the thread is 0.
-- name: add_dropped_work
INSERT INTO loss (segment_id, lane, tenancy, tid, calls, first_ns, last_ns, cause)
VALUES (?1, 4294967295, 0, 0, ?2, ?3, ?3, 'cupti')
    ON CONFLICT (segment_id, lane, tenancy, cause)
    DO UPDATE SET calls = min(CAST(calls + excluded.calls AS INTEGER), 9223372036854775807),
                  first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns);

-- name: save_unsent
INSERT INTO unsent (segment_id, entry, function_id, lost, lost_ns, lost_bytes, skipped, skipped_ns, skipped_bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (segment_id, entry)
    DO UPDATE SET lost = excluded.lost, lost_ns = excluded.lost_ns, lost_bytes = excluded.lost_bytes,
                  skipped = excluded.skipped, skipped_ns = excluded.skipped_ns,
                  skipped_bytes = excluded.skipped_bytes;

-- name: add_total
INSERT INTO total (process_id, function_id, calls, total_ns, min_ns, max_ns, bytes, failed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (process_id, function_id)
    DO UPDATE SET calls = calls + excluded.calls,
                  total_ns = min(CAST(total_ns + excluded.total_ns AS INTEGER), 9223372036854775807),
                  min_ns = min(min_ns, excluded.min_ns), max_ns = max(max_ns, excluded.max_ns),
                  bytes = min(CAST(bytes + excluded.bytes AS INTEGER), 9223372036854775807),
                  failed = failed + excluded.failed;

-- name: add_duration
INSERT INTO duration (process_id, function_id, bucket, calls) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (process_id, function_id, bucket) DO UPDATE SET calls = calls + excluded.calls;

-- name: add_failure
INSERT INTO failure (process_id, function_id, status, calls, first_ns, last_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (process_id, function_id, status)
    DO UPDATE SET calls = calls + excluded.calls,
                  first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns);

-- name: insert_name
INSERT INTO name (mangled, demangled) VALUES (?1, ?2)
    ON CONFLICT (mangled) DO UPDATE SET demangled = excluded.demangled
    RETURNING name_id;

-- name: insert_kernel
INSERT OR REPLACE INTO kernel (process_id, number, name_id) VALUES (?1, ?2, ?3);

-- name: insert_shape
INSERT INTO shape (shape_id, process_id, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                   shared_bytes, stream, captured)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- name: insert_launches
INSERT INTO launch (call_id, shape_id, process_id) SELECT c1, c2, c3 FROM new_launches;

-- name: insert_graph
INSERT INTO graph (call_id, process_id, graph_exec, graph, kernels, copies, sets, host_calls, graphs, empties,
                   event_waits, event_records, semaphore_signals, semaphore_waits, allocations, frees,
                   memory_operations, conditionals)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18);

-- name: insert_graph_launch
INSERT INTO graph_launch (call_id, process_id, graph_exec, kernel_nodes, stream, captured)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- The kind is also passed as a number (?3), which is not stored.
-- name: insert_route
INSERT INTO route (route_id, process_id, async, stream, captured, kind) VALUES (?1, ?2, ?4, ?5, ?6, ?7);

-- name: insert_transfers
INSERT INTO transfer (call_id, route_id, source, destination) SELECT c1, c2, c3, c4 FROM new_transfers;

-- name: insert_allocation
INSERT INTO allocation (call_id, process_id, address, bytes, pool, holders, settled, kind)
VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6);

-- Returns allocation.family for a kind. SQLite would create a table for IN whenever a statement is run.
-- macro: family_of(kind)
CASE :kind WHEN 'device' THEN 'memory' WHEN 'managed' THEN 'memory' WHEN 'host' THEN 'memory'
           WHEN 'pool' THEN 'memory' WHEN 'ipc' THEN 'memory' WHEN 'external' THEN 'memory' ELSE :kind END

-- Frees memory for a call that began at ?3 and returned at ?4: the latest allocation made before the call began and not
-- freed by another call. Successive calls in a thread may be closer together than the error in their times
-- (collector/source/ticks.h). Therefore, if nothing else matches, an allocation made at most ?6 nanoseconds after the
-- beginning of the call is taken. Of the allocations that were superseded after the call began, the first 16 are compared,
-- because any number may remain if frees are not recorded. The first is the right one, unless allocations arrived late.
-- name: free_allocation
UPDATE allocation
   SET holders = max(holders - 1, 0),
       freed_ns = CASE WHEN holders > 1 THEN NULL ELSE ?4 END,
       settled = holders <= 1
 WHERE call_id = (SELECT call_id
                    FROM (SELECT call_id
                            FROM allocation
                           WHERE process_id = ?1 AND family = family_of(?7) AND address = ?2 AND freed_ns IS NULL
                           UNION ALL
                          SELECT call_id
                            FROM (SELECT call_id
                                    FROM allocation
                                   WHERE process_id = ?1 AND family = family_of(?7) AND address = ?2
                                     AND settled = 0 AND freed_ns >= ?3
                                   ORDER BY freed_ns
                                   LIMIT 16))
                   WHERE call_id <= ?3 + ?6
                   ORDER BY call_id <= ?3 DESC, abs(call_id - ?3)
                   LIMIT 1);

-- Finds the first address from ?2 to ?3 where memory is held.
-- name: next_held
SELECT address
  FROM allocation
 WHERE process_id = ?1 AND family = family_of(?4) AND address BETWEEN ?2 AND ?3 AND freed_ns IS NULL
 ORDER BY address
 LIMIT 1;

-- Finds the first address from ?2 to ?3 with an allocation that was superseded, and whose free has not been recorded.
-- name: next_superseded
SELECT address
  FROM allocation
 WHERE process_id = ?1 AND family = family_of(?4) AND address BETWEEN ?2 AND ?3 AND settled = 0 AND freed_ns IS NOT NULL
 ORDER BY address
 LIMIT 1;

-- name: count_unknown_free
UPDATE process SET unknown_frees = unknown_frees + ?2 WHERE process_id = ?1;

-- If an address is allocated again, it was freed before, by a call that has not returned yet or was not recorded.
-- Changes one row, and is repeated until it changes none. If it could change several rows, SQLite would create a table of
-- their IDs whenever the statement is run.
-- name: supersede_allocation
UPDATE allocation
   SET holders = 0, freed_ns = ?3
 WHERE call_id = (SELECT call_id
                    FROM allocation
                   WHERE process_id = ?1 AND family = family_of(?4) AND address = ?2 AND freed_ns IS NULL
                     AND call_id < ?3
                   LIMIT 1);

-- Handles an allocation that arrives late, after a more recent allocation at the same address. Of the allocations that
-- were superseded later, 16 are compared, as in free_allocation.
-- name: supersede_late_allocation
UPDATE allocation
   SET holders = 0, freed_ns = younger.call_id
  FROM (SELECT min(call_id) AS call_id
          FROM (SELECT call_id
                  FROM allocation
                 WHERE process_id = ?1 AND family = family_of(?4) AND address = ?2 AND freed_ns IS NULL
                 UNION ALL
                SELECT call_id
                  FROM (SELECT call_id
                          FROM allocation
                         WHERE process_id = ?1 AND family = family_of(?4) AND address = ?2
                           AND settled = 0 AND freed_ns > ?3
                         ORDER BY freed_ns
                         LIMIT 16))
         WHERE call_id > ?3) AS younger
 WHERE allocation.call_id = ?3 AND allocation.freed_ns IS NULL AND younger.call_id IS NOT NULL;

-- Adds a holder to memory that the process already holds. If the process does not hold it, insert_shared_allocation
-- adds a row.
-- name: share_allocation
UPDATE allocation
   SET holders = holders + 1
 WHERE process_id = ?1 AND family = family_of(?3) AND address = ?2 AND freed_ns IS NULL AND kind = ?3;

-- name: insert_shared_allocation
INSERT INTO allocation (call_id, process_id, address, bytes, pool, holders, settled, kind)
SELECT ?1, ?2, ?3, ?4, ?5, 1, 0, ?6
 WHERE NOT EXISTS (SELECT 1 FROM allocation
                    WHERE process_id = ?2 AND family = family_of(?6) AND address = ?3 AND freed_ns IS NULL
                      AND kind = ?6);

-- Sets the size of memory that another process shares, after the program has queried it.
-- name: size_allocation
UPDATE allocation
   SET bytes = ?3
 WHERE process_id = ?1 AND family = family_of('ipc') AND address = ?2 AND freed_ns IS NULL
   AND bytes IS NULL AND kind = 'ipc';

-- name: insert_subject
INSERT INTO subject (subject_id, process_id, captured, role_1, handle_1, role_2, handle_2, role_3, handle_3)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: insert_call_subjects
INSERT INTO call_subject (call_id, subject_id) SELECT c1, c2 FROM new_call_subjects;

-- name: insert_text
INSERT INTO text (text_id, text) VALUES (?1, ?2);

-- A payload is a decimal number or empty.
-- name: insert_range
INSERT INTO range (call_id, message_id, domain_id, category_id, category, color, range_id, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, CAST(nullif(?8, '') AS NUMERIC));

-- name: insert_field
INSERT INTO field (field_set_id, place, function_id, is_text, name) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: insert_hook_call
INSERT INTO hook_call (call_id, field_set_id, value_1, value_2, value_3, value_4, value_5, value_6, value_7, value_8)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- The kinds are also passed as numbers (?3 and ?4), which are not stored.
-- name: insert_gpu_task
INSERT INTO gpu_task (gpu_task_id, process_id, kernel, device, context, stream, graph, node, kind)
VALUES (?1, ?2, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: insert_gpu_runs
INSERT INTO gpu_run (run_id, gpu_task_id, start_ns, duration_ns, correlation, queued_ns, bytes)
SELECT c1, c2, c3, c4, c5, c6, c7 FROM new_gpu_runs;

-- name: save_returned
INSERT INTO gpu_returned (process_id, context, stream, correlation, ended_ns) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (process_id, context, stream)
    DO UPDATE SET correlation = max(correlation, excluded.correlation), ended_ns = max(ended_ns, excluded.ended_ns);

-- name: insert_correlation
INSERT OR REPLACE INTO correlation (process_id, correlation, call_id) VALUES (?1, ?2, ?3);

-- name: clear_open_calls
DELETE FROM open_call WHERE process_id = (SELECT process_id FROM segment WHERE segment_id = ?1);

-- name: insert_open_call
INSERT OR REPLACE INTO open_call (process_id, thread_id, depth, function_id, start_ns)
SELECT process_id, ?2, ?3, ?4, ?5 FROM segment WHERE segment_id = ?1;

-- name: save_gpu
INSERT INTO gpu (place, memory_bytes, is_mig, gpu_instance, compute_instance, uuid, pci_address, name, driver, whole_id, number)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, ''), nullif(?8, ''), nullif(?9, ''), (SELECT gpu_id FROM gpu WHERE uuid = ?10),
        CASE WHEN nullif(?10, '') IS NOT NULL       THEN NULL
             WHEN ?1 IN (SELECT number FROM gpu) THEN (SELECT max(number) + 1 FROM gpu)
             ELSE ?1 END)
    ON CONFLICT (uuid) DO UPDATE SET place = excluded.place, memory_bytes = excluded.memory_bytes, is_mig = excluded.is_mig,
                  gpu_instance = excluded.gpu_instance, compute_instance = excluded.compute_instance,
                  pci_address = excluded.pci_address, name = excluded.name, driver = excluded.driver, whole_id = excluded.whole_id;

-- Two daemons of one boot may have sampled a GPU at the same time, if both of their recordings are stored.
-- name: insert_gpu_sample
INSERT OR IGNORE INTO gpu_sample
SELECT ?1, gpu_id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23
  FROM gpu WHERE uuid = ?24;

-- name: insert_gpu_process
INSERT OR IGNORE INTO gpu_process SELECT ?1, gpu_id, ?2, ?3, ?4, ?5 FROM gpu WHERE uuid = ?6;

-- A process may send another report after the trace has continued in its next file.
-- name: save_unrecorded
INSERT INTO unrecorded_process (pid, uid, calls, first_ns, last_ns, cause, error, cmdline)
VALUES (?1, ?2, iif(?6 IN ('refused', 'probe', 'events'), NULL, ?3), ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (first_ns, pid)
    DO UPDATE SET calls = excluded.calls, last_ns = excluded.last_ns, cause = excluded.cause, error = excluded.error,
                  cmdline = excluded.cmdline;

-- A program could describe any number of GPUs, so there is a limit.
-- name: add_gpu
INSERT OR IGNORE INTO gpu (uuid, pci_address, number)
SELECT ?4, printf('%04x:%02x:%02x.0', ?1, ?2, ?3), ifnull(max(number) + 1, 0)
  FROM gpu
HAVING count(*) < 256
   AND total(pci_address = printf('%04x:%02x:%02x.0', ?1, ?2, ?3)) = 0;

-- name: save_gpu_device
INSERT OR REPLACE INTO gpu_device (process_id, device, number, uuid)
SELECT ?1, ?2, number, ?6
  FROM gpu
 WHERE pci_address = printf('%04x:%02x:%02x.0', ?3, ?4, ?5) AND number IS NOT NULL
 ORDER BY gpu_id
 LIMIT 1;

-- name: oldest_call
SELECT min(end_ns) FROM call;

-- name: nth_call
SELECT end_ns FROM call WHERE end_ns < ?1 ORDER BY end_ns LIMIT 1 OFFSET ?2;

-- name: count_expired
UPDATE total
   SET expired = total.expired + gone.calls
  FROM (SELECT thread.process_id, site.function_id, sum(at_site.calls) AS calls
          FROM (SELECT site_id, count(*) AS calls FROM call WHERE end_ns < ?1 GROUP BY site_id) AS at_site
          JOIN site   ON site.site_id = at_site.site_id
          JOIN thread ON thread.thread_id = site.thread_id
         GROUP BY thread.process_id, site.function_id) AS gone
 WHERE total.process_id = gone.process_id AND total.function_id = gone.function_id;

-- name: expire_calls
DELETE FROM call WHERE end_ns < ?1;

-- name: expire_launches
DELETE FROM launch WHERE call_id < ?1;

-- name: expire_transfers
DELETE FROM transfer WHERE call_id < ?1;

-- name: expire_call_subjects
DELETE FROM call_subject WHERE call_id < ?1;

-- name: expire_long_calls
DELETE FROM long_call WHERE call_id < ?1;

-- name: expire_late_calls
DELETE FROM late_call WHERE call_id < ?1;

-- name: expire_ranges
DELETE FROM range WHERE call_id < ?1;

-- name: expire_hook_calls
DELETE FROM hook_call WHERE call_id < ?1;

-- name: expire_graphs
DELETE FROM graph WHERE call_id < ?1;

-- name: expire_graph_launches
DELETE FROM graph_launch WHERE call_id < ?1;

-- Keeps memory that is still held, no matter how old it is.
-- name: expire_allocations
DELETE FROM allocation
 WHERE call_id < ?1
   AND (freed_ns < ?1
        OR (freed_ns IS NULL AND process_id IN (SELECT process_id FROM process WHERE ended_ns < ?1)));

-- name: expire_gpu_samples
DELETE FROM gpu_sample WHERE time_ns < ?1;

-- name: expire_gpu_processes
DELETE FROM gpu_process WHERE time_ns < ?1;

-- Rows are in the order of arrival, so the rows to remove precede the first row to keep. Work that arrived late stays
-- a little longer.
-- name: expire_gpu_runs
DELETE FROM gpu_run
 WHERE run_id < ifnull((SELECT run_id FROM gpu_run WHERE start_ns + duration_ns >= ?1 ORDER BY run_id LIMIT 1),
                       9223372036854775807);

-- A process's correlations ascend with its calls, apart from calls that its threads make at the same time. Therefore,
-- the rows to remove precede the first row to keep.
-- name: expire_correlations
DELETE FROM correlation
 WHERE (process_id, correlation) IN
       (SELECT gone.process_id, gone.correlation
          FROM process
         CROSS JOIN correlation AS gone
            ON gone.process_id = process.process_id
           AND gone.correlation < ifnull((SELECT correlation
                                            FROM correlation
                                           WHERE correlation.process_id = process.process_id AND call_id >= ?1
                                           ORDER BY correlation
                                           LIMIT 1), 9223372036854775807));

-- name: expire_sites
DELETE FROM site WHERE site_id < ?1;

-- name: expire_shapes
DELETE FROM shape WHERE shape_id < ?1;

-- name: expire_routes
DELETE FROM route WHERE route_id < ?1;

-- name: expire_subjects
DELETE FROM subject WHERE subject_id < ?1;

-- name: expire_fields
DELETE FROM field WHERE field_set_id < ?1;

-- name: expire_gpu_tasks
DELETE FROM gpu_task WHERE gpu_task_id < ?1;

-- name: expire_texts
DELETE FROM text WHERE text_id < ?1;

-- name: expire_kernels
DELETE FROM kernel WHERE process_id IN (SELECT process_id FROM process WHERE ended_ns < ?1);

-- name: expire_names
DELETE FROM name WHERE name_id NOT IN (SELECT name_id FROM kernel);

-- name: expire_object_names
DELETE FROM object_name WHERE process_id IN (SELECT process_id FROM process WHERE ended_ns < ?1);

-- name: expire_lanes
DELETE FROM lane
 WHERE segment_id IN (SELECT segment.segment_id
                        FROM segment
                        JOIN process ON process.process_id = segment.process_id
                       WHERE process.ended_ns < ?1);

-- name: expire_threads
DELETE FROM thread
 WHERE thread_id NOT IN (SELECT thread_id FROM site
                          UNION ALL SELECT thread_id FROM lane WHERE thread_id IS NOT NULL
                          UNION ALL SELECT thread_id FROM open_call);

-- name: set_meta
INSERT OR REPLACE INTO meta (value, key) VALUES (?1, ?2);

-- Finds the newest call in this file and the earlier files.
-- name: last_call
SELECT max(end_ns)
  FROM (SELECT max(end_ns) AS end_ns FROM call
         UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns');

-- name: earlier_until
SELECT max(value) FROM meta WHERE key = 'earlier_files_until_ns';

-- name: running
SELECT process_id, pid, start_ticks,
       (SELECT segment.name FROM segment WHERE segment.process_id = process.process_id
         ORDER BY segment.segment_id DESC LIMIT 1),
       state = 'left'
  FROM process
 WHERE state IN ('running', 'left');

-- Records when a daemon left the process's newest segment. If an earlier daemon has already left it, the earlier time
-- is kept.
-- name: leave_segment
UPDATE segment
   SET left_ns = ifnull(left_ns, max(begun_ns, ?2))
 WHERE segment_id = (SELECT max(segment_id) FROM segment WHERE process_id = ?1);

-- name: leave_process
UPDATE process SET state = 'left' WHERE process_id = ?1;
