-- The longest gaps between launches
-- Shows when each gap occurred, and which driver calls the process made in it. The process spent the remaining time
-- outside of the driver, for example in Python, in a loader, or asleep.
WITH longest AS MATERIALIZED (
    SELECT * FROM launch_gaps(:from_ns, :to_ns, :pid, :now_ns)
),
asked AS ( -- limits the copy of the table that several files form; useless for one file, whose calls are looked up for each gap
    SELECT * FROM calls WHERE likelihood(call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807), 0.999)
),
inside AS MATERIALIZED (
    SELECT longest.process_id, from_ns, calls.name, count(*) AS calls, sum(duration_ns) AS ns
      FROM longest
     CROSS JOIN asked AS calls ON calls.call_id > from_ns AND calls.call_id < to_ns
     WHERE calls.process_id = longest.process_id AND calls.layer = 'driver'
     GROUP BY longest.process_id, from_ns, calls.name
)
SELECT pid,
       round((longest.from_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 6) AS at_s,
       round((to_ns - longest.from_ns) / 1e6, 3)          AS ms,
       round(ifnull(sum(ns), 0) / 1e6, 3)                 AS driver_ms,
       ifnull(sum(calls), 0)                              AS calls,
       ifnull(name, '')                                   AS most_in,   -- from the row with the maximum
       round(max(ns) / 1e6, 3)                            AS most_ms
  FROM longest
  JOIN processes USING (process_id)
  LEFT JOIN inside ON inside.process_id = longest.process_id AND inside.from_ns = longest.from_ns
 GROUP BY longest.process_id, longest.from_ns
 ORDER BY to_ns - longest.from_ns DESC;
