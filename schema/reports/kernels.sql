-- Kernels by launches
-- Counts launches outside of stream captures. The `graphs` section lists the kernels that graphs replay. The `shapes`
-- column counts the combinations of grid and block, and `grid` shows the most frequent one. The times are host times
-- in the launch calls.
WITH shape AS (
    SELECT kernel, mangled,
           grid_x || 'x' || grid_y || 'x' || grid_z || ' x ' || block_x || 'x' || block_y || 'x' || block_z AS grid,
           sum(launches) AS launches, sum(total_ns) AS total_ns, max(longest_ns) AS max_ns
      FROM launch_sums(:from_ns, :to_ns, :pid, :now_ns)
     WHERE captured = 0 AND graph_exec IS NULL AND launches > 0
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
