-- Copies everything that identifies running processes from the previous file of a trace (`past`) to the next one, so
-- that the new file can be understood without the earlier files. Sums continue, and calls in earlier files count as
-- expired. Process, thread and segment IDs continue as well, so that none is reused.

INSERT OR REPLACE INTO meta
SELECT key, value FROM past.meta WHERE key IN ('series', 'realtime_offset_ns', 'expired_before_ns');

INSERT OR REPLACE INTO meta
SELECT 'earlier_files_until_ns', max(until_ns)
  FROM (SELECT max(end_ns) AS until_ns FROM past.call
         UNION ALL SELECT value FROM past.meta WHERE key = 'earlier_files_until_ns')
HAVING max(until_ns) IS NOT NULL;

INSERT INTO gpu        SELECT * FROM past.gpu;
INSERT INTO run        SELECT * FROM past.run;
INSERT INTO process    SELECT * FROM past.process WHERE ended_ns IS NULL;
INSERT INTO gpu_device SELECT * FROM past.gpu_device WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO function   SELECT * FROM past.function;
INSERT INTO segment    SELECT * FROM past.segment    WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO lane       SELECT * FROM past.lane       WHERE segment_id IN (SELECT segment_id FROM segment);
INSERT INTO unsent     SELECT * FROM past.unsent     WHERE segment_id IN (SELECT segment_id FROM segment);
INSERT INTO loss       SELECT * FROM past.loss       WHERE segment_id IN (SELECT segment_id FROM segment);
INSERT INTO open_call  SELECT * FROM past.open_call  WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO kernel     SELECT * FROM past.kernel     WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO name       SELECT * FROM past.name       WHERE name_id    IN (SELECT name_id FROM kernel);
INSERT INTO total      SELECT * FROM past.total      WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO duration   SELECT * FROM past.duration   WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO failure    SELECT * FROM past.failure    WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO object_name
SELECT * FROM past.object_name WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO allocation (call_id, process_id, kind, address, bytes, freed_ns, pool, holders, settled)
SELECT call_id, process_id, kind, address, bytes, freed_ns, pool, holders, settled
  FROM past.allocation
 WHERE process_id IN (SELECT process_id FROM process) AND freed_ns IS NULL;
-- Copies the newest correlations whose work may still arrive, because work arrives up to seconds after its call. The work
-- of a stream is returned in order. Therefore, nothing more arrives for a call in a stream that has returned work of a later
-- call.
INSERT INTO correlation
WITH done AS MATERIALIZED (
    SELECT gpu_task.process_id, run.correlation
      FROM (SELECT gpu_task_id, correlation FROM past.gpu_run ORDER BY run_id DESC LIMIT 1000000) AS run
     CROSS JOIN past.gpu_task ON gpu_task.gpu_task_id = run.gpu_task_id
     CROSS JOIN past.gpu_returned AS newest ON newest.process_id = gpu_task.process_id
                                           AND newest.context = gpu_task.context AND newest.stream = gpu_task.stream
     WHERE run.correlation < newest.correlation
)
SELECT recent.*
  FROM process
 CROSS JOIN past.correlation AS recent ON recent.process_id = process.process_id
  -- NOT IN would read all of `done` for each row.
  LEFT JOIN done ON done.process_id = recent.process_id AND done.correlation = recent.correlation
 WHERE recent.correlation IN (SELECT correlation
                                FROM past.correlation
                               WHERE process_id = process.process_id
                               ORDER BY correlation DESC
                               LIMIT 100000)
   AND done.correlation IS NULL;
INSERT INTO gpu_returned SELECT * FROM past.gpu_returned WHERE process_id IN (SELECT process_id FROM process);
INSERT INTO thread
SELECT * FROM past.thread
 WHERE thread_id IN (SELECT thread_id FROM lane UNION ALL SELECT thread_id FROM open_call);

UPDATE total SET expired = calls;

DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence SELECT * FROM past.sqlite_sequence;
