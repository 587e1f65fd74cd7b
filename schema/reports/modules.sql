-- Loading code
-- The modules and libraries loaded by each process, with their size and loading time. Lazy loading loads more code in
-- the first launch of each kernel.
SELECT pid,
       what,
       count(*)                                           AS loads,
       round(sum(bytes) / 1e6, 3)                         AS mb,
       round(sum(duration_ns) / 1e6, 3)                   AS total_ms,
       round(max(duration_ns) / 1e6, 3)                   AS longest_ms,
       round((min(start_ns) - started_ns) / 1e9, 3)       AS first_s,
       round((max(call_id) - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS last_s,
       cmdline                                            AS command
  FROM module_loads
  JOIN processes USING (process_id)
 WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 GROUP BY process_id, what
 ORDER BY sum(duration_ns) DESC
 LIMIT 30;
