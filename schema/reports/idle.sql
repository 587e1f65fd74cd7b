-- Why GPUs were idle
-- Sums up the gaps in the work of each device, by the function that took most of the gap in the process whose work ended
-- it. In a gap outside of CUDA, that process was not in a driver or runtime call. The last columns show the longest of
-- these gaps, with the work before and after it. Needs records of the GPU's work.
SELECT device,
       ifnull(host_call, '(outside of CUDA)')                                AS host_call,
       count(*)                                                              AS gaps,
       round(sum(duration_ns) / 1e6, 3)                                      AS idle_ms,
       round(100.0 * sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY device), 1) AS "%",
       round(max(duration_ns) / 1e6, 3)                                      AS longest_ms,  -- the next columns are from its row
       round((from_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6)   AS at_s,
       ended,
       begun
  FROM gpu_idle
 WHERE from_ns >= ifnull(:from_ns, 0) AND to_ns <= ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
 GROUP BY device, host_call
 ORDER BY sum(duration_ns) DESC
 LIMIT 30;
