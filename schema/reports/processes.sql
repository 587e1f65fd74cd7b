-- Each process: how long it ran, its calls, the time in the driver's, and the calls that it is in, or died in. :pid picks one, NULL takes all.
SELECT processes.pid,
       processes.state,
       printf('%.3f', (ifnull(ended_ns, (SELECT max(end_ns) FROM call)) - started_ns) / 1e9) AS seconds,
       ifnull(sum(totals.calls), 0)                       AS calls,
       printf('%.3f', ifnull(sum(totals.total_ns) FILTER (WHERE totals.layer = 'driver'), 0) / 1e6) AS ms_in_driver,
       (SELECT count(*)
          FROM call JOIN site ON site.site_id = call.site_id AND site.status <> 0
               JOIN thread ON thread.thread_id = site.thread_id
               JOIN function ON function.function_id = site.function_id AND function.layer = 'driver'
         WHERE thread.process_id = processes.process_id
           AND site.status <> 600)                        AS failed, -- 600 is CUDA_ERROR_NOT_READY: an answer
       ifnull(sum(totals.lost), 0)                        AS lost,
       ifnull((SELECT group_concat(name, ', ')
                 FROM open_calls
                WHERE open_calls.process_id = processes.process_id), '') AS inside, -- calls not returned yet
       processes.cmdline                                  AS command
  FROM processes
  LEFT JOIN totals ON totals.process_id = processes.process_id
 WHERE :pid IS NULL OR processes.pid = :pid
 GROUP BY processes.process_id
 ORDER BY sum(totals.total_ns) DESC;
