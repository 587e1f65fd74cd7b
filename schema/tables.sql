-- The tables of a trace. People read the views (views.sql); the tables are shaped for writing: a call's
-- identity is the time at which it returned, so rows of all processes arrive in order, time windows are
-- ranges of the primary key, and no index is needed. Times are CLOCK_MONOTONIC nanoseconds of one boot.

-- What is known of the trace as a whole: schema_version, host, boot_id, realtime_offset_ns, session, …
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

-- One row for each program image that made a traced call. A fork's child is a process of its own, and so
-- is what comes after an exec.
CREATE TABLE process (
    process_id  INTEGER PRIMARY KEY,
    pid         INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,          -- field 22 of /proc/PID/stat: tells reused pids apart
    image_ns    INTEGER NOT NULL,          -- when the hook was loaded: tells execs apart
    uid         INTEGER NOT NULL,
    exe         TEXT,
    cmdline     TEXT,
    started_ns  INTEGER NOT NULL,          -- the segment's creation: just before the first traced call
    ended_ns    INTEGER,                   -- NULL while it runs
    state       TEXT NOT NULL,             -- running, exited, killed
    UNIQUE (pid, start_ticks, image_ns)
);

-- One row for each thread that made a traced call; a tid that the kernel reused is a new row.
CREATE TABLE thread (
    thread_id  INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    tid        INTEGER NOT NULL,
    name       TEXT
);

CREATE TABLE function (
    function_id INTEGER PRIMARY KEY,
    layer       TEXT NOT NULL,             -- driver, runtime, ioctl, nvtx
    name        TEXT NOT NULL,
    category    TEXT NOT NULL,             -- memory, copy, launch, sync, …
    UNIQUE (layer, name)
);

-- What a status means, by layer (status.sql).
CREATE TABLE status (
    layer  TEXT NOT NULL,
    status INTEGER NOT NULL,
    name   TEXT NOT NULL,
    PRIMARY KEY (layer, status)
) WITHOUT ROWID;

-- Where calls come from: the combinations of thread, function, depth and status that occur. Few of them,
-- many calls.
CREATE TABLE site (
    site_id     INTEGER PRIMARY KEY,
    thread_id   INTEGER NOT NULL REFERENCES thread,
    function_id INTEGER NOT NULL REFERENCES function,
    depth       INTEGER NOT NULL,          -- 0 when no other traced call encloses it
    status      INTEGER NOT NULL           -- what the call returned
);

-- The calls. end_ns is the time of return, moved by a nanosecond where two calls returned in the same one.
CREATE TABLE call (
    end_ns      INTEGER PRIMARY KEY,
    duration_ns INTEGER NOT NULL,
    site_id     INTEGER NOT NULL REFERENCES site,
    bytes       INTEGER                    -- of calls that move, set or allocate memory
);

-- Calls that reached the collector after later ones were stored: they are in `call` at their place, and here.
CREATE TABLE late_call (
    call_id   INTEGER PRIMARY KEY REFERENCES call,
    behind_ns INTEGER NOT NULL             -- how far the order of storing had gone past it
);

-- Names that processes used, and which number each process gave them.
CREATE TABLE name (
    name_id   INTEGER PRIMARY KEY,
    mangled   TEXT NOT NULL UNIQUE,
    demangled TEXT NOT NULL
);
CREATE TABLE kernel (
    process_id INTEGER NOT NULL REFERENCES process,
    number     INTEGER NOT NULL,
    name_id    INTEGER NOT NULL REFERENCES name,
    PRIMARY KEY (process_id, number)
) WITHOUT ROWID;

-- Launches: each is a call and a shape, the combination of kernel, grid, block, shared memory and stream.
CREATE TABLE shape (
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
    call_id  INTEGER PRIMARY KEY REFERENCES call,
    shape_id INTEGER NOT NULL REFERENCES shape
);
CREATE TABLE graph_launch (
    call_id      INTEGER PRIMARY KEY REFERENCES call,
    process_id   INTEGER NOT NULL REFERENCES process,
    graph_exec   INTEGER NOT NULL,
    kernel_nodes INTEGER NOT NULL,         -- kernels that this launch replays
    stream       INTEGER NOT NULL,
    captured     INTEGER NOT NULL
);

