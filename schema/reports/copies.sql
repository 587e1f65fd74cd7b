-- Copies by direction
-- gb_per_s is given only for synchronous copies. An asynchronous call returns when the copy is queued, or when
-- pageable memory has been read, so its time does not measure the bus. waited_ms is the time in which copies to the host
-- waited for earlier work (copy_waits); gb_per_s is that of the remaining time. The `small` column counts copies of less
-- than 64 KiB, which consist mostly of overhead.
SELECT kind,
       iif(async, 'async', 'sync')                        AS mode,
       count(*)                                           AS copies,
       round(sum(bytes) / 1e6, 3)                         AS mb,
       round(avg(bytes), 0)                               AS mean_bytes,
       max(bytes)                                         AS max_bytes,
       sum(bytes < 65536)                                 AS small,
       round(sum(duration_ns) / 1e6, 3)                   AS total_ms,
       round(sum(waited_ns) / 1e6, 3)                     AS waited_ms,
       iif(async, NULL, round(1.0 * sum(bytes) / nullif(sum(moved_ns), 0), 2)) AS gb_per_s,
       count(DISTINCT process_id)                         AS processes
  FROM copy_waits
 WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
 GROUP BY kind, async
 ORDER BY sum(bytes) DESC;
