"use strict";
// Draws the charts of a page: for each block the scopes of one run over time, and its modules. A click zooms in, a click on
// the empty ground or Escape zooms out.
const ROW = 20;
const tip = document.getElementById("tip");

function number(x) {
  return x === 0 ? "0" : Number(x.toPrecision(5)).toString();
}

// A colour that only depends on the text; grey for what belongs to no module.
function colour(text) {
  if (text === null) return "hsl(0 0% 72%)";
  let hash = 7;
  for (const c of text) hash = (hash * 31 + c.codePointAt(0)) % 360;
  return `hsl(${hash} 62% 72%)`;
}

class Chart {
  constructor(parent, bars, unit) {
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    parent.append(this.canvas);
    this.unit = unit;
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
    this.canvas.addEventListener("click", (event) => this.zoom(this.at(event)));
    this.show(bars);
  }

  // Bars: {start, length, depth, text, hint, paint}.
  show(bars) {
    this.bars = bars;
    this.rows = bars.reduce((most, bar) => Math.max(most, bar.depth + 1), 1);
    this.zoom(null);
  }

  zoom(bar) {
    const end = this.bars.reduce((most, each) => Math.max(most, each.start + each.length), 0);
    this.from = bar && bar.length > 0 ? bar.start : 0;
    this.span = (bar && bar.length > 0 ? bar.length : end) || 1;
    this.draw();
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.rows * ROW + ROW;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.scaleLine(pen, width);
    for (const bar of this.bars) {
      const left = ((bar.start - this.from) / this.span) * width;
      const wide = Math.max((bar.length / this.span) * width, 1);
      if (left + wide < 0 || left > width) continue;
      const top = ROW + bar.depth * ROW;
      pen.fillStyle = bar.paint;
      pen.fillRect(left, top, wide, ROW - 1);
      const [begin, end] = [Math.max(left, 0), Math.min(left + wide, width)];
      if (end - begin > 24) {
        pen.save();
        pen.beginPath();
        pen.rect(begin, top, end - begin - 3, ROW);
        pen.clip();
        pen.fillStyle = "#111";
        pen.fillText(bar.text, begin + 3, top + ROW / 2);
        pen.restore();
      }
    }
  }

  scaleLine(pen, width) {
    const step = 10 ** Math.floor(Math.log10(this.span / 4));
    const wide = [1, 2, 5, 10].map((k) => k * step).find((s) => this.span / s <= 8) || 10 * step;
    pen.fillStyle = getComputedStyle(document.body).color;
    for (let x = Math.ceil(this.from / wide) * wide; x <= this.from + this.span; x += wide) {
      const left = ((x - this.from) / this.span) * width;
      pen.globalAlpha = 0.25;
      pen.fillRect(left, 0, 1, this.rows * ROW + ROW);
      pen.globalAlpha = 1;
      pen.fillText(`${number(x)} ${this.unit}`, left + 3, ROW / 2);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = this.from + ((event.clientX - box.left) / box.width) * this.span;
    const depth = Math.floor((event.clientY - box.top) / ROW) - 1;
    const near = (2 / box.width) * this.span;
    const hit = (bar) => bar.depth === depth && place >= bar.start - near && place <= bar.start + Math.max(bar.length, near);
    return this.bars.find(hit) || null;
  }

  hover(event) {
    const bar = this.at(event);
    tip.hidden = !bar;
    if (!bar) return;
    tip.textContent = bar.hint;
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 12, window.innerHeight - tip.offsetHeight - 8)}px`;
  }
}

function runBars(data, run) {
  return run.scopes.map(([at, start, length, depth]) => {
    const event = data.events[at];
    const lines = [event.label, `${number(length)} ${data.unit}; median ${event.p50 === null ? "-" : number(event.p50)} ${data.unit}`];
    if (event.instruction !== null) lines.push(`instruction ${event.instruction}`);
    if (event.backend !== null) lines.push(`backend ${event.backend}`);
    if (event.module !== null) lines.push(`module ${event.module}`);
    if (event.nodes.length) lines.push(event.nodes.slice(0, 12).join(", ") + (event.nodes.length > 12 ? ", …" : ""));
    return { start, length, depth, text: event.label, hint: lines.join("\n"), paint: colour(event.module) };
  });
}

// Modules from left to right, each above those inside it.
function moduleBars(data) {
  const ends = [];
  let next = 0;
  return data.modules.map((module) => {
    const start = module.depth === 0 ? next : ends[module.depth - 1];
    if (module.depth === 0) next += module.total;
    ends[module.depth - 1] = start + module.total;
    ends[module.depth] = start;
    const hint = `${module.label}\ntotal ${number(module.total)} ${data.unit}\nself ${number(module.own)} ${data.unit}`;
    const paint = colour(module.label === "(runtime)" ? null : module.label);
    return { start, length: module.total, depth: module.depth, text: module.label, hint, paint };
  });
}

const charts = [];
for (const place of document.querySelectorAll(".chart")) {
  const data = JSON.parse(place.nextElementSibling.textContent);
  const head = document.createElement("div");
  head.className = "bar";
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "run");
  for (const run of data.runs) choice.append(new Option(run.label));
  const left = document.createElement("span");
  head.append("Timeline of ", choice, left);
  place.append(head);
  const say = (run) => { left.textContent = run.left_out ? `${run.left_out} shortest scopes are not drawn` : ""; };
  if (data.runs.length === 0) continue;
  const chart = new Chart(place, runBars(data, data.runs[0]), data.unit);
  say(data.runs[0]);
  choice.addEventListener("change", () => {
    const run = data.runs[choice.selectedIndex];
    chart.show(runBars(data, run));
    say(run);
  });
  const title = document.createElement("div");
  title.className = "bar";
  title.textContent = "Modules, mean over all runs";
  place.append(title);
  charts.push(chart, new Chart(place, moduleBars(data), data.unit));
}
window.addEventListener("resize", () => charts.forEach((chart) => chart.draw()));
window.addEventListener("keydown", (event) => {
  if (event.key === "Escape") charts.forEach((chart) => chart.zoom(null));
});
