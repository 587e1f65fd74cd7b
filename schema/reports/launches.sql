-- Launches and the gaps between them
-- Kernels and graphs, by process. A gap lasts from the return of a launch to the start of the next. In a gap of more
-- than a millisecond, a GPU may have run out of work.
WITH step AS (
    SELECT process_id, call_id, start_ns
      FROM launches
     WHERE captured = 0 AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
     UNION ALL
    SELECT process_id, call_id, start_ns
      FROM graph_launches
     WHERE captured = 0 AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
),
gap AS (
    SELECT process_id, call_id, start_ns,
           start_ns - lag(call_id) OVER (PARTITION BY process_id ORDER BY call_id) AS ns
      FROM step
     WHERE (:pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid))
),
summed AS MATERIALIZED (
    SELECT process_id, count(*) AS launches, min(start_ns) AS first_ns, max(call_id) AS last_ns,
           sum(ns > 1000000) AS gaps, sum(iif(ns > 1000000, ns, 0)) AS gaps_ns, max(ns) AS longest_ns
      FROM gap
     GROUP BY process_id
)
SELECT pid,
       launches,
       round((last_ns - first_ns) / 1e9, 3)               AS seconds,
       round(launches * 1e9 / nullif(last_ns - first_ns, 0), 1) AS per_second,
       ifnull(gaps, 0)                                    AS gaps,
       round(gaps_ns / 1e6, 3)                            AS gaps_ms,
       round(100.0 * gaps_ns / nullif(last_ns - first_ns, 0), 1) AS "gaps_%",
       round(longest_ns / 1e6, 3)                         AS longest_ms,
       cmdline                                            AS command
  FROM summed
  JOIN processes USING (process_id)
 ORDER BY gaps_ns DESC;
