-- Contexts
-- Counts how often each thread pushed, popped or set the current context, and how many contexts it used.
SELECT pid,
       tid,
       count(*)                                           AS switches,
       count(DISTINCT context)                            AS contexts,
       count(*) FILTER (WHERE name GLOB 'cuCtxCreate*')   AS created,
       count(*) FILTER (WHERE name GLOB 'cuCtxDestroy*')  AS destroyed,
       round((min(end_ns) - started_ns) / 1e9, 3)         AS first_s,
       round((max(end_ns) - started_ns) / 1e9, 3)         AS last_s
  FROM context_switches
  JOIN processes USING (process_id)
 WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 GROUP BY process_id, tid
 ORDER BY switches DESC
 LIMIT 30;
