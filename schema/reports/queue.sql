-- Launch queues of streams
-- Shows how long work waited between the return of its call and its start. The depth is the number of pieces of work
-- in the stream that had been launched but had not started, including the new piece. With a depth of 1, the queue was
-- empty, and a GPU may be idle soon. depth_q1 to depth_q4 show the mean depth in each quarter of the time from the
-- first launch to the last. Needs records of the GPU's work.
SELECT pid, device, stream, launched,
       round(1.0 * latency_ns / launched / 1e3, 3)         AS mean_latency_us,
       round(longest_ns / 1e3, 3)                          AS max_latency_us,
       round(1.0 * depth / launched, 1)                    AS mean_depth,
       deepest                                             AS max_depth,
       round(100.0 * empty / launched, 1)                  AS "empty_%",
       round(1.0 * depth_q1 / nullif(launched_q1, 0), 1)   AS depth_q1,
       round(1.0 * depth_q2 / nullif(launched_q2, 0), 1)   AS depth_q2,
       round(1.0 * depth_q3 / nullif(launched_q3, 0), 1)   AS depth_q3,
       round(1.0 * depth_q4 / nullif(launched_q4, 0), 1)   AS depth_q4
  FROM gpu_queue_sums(:from_ns, :to_ns, :pid)
  JOIN processes USING (process_id)
 ORDER BY launched DESC, pid, device, stream
 LIMIT 30;
