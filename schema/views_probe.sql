-- The views of events that only `cudatrace probe` records: kernel events, and calls of hooks. These views have the same
-- form as the views in views.sql.

CREATE VIEW off_cpu AS
-- The calls during which the thread was off the processor, or had page faults. `cudatrace probe --kernel` records these
-- events as calls of the `kernel` layer. Each event counts for the innermost recorded call that encloses it. The search
-- for that call ends at the first outermost call that returns after the event, because no later call can enclose the
-- event. If even this outermost call does not enclose the event, the call around the event was lost.
WITH event AS MATERIALIZED (
    SELECT call.end_ns, call.end_ns - call.duration_ns AS start_ns, call.duration_ns, site.thread_id, site.depth, function.name
      FROM call
     CROSS JOIN site ON site.site_id = call.site_id
     CROSS JOIN function ON function.function_id = site.function_id
     WHERE EXISTS (SELECT 1 FROM function WHERE layer = 'kernel')
       AND function.layer = 'kernel' AND function.name IN ('blocked', 'preempted', 'page_fault')
), found AS MATERIALIZED (
    SELECT name, start_ns, duration_ns,
           (SELECT around.end_ns
              FROM call AS around
             CROSS JOIN site ON site.site_id = around.site_id
             WHERE around.end_ns > event.end_ns
               AND site.thread_id = event.thread_id
               AND site.depth < event.depth
               AND (site.depth = 0 OR around.end_ns - around.duration_ns <= event.start_ns)
               AND site.function_id NOT IN (SELECT function_id FROM function WHERE layer = 'kernel')
             ORDER BY around.end_ns
             LIMIT 1) AS call_id
      FROM event
), summed AS (
    SELECT call_id,
           count(*) FILTER (WHERE name = 'blocked')                                    AS blocked,
           CAST(total(found.duration_ns) FILTER (WHERE name = 'blocked') AS INTEGER)   AS blocked_ns,
           count(*) FILTER (WHERE name = 'preempted')                                  AS preempted,
           CAST(total(found.duration_ns) FILTER (WHERE name = 'preempted') AS INTEGER) AS preempted_ns,
           count(*) FILTER (WHERE name = 'page_fault')                                 AS page_faults
      FROM found
     CROSS JOIN call AS around ON around.end_ns = found.call_id
     WHERE around.end_ns - around.duration_ns <= start_ns
     GROUP BY call_id
)
SELECT summed.call_id,
       thread.process_id,
       thread.tid,
       function.layer,
       function.name,
       call.end_ns - call.duration_ns AS start_ns,
       call.duration_ns               AS duration_ns,
       blocked,               -- how often the thread slept: it waited for a lock, an event, a device or a timer
       blocked_ns,
       preempted,             -- how often another thread took its processor while it could run
       preempted_ns,
       page_faults            -- of its own accesses, not of the kernel's in a system call
  FROM summed
 CROSS JOIN call ON call.end_ns = summed.call_id
 CROSS JOIN site ON site.site_id = call.site_id
 CROSS JOIN thread ON thread.thread_id = site.thread_id
 CROSS JOIN function ON function.function_id = site.function_id;

-- Gets the number stored for a field in the call's row. If the field is a string, this is the ID of the string.
-- macro: field_number(place)
CASE :place WHEN 1 THEN value_1 WHEN 2 THEN value_2 WHEN 3 THEN value_3 WHEN 4 THEN value_4
            WHEN 5 THEN value_5 WHEN 6 THEN value_6 WHEN 7 THEN value_7 WHEN 8 THEN value_8 END

