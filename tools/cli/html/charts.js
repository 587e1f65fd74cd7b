"use strict";
// The page's charts, drawn by dygraphs: device memory as a staircase, and the durations of calls. A selection in the memory chart zooms the
// timeline, and vice versa. In a page made without dygraphs, each chart's section shows a message instead.

const TICK = 5;
const CHART_LINES = { axisLineColor: "#8886", axisLineWidth: 1, gridLineColor: "#8883", gridLineWidth: 1, axisTickSize: TICK, axisLabelFontSize: 12,
  highlightCircleSize: 0, legend: "never", rightGap: 1 };
// Aligns the plot with the timeline's lanes if there is room for that.
const yAxisWidth = (box) => (box.clientWidth > 4 * LABEL ? LABEL : 80) - 2 * TICK;

// If there can be no chart, explains why and returns true.
function noChart(target) {
  if (typeof Dygraph !== "undefined") return false;
  target.append(element("p", "No chart: this cudatrace was built without dygraphs (Debian's libjs-dygraphs, meson's option charts). The tables contain sums and percentiles.", { className: "empty" }));
  return true;
}

// Makes a chart's legend: a button for each series, which shows or hides the series and displays its value at the pointer. Returns the
// function that sets these values.
function makeLegend(target, series) {
  const at = element("output"), box = element("div", null, { className: "series" });
  const entries = series.map(({ name, colour, toggle }) => {
    const entry = element("button", null, { type: "button", ariaPressed: "true" }), value = element("output");
    entry.append(element("i", null, { style: `background: ${colour}` }), element("span", name), value);
    entry.addEventListener("click", () => {
      const shown = entry.ariaPressed !== "true";
      entry.ariaPressed = String(shown);
      toggle(shown);
    });
    box.append(entry);
    return value;
  });
  box.prepend(at);
  target.append(box);
  return (where, values) => {
    at.textContent = where;
    entries.forEach((entry, i) => { entry.textContent = values[i] ?? ""; });
  };
}

function chartBox(target, label) {
  const box = element("div", null, { className: "chart", role: "img", ariaLabel: label });
  target.append(box);
  return box;
}

// Counts the points of a staircase up to a time. The last of these points has the value at that time.
const pointsUntil = (points, at) => countBefore(points.length, (n) => points[n][0] <= at);
const heldAt = (points, at) => points[pointsUntil(points, at) - 1]?.[1] ?? 0;

// Returns the rows of a window: [time, memory held by each process]. If there are more rows than can be distinguished, each column has
// three: the least, the most and the last.
function memoryRows(shown, from, to, columns) {
  const next = shown.map(({ points }) => pointsUntil(points, from)), held = shown.map(({ points }) => heldAt(points, from));
  const rows = [[from, ...held]];
  const inside = shown.reduce((sum, { points }, i) => sum + pointsUntil(points, to) - next[i], 0);
  if (inside > 3 * columns) {
    for (let column = 1; column <= columns; column++) {
      const until = from + (to - from) * column / columns, at = until - (to - from) / columns;
      const least = [at + (until - at) / 4, ...held], most = [at + (until - at) / 2, ...held];
      shown.forEach(({ points }, i) => {
        for (; next[i] < points.length && points[next[i]][0] <= until; next[i]++) {
          held[i] = points[next[i]][1];
          least[i + 1] = Math.min(least[i + 1], held[i]);
          most[i + 1] = Math.max(most[i + 1], held[i]);
        }
      });
      rows.push(least, most, [until, ...held]);
    }
    return rows;
  }
  const times = Float64Array.from(new Set(shown.flatMap(({ points }, i) => points.slice(next[i], pointsUntil(points, to)).map(([at]) => at)))).sort();
  for (const at of times) {
    shown.forEach(({ points }, i) => {
      while (next[i] < points.length && points[next[i]][0] <= at) held[i] = points[next[i]++][1];
    });
    rows.push([at, ...held]);
  }
  rows.push([to, ...held]);
  return rows;
}

