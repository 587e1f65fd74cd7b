-- Memory
-- The most memory that all processes together held at once, and the memory that was not freed, by kind. The `unknown`
-- column counts allocations of unknown size, such as memory shared by other processes. The sums do not include them.

-- name: side
WITH piece AS (
    SELECT kind, allocated_ns, coalesce(freed_ns, ended_ns) AS gone_ns, freed_ns IS NULL AS leaked, bytes
      FROM allocations
      JOIN processes USING (process_id)
     WHERE kind NOT IN ('reserved', 'mapped')
),
change AS (
    SELECT kind, allocated_ns AS at_ns, bytes FROM piece
     UNION ALL
    SELECT kind, gone_ns, -bytes FROM piece WHERE gone_ns IS NOT NULL
),
held AS (
    SELECT kind, sum(bytes) OVER (PARTITION BY kind ORDER BY at_ns) AS bytes FROM change
)
SELECT kind, count(*) AS allocations, count(*) - count(bytes) AS unknown, (SELECT max(bytes) FROM held WHERE held.kind = piece.kind) AS peak,
       sum(iif(leaked, bytes, 0)) AS leaked
  FROM piece
 GROUP BY kind;

-- name: compare
WITH every AS (
    SELECT kind FROM a UNION SELECT kind FROM b
)
SELECT kind,
       ifnull(a.allocations, 0)                           AS allocations_a,
       ifnull(b.allocations, 0)                           AS allocations_b,
       round(iif(a.kind IS NULL, 0, a.peak) / 1e6, 3)     AS peak_mb_a,
       round(iif(b.kind IS NULL, 0, b.peak) / 1e6, 3)     AS peak_mb_b,
       round(iif(a.kind IS NULL, 0, a.leaked) / 1e6, 3)   AS not_freed_mb_a,
       round(iif(b.kind IS NULL, 0, b.leaked) / 1e6, 3)   AS not_freed_mb_b,
       ifnull(a.unknown, 0)                               AS unknown_a,
       ifnull(b.unknown, 0)                               AS unknown_b
  FROM every
  LEFT JOIN a USING (kind)
  LEFT JOIN b USING (kind)
 ORDER BY max(ifnull(a.peak, 0), ifnull(b.peak, 0)) DESC;
