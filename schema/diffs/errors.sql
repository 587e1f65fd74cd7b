-- Failed calls
-- By status.

-- name: side
SELECT layer, name, status, status_name, sum(calls) AS calls
  FROM failures
 GROUP BY layer, name, status;

-- name: compare
WITH both AS (
    SELECT layer, name, status, a.status_name, a.calls AS calls_a, ifnull(b.calls, 0) AS calls_b
      FROM a LEFT JOIN b USING (layer, name, status)
     UNION ALL
    SELECT layer, name, status, status_name, 0, calls
      FROM b
     WHERE (layer, name, status) NOT IN (SELECT layer, name, status FROM a)
)
SELECT name                                               AS function,
       ifnull(status_name, status)                        AS error,
       calls_a,
       calls_b,
       calls_b - calls_a                                  AS change
  FROM both
 ORDER BY abs(calls_b - calls_a) DESC, calls_a DESC
 LIMIT 30;