-- Formats text as a JSON string. Quotes, backslashes and control characters are escaped. SQLite before 3.41 refuses its
-- own JSON functions in a view, unless the reader trusts the file.
-- macro: json_text(text)
'"' || CASE WHEN :text GLOB '*["\' || char(1) || '-' || char(31) || ']*'
            THEN (WITH RECURSIVE
                  escaped (point, text) AS (
                      SELECT 0, replace(replace(:text, '\', '\\'), '"', '\"')
                      UNION ALL
                      SELECT point + 1, replace(text, char(point + 1), printf('\u%04x', point + 1))
                        FROM escaped
                       WHERE point < 31
                  )
                  SELECT text FROM escaped WHERE point = 31)
            ELSE :text END || '"'

CREATE VIEW hook_fields AS
-- The fields of calls in the `hook` layer (`cudatrace probe --hooks`), with a row for each field of each call. Events
-- of fences have fields, too (`fences`). The column `place` contains the position of the field among the call's fields,
-- starting at 1. An unsigned value of 2^63 or more appears as a negative number; use printf('%u', value).
SELECT hook_call.call_id,
       function.name                  AS name,         -- of the hook
       field.place,
       field.name                     AS field,
       CASE field.is_text
            WHEN 0 THEN field_number(field.place)
            ELSE (SELECT text.text FROM text WHERE text.text_id = field_number(field.place))
        END                           AS value         -- integer or text; NULL if the text could not be read
  FROM hook_call
 CROSS JOIN field ON field.field_set_id = hook_call.field_set_id
 CROSS JOIN function ON function.function_id = field.function_id;

-- files: by call_id
CREATE VIEW hooks AS
-- Calls in the `hook` layer. The column `fields` is a JSON object with the call's fields in order, such as
-- {"bytes":4096,"name":"weights"}. The view `hook_fields` has a row for each field.
SELECT hook_call.call_id,
       thread.process_id,
       process.pid,
       thread.tid,
       thread.name                    AS thread,
       function.name                  AS name,         -- of the hook
       '{' || ifnull((SELECT group_concat('"' || field || '":' || CASE typeof(value) WHEN 'integer' THEN value
                                                                           WHEN 'null'    THEN 'null'
                                                                           ELSE json_text(value) END, ',')
                        FROM (SELECT field, value
                                FROM hook_fields
                               WHERE hook_fields.call_id = hook_call.call_id
                               ORDER BY place)), '') || '}' AS fields,
       site.depth,                                     -- number of calls and ranges around it
       site.status,
       call.end_ns - call.duration_ns AS start_ns,
       call.end_ns,
       call.duration_ns
  FROM hook_call
 CROSS JOIN call ON call.end_ns = hook_call.call_id
 CROSS JOIN site ON site.site_id = call.site_id
 CROSS JOIN thread ON thread.thread_id = site.thread_id
 CROSS JOIN process ON process.process_id = thread.process_id
 CROSS JOIN function ON function.function_id = site.function_id
 WHERE function.layer <> 'kernel';

CREATE VIEW xids AS
-- GPU errors (Xids) that NVIDIA's driver reported to the kernel while a probe was running (`cudatrace probe`). The
-- driver reports the errors of all processes. The column `pid` is NULL if the driver's message does not contain a pid.
-- The meanings are abridged from NVIDIA's document "XID Errors" (https://docs.nvidia.com/deploy/xid-errors).
WITH meaning(code, text) AS (
    VALUES (8, 'the GPU stopped processing'), (11, 'invalid or corrupted push buffer'),
           (13, 'exception in the graphics engine'), (31, 'page fault in GPU memory'), (32, 'invalid or corrupted push buffer'),
           (38, 'error in the firmware of the driver'), (43, 'the GPU stopped processing'),
           (45, 'cleanup after an error or an exit'), (46, 'the GPU stopped processing'),
           (48, 'double-bit ECC error'), (61, 'breakpoint or warning of a microcontroller'), (62, 'a microcontroller halted'),
           (63, 'a memory page or row was retired'), (64, 'a memory page or row could not be retired'),
           (68, 'exception in the video decoder'), (69, 'class error in the graphics engine'), (74, 'NVLink error'),
           (79, 'the GPU has fallen off the bus'), (92, 'high rate of single-bit ECC errors'), (94, 'contained memory error'),
           (95, 'uncontained memory error'), (109, 'timeout of a context switch'), (110, 'security fault'),
           (119, 'timeout of a call to the GSP'), (120, 'error in the GSP'), (121, 'C2C link error'),
           (137, 'NVLink access without the right to it'), (140, 'unrecovered ECC error'),
           (143, 'initialisation of the GPU failed'), (154, 'the recovery action of the GPU has changed')
),
event AS (
    SELECT call_id,
           (SELECT value FROM hook_fields AS device WHERE device.call_id = hook_call.call_id AND field = 'device') AS device,
           (SELECT value FROM hook_fields AS code WHERE code.call_id = hook_call.call_id AND field = 'code')       AS code,
           (SELECT value FROM hook_fields AS text WHERE text.call_id = hook_call.call_id AND field = 'message')    AS message
      FROM function
     CROSS JOIN field ON field.function_id = function.function_id AND field.name = 'code'
     CROSS JOIN hook_call ON hook_call.field_set_id = field.field_set_id
     WHERE function.layer = 'hook' AND function.name = 'xid'
),
placed AS ( -- the message may begin with "pid=1234, name=python, " or "pid='<unknown>', name=<unknown>, "
    SELECT call_id, device, code, message,
           iif(instr(message, 'pid='), ltrim(substr(message, instr(message, 'pid=') + 4), ''''), '') AS from_pid,
           iif(instr(message, 'name='), substr(message, instr(message, 'name=') + 5), '')            AS from_name
      FROM event
)
SELECT call_id,                                        -- the time
       strftime('%Y-%m-%dT%H:%M:%fZ', (call_id + (SELECT value FROM meta WHERE key = 'realtime_offset_ns')) / 1e9, 'unixepoch')
                                      AS time,         -- in UTC
       device,                                         -- PCI address, such as 0000:65:00.0
       placed.code,
       meaning.text                   AS meaning,      -- NULL for a code that is not well known
       message,
       nullif(CAST(from_pid AS INTEGER), 0) AS pid,    -- of the process that the message names
       nullif(nullif(substr(from_name, 1, instr(from_name || ',', ',') - 1), '<unknown>'), '') AS name
  FROM placed
  LEFT JOIN meaning ON meaning.code = placed.code;

-- Gets the name of the innermost recorded call around a kernel event. As in `off_cpu`, the search ends at the first
-- outermost call that returns after the event.
-- macro: name_around(event)
CASE WHEN :event.depth > 0
            THEN (SELECT iif(call.end_ns - call.duration_ns <= :event.start_ns, function.name, NULL)
                    FROM call
                   CROSS JOIN site ON site.site_id = call.site_id
                   CROSS JOIN function ON function.function_id = site.function_id
                   WHERE call.end_ns > :event.end_ns
                     AND site.thread_id = :event.thread_id
                     AND site.depth < :event.depth
                     AND (site.depth = 0 OR call.end_ns - call.duration_ns <= :event.start_ns)
                     AND function.layer <> 'kernel'
                   ORDER BY call.end_ns
                   LIMIT 1)
             END

CREATE VIEW fence_events AS
-- The events of DMA fences of recorded processes (`cudatrace probe --kernel`). The views `fences` and `fence_waits`
-- combine the events of each fence, which may be in several files of a trace.
SELECT event.end_ns                   AS call_id,
       thread.process_id,
       process.pid,
       thread.tid,                                     -- fence_signaled: the thread machine of the probe
       event.name,            -- fence_init, fence_emit, fence_signaled, fence_wait
       iif(event.name <> 'fence_signaled', (SELECT text FROM text WHERE text_id = value_1), NULL) AS driver,
       iif(event.name <> 'fence_signaled', (SELECT text FROM text WHERE text_id = value_2), NULL) AS timeline,
       iif(event.name <> 'fence_signaled', value_3, value_1) AS context, -- with seqno, identifies the fence
       iif(event.name <> 'fence_signaled', value_4, value_2) AS seqno,
       event.start_ns,
       event.duration_ns,
       name_around(event)             AS inside        -- the innermost recorded call of the thread; NULL for none, or if it
                                                       -- has not returned, or only in a later file
  FROM (SELECT function.name, value_1, value_2, value_3, value_4,
               call.end_ns, call.end_ns - call.duration_ns AS start_ns, call.duration_ns, site.thread_id, site.depth
          FROM function
         CROSS JOIN field ON field.function_id = function.function_id AND field.place = 1
         CROSS JOIN hook_call ON hook_call.field_set_id = field.field_set_id
         CROSS JOIN call ON call.end_ns = hook_call.call_id
         CROSS JOIN site ON site.site_id = call.site_id
         WHERE function.layer = 'kernel' AND function.name IN ('fence_init', 'fence_emit', 'fence_signaled', 'fence_wait')) AS event
 CROSS JOIN thread ON thread.thread_id = event.thread_id
 CROSS JOIN process ON process.process_id = thread.process_id;

-- files: all
CREATE VIEW fences AS
-- DMA fences that threads of recorded processes created (`cudatrace probe --kernel`). The driver of a GPU or display
-- signals a fence when some work has been done. The column `call_id` is the time when the driver sent the work to the
-- device (the event fence_emit). If the driver does not report that event, `call_id` is the time when the fence was
-- created (fence_init).
WITH signal AS MATERIALIZED (
    SELECT context, seqno, min(call_id) AS signaled_ns FROM fence_events WHERE name = 'fence_signaled' GROUP BY context, seqno
), fence AS MATERIALIZED (
    SELECT call_id, process_id, pid, tid, driver, timeline, context, seqno,
           max(name = 'fence_emit') AS is_emitted -- the other columns are from the row with the maximum
      FROM fence_events
     WHERE name IN ('fence_init', 'fence_emit')
     GROUP BY context, seqno
)
SELECT fence.call_id,
       process_id,
       pid,
       tid,                   -- the thread that made the fence
       driver,
       timeline,
       fence.context,         -- with seqno, identifies the fence until the machine reboots
       fence.seqno,
       is_emitted,            -- 0: call_id is the time when the fence was made
       signal.signaled_ns,    -- NULL: not signaled yet, or its signal was lost (`losses`)
       signal.signaled_ns - fence.call_id AS duration_ns,
       (SELECT inside FROM fence_events WHERE fence_events.call_id = fence.call_id) AS inside -- the innermost recorded call
                              -- of the thread; NULL as in `fence_events`
  FROM fence
  LEFT JOIN signal ON signal.context = fence.context AND signal.seqno = fence.seqno;

-- files: all
CREATE VIEW fence_waits AS
-- Waits of recorded threads for DMA fences inside the kernel (`cudatrace probe --kernel`). A program that polls a
-- fence's file descriptor (poll, select, epoll) does not wait for the fence in this way.
SELECT wait.call_id,
       wait.process_id,
       wait.pid,
       wait.tid,
       wait.driver,
       wait.timeline,
       wait.context,
       wait.seqno,
       wait.start_ns,
       wait.duration_ns,
       fences.call_id                 AS fence_id,     -- call_id in `fences`; NULL if no recorded thread made the fence
       wait.inside                                     -- the innermost recorded call of the thread; NULL as in `fence_events`
  FROM fence_events AS wait
  LEFT JOIN fences ON fences.context = wait.context AND fences.seqno = wait.seqno
 WHERE wait.name = 'fence_wait';

CREATE VIEW device_files AS
-- System calls that opened, mapped and closed the device files of NVIDIA's kernel driver (`cudatrace probe --ioctls`).
-- When a process exits, the kernel closes its files without such a call.
WITH event AS MATERIALIZED (
    SELECT function.name, value_1 AS device, iif(function.name = 'mmap', value_2, NULL) AS bytes,
           iif(function.name = 'mmap' AND site.status = 0, value_3, NULL) AS address,
           call.end_ns, call.end_ns - call.duration_ns AS start_ns, call.duration_ns,
           site.thread_id, site.depth, site.status
      FROM function
     CROSS JOIN field ON field.function_id = function.function_id AND field.place = 1
     CROSS JOIN hook_call ON hook_call.field_set_id = field.field_set_id
     CROSS JOIN call ON call.end_ns = hook_call.call_id
     CROSS JOIN site ON site.site_id = call.site_id
     WHERE function.layer = 'kernel' AND function.name IN ('openat', 'mmap', 'close')
)
SELECT event.end_ns                   AS call_id,
       thread.process_id,
       process.pid,
       thread.tid,
       event.name,                                     -- openat, mmap, close
       (SELECT text FROM text WHERE text_id = event.device) AS device, -- the file's name, such as nvidia0
       event.bytes,                                    -- the length of the mapping; NULL for other calls
       event.address,                                  -- of the mapping; NULL if it failed
       event.status,                                   -- 0, or a negative errno
       status.name                    AS status_name,  -- ENOENT, …; NULL for success
       event.start_ns,
       event.duration_ns,
       name_around(event)             AS inside        -- the innermost recorded call of the thread; NULL for none, or if it
                                                       -- has not returned
  FROM event
 CROSS JOIN thread ON thread.thread_id = event.thread_id
 CROSS JOIN process ON process.process_id = thread.process_id
  LEFT JOIN status ON status.layer = 'ioctl' AND status.status = event.status AND status.status < 0;
