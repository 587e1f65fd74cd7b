-- Calls that are not in the trace
-- All sums include these calls. full: the ring had no room (--ring). signal: a signal handler made the call while its
-- thread was writing a record. memory: shared memory was refused. pressure: short low-priority calls, dropped in a
-- nearly full ring to keep room for launches, copies, allocations, failures and long calls (in `totals`, they count
-- as skipped and not as lost). cgroup: the memory limit of the process's control group left no room for longer rings
-- (raise memory.max, or docker run --memory). probe: the process's BPF ring was full, because its probe ran too rarely (select fewer
-- functions with --calls, give the probe more processor time, or use the hook). cupti: CUPTI dropped records of GPU
-- work, because its buffers were full, or had not returned work when the process ended; see pending (the sums do not
-- include these). absent: the process had no daemon (until last_s, if another daemon took over). code: a probed
-- process whose driver has code in other memory than its file, where the kernel sets no probes (use attach or run).
-- clock: the thread may not read a clock (PR_SET_TSC, or seccomp's strict mode). With absent and code, the number of calls is unknown.
SELECT pid,
       tid,
       cause,
       calls,
       round((first_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS first_s,
       round((last_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS last_s,
       cmdline                                            AS command
  FROM losses
  JOIN processes USING (process_id)
 WHERE ifnull(last_ns, 9223372036854775807) >= ifnull(:from_ns, 0)
   AND first_ns <= ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 ORDER BY calls DESC
 LIMIT 30;
