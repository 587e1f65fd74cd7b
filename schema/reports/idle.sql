-- Why GPUs were idle
-- Sums up the time in which each device did no work, by the state of the thread that launched the next work. The
-- thread was in a driver call, was outside of the driver, or had launched the work already. The last columns show the
-- longest such gap: its beginning, and the work before and after it. If a gap begins before the window or ends after it,
-- its times count in proportion. Needs records of the GPU's work.
SELECT device,
       CASE host_state WHEN 'outside' THEN '(outside of the driver)'
                  WHEN 'queued'  THEN '(the next work was queued)'
                  WHEN 'unknown' THEN '(unknown)'
                  WHEN 'unrecorded' THEN '(between two recordings)'
                  ELSE host_call END                                         AS during,
       count(*)                                                              AS gaps,
       round(sum(idle_ns) / 1e6, 3)                                          AS idle_ms,
       round(100.0 * sum(idle_ns) / sum(sum(idle_ns)) OVER (PARTITION BY device), 1) AS "%",
       round(max(to_ns - from_ns) / 1e6, 3)                                  AS longest_ms,  -- the next columns are from its row
       round((from_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6)   AS at_s,
       ended,
       begun
  FROM (SELECT device, host_state, host_call, from_ns, to_ns, ended, begun,
               idle_ns * (1.0 * (min(to_ns, ifnull(:to_ns, to_ns)) - max(from_ns, ifnull(:from_ns, from_ns))) / (to_ns - from_ns)) AS idle_ns
          FROM gpu_idle_calls
          LEFT JOIN (SELECT device, min(gpu_start_ns) AS begun_ns -- earlier gaps are not the process's
                       FROM gpu_work
                      WHERE process_id IN (SELECT process_id FROM processes WHERE pid = :pid)
                      GROUP BY device) USING (device)
         WHERE to_ns > ifnull(:from_ns, 0) AND from_ns < ifnull(:to_ns, 9223372036854775807)
           AND (:pid IS NULL OR (process_id IN (SELECT process_id FROM processes WHERE pid = :pid) AND to_ns > begun_ns)))
 GROUP BY device, host_state, host_call
 ORDER BY sum(idle_ns) DESC, device, during
 LIMIT 30;
