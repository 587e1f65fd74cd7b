-- Each process: how long it ran, its calls, the time in the driver's, and the calls that it is in, or died in. :pid picks one, NULL takes all.
SELECT processes.pid,
       processes.state,
       printf('%.3f', (ifnull(ended_ns, now_ns) - started_ns) / 1e9) AS seconds,
       ifnull(sum(totals.calls), 0)                       AS calls,
       printf('%.3f', ifnull(sum(totals.total_ns) FILTER (WHERE totals.layer = 'driver'), 0) / 1e6) AS ms_in_driver,
       ifnull(sum(totals.failed) FILTER (WHERE totals.layer = 'driver'), 0) AS failed,
       ifnull(sum(totals.lost), 0)                        AS lost,
       ifnull((SELECT group_concat(name, ', ')
                 FROM open_calls
                WHERE open_calls.process_id = processes.process_id), '') AS inside, -- calls not returned yet
       processes.cmdline                                  AS command
  FROM processes
 CROSS JOIN (SELECT max(until_ns) AS now_ns     -- as far as is known
               FROM (SELECT max(end_ns) AS until_ns FROM call
                      UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'))
  LEFT JOIN totals ON totals.process_id = processes.process_id
 WHERE :pid IS NULL OR processes.pid = :pid
 GROUP BY processes.process_id
 ORDER BY sum(totals.total_ns) DESC;
