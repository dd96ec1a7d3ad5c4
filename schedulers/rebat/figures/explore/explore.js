// SPDX-License-Identifier: Apache-2.0
// The page. Bokeh provides axes, panning and zooming. This script draws, searches and shows details.

const byId = (id) => document.getElementById(id);

// ---- words ----------------------------------------------------------------------------------

let ORIGIN = null, ZONE = "UTC"; // time 0 in ms since 1970, if it is known

function clockTime(ms) { // 3 d 04:05:06, or a date
  if (ORIGIN !== null) return new Date(ORIGIN + ms).toLocaleString("sv-SE", { timeZone: ZONE });
  const s = Math.round(ms / 1000), two = (n) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return s >= 86400 ? `${Math.floor(s / 86400)} d ${clock}` : clock;
}

function span(ms) {
  const units = [["d", 86400e3], ["h", 3600e3], ["min", 60e3], ["s", 1e3]];
  const [unit, size] = units.find(([, least]) => ms >= least) || units[3];
  return `${+(ms / size).toPrecision(3)} ${unit}`;
}

function attemptLines(run, i) {
  let size = 0;
  for (let k = run.offset[i]; k < run.offset[i + 1]; k++) size += run.last[k] - run.first[k] + 1;
  const why = run.whys[run.why[i]], cause = run.causes[run.cause[i]].name;
  const lines = [
    `Job ${run.jobs[run.job[i]]}, attempt ${run.number[i] + 1} (${size} nodes)`,
    `${clockTime(run.start[i])} to ${clockTime(run.end[i])}, ${span(run.end[i] - run.start[i])}`,
    `waited ${span(run.start[i] - run.queued[i])}; submitted at ${clockTime(run.submitted[i])}`,
    `ended: ${cause}${why ? (cause === "stolen" ? `, its nodes taken ${why}` : ` (${why})`) : ""}`,
  ];
  if (run.tail[i] > 0) lines.push(`lost work: ${span(run.tail[i])} on each node`);
  const recovery = run.recovery[i] ? `; recovery ${span(run.recovery[i])}` : "";
  if (run.firstPeriod[i] >= 0)
    lines.push(`checkpoints every ${span(run.period[i])}, ${span(run.cost[i])} each${recovery}`);
  return lines;
}

let NODE_NAMES = [];
function nodeText(node) { // 17 (n018)
  return NODE_NAMES[node] ? `${node} (${NODE_NAMES[node]})` : `${node}`;
}

function markLines(run, mark) {
  if (mark.kind === "failure") return [`Node ${nodeText(mark.node)} failed`, clockTime(mark.at)];
  return attemptLines(run, mark.attempt);
}

// ---- the page -------------------------------------------------------------------------------

class Explorer {
  constructor(data, doc) {
    this.data = data;
    for (const cause of data.causes) {
      cause.rgb = rgb(cause.kept);
      cause.lostRgb = cause.lost ? rgb(cause.lost) : null;
    }
    HELD = rgb(data.heldColour);
    NODE_NAMES = data.nodeNames;
    if (data.origin !== undefined) [ORIGIN, ZONE] = [data.origin, data.zone];
    const named = (name) => doc.get_model_by_name(name);
    this.runs = data.runs.map((run, k) => new Run(run, data.causes, named(`gantt${k}`)));
    this.series = ["busy", "queued", "free"].map((name) => [name, named(name)]);
    this.x = named("time"); this.y = named("nodes");
    this.mode = "cause"; this.pointer = { x: 0, y: 0 };
    this.frames = 0; this.drawMs = 0;
    this.listen();
    this.draw();
  }

  get view() {
    return { x0: this.x.start, x1: this.x.end, y0: this.y.end, y1: this.y.start };
  }

