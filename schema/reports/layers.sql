-- Time by layer
-- The time of each process's threads, from a thread's first call to its last. A layer's own time is the time of its calls
-- without the recorded calls inside them, so that the shares of a process add up to 100 %. `program` is the time
-- outside all calls. `library` has the functions of libraries that hooks record. While a thread was `blocked` or
-- `preempted`, it did not run (`--kernel`).
WITH own AS (
    SELECT process_id, layer, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(own_ns) AS own_ns
      FROM own_time(:from_ns, :to_ns, :pid)
     GROUP BY process_id, layer
),
place(layer, place) AS (
    VALUES ('program', 1), ('library', 2), ('runtime', 3), ('driver', 4), ('ioctl', 5), ('kernel', 6), ('blocked', 7),
           ('preempted', 8)
),
shared AS (
    SELECT *, sum(own_ns) OVER (PARTITION BY process_id) AS process_ns FROM own
)
SELECT pid,
       layer,
       nullif(calls, 0)                                   AS calls,
       round(own_ns / 1e6, 3)                             AS own_ms,
       round(100.0 * own_ns / nullif(process_ns, 0), 1)   AS "%_of_process",
       iif(layer = 'program', NULL, round(total_ns / 1e6, 3)) AS with_inner_ms,
       cmdline                                            AS command
  FROM shared
  JOIN place USING (layer)
  JOIN processes USING (process_id)
 ORDER BY process_ns DESC, process_id, place
 LIMIT 80;
