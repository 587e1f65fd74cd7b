-- Waits for the GPU
-- Calls that make the host wait, by process. "%" is the share of the process's lifetime, with the times of all
-- threads added up. A copy to the host counts with the time in which it waited for earlier work (copy_waits). The
-- `processes` section shows waits that have not returned.
WITH known AS (
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
             UNION ALL SELECT :now_ns)
),
chosen AS (
    SELECT process_id, name, calls, total_ns, max_ns
      FROM totals
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND layer = 'driver' AND category = 'sync'
     UNION ALL
    SELECT process_id, name, 1, duration_ns, duration_ns
      FROM waits
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
     UNION ALL
    SELECT copy_waits.process_id, name, 1, waited_ns, waited_ns
      FROM copy_waits
     CROSS JOIN calls ON calls.call_id = copy_waits.call_id
     WHERE waited_ns > 0
       AND copy_waits.call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
)
SELECT pid,
       name                                               AS function,
       sum(calls)                                         AS waits,
       round(sum(total_ns) / 1e6, 3)                      AS total_ms,
       round(100.0 * sum(total_ns) /
             nullif(min(ifnull(ended_ns, now_ns), ifnull(:to_ns, 9223372036854775807))
                    - max(started_ns, ifnull(:from_ns, 0)), 0), 1) AS "%",
       round(1.0 * sum(total_ns) / sum(calls) / 1e3, 3)   AS mean_us,
       round(max(max_ns) / 1e6, 3)                        AS longest_ms,
       cmdline                                            AS command
  FROM chosen
  JOIN processes USING (process_id)
 CROSS JOIN known
 WHERE (:pid IS NULL OR pid = :pid)
 GROUP BY process_id, name
 ORDER BY sum(total_ns) DESC
 LIMIT 30;