  listen() {
    const soon = () => this.drawSoon();
    for (const { properties } of [this.x, this.y])
      for (const property of [properties.start, properties.end]) property.change.connect(soon);
    for (const run of this.runs) {
      run.figure.properties.inner_width.change.connect(soon);
      run.figure.properties.inner_height.change.connect(soon);
      this.hear(run.figure, (event) => this.linesAt(run, event.x, event.y));
      run.figure.on_event("tap", ({ x, y }) => this.explain(run, run.attemptAt(x, Math.round(y))));
    }
    for (const [name, figure] of this.series)
      this.hear(figure, (event) => this.valuesAt(name, event.x));
    const follow = ({ clientX: x, clientY: y, pointerType, buttons }) => {
      const touch = pointerType === "touch";
      this.pointer = { x, y, touch, drags: buttons > 0 && !touch };
    };
    for (const name of ["pointermove", "pointerdown"]) document.addEventListener(name, follow, true);
    this.buttons();
  }

  hear(figure, lines) {
    const show = (event) => this.tip(this.pointer.drags ? null : lines(event));
    figure.on_event("mousemove", show);
    figure.on_event("tap", show);
    figure.on_event("mouseleave", () => { // also fires when a finger is lifted
      if (!this.pointer.touch) this.tip(null);
    });
    figure.on_event("panstart", () => this.tip(null));
  }

  buttons() {
    byId("reset").onclick = () => { this.choose(""); this.show(0, this.data.end, -0.5, this.data.nodes); };
    byId("in").onclick = () => this.zoom(0.5);
    byId("out").onclick = () => this.zoom(2);
    if (byId("difference")) byId("difference").onclick = () => this.showDifference();
    byId("box").onclick = (event) => this.boxes(event.currentTarget);
    byId("colours").onchange = (event) => this.colourBy(event.target.value);
    byId("search").onsubmit = (event) => {
      event.preventDefault();
      this.choose(byId("job").value.trim(), true);
    };
    byId("job").oninput = (event) => { if (!event.target.value) this.choose(""); };
  }

  colourBy(mode) {
    this.mode = mode;
    for (const entry of document.querySelectorAll(".key .cause")) entry.hidden = mode === "job";
    for (const entry of document.querySelectorAll(".key .job")) entry.hidden = mode !== "job";
    this.draw();
  }

  boxes(button) { // dragging either draws a zoom box or moves
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", on);
    for (const { figure } of this.runs)
      for (const tool of figure.toolbar.tools) {
        if (tool.type === "BoxZoomTool") tool.active = on;
        if (tool.type === "PanTool") tool.active = !on;
      }
  }

  show(x0, x1, y0, y1) {
    const { end, nodes } = this.data;
    this.x.setv({ start: Math.max(0, x0), end: Math.min(end, x1) });
    this.y.setv({ start: Math.min(nodes - 0.5, y1), end: Math.max(-0.5, y0) });
  }

  zoom(by) {
    const { x0, x1, y0, y1 } = this.view, xm = (x0 + x1) / 2, ym = (y0 + y1) / 2;
    const xh = Math.max(500, by * (x1 - x0) / 2), yh = Math.max(1, by * (y1 - y0) / 2);
    this.show(xm - xh, xm + xh, ym - yh, ym + yh);
  }

  // Shows the first decision at which the two policies differ.
  showDifference() {
    const { at, around, lines } = this.data.difference;
    this.choose("");
    byId("status").textContent = lines.join("\n");
    if (at === null) return;
    for (const { figure } of this.runs)
      figure.center.find(({ name }) => name === "parting").setv({ location: at, visible: true });
    this.show(at - around, at + around, -0.5, this.data.nodes - 0.5);
  }

  // Chooses the job of an attempt, if a run recorded its plans.
  explain(run, i) {
    if (i >= 0 && this.runs.some(({ stories }) => stories)) this.choose(run.jobs[run.job[i]]);
  }

