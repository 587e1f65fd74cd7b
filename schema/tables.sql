-- The tables of a trace. Users read the views (views.sql), while the tables are designed for writing. A call is
-- identified by its return time. The rows of all processes therefore arrive in order, time windows are ranges of the
-- primary key, and no index is needed. Times are CLOCK_MONOTONIC nanoseconds of one boot.
--
-- Each table is explained inside its statement, because SQLite keeps the text from CREATE on, and `.schema` shows
-- only that text.

CREATE TABLE meta (
    -- Facts about the whole trace: host, boot_id, session, cudatrace_version, created_unix_s, realtime_offset_ns.
    -- `expired_before_ns`: calls that returned before this time were removed. `series`: the same in all files that are
    -- read as one trace. `earlier_files_until_ns`: return time of the last call in the files before this one. All
    -- times are CLOCK_MONOTONIC nanoseconds of this boot. Add realtime_offset_ns to convert a time to nanoseconds
    -- since 1970.
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE run (
    -- The runs. A run begins with the first process after the daemon started, or after a command such as `cudatrace run`
    -- began to use a daemon that no other command used.
    run_id        INTEGER PRIMARY KEY AUTOINCREMENT,
    began_unix_ns INTEGER NOT NULL UNIQUE  -- when the daemon started, or the command began to use it
);

CREATE TABLE process (
    -- One row for each program image that made a traced call. A forked child and the program after an exec have
    -- separate rows.
    process_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    pid         INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,          -- field 22 of /proc/PID/stat: distinguishes reused pids
    image_ns    INTEGER NOT NULL,          -- when the hook was loaded: distinguishes execs
    uid         INTEGER NOT NULL,
    exe         TEXT,
    cmdline     TEXT,
    started_ns  INTEGER NOT NULL,          -- the segment's creation: just before the first traced call
    ended_ns    INTEGER,                   -- NULL while it runs
    state       TEXT NOT NULL,             -- running, exited, killed, detached, left (running, but no daemon collects from it)
    unknown_frees INTEGER NOT NULL DEFAULT 0, -- calls that freed memory without a row in `allocation`
    gpu_recording TEXT,                    -- result of the last request to record GPU work; NULL if there was none
    run_id      INTEGER REFERENCES run,    -- the run in which its first call was stored
    UNIQUE (pid, start_ticks, image_ns, uid) -- the kernel reports uid, and the process reports the others
);

CREATE TABLE unrecorded_process (
    -- Processes that called the driver, but could not be recorded, and files that only look like a process's segment.
    first_ns INTEGER NOT NULL,             -- the process's first report
    pid      INTEGER NOT NULL,
    last_ns  INTEGER NOT NULL,             -- its last report
    uid      INTEGER NOT NULL,
    cause    TEXT NOT NULL,                -- memory, folder, user, clock, refused, probe, events
    error    TEXT NOT NULL,
    calls    INTEGER,                      -- as counted by the process up to its last report; NULL if unknown
    cmdline  TEXT NOT NULL,
    PRIMARY KEY (first_ns, pid)
) WITHOUT ROWID;

CREATE TABLE thread (
    -- One row for each thread that made a traced call. If a tid is reused, the new thread has a separate row.
    thread_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    process_id INTEGER NOT NULL REFERENCES process,
    tid        INTEGER NOT NULL,
    name       TEXT,                       -- set by the program (nvtxNameOsThread), otherwise comm
    comm       TEXT,                       -- the kernel's name when the thread got its lane
    calls      INTEGER NOT NULL DEFAULT 0, -- number of its calls, updated while writing
    driver_ns  INTEGER NOT NULL DEFAULT 0  -- time in driver calls
);
CREATE INDEX thread_of ON thread (process_id, tid);

CREATE TABLE function (
    -- One row for each function that was called.
    function_id INTEGER PRIMARY KEY,
    layer       TEXT NOT NULL,             -- driver, runtime, ioctl, nvtx, kernel, hook
    name        TEXT NOT NULL,
    category    TEXT NOT NULL,             -- memory, copy, launch, sync, …
    UNIQUE (layer, name)
);

CREATE TABLE status (
    -- The names of status codes by layer (status.sql).
    layer  TEXT NOT NULL,
    status INTEGER NOT NULL,
    name   TEXT NOT NULL,
    PRIMARY KEY (layer, status)
) WITHOUT ROWID;

CREATE TABLE site (
    -- Call sites. A site is a combination of thread, function, depth and status shared by many calls.
    site_id     INTEGER PRIMARY KEY,
    thread_id   INTEGER NOT NULL REFERENCES thread,
    function_id INTEGER NOT NULL REFERENCES function,
    depth       INTEGER NOT NULL,          -- 0 if no other traced call encloses it
    status      INTEGER NOT NULL           -- return value of the call
);

CREATE TABLE call (
    -- The calls. end_ns is the return time, moved by a nanosecond if two calls returned in the same nanosecond. Other
    -- tables use this time as call_id to refer to the call. Here and in `launch`, `transfer` and `call_subject`, the
    -- key is the last column, because a row can then omit it.
    duration_ns INTEGER NOT NULL,
    site_id     INTEGER NOT NULL REFERENCES site,
    bytes       INTEGER,                   -- of calls that move, set or allocate memory
    end_ns      INTEGER PRIMARY KEY
);

CREATE TABLE late_call (
    -- Late calls, which reached the collector when it had already stored calls that returned later. They are in
    -- `call` in the correct order, and are also listed here.
    call_id   INTEGER PRIMARY KEY REFERENCES call,
    behind_ns INTEGER NOT NULL             -- how far storing had advanced past it
);

CREATE TABLE long_call (
    -- Calls longer than a tenth of a second, indexed by their start. All other calls that began in a window returned
    -- at most a tenth of a second after its end, so they can be found by the key of `call`.
    call_id  INTEGER PRIMARY KEY REFERENCES call,
    start_ns INTEGER NOT NULL
);
CREATE INDEX long_call_start ON long_call (start_ns);

CREATE TABLE name (
    -- The names of the kernels used by processes. Each name occurs once.
    name_id   INTEGER PRIMARY KEY,
    mangled   TEXT NOT NULL UNIQUE,
    demangled TEXT NOT NULL
);
CREATE TABLE kernel (
    -- The number that each process has assigned to each of its kernel names.
    process_id INTEGER NOT NULL REFERENCES process,
    number     INTEGER NOT NULL,
    name_id    INTEGER NOT NULL REFERENCES name,
    PRIMARY KEY (process_id, number)
) WITHOUT ROWID;

CREATE TABLE shape (
    -- Launch shapes: combinations of kernel, grid, block, shared memory and stream.
    shape_id     INTEGER PRIMARY KEY,
    process_id   INTEGER NOT NULL REFERENCES process,
    kernel       INTEGER NOT NULL,         -- kernel.number, 0 if the name is unknown
    grid_x       INTEGER NOT NULL,
    grid_y       INTEGER NOT NULL,
    grid_z       INTEGER NOT NULL,
    block_x      INTEGER NOT NULL,
    block_y      INTEGER NOT NULL,
    block_z      INTEGER NOT NULL,
    shared_bytes INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    captured     INTEGER NOT NULL          -- 1: recorded into a graph, nothing was run
);
CREATE TABLE launch (
    -- Kernel launches, each with its call and its shape.
    shape_id   INTEGER NOT NULL REFERENCES shape,
    process_id INTEGER NOT NULL REFERENCES process, -- copied from the shape, to find a process's launches without it
    call_id    INTEGER PRIMARY KEY REFERENCES call
);
CREATE TABLE graph (
    -- Graphs that were made executable, with the number of nodes of each kind, including the nodes of child graphs. A
    -- count is NULL if the hook did not see all of the graph's construction, so that the graph may have other nodes.
    call_id           INTEGER PRIMARY KEY REFERENCES call,
    process_id        INTEGER NOT NULL REFERENCES process,
    graph_exec        INTEGER NOT NULL,
    graph             INTEGER NOT NULL,
    kernels           INTEGER,
    copies            INTEGER,
    sets              INTEGER,
    host_calls        INTEGER,
    graphs            INTEGER,
    empties           INTEGER,
    event_waits       INTEGER,
    event_records     INTEGER,
    semaphore_signals INTEGER,
    semaphore_waits   INTEGER,
    allocations       INTEGER,
    frees             INTEGER,
    memory_operations INTEGER,
    conditionals      INTEGER
);
CREATE TABLE graph_launch (
    -- Launches of whole graphs.
    call_id      INTEGER PRIMARY KEY REFERENCES call,
    process_id   INTEGER NOT NULL REFERENCES process,
    graph_exec   INTEGER NOT NULL,
    kernel_nodes INTEGER,                  -- kernels that this launch replays; NULL if unknown
    stream       INTEGER NOT NULL,
    captured     INTEGER NOT NULL          -- 1: recorded into another graph, nothing was run
);

CREATE TABLE route (
    -- Routes: combinations of process, kind and stream in memory copies and memsets.
    route_id   INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- HtoD, DtoH, DtoD, HtoH, PtoP, unknown; set for memory sets
    async      INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    captured   INTEGER NOT NULL            -- 1: recorded into a graph, nothing was moved
);
CREATE TABLE transfer (
    -- Memory copies and memsets, each with its call and its route.
    route_id    INTEGER NOT NULL REFERENCES route,
    source      INTEGER,                   -- addresses, NULL for arrays
    destination INTEGER,
    call_id     INTEGER PRIMARY KEY REFERENCES call
);

CREATE TABLE allocation (
    -- Allocated memory, and when it was freed.
    call_id    INTEGER PRIMARY KEY REFERENCES call,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- device, managed, host, registered, pool, physical, reserved, …
    address    INTEGER NOT NULL,
    bytes      INTEGER,                    -- NULL if unknown
    freed_ns   INTEGER,                    -- return time of the call that freed it
    pool       INTEGER,                    -- handle of its source, NULL for none or the default
    holders    INTEGER NOT NULL,           -- frees still needed
    settled    INTEGER NOT NULL,           -- 0: held, or freed_ns is when the address was allocated again, because the call
                                           -- that freed the memory has not returned yet, or was not recorded
    -- The kinds of a family are freed by the same calls.
    family     TEXT GENERATED ALWAYS AS (
        CASE kind WHEN 'device' THEN 'memory' WHEN 'managed' THEN 'memory' WHEN 'host' THEN 'memory'
                  WHEN 'pool' THEN 'memory' WHEN 'ipc' THEN 'memory' WHEN 'external' THEN 'memory' ELSE kind END
    )
);
CREATE INDEX allocation_held ON allocation (process_id, family, address) WHERE freed_ns IS NULL;
-- In the order of freed_ns, so that a free need not read the allocations that were superseded before it began.
CREATE INDEX allocation_superseded ON allocation (process_id, family, address, freed_ns)
 WHERE settled = 0 AND freed_ns IS NOT NULL;

CREATE TABLE role (
    -- The kinds of handle: stream, event, context, … (proto/role.def).
    role INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE TABLE object_name (
    -- Names that programs give to their threads, streams, events, contexts and devices (NVTX). A name is valid from
    -- named_ns on.
    process_id INTEGER NOT NULL REFERENCES process,
    role       INTEGER NOT NULL REFERENCES role,
    handle     INTEGER NOT NULL,
    named_ns   INTEGER NOT NULL,
    name       TEXT,                       -- NULL: the object was destroyed, and has no name from here on
    PRIMARY KEY (process_id, role, handle, named_ns)
) WITHOUT ROWID;
CREATE TABLE subject (
    -- The combinations of objects (streams, events, contexts, …) that calls refer to. An unused place has role 0.
    subject_id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    captured   INTEGER NOT NULL,           -- 1: the call was recorded into a graph, nothing was run
    role_1     INTEGER NOT NULL,
    handle_1   INTEGER NOT NULL,
    role_2     INTEGER NOT NULL,
    handle_2   INTEGER NOT NULL,
    role_3     INTEGER NOT NULL,
    handle_3   INTEGER NOT NULL
);
CREATE TABLE call_subject (
    -- The combination of objects that a call refers to, if the function takes any objects.
    subject_id INTEGER NOT NULL REFERENCES subject,
    call_id    INTEGER PRIMARY KEY REFERENCES call
);

CREATE TABLE text (
    -- Strings chosen by applications, such as range messages, the names of domains and categories, and hook fields. A
    -- string that the daemon no longer has in memory gets another row, so compare the strings, not their IDs.
    text_id INTEGER PRIMARY KEY,
    text    TEXT NOT NULL
);
CREATE TABLE range (
    -- The contents of NVTX ranges and marks, each of which is a call.
    call_id     INTEGER PRIMARY KEY REFERENCES call,
    message_id  INTEGER REFERENCES text,
    domain_id   INTEGER REFERENCES text,   -- NULL for the default domain
    category_id INTEGER REFERENCES text,   -- name of the category, NULL if it has none
    category    INTEGER,                   -- its number, NULL for none
    color       INTEGER,                   -- ARGB
    range_id    INTEGER,                   -- returned by nvtxRangeStart
    payload                                -- integer or real
);

CREATE TABLE field (
    -- The fields of calls in the `hook` layer. Calls to the same function with the same fields share a set.
    field_set_id INTEGER NOT NULL,
    place        INTEGER NOT NULL,         -- n: the value is hook_call.value_n
    function_id  INTEGER NOT NULL REFERENCES function,
    name         TEXT NOT NULL,
    is_text      INTEGER NOT NULL,         -- 1: the values are text.text_id
    PRIMARY KEY (field_set_id, place)
) WITHOUT ROWID;
CREATE TABLE hook_call (
    -- The field values of calls in the `hook` layer. A value is NULL if there is no such field, or if the call has no
    -- string for the field.
    field_set_id INTEGER NOT NULL,         -- 0 if the call has no fields
    value_1      INTEGER,
    value_2      INTEGER,
    value_3      INTEGER,
    value_4      INTEGER,
    value_5      INTEGER,
    value_6      INTEGER,
    value_7      INTEGER,
    value_8      INTEGER,
    call_id      INTEGER PRIMARY KEY REFERENCES call
);

CREATE TABLE gpu_task (
    -- GPU tasks: combinations of process, kind, kernel, device, context, stream and graph in GPU work. CUPTI assigns
    -- the IDs of devices, contexts, streams, graphs and nodes.
    gpu_task_id INTEGER PRIMARY KEY,
    process_id  INTEGER NOT NULL REFERENCES process,
    kind        TEXT NOT NULL,             -- kernel, set, graph; of copies, HtoD, DtoH, DtoD, HtoH, PtoP, unknown
    kernel      INTEGER NOT NULL,          -- kernel.number, 0 if the name is unknown
    device      INTEGER NOT NULL,
    context     INTEGER NOT NULL,
    stream      INTEGER NOT NULL,
    graph       INTEGER NOT NULL,          -- the executable graph, 0 for none
    node        INTEGER NOT NULL           -- its node, 0 for none
);
CREATE TABLE gpu_run (
    -- When GPUs did their work, in the order of arrival. Each row is one run of a task. The times are GPU times,
    -- converted to CLOCK_MONOTONIC. Work may arrive seconds after its end.
    gpu_task_id INTEGER NOT NULL REFERENCES gpu_task,
    start_ns    INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    correlation INTEGER,                   -- correlation.correlation of its process; NULL if unknown
    queued_ns   INTEGER,                   -- from the driver's queue to the start; NULL if unknown
    bytes       INTEGER,                   -- of copies and sets
    run_id      INTEGER PRIMARY KEY
);
CREATE TABLE correlation (
    -- The calls that caused GPU work. A call may arrive before or after its work. An expired call may still have a
    -- row here.
    process_id  INTEGER NOT NULL REFERENCES process,
    correlation INTEGER NOT NULL,          -- the number of the process's recording of GPU work << 32 | CUPTI's number
    call_id     INTEGER NOT NULL REFERENCES call,
    PRIMARY KEY (process_id, correlation)
) WITHOUT ROWID;

CREATE TABLE gpu_returned (
    -- The newest work returned by CUPTI, by stream. Within a stream, work is done and returned in order.
    process_id  INTEGER NOT NULL REFERENCES process,
    context     INTEGER NOT NULL,          -- CUPTI's number, as in gpu_task
    stream      INTEGER NOT NULL,          -- CUPTI's number
    correlation INTEGER NOT NULL,          -- of the call that caused the work
    ended_ns    INTEGER NOT NULL,          -- the latest end of returned work
    PRIMARY KEY (process_id, context, stream)
) WITHOUT ROWID;

CREATE TABLE open_call (
    -- Calls that have been entered but not yet returned.
    process_id  INTEGER NOT NULL REFERENCES process,
    thread_id   INTEGER NOT NULL REFERENCES thread,
    depth       INTEGER NOT NULL,
    function_id INTEGER NOT NULL REFERENCES function,
    start_ns    INTEGER NOT NULL,
    PRIMARY KEY (process_id, thread_id, depth)
) WITHOUT ROWID;

CREATE TABLE total (
    -- Sums over the rows of `call`, updated while writing.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    calls       INTEGER NOT NULL,
    total_ns    INTEGER NOT NULL,
    min_ns      INTEGER NOT NULL,
    max_ns      INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    failed      INTEGER NOT NULL,          -- calls that failed
    expired     INTEGER NOT NULL DEFAULT 0, -- calls that are no longer in `call` (--keep), or are in an
                                           -- earlier file
    PRIMARY KEY (process_id, function_id)
) WITHOUT ROWID;

CREATE TABLE duration (
    -- The number of calls by duration, updated while writing. Each duration below 16 ns has its own bucket. From 16
    -- ns on, each power of two has sixteen buckets. The `durations` view contains the bucket bounds.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    bucket      INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    PRIMARY KEY (process_id, function_id, bucket)
) WITHOUT ROWID;

CREATE TABLE failure (
    -- The number of failed calls by status, updated while writing. A result that is not a failure, such as
    -- CUDA_ERROR_NOT_READY (600), is not included.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    status      INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    first_ns    INTEGER NOT NULL,          -- return times of the first and the last failed call
    last_ns     INTEGER NOT NULL,
    PRIMARY KEY (process_id, function_id, status)
) WITHOUT ROWID;

CREATE TABLE segment (
    -- The segments of shared memory that processes wrote to. A process has one segment, and creates another each time
    -- a new daemon takes over from an earlier one.
    segment_id INTEGER PRIMARY KEY AUTOINCREMENT,
    process_id INTEGER NOT NULL REFERENCES process,
    begun_ns   INTEGER NOT NULL,
    absent_ns  INTEGER,                    -- start of a possible gap up to begun_ns, with calls not recorded; NULL: none
    left_ns    INTEGER,                    -- when the daemon ended while the process kept running; NULL: it did not
    name       TEXT NOT NULL UNIQUE
);
CREATE TABLE lane (
    -- How far each lane of a segment has been read. The position is committed together with the rows, so no call is
    -- lost or repeated if the daemon is killed.
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    thread_id  INTEGER,                    -- the thread of the next call at the position
    call_id    INTEGER,                    -- the thread's last call before the position; NULL: none
    PRIMARY KEY (segment_id, lane)
) WITHOUT ROWID;

CREATE TABLE unsent (
    -- The number of calls that the hook saw but did not send, by function. Such calls were lost for lack of room, or
    -- skipped. A call is skipped if it was excluded on request, or dropped in favour of others when room was scarce
    -- (cause pressure).
    segment_id    INTEGER NOT NULL REFERENCES segment,
    entry         INTEGER NOT NULL,        -- index in the segment's directory of functions
    function_id   INTEGER NOT NULL REFERENCES function,
    lost          INTEGER NOT NULL,
    lost_ns       INTEGER NOT NULL,
    lost_bytes    INTEGER NOT NULL,
    skipped       INTEGER NOT NULL,
    skipped_ns    INTEGER NOT NULL,
    skipped_bytes INTEGER NOT NULL,
    PRIMARY KEY (segment_id, entry)
) WITHOUT ROWID;

CREATE TABLE loss (
    -- Lost calls, calls skipped under pressure, and dropped records of GPU work (cause cupti), by thread and cause.
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    tenancy    INTEGER NOT NULL,           -- counts the lane's owners
    tid        INTEGER NOT NULL,
    cause      TEXT NOT NULL,              -- full, signal, memory, pressure, cgroup, probe, cupti, code, clock
    calls      INTEGER NOT NULL,
    first_ns   INTEGER NOT NULL,
    last_ns    INTEGER NOT NULL,
    PRIMARY KEY (segment_id, lane, tenancy, cause)
) WITHOUT ROWID;

CREATE TABLE gpu (
    -- The GPUs that were sampled, as the driver's library NVML describes them, and those that did recorded work. An instance
    -- of a divided GPU (MIG) has a row of its own.
    gpu_id       INTEGER PRIMARY KEY,
    uuid         TEXT NOT NULL UNIQUE,
    pci_address  TEXT,                     -- domain:bus:device.function, in hexadecimal
    name         TEXT,
    driver       TEXT,                     -- version of the driver
    place        INTEGER,                  -- index in NVML, in the order of the PCI addresses; NULL if not sampled
    memory_bytes INTEGER,
    is_mig       INTEGER,                  -- 1: divided into instances (MIG); NULL: the GPU cannot be divided
    whole_id     INTEGER REFERENCES gpu,   -- of an instance: the GPU
    gpu_instance INTEGER,                  -- NVML's numbers of an instance
    compute_instance INTEGER,
    number       INTEGER UNIQUE            -- the trace's number of the GPU, which never changes: its first place, if that is
                                           -- free; NULL for an instance
);

CREATE TABLE gpu_device (
    -- The GPU of each device of a process. A process counts only the devices that CUDA_VISIBLE_DEVICES lists.
    process_id INTEGER NOT NULL REFERENCES process,
    device     INTEGER NOT NULL,           -- CUDA's number, as in gpu_task
    number     INTEGER NOT NULL REFERENCES gpu (number),
    uuid       TEXT NOT NULL,              -- of the GPU, or MIG-… of the instance of a divided GPU
    PRIMARY KEY (process_id, device)
) WITHOUT ROWID;

CREATE TABLE gpu_sample (
    -- The values reported by each GPU at a time. A value that could not be read is NULL.
    time_ns                  INTEGER NOT NULL,
    gpu_id                   INTEGER NOT NULL REFERENCES gpu,
    busy_percent             INTEGER,      -- of NVML's last sample period, a sixth of a second to a second
    memory_busy_percent      INTEGER,
    memory_used_bytes        INTEGER,
    power_mw                 INTEGER,
    temperature_c            INTEGER,
    sm_mhz                   INTEGER,
    memory_mhz               INTEGER,
    clock_reasons            INTEGER,      -- nvmlClocksEventReasons: bits with the reasons for the clocks
    pcie_sent_kb_per_s       INTEGER,      -- since the previous sample, or over 20 ms
    pcie_received_kb_per_s   INTEGER,
    nvlink_sent_kb_per_s     INTEGER,      -- since the previous sample
    nvlink_received_kb_per_s INTEGER,
    ecc_corrected            INTEGER,      -- errors since the driver was loaded
    ecc_uncorrected          INTEGER,
    sm_busy_ppm              INTEGER,      -- means since the previous sample, from NVML's GPM
    sm_occupancy_ppm         INTEGER,
    tensor_ppm               INTEGER,
    fp64_ppm                 INTEGER,
    fp32_ppm                 INTEGER,
    fp16_ppm                 INTEGER,
    integer_ppm              INTEGER,
    dram_ppm                 INTEGER,
    PRIMARY KEY (time_ns, gpu_id)
) WITHOUT ROWID;

CREATE TABLE gpu_process (
    -- The processes that used a GPU at the time of a sample, including processes that were not traced.
    time_ns             INTEGER NOT NULL,
    gpu_id              INTEGER NOT NULL REFERENCES gpu,
    pid                 INTEGER NOT NULL,
    memory_bytes        INTEGER,
    busy_percent        INTEGER,
    memory_busy_percent INTEGER,
    PRIMARY KEY (time_ns, gpu_id, pid)
) WITHOUT ROWID;
