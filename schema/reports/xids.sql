-- GPU errors (Xids)
-- Errors that NVIDIA's driver reported while a probe was running, by GPU and code. last_time, pid, process and
-- message are from the last error with that code. With --pid, errors without a process are also listed. An error with
-- code 45 often follows another error. https://docs.nvidia.com/deploy/xid-errors explains all codes.
WITH chosen AS (
    SELECT *,
           count(*)     OVER (PARTITION BY device, code)                       AS errors,
           min(call_id) OVER (PARTITION BY device, code)                       AS first_id,
           row_number() OVER (PARTITION BY device, code ORDER BY call_id DESC) AS place
      FROM xids
     WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR pid IS NULL OR pid = :pid)
)
SELECT device,
       code,
       meaning,
       errors,
       round((first_id - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS first_s,
       round((call_id - (SELECT min(started_ns) FROM processes)) / 1e9, 3)  AS last_s,
       time                                               AS last_time,
       pid,
       name                                               AS process,
       message
  FROM chosen
 WHERE place = 1
 ORDER BY call_id DESC
 LIMIT 40;
