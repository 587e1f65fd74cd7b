-- Work that GPUs have not finished
-- Shows, for each stream, the oldest call whose work CUPTI has not returned, and how many calls wait in the stream. If
-- the process is running, this work runs, waits for other streams, or has ended within the last second. In a process that
-- hangs, it is what the GPU is in. If the process has ended, the work is lost. Needs records of the GPU's work.
SELECT pid,
       state,
       tid,
       name                                                                  AS function,
       kernel,
       nullif(printf('0x%x', stream), '0x0')                                 AS stream,
       (SELECT count(*) FROM gpu_pending AS other
         WHERE other.process_id = gpu_pending.process_id AND other.stream IS gpu_pending.stream) AS calls,
       round((start_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6)  AS at_s,
       cmdline                                                               AS command
  FROM gpu_pending
  JOIN processes USING (process_id)
 WHERE place = 1
   AND start_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 ORDER BY start_ns
 LIMIT 30;
