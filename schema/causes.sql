-- The temporary database where tools/cli/export/export_work.c keeps the calls that caused GPU work.

-- name: table
PRAGMA synchronous = OFF;
CREATE TABLE cause (
    call_id      INTEGER PRIMARY KEY,
    correlation  INTEGER,              -- the ID of the outermost call around this one; NULL: not exported
    tid          INTEGER,
    start_ns     INTEGER,
    grid_x       INTEGER,              -- the sizes of a launch
    grid_y       INTEGER,
    grid_z       INTEGER,
    block_x      INTEGER,
    block_y      INTEGER,
    block_z      INTEGER,
    shared_bytes INTEGER
);
BEGIN;

-- name: cause
INSERT OR IGNORE INTO cause (call_id) VALUES (?1);

-- name: note
UPDATE cause SET correlation = ?2, tid = ?3, start_ns = ?4 WHERE call_id = ?1;

-- name: size
UPDATE cause
   SET grid_x = ?2, grid_y = ?3, grid_z = ?4, block_x = ?5, block_y = ?6, block_z = ?7, shared_bytes = ?8
 WHERE call_id = ?1;

-- name: find
SELECT correlation, tid, start_ns, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes
  FROM cause
 WHERE call_id = ?1 AND correlation IS NOT NULL;