-- Copies and sets of memory: each is a call and a route.
CREATE TABLE route (
    route_id   INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- HtoD, DtoH, DtoD, HtoH, PtoP, unknown; set for memory sets
    async      INTEGER NOT NULL,
    stream     INTEGER NOT NULL,
    captured   INTEGER NOT NULL
);
CREATE TABLE transfer (
    call_id     INTEGER PRIMARY KEY REFERENCES call,
    route_id    INTEGER NOT NULL REFERENCES route,
    source      INTEGER,                   -- addresses, NULL for arrays
    destination INTEGER
);

-- Memory that was got, and when it was given back.
CREATE TABLE allocation (
    call_id    INTEGER PRIMARY KEY REFERENCES call,
    process_id INTEGER NOT NULL REFERENCES process,
    kind       TEXT NOT NULL,              -- device, managed, host, registered, pool
    address    INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    freed_ns   INTEGER                     -- return time of the call that freed it
);
CREATE INDEX allocation_held ON allocation (process_id, address) WHERE freed_ns IS NULL;

-- The stream, event, context or address that a call was about, where its function takes one.
CREATE TABLE subject (
    call_id INTEGER PRIMARY KEY REFERENCES call,
    handle  INTEGER NOT NULL
);

-- Calls entered and not yet returned.
CREATE TABLE open_call (
    thread_id   INTEGER NOT NULL REFERENCES thread,
    depth       INTEGER NOT NULL,
    function_id INTEGER NOT NULL REFERENCES function,
    start_ns    INTEGER NOT NULL,
    PRIMARY KEY (thread_id, depth)
) WITHOUT ROWID;

-- Sums of what is in `call`, kept while writing.
CREATE TABLE total (
    process_id  INTEGER NOT NULL REFERENCES process,
    function_id INTEGER NOT NULL REFERENCES function,
    calls       INTEGER NOT NULL,
    total_ns    INTEGER NOT NULL,
    min_ns      INTEGER NOT NULL,
    max_ns      INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    PRIMARY KEY (process_id, function_id)
) WITHOUT ROWID;

-- How far each lane of shared memory has been read: committed with the rows, so that a killed daemon
-- neither loses nor repeats one.
CREATE TABLE segment (
    segment_id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process,
    name       TEXT NOT NULL UNIQUE
);
CREATE TABLE lane (
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    thread_id  INTEGER,                    -- whose calls stand at the position
    PRIMARY KEY (segment_id, lane)
) WITHOUT ROWID;

-- What the hook saw and did not send, by function: lost for want of room, or left out on request.
CREATE TABLE unsent (
    segment_id    INTEGER NOT NULL REFERENCES segment,
    function_id   INTEGER NOT NULL REFERENCES function,
    lost          INTEGER NOT NULL,
    lost_ns       INTEGER NOT NULL,
    lost_bytes    INTEGER NOT NULL,
    skipped       INTEGER NOT NULL,
    skipped_ns    INTEGER NOT NULL,
    skipped_bytes INTEGER NOT NULL,
    PRIMARY KEY (segment_id, function_id)
) WITHOUT ROWID;

-- The same losses by thread and cause.
CREATE TABLE loss (
    segment_id INTEGER NOT NULL REFERENCES segment,
    lane       INTEGER NOT NULL,
    tenancy    INTEGER NOT NULL,           -- counts the lane's owners
    tid        INTEGER NOT NULL,
    cause      TEXT NOT NULL,              -- full, signal, memory
    calls      INTEGER NOT NULL,
    first_ns   INTEGER NOT NULL,
    last_ns    INTEGER NOT NULL,
    PRIMARY KEY (segment_id, lane, tenancy, cause)
) WITHOUT ROWID;
