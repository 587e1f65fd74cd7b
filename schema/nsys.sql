-- Creates the database written by `cudatrace export --format nsys`. It has all tables of Nsight Systems' SQLite exports
-- that cudatrace can fill (https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference").
-- Each table has all columns that Nsight Systems' reports query. Values that are not in the trace are NULL.

-- name: tables
CREATE TABLE StringIds (
    id    INTEGER NOT NULL PRIMARY KEY,
    value TEXT    NOT NULL
);
CREATE TABLE ThreadNames (
    nameId    INTEGER NOT NULL REFERENCES StringIds (id),
    priority  INTEGER,
    globalTid INTEGER
);
CREATE TABLE PROCESSES (
    globalPid INTEGER,
    pid       INTEGER,
    name      TEXT
);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (
    utcEpochNs INTEGER,
    utcTime    TEXT,
    localTime  TEXT
);
CREATE TABLE EXPORT_META_DATA (
    name  TEXT NOT NULL,
    value TEXT
);
-- Runtime and driver calls, except those inside another runtime or driver call, as in Nsight Systems.
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start         INTEGER NOT NULL,
    end           INTEGER NOT NULL,
    eventClass    INTEGER NOT NULL, -- 0: runtime, 1: driver
    globalTid     INTEGER,
    correlationId INTEGER,          -- the call's call_id in the trace
    nameId        INTEGER NOT NULL REFERENCES StringIds (id),
    returnValue   INTEGER NOT NULL,
    callchainId   INTEGER
);
-- GPU work. The correlationId is the ID of the call that caused the work, or NULL if the file does not contain that
-- call.
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start                   INTEGER NOT NULL,
    end                     INTEGER NOT NULL,
    deviceId                INTEGER NOT NULL, -- TARGET_INFO_GPU.id
    contextId               INTEGER NOT NULL,
    greenContextId          INTEGER,
    streamId                INTEGER NOT NULL,
    correlationId           INTEGER,
    globalPid               INTEGER,
    demangledName           INTEGER NOT NULL REFERENCES StringIds (id),
    shortName               INTEGER NOT NULL REFERENCES StringIds (id),
    mangledName             INTEGER REFERENCES StringIds (id),
    launchType              INTEGER,
    cacheConfig             INTEGER,
    registersPerThread      INTEGER,
    gridX                   INTEGER,          -- sizes of the launch; NULL for kernels of graphs
    gridY                   INTEGER,
    gridZ                   INTEGER,
    blockX                  INTEGER,
    blockY                  INTEGER,
    blockZ                  INTEGER,
    staticSharedMemory      INTEGER,
    dynamicSharedMemory     INTEGER,
    localMemoryPerThread    INTEGER,
    localMemoryTotal        INTEGER,
    gridId                  INTEGER,
    sharedMemoryExecuted    INTEGER,
    graphNodeId             INTEGER,
    sharedMemoryLimitConfig INTEGER
);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start           INTEGER NOT NULL,
    end             INTEGER NOT NULL,
    deviceId        INTEGER NOT NULL,
    contextId       INTEGER NOT NULL,
    greenContextId  INTEGER,
    streamId        INTEGER NOT NULL,
    correlationId   INTEGER,
    globalPid       INTEGER,
    bytes           INTEGER,
    copyKind        INTEGER NOT NULL REFERENCES ENUM_CUDA_MEMCPY_OPER (id),
    deprecatedSrcId INTEGER,
    srcKind         INTEGER REFERENCES ENUM_CUDA_MEM_KIND (id),
    dstKind         INTEGER REFERENCES ENUM_CUDA_MEM_KIND (id),
    srcDeviceId     INTEGER,
    srcContextId    INTEGER,
    dstDeviceId     INTEGER,
    dstContextId    INTEGER,
    migrationCause  INTEGER,
    graphNodeId     INTEGER,
    virtualAddress  INTEGER
);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
    start          INTEGER NOT NULL,
    end            INTEGER NOT NULL,
    deviceId       INTEGER NOT NULL,
    contextId      INTEGER NOT NULL,
    greenContextId INTEGER,
    streamId       INTEGER NOT NULL,
    correlationId  INTEGER,
    globalPid      INTEGER,
    value          INTEGER,
    bytes          INTEGER,
    graphNodeId    INTEGER,
    memKind        INTEGER REFERENCES ENUM_CUDA_MEM_KIND (id)
);
-- Graphs that CUPTI recorded as a whole, without their nodes.
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (
    start          INTEGER NOT NULL,
    end            INTEGER NOT NULL,
    deviceId       INTEGER NOT NULL,
    contextId      INTEGER NOT NULL,
    greenContextId INTEGER,
    streamId       INTEGER NOT NULL,
    correlationId  INTEGER,
    globalPid      INTEGER,
    graphId        INTEGER,
    graphExecId    INTEGER
);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (
    id    INTEGER NOT NULL PRIMARY KEY,
    name  TEXT,
    label TEXT
);
INSERT INTO ENUM_CUDA_MEMCPY_OPER (id, name, label)
VALUES (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
       (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'),
       (4, 'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'), (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'),
       (6, 'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'), (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'),
       (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'),
       (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer');
CREATE TABLE ENUM_CUDA_MEM_KIND (
    id    INTEGER NOT NULL PRIMARY KEY,
    name  TEXT,
    label TEXT
);
INSERT INTO ENUM_CUDA_MEM_KIND (id, name, label)
VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),
       (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'),
       (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'), (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'),
       (6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'), (7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');
-- The GPUs that the daemon sampled, or that did recorded work.
CREATE TABLE TARGET_INFO_GPU (
    id          INTEGER NOT NULL, -- the deviceId of work
    name        TEXT,
    busLocation TEXT,
    totalMemory INTEGER,
    uuid        TEXT
);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (
    gpuId  INTEGER,               -- TARGET_INFO_GPU.id
    cudaId INTEGER,               -- the same as gpuId
    pid    INTEGER,
    uuid   TEXT
);
CREATE TABLE NVTX_EVENTS (
    start        INTEGER NOT NULL,
    end          INTEGER,
    eventType    INTEGER NOT NULL, -- 34: mark, 59: pushed, 60: started, 75: a domain
    rangeId      INTEGER,
    category     INTEGER,
    color        INTEGER,
    text         TEXT,
    globalTid    INTEGER,
    endGlobalTid INTEGER,
    textId       INTEGER REFERENCES StringIds (id),
    domainId     INTEGER,
    uint64Value  INTEGER,
    int64Value   INTEGER,
    doubleValue  REAL,
    uint32Value  INTEGER,
    int32Value   INTEGER,
    floatValue   REAL,
    jsonTextId   INTEGER,
    jsonText     TEXT
);
-- ioctls to the driver.
CREATE TABLE OSRT_API (
    start        INTEGER NOT NULL,
    end          INTEGER NOT NULL,
    eventClass   INTEGER NOT NULL, -- 27
    globalTid    INTEGER,
    nameId       INTEGER NOT NULL REFERENCES StringIds (id),
    returnValue  INTEGER NOT NULL,
    nestingLevel INTEGER,
    callchainId  INTEGER
);

-- name: string
INSERT INTO StringIds (id, value) VALUES (?1, ?2);

-- name: process
INSERT INTO PROCESSES (globalPid, pid, name) VALUES (?1, ?2, ?3);

-- name: thread
INSERT INTO ThreadNames (nameId, priority, globalTid) VALUES (?1, NULL, ?2);

-- name: session
INSERT INTO TARGET_INFO_SESSION_START_TIME (utcEpochNs, utcTime, localTime)
VALUES (?1, strftime('%Y-%m-%dT%H:%M:%S', ?1 / 1000000000, 'unixepoch'),
        strftime('%Y-%m-%dT%H:%M:%S', ?1 / 1000000000, 'unixepoch', 'localtime'));

-- name: meta
INSERT INTO EXPORT_META_DATA (name, value) VALUES (?1, ?2);

-- name: call
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId, returnValue, eventClass, correlationId)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: os_call
INSERT INTO OSRT_API (start, end, globalTid, nameId, returnValue, eventClass, nestingLevel)
VALUES (?1, ?2, ?3, ?4, ?5, 27, ?6);

-- name: range
INSERT INTO NVTX_EVENTS (start, end, globalTid, endGlobalTid, eventType, text, domainId)
VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6);

-- name: kernel
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
       (start, end, deviceId, contextId, streamId, globalPid, correlationId, graphNodeId, demangledName, shortName,
        mangledName, gridX, gridY, gridZ, blockX, blockY, blockZ, dynamicSharedMemory)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: copy
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY
       (start, end, deviceId, contextId, streamId, globalPid, correlationId, graphNodeId, bytes, copyKind)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10,
        ifnull((SELECT id FROM ENUM_CUDA_MEMCPY_OPER WHERE name = 'CUDA_MEMCPY_KIND_' || upper(?11)), 0));

-- name: set
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET
       (start, end, deviceId, contextId, streamId, globalPid, correlationId, graphNodeId, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10);

-- name: graph
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE
       (start, end, deviceId, contextId, streamId, globalPid, correlationId, graphExecId)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?9);

-- name: gpu
INSERT INTO TARGET_INFO_GPU (id, name, busLocation, totalMemory, uuid) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: device
INSERT INTO TARGET_INFO_CUDA_DEVICE (pid, cudaId, gpuId, uuid) VALUES (?1, ?2, ?3, ?4);
