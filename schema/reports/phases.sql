-- Phases
-- If a program has NVTX ranges, its phases are the outermost of these ranges, grouped by message without trailing
-- numbers. Ranges from libraries such as NCCL, which are recognized by their domain, are ignored. The phases of
-- processes without ranges are derived from the pattern of loads, copies and launches, with an accuracy of a
-- five-hundredth of the run. load: contexts and code. preparation: memory and copies to the GPU. execution: launches,
-- with the copies between them. retrieval: copies back. exit: the time after all of these, and after the waits that
-- follow them.
WITH known AS (
    SELECT max(until_ns) AS now_ns
      FROM (SELECT * FROM (SELECT call_id AS until_ns FROM calls ORDER BY call_id DESC LIMIT 1)
             UNION ALL SELECT value FROM meta WHERE key = 'earlier_files_until_ns'
             UNION ALL SELECT :now_ns)
),
run AS MATERIALIZED ( -- each process, or its part within the window
    SELECT process_id, pid,
           max(started_ns, ifnull(:from_ns, 0)) AS from_ns,
           min(ifnull(ended_ns, max(now_ns, started_ns)), ifnull(:to_ns, 9223372036854775807)) AS to_ns,
           ended_ns <= ifnull(:to_ns, 9223372036854775807) AS ended
      FROM processes
     CROSS JOIN known
     WHERE (:pid IS NULL OR pid = :pid)
       AND process_id IN (SELECT process_id FROM totals UNION SELECT process_id FROM open_calls)
),
-- NVTX domains that libraries use for ranges about their own work. All other domains belong to the program.
library(domain, known_from) AS (
    VALUES ('nccl',                  'nccl/src/include/nvtx.h: struct nccl_domain'),
           ('com.nvidia.nccl.proxy', 'ncclProxyInitNvtx(), where NCCL is built to trace its proxy'),
           ('cccl',                  'Nsight Systems: "CCCL:cub::DeviceSegmentedRadixSort"; https://nvidia.github.io/cccl/cub/developer/nvtx.html'),
           ('cublas',                'Nsight Systems: "cuBLAS:cublasLtMatmul"'),
           ('tensorrt',              'Nsight Systems: "TensorRT:ExecutionContext::enqueue"'),
           ('myelin-exec',           'Nsight Systems: "myelin-exec:myelinGraphExecute", of TensorRT'),
           ('tsl',                   'tsl/profiler/lib/nvtx_utils: nvtxDomainCreateA("TSL"), of XLA and TensorFlow'),
           ('libcudf',               'cudf/cpp/include/cudf/detail/nvtx/ranges.hpp'),
           ('librmm',                'rmm/include/rmm/detail/nvtx/ranges.hpp'),
           ('libcuspatial',          'cuspatial/cpp/include/cuspatial/detail/nvtx/ranges.hpp'),
           ('raft',                  'raft/cpp/include/raft/core/nvtx.hpp'),
           -- These domains are guessed from the names of the libraries, and have not been seen in a trace.
           ('cudnn', NULL), ('cufft', NULL), ('cusparse', NULL), ('cusolver', NULL), ('cufile', NULL), ('libcufile', NULL),
           ('nvshmem', NULL), ('dali', NULL), ('libcu++', NULL)
),
own AS (
    SELECT ranges.process_id, tid, message, depth, kind, start_ns, end_ns, duration_ns, from_ns, to_ns
      FROM ranges
     CROSS JOIN run ON run.process_id = ranges.process_id
     WHERE kind <> 'mark' AND lower(ifnull(domain, '')) NOT IN (SELECT domain FROM library)
),
outermost AS MATERIALIZED ( -- a library's range may enclose them
    SELECT process_id,
           -- "step 1", "step 2", … count as one
           CASE WHEN rtrim(message, '0123456789') <> message
                 AND substr(rtrim(message, '0123456789'), -1) IN (' ', '_', '-', ':', '=', '/', '#', '.')
                THEN rtrim(message, '0123456789') || 'N'
                ELSE ifnull(message, '') END                 AS phase,
           count(*) AS times, min(start_ns) AS begin_ns, sum(duration_ns) AS ns
      FROM (SELECT *,
                   CASE kind WHEN 'push'
                        THEN start_ns >= ifnull(max(end_ns) OVER (PARTITION BY process_id, tid, kind ORDER BY start_ns, end_ns DESC
                                                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                        ELSE depth = 0 END AS is_outermost
              FROM own)
     WHERE is_outermost AND end_ns BETWEEN from_ns AND to_ns
     GROUP BY process_id, phase
),
-- The classes are 1 load, 2 preparation and 4 retrieval. Events that begin in a window return at most a tenth of a second
-- after it, except in long calls.
copied AS (
    SELECT process_id, start_ns, call_id, kind, bytes
      FROM copies
     WHERE captured = 0 AND kind IN ('HtoD', 'DtoH')
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036754775807) + 100000000
     UNION ALL
    SELECT copies.process_id, copies.start_ns, copies.call_id, kind, bytes
      FROM long_calls
     CROSS JOIN copies ON copies.call_id = long_calls.call_id
     WHERE captured = 0 AND kind IN ('HtoD', 'DtoH')
       AND long_calls.call_id > :to_ns + 100000000 AND long_calls.start_ns <= :to_ns
),
event AS (
    SELECT process_id, start_ns, call_id AS end_ns, 1 AS class, duration_ns AS weight FROM module_loads
     UNION ALL
    SELECT process_id, start_ns, call_id, CASE kind WHEN 'HtoD' THEN 2 ELSE 4 END, bytes FROM copied
     UNION ALL
    SELECT process_id, allocated_ns, allocated_ns, 2, ifnull(bytes, 0)
      FROM allocations
     WHERE kind IN ('device', 'managed', 'pool', 'physical')
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
),
-- Class 3, execution, is summed up by slice already.
sliced AS (
    SELECT event.process_id,
           (start_ns - from_ns) / max(1, (to_ns - from_ns) / 500) AS slice, class, weight, start_ns, start_ns AS last_start_ns, end_ns
      FROM event
     CROSS JOIN run ON run.process_id = event.process_id
     WHERE start_ns BETWEEN from_ns AND to_ns
     UNION ALL
    SELECT process_id, slice, 3, kernels, begun_ns, last_begun_ns, last_id FROM launch_slices(:from_ns, :to_ns, :pid, :now_ns)
),
slice AS MATERIALIZED (
    SELECT process_id, slice,
           total(weight)      FILTER (WHERE class = 1) AS load,
           total(weight)      FILTER (WHERE class = 2) AS prepare,
           total(weight)      FILTER (WHERE class = 3) AS execute,
           total(weight)      FILTER (WHERE class = 4) AS retrieve,
           max(last_start_ns) FILTER (WHERE class = 1) AS load_last_ns,
           min(start_ns)      FILTER (WHERE class = 2) AS prepare_ns,
           max(last_start_ns) FILTER (WHERE class = 2) AS prepare_last_ns,
           min(start_ns)      FILTER (WHERE class = 3) AS execute_ns,
           max(last_start_ns) FILTER (WHERE class = 3) AS execute_last_ns,
           min(start_ns)      FILTER (WHERE class = 4) AS retrieve_ns,
           max(end_ns)                                 AS last_ns
      FROM sliced
     WHERE process_id NOT IN (SELECT process_id FROM outermost)
     GROUP BY process_id, slice
),
-- The cumulative share of each class up to and including a slice.
share AS MATERIALIZED (
    SELECT process_id, slice,
           ifnull(sum(load)     OVER so_far / nullif(sum(load)     OVER whole, 0), 0) AS load,
           ifnull(sum(prepare)  OVER so_far / nullif(sum(prepare)  OVER whole, 0), 0) AS prepare,
           ifnull(sum(execute)  OVER so_far / nullif(sum(execute)  OVER whole, 0), 0) AS execute,
           ifnull(sum(retrieve) OVER so_far / nullif(sum(retrieve) OVER whole, 0), 0) AS retrieve
      FROM slice
    WINDOW whole AS (PARTITION BY process_id), so_far AS (PARTITION BY process_id ORDER BY slice)
     UNION ALL
    SELECT process_id, -1, 0, 0, 0, 0 FROM slice GROUP BY process_id
),
-- The boundaries t1 <= t2 <= t3 are chosen so that as much as possible of each class is in its own phase. Half of the
-- copies count as execution. A boundary's gain is the share of the preceding phase's class minus the share of the
-- following phase's class, both counted up to the boundary. The best sum of the earlier boundaries' gains is a running
-- maximum over the slices. The next boundary's gain is added to this maximum.
gain AS MATERIALIZED (
    SELECT process_id, slice,
           load - prepare                                      AS gain_1,
           prepare - (execute + 0.5 * prepare + 0.5 * retrieve) AS gain_2,
           (execute + 0.5 * prepare + 0.5 * retrieve) - retrieve AS gain_3
      FROM share
),
best_1 AS MATERIALIZED (
    SELECT *, max(gain_1) OVER (PARTITION BY process_id ORDER BY slice) + gain_2 AS sum_2 FROM gain
),
best_2 AS MATERIALIZED (
    SELECT *, max(sum_2) OVER (PARTITION BY process_id ORDER BY slice) + gain_3 AS sum_3 FROM best_1
),
third AS (
    SELECT process_id, slice AS t3, max(sum_3) FROM best_2 GROUP BY process_id -- slice of the row with the maximum
),
second AS (
    SELECT process_id, t3, slice AS t2, max(sum_2)
      FROM third JOIN best_1 USING (process_id) WHERE slice <= t3 GROUP BY process_id
),
first AS (
    SELECT process_id, t3, t2, slice AS t1, max(gain_1)
      FROM second JOIN gain USING (process_id) WHERE slice <= t2 GROUP BY process_id
),
-- A phase begins with its first event. In the slice that contains the boundary, this event must follow the previous
-- phase's last event.
begun AS (
    SELECT process_id, sum(execute) AS kernels,
           min(prepare_ns) FILTER (WHERE slice <= t2 AND (slice > t1 OR (slice = t1 AND prepare_ns > ifnull(load_last_ns, 0))))
               AS prepare_ns,
           min(coalesce(execute_ns, prepare_ns, retrieve_ns))
               FILTER (WHERE slice <= t3 AND (slice > t2 OR (slice = t2 AND execute_ns > ifnull(prepare_last_ns, 0))))
               AS execute_ns,
           min(retrieve_ns) FILTER (WHERE slice > t3 OR (slice = t3 AND retrieve_ns > ifnull(execute_last_ns, 0)))
               AS retrieve_ns,
           max(last_ns) AS last_ns
      FROM slice
      JOIN first USING (process_id)
     GROUP BY process_id
),
-- The last wait of each process, if it takes more than a tenth of a second or begins in that time after the last event.
-- For many processes, only long waits are found, because finding the others means to read all calls in that time.
waited AS MATERIALIZED (
    SELECT process_id, max(call_id) AS to_ns
      FROM (SELECT calls.process_id, calls.call_id
              FROM long_calls
             CROSS JOIN calls ON calls.call_id = long_calls.call_id
             WHERE calls.layer = 'driver' AND calls.category = 'sync'
             UNION ALL
            SELECT waits.process_id, waits.call_id
              FROM begun
             CROSS JOIN waits ON waits.call_id BETWEEN last_ns AND last_ns + 200000000
             WHERE waits.process_id = begun.process_id AND (SELECT count(*) FROM begun) <= 64)
     GROUP BY process_id
),
phase AS (
    SELECT process_id, 'load' AS phase, from_ns AS begin_ns -- from the start until another phase begins
      FROM run
     WHERE process_id NOT IN (SELECT process_id FROM outermost)
     UNION ALL
    SELECT process_id, 'preparation', prepare_ns FROM begun WHERE prepare_ns > 0
     UNION ALL
    SELECT process_id, iif(kernels > 0, 'execution', 'copying'), execute_ns FROM begun WHERE execute_ns > 0
     UNION ALL
    SELECT process_id, 'retrieval', retrieve_ns FROM begun WHERE retrieve_ns > 0
     UNION ALL -- if the process continues, more may follow
    SELECT process_id, 'exit', max(last_ns, ifnull(waited.to_ns, 0))
      FROM begun
      JOIN run USING (process_id)
      LEFT JOIN waited USING (process_id)
     WHERE ended AND max(last_ns, ifnull(waited.to_ns, 0)) < run.to_ns
),
named AS (
    SELECT process_id, phase, 1 AS times, begin_ns,
           lead(begin_ns, 1, to_ns) OVER (PARTITION BY process_id ORDER BY begin_ns) - begin_ns AS ns, 'pattern' AS by
      FROM phase
      JOIN run USING (process_id)
     UNION ALL
    SELECT process_id, phase, times, begin_ns, ns, 'nvtx' FROM outermost
)
SELECT pid,
       phase,
       times,
       round((begin_ns - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS at_s,
       round(ns / 1e9, 6)                                 AS seconds,
       round(100.0 * ns / nullif(to_ns - from_ns, 0), 1)  AS "%",
       by
  FROM named
  JOIN run USING (process_id)
 ORDER BY from_ns, process_id, begin_ns
 LIMIT 200;