  // Highlights a job in all runs, shows its stories, and zooms to it.
  choose(name, go = false) {
    const matches = [], box = { x0: Infinity, x1: -Infinity, y0: Infinity, y1: -Infinity };
    for (const run of this.runs) {
      run.chosen = name !== "" && run.jobNumber.has(name) ? run.jobNumber.get(name) : -1;
      if (run.chosen >= 0) matches.push(`${run.name}: ${this.extent(run, box)}`);
    }
    const text = matches.length ? `Job ${name} – ${matches.join("; ")}` : `There is no job ${name}.`;
    const recorded = this.runs.filter(({ stories, chosen }) => stories && chosen >= 0);
    const stories = recorded.map((run) => `\n${run.name}: ${run.stories[run.chosen]}`);
    byId("status").textContent = name === "" ? "" : [text, ...stories].join("\n");
    if (go && box.x1 > box.x0) {
      const dx = 0.15 * (box.x1 - box.x0) + 1000, dy = 0.25 * (box.y1 - box.y0) + 2;
      this.show(box.x0 - dx, box.x1 + dx, box.y0 - dy, box.y1 + dy);
    }
    this.draw();
  }

  // Widens the box by the attempts of the chosen job, and returns how they ended.
  extent(run, box) {
    const ends = new Map();
    let count = 0;
    for (let i = 0; i < run.job.length; i++) {
      if (run.job[i] !== run.chosen) continue;
      const { name } = run.causes[run.cause[i]];
      ends.set(name, (ends.get(name) || 0) + 1);
      count++;
      if (i >= run.ran) continue;
      box.x0 = Math.min(box.x0, run.start[i]); box.x1 = Math.max(box.x1, run.end[i]);
      box.y0 = Math.min(box.y0, run.first[run.offset[i]]);
      box.y1 = Math.max(box.y1, run.last[run.offset[i + 1] - 1]);
    }
    const words = [...ends].map(([name, times]) => (times > 1 ? `${times} × ${name}` : name));
    return `${count} attempt${count > 1 ? "s" : ""} (${words.join(", ")})`;
  }

  // Sets the number of ticks according to the width of the axis.
  setTicks() {
    const figures = [...this.runs.map((run) => run.figure), ...this.series.map(([, f]) => f)];
    for (const figure of figures) {
      const { ticker } = figure.below[0]; // a composite ticker
      for (const part of [ticker, ...ticker.tickers])
        part.desired_num_ticks = Math.max(2, Math.min(8, Math.floor(figure.inner_width / 90)));
    }
  }

