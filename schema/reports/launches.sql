-- Launches and the gaps between them
-- Kernels and graphs, by process. A gap lasts from the return of a launch to the start of the next. In a gap of more
-- than a millisecond, a GPU may have run out of work.
SELECT pid,
       launches,
       round((last_id - begun_ns) / 1e9, 3)               AS seconds,
       round(launches * 1e9 / nullif(last_id - begun_ns, 0), 1) AS per_second,
       gaps,
       round(gaps_ns / 1e6, 3)                            AS gaps_ms,
       round(100.0 * gaps_ns / nullif(last_id - begun_ns, 0), 1) AS "gaps_%",
       round(longest_ns / 1e6, 3)                         AS longest_ms,
       cmdline                                            AS command
  FROM launch_process_sums(:from_ns, :to_ns, :pid, :now_ns)
  JOIN processes USING (process_id)
 ORDER BY gaps_ns DESC, process_id;