function drawMemory(trace, timeline) {
  const target = byId("memory-chart");
  const holding = trace.memory.filter(({ points }) => points.length > 0), shown = holding.slice(0, 12);
  if (shown.length === 0) {
    target.append(element("p", "No device memory was held.", { className: "empty" }));
    return;
  }
  if (noChart(target)) return;
  target.append(element("p", "The chart shows the same time as the timeline. Drag over a part of it to zoom both. Double-click to show all again. Click a process to hide it.", { className: "hint" }));
  const hues = Object.values(COLOURS), pids = new Map(trace.processes.map((p) => [p.id, p.pid]));
  const box = chartBox(target, "device memory held by process over time");
  const say = makeLegend(target, shown.map(({ process }, i) => ({ name: `process ${pids.get(process)}`, colour: hues[i], toggle: (on) => chart.setVisibility(i, on) })));
  let drawn = [timeline.from, timeline.to];
  // The page has no data outside its window.
  const [first, last] = trace.window || [0, timeline.length];
  const nothing = shown.map(() => null);
  const rows = () => {
    const from = Math.max(drawn[0], first), to = Math.min(drawn[1], last);
    return from < to ? memoryRows(shown, from, to, Math.max(box.clientWidth, 100)) : drawn.map((at) => [at, ...nothing]);
  };
  const chart = new Dygraph(box, rows(), {
    ...CHART_LINES, stepPlot: true, includeZero: true, strokeWidth: 1.5, colors: hues.slice(0, shown.length),
    labels: ["time", ...shown.map((_, i) => String(i))], // labels are unique keys, and a pid may be used again
    dateWindow: drawn,
    axes: {
      x: { ticker: (from, to, pixels) => timeTicks(from, to, 1.4 * pixels).map(([v, label]) => ({ v, label })), axisLabelWidth: 80 },
      y: { axisLabelFormatter: bytes, axisLabelWidth: yAxisWidth(box) },
    },
    interactionModel: {
      ...Dygraph.defaultInteractionModel,
      dblclick: (event, its) => {
        its.resetZoom(); // resets only the height, since the chart has only the rows of the visible part
        timeline.setWindow(0, timeline.length);
      },
    },
    drawCallback: (its, isFirst) => {
      const [from, to] = its.xAxisRange();
      if (!isFirst && (from !== timeline.from || to !== timeline.to)) timeline.setWindow(from, to);
    },
    highlightCallback: (event) => {
      const at = chart.toDataXCoord(chart.eventToDomCoords(event)[0]);
      say(time(at, 6), shown.map(({ points }) => (at < first || at > last ? "" : bytes(heldAt(points, at)))));
    },
    unhighlightCallback: () => say("", []),
  });
  timeline.listeners.push((...now) => {
    const differs = (window) => window.some((at, i) => at !== now[i]);
    if (!differs(drawn) && !differs(chart.xAxisRange())) return;
    drawn = now;
    chart.updateOptions({ file: rows(), dateWindow: now });
  });
  window.cudatrace.memory = chart;
  if (holding.length > shown.length) {
    target.append(element("p", `${holding.length - shown.length} more processes are in the tables.`, { className: "hint" }));
  }
}

// Four bars per octave: bucket b holds calls of 2^(b/4) to 2^((b+1)/4) ns.
const bucketEnd = (b) => time(2 ** (b / 4));

// Returns ticks at round durations, as many as there is room for.
function durationTicks(from, to, pixels) {
  const ticks = [];
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    ticks.length = 0;
    for (let power = 1; power <= 1e18; power *= 10) {
      for (const factor of factors) {
        const v = 4 * Math.log2(power * factor);
        if (v >= from - 1e-9 && v <= to) ticks.push({ v, label: time(power * factor) });
      }
    }
    if (ticks.length * 60 <= pixels) break;
  }
  return ticks;
}

function paintBars({ drawingContext: c, points, dygraph, color }) {
  const width = dygraph.toDomXCoord(1) - dygraph.toDomXCoord(0), base = dygraph.toDomYCoord(0), gap = width > 4 ? 1 : 0;
  c.fillStyle = color;
  for (const { canvasx, canvasy, yval } of points) {
    const height = yval > 0 ? Math.max(base - canvasy, 1) : 0; // keeps a few calls among many visible
    c.fillRect(canvasx + gap, base - height, Math.max(width - 2 * gap, 1), height);
  }
}

function drawDurations(trace) {
  const select = byId("function"), target = byId("durations-chart"), names = Object.keys(trace.durations);
  const total = (name) => Object.values(trace.durations[name]).reduce((sum, n) => sum + n, 0);
  names.sort((a, b) => total(b) - total(a));
  for (const name of names) select.append(element("option", name, { value: name }));
  const facts = () => { byId("function-facts").textContent = names.length > 0 ? count(total(select.value), "call") : ""; };
  select.addEventListener("change", facts);
  facts();
  if (noChart(target) || names.length === 0) return;
  const box = chartBox(target, "calls by duration"), at = element("output", null, { className: "series" });
  target.append(at);
  const rows = () => {
    const buckets = trace.durations[select.value], keys = Object.keys(buckets).map(Number);
    const low = Math.min(...keys) - 1, high = Math.max(...keys) + 2; // the last place is the end of the last bar
    return Array.from({ length: high - low + 1 }, (_, i) => [low + i, buckets[low + i] || 0]);
  };
  const ends = (data) => [data[0][0], data[data.length - 1][0]];
  let data = rows();
  const chart = new Dygraph(box, data, {
    ...CHART_LINES, plotter: paintBars, includeZero: true, colors: [`${COLOURS.copy}b0`], labels: ["took", "calls"], dateWindow: ends(data),
    axes: {
      x: { ticker: durationTicks, axisLabelWidth: 80 },
      y: { axisLabelFormatter: (n) => (Number.isInteger(n) ? count(n) : ""), axisLabelWidth: yAxisWidth(box) },
    },
    highlightCallback: (event) => {
      const bucket = Math.floor(chart.toDataXCoord(chart.eventToDomCoords(event)[0]));
      at.textContent = `${bucketEnd(bucket)} to ${bucketEnd(bucket + 1)}: ${count(trace.durations[select.value][bucket] || 0, "call")}`;
    },
    unhighlightCallback: () => { at.textContent = ""; },
  });
  window.cudatrace.durations = chart;
  select.addEventListener("change", () => {
    data = rows();
    chart.updateOptions({ file: data, dateWindow: ends(data) });
  });
}
