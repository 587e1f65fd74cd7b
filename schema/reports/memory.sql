-- Memory by process
-- Shows the memory that was allocated, the most that was held at once, and the memory that was not freed. A running
-- process still holds the memory that was not freed, and an ended process has leaked it. The `device` kind includes
-- all memory on a GPU, and host memory has separate kinds. The `unknown` column counts allocations of unknown size,
-- such as memory shared by other processes. The sums do not include them.

-- name: rows
WITH piece AS (
    SELECT process_id, pid, started_ns, cmdline,
           CASE WHEN kind IN ('device', 'managed', 'pool', 'array', 'physical') THEN 'device' ELSE kind END AS place,
           allocated_ns, freed_ns, bytes
      FROM allocations
      JOIN processes USING (process_id)
     WHERE kind NOT IN ('reserved', 'mapped')   -- addresses, not memory
       AND (:pid IS NULL OR pid = :pid)
),
change AS (
    SELECT process_id, place, allocated_ns AS at_ns, bytes FROM piece
     UNION ALL
    SELECT process_id, place, freed_ns, -bytes FROM piece WHERE freed_ns IS NOT NULL
),
held AS (
    SELECT process_id, place, at_ns, sum(bytes) OVER (PARTITION BY process_id, place ORDER BY at_ns) AS bytes FROM change
),
peak AS (
    SELECT process_id, place, at_ns, max(bytes) AS bytes
      FROM held
     WHERE at_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
     GROUP BY process_id, place
)
SELECT piece.pid,
       piece.place                                        AS kind,
       count(*)                                           AS allocations,
       count(*) FILTER (WHERE piece.bytes IS NULL)        AS unknown,
       round(sum(piece.bytes) / 1e6, 3)                   AS allocated_mb,
       round(peak.bytes / 1e6, 3)                         AS peak_mb,
       round((peak.at_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS peak_s,
       count(*) FILTER (WHERE freed_ns IS NULL)           AS not_freed,
       round(sum(iif(freed_ns IS NULL, piece.bytes, 0)) / 1e6, 3) AS not_freed_mb,
       cmdline                                            AS command
  FROM piece
  JOIN peak ON peak.process_id = piece.process_id AND peak.place = piece.place
 WHERE allocated_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
 GROUP BY piece.process_id, piece.place
 ORDER BY peak.bytes DESC;

-- name: note
SELECT printf('In all, %d %s freed memory whose allocation is not known: the process was attached to afterwards, or the call that '
              || 'allocated it was not recorded.',
              sum(unknown_frees), iif(sum(unknown_frees) = 1, 'call', 'calls')) AS paragraph
  FROM processes
 WHERE (:pid IS NULL OR pid = :pid)
HAVING sum(unknown_frees) > 0;
