-- The tables of a trace. People read the views (views.sql); the tables are shaped for writing: a call's
-- identity is the time at which it returned, so rows of all processes arrive in order, time windows are
-- ranges of the primary key, and no index is needed. Times are CLOCK_MONOTONIC nanoseconds of one boot.
--
-- Each explanation stands inside its statement, since SQLite keeps what begins with CREATE and `.schema`
-- shows no more.

CREATE TABLE meta (
    -- Holds what is known of the trace as a whole: host, boot_id, session, cudatrace_version, created_unix_s,
    -- realtime_offset_ns; expired_before_ns: calls that returned before it have been taken away; series: the same in
    -- all files of a trace that are read as one; earlier_files_until_ns: when the last call of the files before this
    -- one returned. Times everywhere are CLOCK_MONOTONIC nanoseconds of this boot; realtime_offset_ns added to one
    -- gives nanoseconds since 1970.
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE process (
    -- One row for each program image that made a traced call. A fork's child is a process of its own, and
    -- so is what comes after an exec.
    process_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    pid         INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,          -- field 22 of /proc/PID/stat: tells reused pids apart
    image_ns    INTEGER NOT NULL,          -- when the hook was loaded: tells execs apart
    uid         INTEGER NOT NULL,
    exe         TEXT,
    cmdline     TEXT,
    started_ns  INTEGER NOT NULL,          -- the segment's creation: just before the first traced call
    ended_ns    INTEGER,                   -- NULL while it runs
    state       TEXT NOT NULL,             -- running, exited, killed, detached, left: it runs, and no daemon collects from it
    unknown_frees INTEGER NOT NULL DEFAULT 0, -- calls that gave back memory that no row of `allocation` is for
    UNIQUE (pid, start_ticks, image_ns, uid) -- the kernel says the last, the process the others
);

CREATE TABLE thread (
    -- One row for each thread that made a traced call; a tid that the kernel reused is a new row.
    thread_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    process_id INTEGER NOT NULL REFERENCES process,
    tid        INTEGER NOT NULL,
    name       TEXT,                       -- what the program called it (nvtxNameOsThread), else comm
    comm       TEXT,                       -- the kernel's name for it when it took its lane
    calls      INTEGER NOT NULL DEFAULT 0, -- sums of its calls, kept while writing
    driver_ns  INTEGER NOT NULL DEFAULT 0  -- of those of the driver
);
CREATE INDEX thread_of ON thread (process_id, tid);

CREATE TABLE function (
    -- One row for each function that was called.
    function_id INTEGER PRIMARY KEY,
    layer       TEXT NOT NULL,             -- driver, runtime, ioctl, nvtx
    name        TEXT NOT NULL,
    category    TEXT NOT NULL,             -- memory, copy, launch, sync, …
    UNIQUE (layer, name)
);

CREATE TABLE status (
    -- Says what a status means, by layer (status.sql).
    layer  TEXT NOT NULL,
    status INTEGER NOT NULL,
    name   TEXT NOT NULL,
    PRIMARY KEY (layer, status)
) WITHOUT ROWID;

CREATE TABLE site (
    -- Says where calls come from: the combinations of thread, function, depth and status that occur, few for many
    -- calls.
    site_id     INTEGER PRIMARY KEY,
    thread_id   INTEGER NOT NULL REFERENCES thread,
    function_id INTEGER NOT NULL REFERENCES function,
    depth       INTEGER NOT NULL,          -- 0 when no other traced call encloses it
    status      INTEGER NOT NULL           -- what the call returned
);

CREATE TABLE call (
    -- The calls. end_ns is the time of return, moved by a nanosecond where two calls returned in the same
    -- one; other tables name a call by it, as call_id. Here and where that is so it stands last, since a row need
    -- not say then that its key is not in it.
    duration_ns INTEGER NOT NULL,
    site_id     INTEGER NOT NULL REFERENCES site,
    bytes       INTEGER,                   -- of calls that move, set or allocate memory
    end_ns      INTEGER PRIMARY KEY
);

CREATE TABLE late_call (
    -- Calls that reached the collector after later ones were stored: they are in `call` at their place,
    -- and here.
    call_id   INTEGER PRIMARY KEY REFERENCES call,
    behind_ns INTEGER NOT NULL             -- how far the order of storing had gone past it
);

CREATE TABLE long_call (
    -- Calls that took more than a tenth of a second, by their start: all others that began in a window returned at
    -- most a tenth of a second after it, so that the key of `call` finds them.
    call_id  INTEGER PRIMARY KEY REFERENCES call,
    start_ns INTEGER NOT NULL
);
CREATE INDEX long_call_start ON long_call (start_ns);

CREATE TABLE name (
    -- Names of kernels that processes used, each once.
    name_id   INTEGER PRIMARY KEY,
    mangled   TEXT NOT NULL UNIQUE,
    demangled TEXT NOT NULL
);
CREATE TABLE kernel (
    -- Says which number each process gave to a name.
    process_id INTEGER NOT NULL REFERENCES process,
    number     INTEGER NOT NULL,
    name_id    INTEGER NOT NULL REFERENCES name,
    PRIMARY KEY (process_id, number)
) WITHOUT ROWID;

CREATE TABLE shape (
    -- The combinations of kernel, grid, block, shared memory and stream that were launched.
    shape_id     INTEGER PRIMARY KEY,
    process_id   INTEGER NOT NULL REFERENCES process,
    kernel       INTEGER NOT NULL,         -- kernel.number, 0 when the name is unknown
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
    -- Kernel launches: each is a call and a shape.
    shape_id   INTEGER NOT NULL REFERENCES shape,
    process_id INTEGER NOT NULL REFERENCES process, -- the shape's: one process's launches are told without looking at it
    call_id    INTEGER PRIMARY KEY REFERENCES call
);
CREATE TABLE graph (
    -- Graphs that were made executable, with their nodes by kind; those of child graphs are counted too.
    -- NULL where there may be others, since it was made where nobody looked.
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
    kernel_nodes INTEGER,                  -- kernels that this launch replays; NULL when that is not known
    stream       INTEGER NOT NULL,
    captured     INTEGER NOT NULL          -- 1: recorded into another graph, nothing was run
);

CREATE TABLE route (
    -- The combinations of process, kind and stream by which memory was copied or set.
    route_id   INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- HtoD, DtoH, DtoD, HtoH, PtoP, unknown; set for memory sets
    async      INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    captured   INTEGER NOT NULL            -- 1: recorded into a graph, nothing was moved
);
CREATE TABLE transfer (
    -- Copies and sets of memory: each is a call and a route.
    route_id    INTEGER NOT NULL REFERENCES route,
    source      INTEGER,                   -- addresses, NULL for arrays
    destination INTEGER,
    call_id     INTEGER PRIMARY KEY REFERENCES call
);

CREATE TABLE allocation (
    -- Memory that was got, and when it was given back.
    call_id    INTEGER PRIMARY KEY REFERENCES call,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- device, managed, host, registered, pool, physical, reserved, …
    address    INTEGER NOT NULL,
    bytes      INTEGER,                    -- NULL when that is not known
    freed_ns   INTEGER,                    -- return time of the call that freed it
    pool       INTEGER,                    -- handle of what it was taken from, NULL for none or the default
    holders    INTEGER NOT NULL,           -- frees that it still wants
    settled    INTEGER NOT NULL            -- 0: held, or freed_ns is when the address was got again, and the call
                                           -- that freed it before that has not returned yet, or was not recorded
);
CREATE INDEX allocation_held ON allocation (process_id, address) WHERE settled = 0;

CREATE TABLE role (
    -- Says what a handle is: stream, event, context, … (proto/role.def).
    role INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE TABLE object_name (
    -- Holds the names that programs give their threads, streams, events, contexts and devices (NVTX), from when on.
    process_id INTEGER NOT NULL REFERENCES process,
    role       INTEGER NOT NULL REFERENCES role,
    handle     INTEGER NOT NULL,
    named_ns   INTEGER NOT NULL,
    name       TEXT,                       -- NULL: from here on it has none, having ended
    PRIMARY KEY (process_id, role, handle, named_ns)
) WITHOUT ROWID;
CREATE TABLE subject (
    -- The combinations of objects that calls were about: streams, events, contexts, …; an unused place has
    -- role 0.
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
    -- Says which of them a call was about, where its function takes any.
    subject_id INTEGER NOT NULL REFERENCES subject,
    call_id    INTEGER PRIMARY KEY REFERENCES call
);

CREATE TABLE text (
    -- Texts that applications made up: messages of ranges, names of domains and categories. A text is here once
    -- for each time that the daemon had to learn it, so compare texts, not numbers.
    text_id INTEGER PRIMARY KEY,
    text    TEXT NOT NULL
);
CREATE TABLE range (
    -- Holds what NVTX ranges and marks said: each is a call.
    call_id     INTEGER PRIMARY KEY REFERENCES call,
    message_id  INTEGER REFERENCES text,
    domain_id   INTEGER REFERENCES text,   -- NULL for the default domain
    category_id INTEGER REFERENCES text,   -- the category's name, NULL when it has none
    category    INTEGER,                   -- its number, NULL for none
    color       INTEGER,                   -- ARGB
    range_id    INTEGER,                   -- what nvtxRangeStart returned
    payload                                -- integer or real
);

CREATE TABLE open_call (
    -- Calls entered and not yet returned.
    process_id  INTEGER NOT NULL REFERENCES process,
    thread_id   INTEGER NOT NULL REFERENCES thread,
    depth       INTEGER NOT NULL,
    function_id INTEGER NOT NULL REFERENCES function,
    start_ns    INTEGER NOT NULL,
    PRIMARY KEY (process_id, thread_id, depth)
) WITHOUT ROWID;

CREATE TABLE total (
    -- Sums of what is in `call`, kept while writing.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    calls       INTEGER NOT NULL,
    total_ns    INTEGER NOT NULL,
    min_ns      INTEGER NOT NULL,
    max_ns      INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    failed      INTEGER NOT NULL,          -- of the calls
    expired     INTEGER NOT NULL DEFAULT 0, -- of the calls, those that are in `call` no more (--keep), or in an
                                           -- earlier file
    PRIMARY KEY (process_id, function_id)
) WITHOUT ROWID;

CREATE TABLE duration (
    -- Counts calls by how long they took, while writing: a duration of less than 16 ns is its own bucket, then each
    -- doubling has sixteen. The view `durations` has their bounds.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    bucket      INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    PRIMARY KEY (process_id, function_id, bucket)
) WITHOUT ROWID;

CREATE TABLE failure (
    -- Counts failed calls by their status, while writing. An answer that is no failure, such as CUDA_ERROR_NOT_READY
    -- (600), is not here.
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    status      INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    first_ns    INTEGER NOT NULL,          -- return times of the first and the last of them
    last_ns     INTEGER NOT NULL,
    PRIMARY KEY (process_id, function_id, status)
) WITHOUT ROWID;

CREATE TABLE segment (
    -- The pieces of shared memory that processes wrote to: one for each process, and one more each time that a
    -- daemon had gone and another came.
    segment_id INTEGER PRIMARY KEY AUTOINCREMENT,
    process_id INTEGER NOT NULL REFERENCES process,
    begun_ns   INTEGER NOT NULL,
    absent_ns  INTEGER,                    -- since when there may be calls that nobody recorded, up to begun_ns; NULL: none
    left_ns    INTEGER,                    -- when the daemon ended while the process ran; NULL: it did not
    name       TEXT NOT NULL UNIQUE
);
CREATE TABLE lane (
    -- Says how far each lane of a segment has been read: committed with the rows, so that a killed daemon neither loses
    -- nor repeats one.
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    thread_id  INTEGER,                    -- the thread whose calls stand at the position
    PRIMARY KEY (segment_id, lane)
) WITHOUT ROWID;

CREATE TABLE unsent (
    -- Counts what the hook saw and did not send, by function: lost for want of room, or skipped:
    -- left out on request, or given way to others where room was scarce (cause pressure).
    segment_id    INTEGER NOT NULL REFERENCES segment,
    entry         INTEGER NOT NULL,        -- in the segment's directory of functions
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
    -- The losses, and what was skipped under pressure, by thread and cause.
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    tenancy    INTEGER NOT NULL,           -- counts the lane's owners
    tid        INTEGER NOT NULL,
    cause      TEXT NOT NULL,              -- full, signal, memory, pressure, probe
    calls      INTEGER NOT NULL,
    first_ns   INTEGER NOT NULL,
    last_ns    INTEGER NOT NULL,
    PRIMARY KEY (segment_id, lane, tenancy, cause)
) WITHOUT ROWID;
