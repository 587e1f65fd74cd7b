-- Processes by time on the GPU
-- Shows how long each process kept each device busy, and how long it did so alone or together with other traced processes.
-- The share is of the time from the device's first work to its last. Needs records of the GPU's work.
WITH busy AS (
    SELECT device, process_id, sum(duration_ns) AS ns, sum(alone_ns) AS alone_ns, count(*) AS periods, min(from_ns) AS from_ns, max(to_ns) AS to_ns
      FROM gpu_busy
     WHERE from_ns >= ifnull(:from_ns, 0) AND to_ns <= ifnull(:to_ns, 9223372036854775807)
     GROUP BY device, process_id
),
spanned AS (
    SELECT *, max(to_ns) OVER (PARTITION BY device) - min(from_ns) OVER (PARTITION BY device) AS span_ns FROM busy
)
SELECT device,
       pid,
       round(100.0 * ns / nullif(span_ns, 0), 1)           AS "busy_%",
       round(ns / 1e6, 3)                                  AS busy_ms,
       round(alone_ns / 1e6, 3)                            AS alone_ms,
       round((ns - alone_ns) / 1e6, 3)                     AS together_ms,
       periods,
       cmdline                                             AS command
  FROM spanned
  JOIN processes USING (process_id)
 WHERE (:pid IS NULL OR pid = :pid)
 ORDER BY device, ns DESC
 LIMIT 30;
