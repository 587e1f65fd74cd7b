-- Kernels by launches
-- Counts launches outside of stream captures. The `graphs` section lists the kernels that graphs replay. The `shapes`
-- column counts the combinations of grid and block, and `grid` shows the most frequent one. The times are host times
-- in the launch calls.
WITH chosen AS (
    SELECT process_id, kernel, mangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, launches, total_ns, max_ns
      FROM launch_shapes
     WHERE :from_ns IS NULL AND :to_ns IS NULL
       AND captured = 0
     UNION ALL
    SELECT process_id, kernel, mangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, 1, duration_ns, duration_ns
      FROM launches
     WHERE (:from_ns IS NOT NULL OR :to_ns IS NOT NULL)
       AND call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9223372036854775807)
       AND captured = 0
),
shape AS (
    SELECT kernel, mangled,
           grid_x || 'x' || grid_y || 'x' || grid_z || ' x ' || block_x || 'x' || block_y || 'x' || block_z AS grid,
           sum(launches) AS launches, sum(total_ns) AS total_ns, max(max_ns) AS max_ns
      FROM chosen
     WHERE :pid IS NULL OR process_id IN (SELECT process_id FROM processes WHERE pid = :pid)
     GROUP BY mangled, grid
),
most AS (
    SELECT mangled, grid, max(launches) FROM shape GROUP BY mangled -- grid of the row with the maximum
)
SELECT ifnull(kernel, '(unknown)')                        AS kernel,
       sum(launches)                                      AS launches,
       round(100.0 * sum(launches) / sum(sum(launches)) OVER (), 1) AS "%",
       round(1.0 * sum(total_ns) / sum(launches) / 1e3, 3) AS mean_call_us,
       round(max(max_ns) / 1e3, 3)                        AS max_call_us,
       count(*)                                           AS shapes,
       most.grid
  FROM shape
  JOIN most ON most.mangled IS shape.mangled
 GROUP BY shape.mangled
 ORDER BY sum(launches) DESC
 LIMIT 30;
