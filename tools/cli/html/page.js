"use strict";
// The page of `cudatrace html`. Its data is in the two elements before this script: #trace contains JSON, and #calls
// contains deflated columns in base64 (listed in html.c). The page makes no network request. The charts are in
// charts.js.

const byId = (id) => document.getElementById(id);

// ---- texts ----

const NS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
function time(ns, digits = 3) {
  const [unit, name] = NS.find(([unit]) => Math.abs(ns) >= unit) || NS[3];
  return `${Number((ns / unit).toPrecision(Math.max(digits, 1)))} ${name}`;
}
function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; Math.abs(n) >= 1000 && i + 1 < units.length; i++) n /= 1000;
  return `${Number(n.toPrecision(4))} ${units[i]}`;
}
// Returns round times of a window, as many as there is room for: [[time, text]].
function timeTicks(from, to, pixels) {
  const span = to - from, wanted = Math.max(pixels / 130, 1);
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= wanted) || power * 10;
  const digits = Math.max(3, Math.ceil(Math.log10(to / step)) + 1), ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push([at, time(at, digits)]);
  return ticks;
}
const count = (n, what) => `${n.toLocaleString("en")}${what ? ` ${what}${n === 1 ? "" : what.endsWith("s") ? "es" : "s"}` : ""}`;
// Returns how many of `n` ordered items are before the position searched for.
function countBefore(n, isBefore) {
  let low = 0;
  while (low < n) {
    const middle = (low + n) >> 1;
    if (isBefore(middle)) low = middle + 1; else n = middle;
  }
  return low;
}
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  Object.assign(made, attributes);
  return made;
}

// ---- categories, each with a colour that is also distinguishable with colour blindness ----

const COLOURS = {
  launch: "#2a9d4e", graph: "#8ccf4d", copy: "#3273dc", set: "#2bb3c0", memory: "#a14ccf", sync: "#d6392b", event: "#e0a100",
  stream: "#c4c23a", module: "#c2577f", init: "#5f8f9f", context: "#8a8f98", range: "#5b6ee1", query: "#b0a58f", device: "#9c8b75",
  scheduling: "#e8743b", library: "#7d6b4f", kernel: "#157a5b",
};
const OTHER = "#777d84";
const colourOf = (category) => COLOURS[category] || OTHER;
// The parts of the run have the colours of categories. Parts outside the time that the verdict covers are grey.
const PARTS = {
  kernel: "#3f7fbf", queued: "#c9a227", rest: "#d5dade", start_driver: "#66717c", start_other: "#87929d", wait: COLOURS.sync, room: COLOURS.event, launch: COLOURS.launch, copy: COLOURS.copy,
  copying: COLOURS.copy, set: COLOURS.set, memory: COLOURS.memory, load: COLOURS.module, other: COLOURS.device, outside: COLOURS.init, end: "#a3adb6",
};

// ---- the data ----

