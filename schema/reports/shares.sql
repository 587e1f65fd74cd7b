-- Processes by time on the GPU
-- Shows how long each process kept each device busy, and how long it did so alone or together with other traced processes.
-- The share is of the time from the device's first work to its last, without the time between recordings. Needs records of the GPU's work.
WITH busy AS (
    SELECT device, process_id, busy_ns AS ns, CAST(alone_ns AS INTEGER) AS alone_ns, periods, from_ns, to_ns
      FROM gpu_share_sums(:from_ns, :to_ns)
),
spanned AS (
    SELECT *, min(from_ns) OVER (PARTITION BY device) AS first_ns, max(to_ns) OVER (PARTITION BY device) AS last_ns FROM busy
),
unrecorded AS (
    SELECT device, sum(from_ns - unrecorded_from_ns) AS ns
      FROM gpu_recording_times(:from_ns, :to_ns) AS recording
     WHERE unrecorded_from_ns >= (SELECT min(busy.from_ns) FROM busy WHERE busy.device = recording.device)
       AND from_ns <= (SELECT max(busy.to_ns) FROM busy WHERE busy.device = recording.device)
     GROUP BY device
)
SELECT device,
       pid,
       round(100.0 * busy.ns / nullif(last_ns - first_ns - ifnull(unrecorded.ns, 0), 0), 1) AS "busy_%",
       round(busy.ns / 1e6, 3)                                AS busy_ms,
       round(alone_ns / 1e6, 3)                            AS alone_ms,
       round((busy.ns - alone_ns) / 1e6, 3)                AS together_ms,
       periods,
       cmdline                                             AS command
  FROM spanned AS busy
  JOIN processes USING (process_id)
  LEFT JOIN unrecorded USING (device)
 WHERE (:pid IS NULL OR pid = :pid)
 ORDER BY device, busy.ns DESC
 LIMIT 30;
