-- Failed calls
-- By status, for all processes together. first_pid is the process that failed first. "Not ready" is a result and not
-- a failure.
WITH chosen AS (
    SELECT process_id, layer, name, status, status_name, calls, first_ns, last_ns
      FROM failures
     WHERE :from_ns IS NULL AND :to_ns IS NULL
     UNION ALL
    SELECT process_id, layer, name, status, status_name, 1, call_id, call_id
      FROM calls
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND status NOT IN (0, 600)
),
summed AS (
    SELECT layer, name, status, status_name, sum(calls) AS calls, count(DISTINCT process_id) AS processes,
           max(last_ns) AS last_ns
      FROM chosen
      JOIN processes USING (process_id)
     WHERE (:pid IS NULL OR pid = :pid)
     GROUP BY layer, name, status
),
first AS (
    SELECT layer, name, status, pid, min(first_ns) AS first_ns -- and the pid of that row
      FROM chosen
      JOIN processes USING (process_id)
     WHERE (:pid IS NULL OR pid = :pid)
     GROUP BY layer, name, status
)
SELECT name                                               AS function,
       ifnull(status_name, '')                            AS error,
       status,
       calls,
       processes,
       pid                                                AS first_pid,
       round((first_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS first_s,
       round((last_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3)  AS last_s,
       layer
  FROM summed
  JOIN first USING (layer, name, status)
 ORDER BY calls DESC
 LIMIT 40;
