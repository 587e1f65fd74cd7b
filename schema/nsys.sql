-- Creates the database that `cudatrace export --format nsys` writes. It has those tables and columns of Nsight
-- Systems' SQLite exports (https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference")
-- that a call tracer can fill.

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
-- Calls of the runtime and the driver that are not inside another such call, as in Nsight Systems.
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start         INTEGER NOT NULL,
    end           INTEGER NOT NULL,
    eventClass    INTEGER NOT NULL, -- 0: runtime, 1: driver
    globalTid     INTEGER,
    correlationId INTEGER,
    nameId        INTEGER NOT NULL REFERENCES StringIds (id),
    returnValue   INTEGER NOT NULL,
    callchainId   INTEGER
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
