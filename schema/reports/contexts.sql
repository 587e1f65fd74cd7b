-- Contexts
-- Counts how often each thread pushed, popped or set the current context, and how many contexts it used. If requests to
-- the kernel driver were recorded, also counts the channels and the channel groups that each process created. The GPU
-- gives its time slices to channel groups.
WITH object AS (
    SELECT process_id,
           tid,
           'context'                                          AS object,
           count(*)                                           AS switches,
           count(DISTINCT context)                            AS contexts,
           count(*) FILTER (WHERE name GLOB 'cuCtxCreate*')   AS created,
           count(*) FILTER (WHERE name GLOB 'cuCtxDestroy*')  AS destroyed,
           min(end_ns)                                        AS first_ns,
           max(end_ns)                                        AS last_ns
      FROM context_switches
     WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
     GROUP BY process_id, tid
     UNION ALL
    SELECT process_id, NULL, CASE WHEN name GLOB '*_GROUP_*' THEN 'channel group' ELSE 'channel' END, NULL, NULL, sum(calls), NULL,
           NULL, NULL
      FROM totals
     WHERE layer = 'ioctl' AND name GLOB 'RM_ALLOC *_CHANNEL_G*' AND :from_ns IS NULL AND :to_ns IS NULL
     GROUP BY 1, 3
)
SELECT pid,
       tid,
       object,
       switches,
       contexts,
       created,
       destroyed,
       round((first_ns - started_ns) / 1e9, 3)                AS first_s,
       round((last_ns - started_ns) / 1e9, 3)                 AS last_s
  FROM object
  JOIN processes USING (process_id)
 WHERE :pid IS NULL OR pid = :pid
 ORDER BY object <> 'context', switches DESC, created DESC, pid, tid
 LIMIT 30;
