-- Launch queues of streams
-- Shows how long work waited between the return of its call and its start. The depth is the number of pieces of work
-- in the stream that had been launched but had not started, including the new piece. With a depth of 1, the queue was
-- empty, and a GPU may be idle soon. depth_q1 to depth_q4 show the mean depth in each quarter of the time from the
-- first launch to the last. Needs records of the GPU's work.
WITH queue AS (
    SELECT process_id, device, context, stream, latency_ns, depth,
           4 * (launched_ns - min(launched_ns) OVER ()) / (max(launched_ns) OVER () - min(launched_ns) OVER () + 1) AS quarter
      FROM launch_queue
     WHERE launched_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
)
SELECT pid, device, stream,
       count(*)                                            AS launched,
       round(avg(latency_ns) / 1e3, 3)                     AS mean_latency_us,
       round(max(latency_ns) / 1e3, 3)                     AS max_latency_us,
       round(avg(depth), 1)                                AS mean_depth,
       max(depth)                                          AS max_depth,
       round(100.0 * avg(depth = 1), 1)                    AS "empty_%",
       round(avg(depth) FILTER (WHERE quarter = 0), 1)     AS depth_q1,
       round(avg(depth) FILTER (WHERE quarter = 1), 1)     AS depth_q2,
       round(avg(depth) FILTER (WHERE quarter = 2), 1)     AS depth_q3,
       round(avg(depth) FILTER (WHERE quarter = 3), 1)     AS depth_q4
  FROM queue
  JOIN processes USING (process_id)
 GROUP BY process_id, device, context, stream
 ORDER BY count(*) DESC, pid, device, stream
 LIMIT 30;