async function readCalls() {
  const packed = atob(byId("calls").textContent.trim());
  const deflated = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) deflated[i] = packed.charCodeAt(i);
  if (deflated.length === 0) return new ArrayBuffer(0);
  return new Response(new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

function columns(buffer, n) {
  return {
    start: new Float64Array(buffer, 0, n), duration: new Float64Array(buffer, 8 * n, n),
    site: new Uint32Array(buffer, 16 * n, n), calls: new Uint32Array(buffer, 20 * n, n),
  };
}

// ---- timeline ----

const nameOf = ({ tid, name, is_stream: isStream }) => (isStream ? name : `${tid} ${name}`);

const ROW = 16, GAP = 3, LABEL = 190, AXIS = 22, LEVELS = 8;

class Timeline {
  constructor(trace, calls) {
    this.trace = trace;
    this.calls = calls;
    this.canvas = byId("canvas");
    this.tracks = byId("tracks");
    this.context = this.canvas.getContext("2d");
    this.listeners = []; // called with each window that is drawn
    this.length = Math.max(trace.end_ns - trace.begin_ns, 1);
    this.makeLanes();
    this.setWindow(...(trace.window || [0, this.length]));
    this.listen();
  }

  // Makes a lane for each thread and depth, with its calls ordered by start time. Threads are below their processes.
  makeLanes() {
    const { sites, threads, processes } = this.trace, { site } = this.calls;
    const sizes = new Map();
    const keys = sites.map(([thread, depth]) => thread * LEVELS + Math.min(depth, LEVELS - 1));
    for (let i = 0; i < site.length; i++) sizes.set(keys[site[i]], (sizes.get(keys[site[i]]) || 0) + 1);
    const lanes = new Map();
    for (const [key, n] of sizes) lanes.set(key, { index: new Uint32Array(n), used: 0 });
    for (let i = 0; i < site.length; i++) {
      const lane = lanes.get(keys[site[i]]);
      lane.index[lane.used++] = i;
    }
    // For each call of a lane, the latest end of that call and all earlier ones, since calls may overlap.
    for (const lane of lanes.values()) {
      let reach = 0;
      lane.reach = Float64Array.from(lane.index, (call) => (reach = Math.max(reach, this.calls.start[call] + this.calls.duration[call])));
    }
    this.lanes = [];
    let y = AXIS;
    const drawn = new Map(processes.map(({ id }) => [id, []]));
    threads.forEach((thread, i) => {
      if (Array.from({ length: LEVELS }, (_, depth) => i * LEVELS + depth).some((key) => lanes.has(key))) drawn.get(thread.process)?.push([thread, i]);
    });
    for (const process of processes) {
      const its = drawn.get(process.id);
      if (its.length === 0) continue;
      this.lanes.push({ y, process, title: `${process.name}` });
      y += ROW + GAP;
      for (const [thread, number] of its) {
        let first = true;
        for (let depth = 0; depth < LEVELS; depth++) {
          const lane = lanes.get(number * LEVELS + depth);
          if (!lane) continue;
          this.lanes.push({ y, process, thread, index: lane.index, reach: lane.reach, title: first ? nameOf(thread) : "" });
          first = false;
          y += ROW + GAP;
        }
      }
    }
    this.height = y + GAP;
  }

  setWindow(from, to) {
    const least = 100, span = Math.min(Math.max(to - from, least), this.length);
    this.from = Math.min(Math.max(from, 0), this.length - span);
    this.to = this.from + span;
    byId("window").textContent = `${time(this.from, 7)} to ${time(this.to, 7)}: ${time(span)}`;
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.setWindow(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  // The canvas is as large as the visible part: there may be ten thousand threads.
  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.view = Math.min(this.height, Math.round(window.innerHeight * 0.7));
    byId("room").style.height = `${this.height}px`;
    this.canvas.style.height = `${this.view}px`;
    this.width = this.tracks.clientWidth; // depends on a scroll bar, which depends on the heights
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.view * ratio;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
      for (const listener of this.listeners) listener(this.from, this.to);
    });
  }

  paint() {
    if (this.width !== this.tracks.clientWidth || this.view !== Math.min(this.height, Math.round(window.innerHeight * 0.7))) this.resize();
    const c = this.context, style = getComputedStyle(document.documentElement);
    const fore = style.getPropertyValue("--fore"), soft = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line");
    const top = this.tracks.scrollTop;
    c.clearRect(0, 0, this.width, this.view);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.paintAxis(c, soft, line);
    c.save();
    c.beginPath();
    c.rect(0, AXIS, this.width, this.view);
    c.clip();
    c.translate(0, -top);
    for (const lane of this.lanes) {
      if (lane.y + ROW < top || lane.y > top + this.view) continue;
      c.fillStyle = lane.index ? soft : fore;
      if (lane.title) {
        c.save();
        c.beginPath();
        c.rect(0, lane.y, lane.index ? LABEL - 8 : this.width, ROW);
        c.clip();
        c.fillText(lane.title, lane.index ? 12 : 4, lane.y + ROW / 2);
        c.restore();
      }
      if (lane.index) this.paintLane(c, lane);
    }
    c.restore();
  }

  paintAxis(c, soft, line) {
    const room = this.width - LABEL;
    c.strokeStyle = line;
    c.fillStyle = soft;
    for (const [at, label] of timeTicks(this.from, this.to, room)) {
      const x = LABEL + (at - this.from) / (this.to - this.from) * room;
      c.beginPath();
      c.moveTo(x, AXIS - 6);
      c.lineTo(x, this.view);
      c.stroke();
      c.fillText(label, x + 3, AXIS / 2);
    }
  }

  // Draws a lane. Of the calls that are shorter than a pixel, only the first in each pixel is drawn.
  paintLane(c, lane) {
    const { start, duration, site } = this.calls, { index } = lane, { sites, names } = this.trace;
    const scale = (this.width - LABEL) / (this.to - this.from);
    let i = countBefore(index.length, (n) => start[index[n]] < this.from), last = -1;
    while (i > 0 && lane.reach[i - 1] > this.from) i--; // back to the first call that reaches into the window
    for (; i < index.length; i++) {
      const call = index[i];
      if (start[call] > this.to) break;
      const left = Math.max((start[call] - this.from) * scale, 0), right = (start[call] + duration[call] - this.from) * scale;
      if (right < 0) continue;
      if (right - left < 1 && Math.floor(left) === last) continue;
      last = Math.floor(left);
      const its = sites[site[call]], width = Math.max(Math.min(right, this.width) - left, 0.7);
      c.globalAlpha = this.wanted && !this.wanted[site[call]] ? 0.15 : 1;
      c.fillStyle = colourOf(its[4]);
      c.fillRect(LABEL + left, lane.y, width, ROW);
      if (width > 40) {
        c.save();
        c.beginPath();
        c.rect(LABEL + left, lane.y, width - 2, ROW);
        c.clip();
        c.fillStyle = "#fff";
        c.fillText(names[its[3]] || names[its[2]], LABEL + left + 3, lane.y + ROW / 2);
        c.restore();
      }
    }
    c.globalAlpha = 1;
  }

  callAt(x, y) {
    const below = y + this.tracks.scrollTop, lane = this.lanes.find((l) => l.index && below >= l.y && below < l.y + ROW);
    if (!lane || x < LABEL || y < AXIS) return null;
    const { start, duration } = this.calls, scale = (this.width - LABEL) / (this.to - this.from);
    const at = this.from + (x - LABEL) / scale, slack = 1.5 / scale;
    const begun = countBefore(lane.index.length, (n) => start[lane.index[n]] < at + slack);
    for (let i = begun - 1; i >= 0 && lane.reach[i] + slack >= at; i--) {
      const call = lane.index[i];
      if (at <= start[call] + duration[call] + slack) return { lane, call };
    }
    return null;
  }

  describe({ lane, call }) {
    const { start, duration, site, calls } = this.calls, { sites, names } = this.trace;
    const [, depth, name, label, category, layer, status] = sites[site[call]];
    const lines = [names[name]];
    if (label) lines.push(names[label]);
    const { thread } = lane;
    if (calls[call] > 1) lines.push(`${count(calls[call])} ${thread.is_stream ? "pieces of work" : "calls"} in a row, drawn as one; this is the longest`);
    if (!thread.is_stream) lines.push(`${layer}, ${category}, depth ${depth}`);
    lines.push(`from ${time(start[call], 9)}, ${time(duration[call], 4)}`);
    if (status) lines.push(`returned ${status}`);
    lines.push(`process ${lane.process.pid}, ${thread.is_stream ? "" : "thread "}${nameOf(thread)}`);
    return lines.join("\n");
  }

  highlight(text) {
    const wanted = text.toLowerCase(), { sites, names } = this.trace;
    this.wanted = text && sites.map(([, , name, label]) => names[name].toLowerCase().includes(wanted) ||
      (label > 0 && names[label].toLowerCase().includes(wanted)));
    this.draw();
  }

  listen() {
    const { canvas } = this, tip = byId("tip");
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const at = (x) => this.from + Math.max(x - LABEL, 0) / (this.width - LABEL) * (this.to - this.from);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) {
        this.tracks.scrollTop += event.deltaY || event.deltaX;
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const shift = event.deltaX / this.width * (this.to - this.from);
        this.setWindow(this.from + shift, this.to + shift);
      } else {
        this.zoom(Math.exp(Math.max(-200, Math.min(event.deltaY, 200)) / 300), at(place(event)[0]));
      }
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: this.from, to: this.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (drag) {
        const shift = (drag.x - event.clientX) / (this.width - LABEL) * (drag.to - drag.from);
        drag.moved ||= Math.abs(drag.x - event.clientX) > 3;
        if (drag.moved) this.setWindow(drag.from + shift, drag.to + shift);
      }
      const found = this.callAt(x, y);
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = this.describe(found);
      tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 240)}px`;
      tip.style.top = `${Math.min(event.clientY + 18, window.innerHeight - 120)}px`;
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("pointerup", (event) => {
      const found = drag && !drag.moved && this.callAt(...place(event));
      drag = null;
      byId("details").hidden = !found;
      if (found) byId("details").textContent = this.describe(found);
    });
    canvas.addEventListener("dblclick", () => this.setWindow(0, this.length));
    canvas.addEventListener("keydown", (event) => {
      const span = this.to - this.from;
      const acts = {
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.setWindow(0, this.length),
        ArrowLeft: () => this.setWindow(this.from - span / 5, this.to - span / 5),
        ArrowRight: () => this.setWindow(this.from + span / 5, this.to + span / 5),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    byId("find").addEventListener("input", (event) => this.highlight(event.target.value));
    this.tracks.addEventListener("scroll", () => this.draw());
    window.addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
}

function drawLegend(trace) {
  const used = [...new Set(trace.sites.map((site) => site[4]))].sort();
  for (const category of used) {
    const entry = element("span");
    entry.append(Object.assign(element("i"), { style: `background: ${colourOf(category)}` }), category);
    byId("legend").append(entry);
  }
}

// ---- tables ----

// Identifiers have no commas.
const isName = (column) => /(^|_)(pid|tid|id|address|stream|status|context|device|handle)$/.test(column);

function makeTable(rows) {
  const table = element("table"), head = element("tr"), body = element("tbody"), names = Object.keys(rows[0]);
  const isNumber = names.map((name) => rows.every((row) => row[name] === null || typeof row[name] === "number"));
  const lines = rows.map((row) => {
    const line = element("tr");
    names.forEach((name, i) => {
      const value = row[name];
      line.append(element("td", typeof value === "number" && !isName(name) ? count(value) : value,
        { className: isNumber[i] ? "number" : "text", title: isNumber[i] ? "" : value ?? "" }));
    });
    body.append(line);
    return { row, line, text: Object.values(row).join("\n").toLowerCase() };
  });
  names.forEach((name, i) => {
    const cell = element("th", name, { className: isNumber[i] ? "number" : "", tabIndex: 0 });
    const sort = () => {
      const down = cell.getAttribute("aria-sort") ? cell.getAttribute("aria-sort") === "ascending" : isNumber[i];
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => (isNumber[i] ? a - b : String(a).localeCompare(String(b)));
      lines.sort(({ row: a }, { row: b }) => {
        if (a[name] === null || b[name] === null) return (a[name] === null) - (b[name] === null);
        return down ? order(b[name], a[name]) : order(a[name], b[name]);
      });
      body.append(...lines.map(({ line }) => line));
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    head.append(cell);
  });
  const top = element("thead");
  top.append(head);
  table.append(top, body);
  return { table, lines };
}

function drawTables(trace) {
  const filters = [];
  for (const { name, title, about, problem, rows } of trace.sections) {
    if (name === "bottleneck") continue;
    const box = element("details", null, { id: `section-${name}`, open: ["functions", "kernels", "processes"].includes(name) });
    box.append(element("summary", `${title} (${problem ? "left out" : count(rows.length)})`));
    if (about) box.append(element("p", about, { className: "hint" }));
    if (problem || rows.length === 0) {
      box.append(element("p", problem || "No rows.", { className: "empty" }));
    } else {
      const { table, lines } = makeTable(rows), wide = element("div", null, { className: "wide" });
      wide.append(table);
      box.append(wide);
      filters.push((text) => lines.forEach(({ line, text: its }) => { line.hidden = !its.includes(text); }));
    }
    byId("sections").append(box);
  }
  byId("filter").addEventListener("input", (event) => filters.forEach((filter) => filter(event.target.value.toLowerCase())));
}

// ---- summary ----

// Draws the verdict, and the parts of the run as one bar with a legend.
function drawParts(rows) {
  byId("bottleneck").textContent = rows[0]?.paragraph || "";
  byId("parts").hidden = rows.length === 0;
  for (const { kind, part, seconds, "%_of_run": share } of rows) {
    const background = PARTS[kind], value = `${time(seconds * 1e9, 4)}, ${share.toFixed(1)} %`, entry = element("li");
    byId("parts").append(Object.assign(element("i", null, { title: `${part}: ${value}` }), { style: `flex-grow: ${share}; background: ${background}` }));
    entry.append(Object.assign(element("i"), { style: `background: ${background}` }), part, element("span", value));
    byId("parts-legend").append(entry);
  }
}

function drawSummary(trace) {
  const rows = (name) => trace.sections.find((s) => s.name === name)?.rows || [];
  const day = new Date(trace.begin_unix_ns / 1e6).toISOString().replace("T", " ").slice(0, 19);
  document.title = `${trace.title} · cudatrace`;
  byId("title").textContent = trace.title;
  const part = trace.window ? ` · here ${trace.window.map((at) => time(at, 7)).join(" to ")}` : "";
  byId("facts").textContent = `${day} UTC · ${time(trace.end_ns - trace.begin_ns, 4)} · ${count(trace.processes.length, "process")} · ` +
    `${count(trace.calls, "call")}${trace.host ? ` · ${trace.host}` : ""}${part}`;
  drawParts(rows("bottleneck"));
  // If a window is set, all of these figures are for the window.
  const seen = trace.threads.filter((thread) => thread.process > 0 && !thread.is_stream), [from, to] = trace.window || [0, trace.end_ns - trace.begin_ns];
  const processes = trace.window ? new Set(seen.map(({ process }) => process)).size : trace.processes.length;
  const lost = trace.lost === trace.lost_at_most ? count(trace.lost) : `${count(trace.lost)} to ${count(trace.lost_at_most)}`;
  const tiles = [["time", time(to - from, 4)], ["calls", count(trace.calls)], ["processes", count(processes)],
    ["threads", count(seen.length)], ["failed calls", count(trace.failed)], ["lost calls", lost],
    ["most device memory", bytes(trace.memory.reduce((most, { points }) => points.reduce((m, [, held]) => Math.max(m, held), most), 0))],
    ["calls not returned", count(trace.open.filter((call) => !call.at_exit).length)]];
  for (const [what, value] of tiles) {
    const tile = element("div", null, { className: "tile" });
    tile.append(element("b", value), element("span", what));
    byId("tiles").append(tile);
  }
  byId("made").textContent = `Made by cudatrace ${trace.version}. ` + (trace.resolution_ns > 0
    ? `Adjacent calls of less than ${time(trace.resolution_ns)} are drawn as one in the timeline. Select fewer calls with --from, --to or --pid to see each of them.` : "") +
    (typeof Dygraph === "undefined" ? "" : ` Charts by dygraphs ${Dygraph.VERSION} (MIT).`);
}

// ---- start ----

async function main() {
  const trace = JSON.parse(byId("trace").textContent);
  drawSummary(trace);
  const calls = columns(await readCalls(), trace.records);
  drawLegend(trace);
  const timeline = new Timeline(trace, calls);
  window.cudatrace = { trace, timeline }; // for use in the browser's console
  drawTables(trace);
  drawGpus(trace, timeline);
  drawMemory(trace, timeline);
  drawDurations(trace);
  requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.ready = String(performance.now()); }));
}

main().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This page cannot be shown: ${error.message}`;
});
