"use strict";
// GPU samples above the timeline: a small chart for each counter, over the same time as the timeline.

const CHART = 26;

// Returns a counter's value with the unit that its name contains.
function counterValue(name, value) {
  const unit = /\((.*)\)$/.exec(name)?.[1] ?? "";
  return unit === "bytes" ? bytes(value) : `${count(value)} ${unit}`;
}

class Gpus {
  constructor(trace, timeline) {
    this.timeline = timeline;
    this.canvas = byId("gpu-canvas");
    this.context = this.canvas.getContext("2d");
    this.rows = [];
    const colours = [COLOURS.launch, COLOURS.memory, COLOURS.event];
    let y = GAP;
    for (const { name: title, counters, points } of trace.gpus) {
      this.rows.push({ y, title });
      y += ROW + GAP;
      counters.forEach((name, i) => {
        const values = points.filter((point) => point[i + 1] !== null).map((point) => [point[0], point[i + 1]]);
        if (values.length === 0) return;
        const most = name.endsWith("(%)") ? 100 : values.reduce((m, [, value]) => Math.max(m, value), 1);
        this.rows.push({ y, name, values, most, colour: colours[i % colours.length] });
        y += CHART + GAP;
      });
    }
    this.height = y + GAP;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  }

  // The charts use the timeline's scale, so that a time has the same place in both.
  scale() {
    return (this.timeline.width - LABEL) / (this.timeline.to - this.timeline.from);
  }

  paint() {
    const c = this.context, ratio = window.devicePixelRatio || 1, { width, from, to } = this.timeline;
    const style = getComputedStyle(document.documentElement), scale = this.scale();
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.width = `${width}px`;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const { y, title, name, values, most, colour } of this.rows) {
      c.fillStyle = style.getPropertyValue(title ? "--fore" : "--soft");
      if (title) {
        c.fillText(title, 4, y + ROW / 2);
        continue;
      }
      c.fillText(name.replace(/ \(.*/, ""), 12, y + CHART / 2);
      c.textAlign = "right";
      c.fillText(counterValue(name, most), LABEL - 8, y + 6);
      c.textAlign = "left";
      c.fillStyle = style.getPropertyValue("--card");
      c.fillRect(LABEL, y, width - LABEL, CHART);
      this.paintValues(c, values, colour, (at) => LABEL + (at - from) * scale, (value) => y + CHART - value / most * (CHART - 1), y + CHART, to);
    }
  }

  // Draws the values in the window, and one more on each side.
  paintValues(c, values, colour, x, y, base, to) {
    const first = Math.max(countBefore(values.length, (i) => values[i][0] < this.timeline.from) - 1, 0);
    const shown = values.slice(first, Math.min(countBefore(values.length, (i) => values[i][0] <= to) + 1, values.length));
    c.save();
    c.beginPath();
    c.rect(LABEL, base - CHART, this.timeline.width - LABEL, CHART);
    c.clip();
    c.beginPath();
    shown.forEach(([at, value]) => c.lineTo(x(at), y(value)));
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.stroke();
    if (shown.length > 0) {
      c.lineTo(x(shown[shown.length - 1][0]), base);
      c.lineTo(x(shown[0][0]), base);
      c.globalAlpha = 0.25;
      c.fillStyle = colour;
      c.fill();
    }
    c.restore();
    if (shown.length === 1) {
      c.fillStyle = colour;
      c.fillRect(x(shown[0][0]) - 1, y(shown[0][1]), 2, base - y(shown[0][1]));
    }
  }

  // Returns the text for the sample nearest to a position, or null if the position is on no chart.
  describeAt(px, py) {
    const row = this.rows.find((r) => r.values && py >= r.y && py < r.y + CHART);
    if (!row || px < LABEL) return null;
    const at = this.timeline.from + (px - LABEL) / this.scale(), next = countBefore(row.values.length, (i) => row.values[i][0] < at);
    const [time_, value] = [row.values[next - 1], row.values[next]].filter(Boolean).sort((a, b) => Math.abs(a[0] - at) - Math.abs(b[0] - at))[0];
    return `${row.name.replace(/ \(.*/, "")}: ${counterValue(row.name, value)}\nat ${time(time_, 6)}`;
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(), tip = byId("tip");
    const text = this.describeAt(event.clientX - box.left, event.clientY - box.top);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 240)}px`;
    tip.style.top = `${Math.min(event.clientY + 18, window.innerHeight - 120)}px`;
  }
}

function drawGpus(trace, timeline) {
  if (trace.gpus.length === 0) return;
  byId("gpus").hidden = false;
  const gpus = new Gpus(trace, timeline);
  timeline.listeners.push(() => gpus.paint());
  timeline.draw();
  window.cudatrace.gpus = gpus;
}
