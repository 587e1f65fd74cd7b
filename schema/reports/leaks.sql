-- Memory not freed
-- By allocation size, with the largest sums first. If the process has ended, these allocations are its leaks. If it
-- is running, it still holds them. If no size is given, the size is unknown, as for memory shared by other processes.
SELECT pid,
       state,
       kind,
       bytes                                              AS piece_bytes,
       count(*)                                           AS pieces,
       round(sum(bytes) / 1e6, 3)                         AS mb,
       round((min(allocated_ns) - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS first_s,
       round((max(allocated_ns) - (SELECT min(started_ns) FROM processes)) / 1e9, 3) AS last_s
  FROM allocations
  JOIN processes USING (process_id)
 WHERE freed_ns IS NULL
   AND kind NOT IN ('reserved', 'mapped')
   AND allocated_ns BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
   AND (:pid IS NULL OR pid = :pid)
 GROUP BY process_id, kind, bytes
 ORDER BY sum(bytes) DESC
 LIMIT 20;
