-- Time inside functions, by layer
-- Where the time of a function's calls went: into its own code (`own_%`), or into the recorded calls inside it, by their
-- layers, each without the calls inside it. Functions without recorded calls inside them are left out.
WITH own AS (
    SELECT layer, name, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(own_ns) AS own_ns,
           sum(library_ns) AS library_ns, sum(runtime_ns) AS runtime_ns, sum(driver_ns) AS driver_ns,
           sum(ioctl_ns) AS ioctl_ns, sum(kernel_ns) AS kernel_ns, sum(blocked_ns) AS blocked_ns,
           sum(preempted_ns) AS preempted_ns
      FROM own_time(:from_ns, :to_ns, :pid)
     WHERE name IS NOT NULL
     GROUP BY layer, name
)
SELECT layer,
       name                                               AS function,
       calls,
       round(total_ns / 1e6, 3)                           AS total_ms,
       round(100.0 * own_ns / total_ns, 1)                AS "own_%",
       round(100.0 * nullif(library_ns, 0) / total_ns, 1) AS "library_%",
       round(100.0 * nullif(runtime_ns, 0) / total_ns, 1) AS "runtime_%",
       round(100.0 * nullif(driver_ns, 0) / total_ns, 1)  AS "driver_%",
       round(100.0 * nullif(ioctl_ns, 0) / total_ns, 1)   AS "ioctl_%",
       round(100.0 * nullif(kernel_ns, 0) / total_ns, 1)  AS "kernel_%",
       round(100.0 * nullif(blocked_ns, 0) / total_ns, 1) AS "blocked_%",
       round(100.0 * nullif(preempted_ns, 0) / total_ns, 1) AS "preempted_%"
  FROM own
 WHERE total_ns > own_ns
 ORDER BY total_ns DESC, name
 LIMIT 40;
