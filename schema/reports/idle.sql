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
       gaps,
       round(idle_ns / 1e6, 3)                                               AS idle_ms,
       round(100.0 * idle_ns / sum(idle_ns) OVER (PARTITION BY device), 1)   AS "%",
       round(longest_ns / 1e6, 3)                                            AS longest_ms,  -- the next columns are of this gap
       round((from_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6)   AS at_s,
       ended,
       begun
  FROM gpu_idle_sums(:from_ns, :to_ns, :pid)
 WHERE gaps > 0
 ORDER BY idle_ns DESC, device, during
 LIMIT 30;