  drawSoon() { // once per event, before Bokeh paints
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => {
      this.waiting = false;
      if (this.isDrawn()) this.drawWhenStill(); // Bokeh moves the image
      else this.draw();
    });
  }

  // Returns whether the entire view has been drawn at this size.
  isDrawn() {
    const { view, drawn } = this, { inner_width, inner_height } = this.runs[0].figure;
    return drawn !== undefined && drawn.width === inner_width && drawn.height === inner_height
      && alike(drawn.dx, view.x1 - view.x0) && alike(drawn.dy, view.y1 - view.y0)
      && drawn.x0 <= view.x0 && view.x1 <= drawn.x1 && drawn.y0 <= view.y0 && view.y1 <= drawn.y1;
  }

  // Returns the area to draw. Except while zooming, it exceeds the view, so that moving needs no
  // drawing.
  around({ x0, x1, y0, y1 }) {
    const { inner_width: width, inner_height: height } = this.runs[0].figure;
    const dx = x1 - x0, dy = y1 - y0, before = this.drawn;
    const zooms = this.detail === 0.5 && before && !(alike(before.dx, dx) && alike(before.dy, dy));
    const margin = zooms ? 0 : 0.5, { end, nodes } = this.data;
    return {
      width, height, dx, dy,
      x0: Math.max(Math.min(0, x0), x0 - margin * dx), x1: Math.min(Math.max(end, x1), x1 + margin * dx),
      y0: Math.max(Math.min(-0.5, y0), y0 - margin * dy),
      y1: Math.min(Math.max(nodes - 0.5, y1), y1 + margin * dy),
    };
  }

  draw() {
    if (!(this.runs[0].figure.inner_width > 0)) return; // not laid out yet
    const began = performance.now();
    if (this.width !== this.runs[0].figure.inner_width) {
      this.width = this.runs[0].figure.inner_width;
      this.setTicks();
    }
    this.drawn = this.around(this.view);
    for (const run of this.runs) run.draw(this.view, this.drawn, this.mode, this.detail || 1);
    for (const [name, figure] of this.series) this.drawSeries(name, figure);
    this.drawMs = performance.now() - began;
    this.frames++;
    if (!this.ready) { this.ready = performance.now(); document.body.dataset.ready = "yes"; }
    this.settle();
  }

  // If drawing is slow, draws half the detail while moving and full detail when still.
  settle() {
    clearTimeout(this.timer);
    if (!this.detail && this.drawMs > 30) this.detail = 0.5;
    if (this.detail) this.drawWhenStill();
  }

  drawWhenStill() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.drawInFull(), 180);
  }

  drawInFull() {
    this.detail = 1;
    this.draw();
    this.detail = 0;
    clearTimeout(this.timer);
  }

  drawSeries(name, figure) {
    const { x0, x1, dx } = this.drawn;
    const columns = Math.max(50, Math.round(figure.inner_width * (x1 - x0) / dx));
    this.runs.forEach((run, k) => {
      figure.renderers[k].data_source.data = stepLine(run.series[name], x0, x1, columns);
    });
  }

  linesAt(run, x, y) {
    const { x0, x1, y0, y1 } = this.view, node = Math.round(y);
    const { inner_width: width, inner_height: height } = run.figure;
    const mark = run.markAt(x, y, (x1 - x0) / width, (y1 - y0) / height);
    if (mark) return markLines(run, mark);
    const i = run.attemptAt(x, node);
    if (i >= 0) return [...attemptLines(run, i), `node ${nodeText(node)} at ${clockTime(x)}`];
    const k = run.outageAt(x, node), between = (a, b) => `${clockTime(a)} to ${clockTime(b)}`;
    if (k >= 0) return [`Node ${nodeText(node)} down`, between(run.down[k], run.up[k])];
    const h = run.holdAt(x, node);
    return h < 0 ? null
      : [`Node ${nodeText(node)} held for job ${run.heldFor[h]}`, between(run.heldFrom[h], run.heldTo[h])];
  }

  valuesAt(name, x) {
    return [clockTime(x), ...this.runs.map((run) => {
      const { at, value } = run.series[name], place = after(at, x) - 1;
      const now = place < 0 ? 0 : value[place];
      const share = name === "queued" ? "" : ` (${(100 * now / run.nodes).toFixed(1)} %)`;
      return `${run.name}: ${now}${share}`;
    })];
  }

  // Shows lines next to the pointer, within the window. Uses plain text, as names are untrusted.
  tip(lines) {
    const tip = byId("tip");
    tip.hidden = !lines;
    if (!lines) return;
    const element = (text) => Object.assign(document.createElement("div"), { textContent: text });
    tip.replaceChildren(...lines.map(element));
    const { x, y } = this.pointer, { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
    tip.style.left = `${Math.min(Math.max(8, left), innerWidth - width - 8)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }
}

const alike = (a, b) => Math.abs(a - b) <= 1e-6 * Math.abs(b);

async function begin() {
  const data = await unpacked(byId("data").textContent);
  for (;;) { // Bokeh lays out its figures after the page is loaded
    const doc = window.Bokeh && Bokeh.documents[0];
    if (doc && doc.is_idle) return new Explorer(data, doc);
    await new Promise((resume) => setTimeout(resume, 15));
  }
}

begin().then((explorer) => { window.explorer = explorer; }, (error) => {
  byId("status").textContent = "DecompressionStream" in window
    ? `Cannot show this page: ${error.message}` : "This page requires a newer browser.";
  console.error(error);
});
