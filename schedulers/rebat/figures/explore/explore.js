"use strict";
// Explores runs: draws what lies in view into images of the size of the screen, so that the cost
// goes with the pixels and not with the jobs. Bokeh has the axes, panning and zooming.
// Times are milliseconds; x is time, y the number of a node, from the top.

const byId = (id) => document.getElementById(id);

// ---- data -----------------------------------------------------------------------------------

async function unpacked(text) {
  const zipped = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const headLength = new DataView(bytes.buffer).getUint32(0, true);
  let at = 4 + headLength;
  const kinds = { Float64Array, Int32Array, Uint8Array };
  // Each array comes with the lowest bytes of all its numbers first, then the next ones.
  const unshuffled = (kind, length) => {
    const width = kinds[kind].BYTES_PER_ELEMENT, plain = new Uint8Array(width * length);
    for (let b = 0; b < width; b++)
      for (let i = 0, from = at + b * length; i < length; i++) plain[i * width + b] = bytes[from + i];
    at += width * length;
    return new kinds[kind](plain.buffer);
  };
  const filled = (value) => { // in the order in which they were packed
    if (value === null || typeof value !== "object") return value;
    if (value.array) return unshuffled(value.array, value.length);
    for (const key of Object.keys(value)) value[key] = filled(value[key]);
    return value;
  };
  return filled(JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))));
}

const BLOCK = 128;

// What makes it quick to find the spans that meet a stretch of time: they are sorted by start, and
// of each BLOCK of them the latest end is known.
class Spans {
  constructor(start, end, count) {
    this.start = start; this.end = end; this.count = count;
    this.latest = new Float64Array(Math.ceil(count / BLOCK)).fill(-Infinity);
    for (let i = 0; i < count; i++) {
      const b = (i / BLOCK) | 0;
      if (end[i] > this.latest[b]) this.latest[b] = end[i];
    }
  }

  meet(from, to, visit) {
    const stop = after(this.start, to, this.count);
    for (let b = 0; b * BLOCK < stop; b++) {
      if (this.latest[b] < from) continue;
      const last = Math.min((b + 1) * BLOCK, stop);
      for (let i = b * BLOCK; i < last; i++) if (this.end[i] >= from) visit(i);
    }
  }
}

// How many of the ascending values are at most x.
function after(values, x, count = values.length) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

// ---- drawing --------------------------------------------------------------------------------

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const WHITE = [255, 255, 255], BLACK = [0, 0, 0];
const mixed = (a, b, share) => a.map((v, k) => v * (1 - share) + b[k] * share);
const PALETTE = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777"].map(rgb);

// Sums of colour and of cover by pixel: what several rectangles leave in one pixel is their mean,
// weighted by area, as a camera would see it.
class Canvas {
  constructor(width, height) {
    this.width = width; this.height = height;
    this.sums = new Float32Array(4 * width * height);
    this.pixels = new Uint32Array(width * height);
  }

  clear() { this.sums.fill(0); }

  // A rectangle in pixels, with fractions; "hatched" leaves out every other diagonal, "over" hides
  // what lies below.
  fill(x0, x1, y0, y1, colour, hatched = false, over = false) {
    const { width, height } = this;
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > width) x1 = width;
    if (y1 > height) y1 = height;
    if (x1 <= x0 || y1 <= y0) return;
    const left = x0 | 0, right = Math.ceil(x1), last = right - 1, bottom = Math.ceil(y1);
    const leftPart = last === left ? x1 - x0 : left + 1 - x0, rightPart = x1 - last;
    for (let j = y0 | 0; j < bottom; j++) {
      const part = (j + 1 < y1 ? j + 1 : y1) - (j > y0 ? j : y0);
      for (let i = left, at = 4 * (j * width + left); i < right; i++, at += 4) {
        const w = i === left ? part * leftPart : i === last ? part * rightPart : part;
        this.add(at, w, hatched && (i + j) % 8 < 4 ? WHITE : colour, over);
      }
    }
  }

  add(at, w, colour, over) {
    const sums = this.sums;
    if (over)
      for (let k = at; k < at + 4; k++) sums[k] *= 1 - w;
    sums[at] += w * colour[0];
    sums[at + 1] += w * colour[1];
    sums[at + 2] += w * colour[2];
    sums[at + 3] += w;
  }

  develop() {
    const { sums, pixels } = this;
    for (let k = 0, at = 0; k < pixels.length; k++, at += 4) {
      const cover = sums[at + 3];
      if (cover === 0) { pixels[k] = 0; continue; }
      const scale = cover > 1 ? 1 / cover : 1, white = 255 * (1 - Math.min(cover, 1));
      pixels[k] = 0xff000000 | ((sums[at + 2] * scale + white) << 16)
        | ((sums[at + 1] * scale + white) << 8) | (sums[at] * scale + white);
    }
    return pixels;
  }

  // A sign of "radius" pixels with a white edge, around a point.
  stamp(x, y, radius, inside, colour) {
    const paint = 0xff000000 | (colour[2] << 16) | (colour[1] << 8) | colour[0];
    x = Math.round(x); y = Math.round(y);
    const edge = radius >= 2 ? 1 : 0;
    for (let dy = -radius - edge; dy <= radius + edge; dy++)
      for (let dx = -radius - edge; dx <= radius + edge; dx++) {
        const i = x + dx, j = y + dy;
        if (i < 0 || j < 0 || i >= this.width || j >= this.height) continue;
        if (inside(dx, dy, radius)) this.pixels[j * this.width + i] = paint;
        else if (edge && near(dx, dy, radius, inside)) this.pixels[j * this.width + i] = 0xffffffff;
      }
  }
}

const near = (dx, dy, r, inside) =>
  inside(dx + 1, dy, r) || inside(dx - 1, dy, r) || inside(dx, dy + 1, r) || inside(dx, dy - 1, r);
const within = (dx, dy, r) => Math.abs(dx) <= r && Math.abs(dy) <= r;
const SIGNS = {
  failure: { colour: BLACK, inside: (dx, dy, r) => within(dx, dy, r) && Math.abs(Math.abs(dx) - Math.abs(dy)) <= (r > 2 ? 0.5 : 0) },
  stolen: { colour: rgb("#aa3377"), inside: (dx, dy, r) => within(dx, dy, r) && 2 * Math.abs(dx) <= r - dy },
  moved: { colour: rgb("#1f8fb0"), inside: (dx, dy, r) => within(dx, dy, r) && 2 * Math.abs(dy) <= r - dx },
};

// ---- one run --------------------------------------------------------------------------------

class Run {
  constructor(data, causes, figure) {
    Object.assign(this, data);
    this.causes = causes; this.figure = figure; this.chosen = -1; this.canvas = null;
    this.attempts = new Spans(this.start, this.end, this.ran);
    this.outages = new Spans(this.down, this.up, this.down.length);
    this.jobNumber = new Map(this.jobs.map((name, number) => [name, number]));
    this.image = figure.renderers[0].data_source;
    this.names = figure.renderers[1].data_source;
    this.marks = this.allMarks();
  }

  // Failures, steals and moves, by date.
  allMarks() {
    const marks = [];
    this.failedAt.forEach((at, k) => marks.push({ at, node: this.failedNode[k], kind: "failure" }));
    for (let i = 0; i < this.ran; i++) {
      const kind = this.causes[this.cause[i]].name;
      if (SIGNS[kind]) marks.push({ at: this.end[i], node: this.middle(i), kind, attempt: i });
    }
    marks.sort((a, b) => a.at - b.at);
    this.markDates = Float64Array.from(marks, (mark) => mark.at);
    return marks;
  }

  // The middle of the largest block of an attempt's nodes.
  middle(i) {
    const k = this.largest(i);
    return (this.first[k] + this.last[k]) / 2;
  }

  largest(i) {
    let best = this.offset[i];
    for (let k = best; k < this.offset[i + 1]; k++)
      if (this.last[k] - this.first[k] > this.last[best] - this.first[best]) best = k;
    return best;
  }

  colour(i, mode) {
    const plain = mode === "job" ? PALETTE[this.job[i] % PALETTE.length]
      : this.causes[this.cause[i]].rgb;
    return this.chosen < 0 || this.job[i] === this.chosen ? plain : mixed(plain, WHITE, 0.75);
  }

  draw(view, mode, detail) {
    const { figure } = this, ratio = detail * (window.devicePixelRatio || 1);
    const width = Math.max(1, Math.round(figure.inner_width * ratio));
    const height = Math.max(1, Math.round(figure.inner_height * ratio));
    if (!this.canvas || this.canvas.width !== width || this.canvas.height !== height)
      this.canvas = new Canvas(width, height);
    const canvas = this.canvas, sx = width / (view.x1 - view.x0), sy = height / (view.y1 - view.y0);
    const place = { view, sx, sy, ratio, canvas, names: { x: [], y: [], text: [] } };
    canvas.clear();
    this.attempts.meet(view.x0, view.x1, (i) => this.drawAttempt(i, place, mode));
    this.outages.meet(view.x0, view.x1, (k) => canvas.fill(
      (this.down[k] - view.x0) * sx, (this.up[k] - view.x0) * sx,
      (this.downFirst[k] - 0.5 - view.y0) * sy, (this.downLast[k] + 0.5 - view.y0) * sy, BLACK));
    canvas.develop();
    this.drawMarks(place);
    const ndarray = Bokeh.require("core/util/ndarray").ndarray;
    this.image.data = {
      image: [ndarray(canvas.pixels, { dtype: "uint32", shape: [height, width] })],
      x: [view.x0], y: [view.y1], dw: [view.x1 - view.x0], dh: [view.y1 - view.y0],
    };
    if (place.names.x.length || this.names.data.x.length) this.names.data = place.names;
  }

  drawAttempt(i, place, mode) {
    const { view, sx, sy, canvas, ratio } = place, colour = this.colour(i, mode);
    let x0 = (this.start[i] - view.x0) * sx, x1 = (this.end[i] - view.x0) * sx;
    const kept = x1 - this.tail[i] * sx, found = this.job[i] === this.chosen;
    const cycle = this.firstPeriod[i] >= 0 ? this.period[i] + this.cost[i] : 0;
    const dark = cycle * sx > 6 * ratio ? mixed(colour, BLACK, 0.5) : null;
    const gap = x1 - x0 > 6 * ratio ? 0.5 * ratio : 0;
    x0 += gap; x1 -= gap;
    if (found && x1 - x0 < 3 * ratio) x1 = x0 + 3 * ratio;
    for (let k = this.offset[i]; k < this.offset[i + 1]; k++) {
      let y0 = (this.first[k] - 0.5 - view.y0) * sy, y1 = (this.last[k] + 0.5 - view.y0) * sy;
      if (y1 <= 0 || y0 >= canvas.height) continue;
      const inset = y1 - y0 > 6 * ratio ? 0.5 * ratio : 0;
      y0 += inset; y1 -= inset;
      if (found && y1 - y0 < 3 * ratio) y1 = y0 + 3 * ratio;
      if (this.tail[i] > 0) {
        if (kept > x0) canvas.fill(x0, kept, y0, y1, colour, false, found);
        canvas.fill(Math.max(kept, x0), x1, y0, y1, colour, true, found);
      } else canvas.fill(x0, x1, y0, y1, colour, false, found);
      if (dark) this.drawCheckpoints(i, place, y0, y1, dark);
    }
    if (sx * (this.end[i] - this.start[i]) > 40 * ratio) this.nameAttempt(i, place);
  }

  // Those that are wide enough apart to be seen, at the dates that the checkpoint pattern gives.
  drawCheckpoints(i, { view, sx, canvas, ratio }, y0, y1, colour) {
    const cycle = this.period[i] + this.cost[i];
    const begin = this.start[i] + this.recovery[i] + this.firstPeriod[i];
    const until = Math.min(this.end[i], view.x1);
    let at = begin + Math.max(0, Math.floor((view.x0 - begin) / cycle)) * cycle;
    for (; at < until; at += cycle) {
      const x = (at - view.x0) * sx, wide = Math.max(this.cost[i] * sx, ratio);
      canvas.fill(x, Math.min(x + wide, (this.end[i] - view.x0) * sx), y0, y1, colour, false, true);
    }
  }

  nameAttempt(i, { view, sy, ratio, names }) {
    const k = this.largest(i);
    if (this.chosen >= 0 && this.job[i] !== this.chosen) return;
    if (names.x.length >= 300 || (this.last[k] - this.first[k] + 1) * sy < 13 * ratio) return;
    const x0 = Math.max(this.start[i], view.x0), x1 = Math.min(this.end[i], view.x1);
    const y0 = Math.max(this.first[k] - 0.5, view.y0), y1 = Math.min(this.last[k] + 0.5, view.y1);
    const text = this.label(i), perPixel = (view.x1 - view.x0) / this.figure.inner_width;
    if (y1 <= y0 || (x1 - x0) / perPixel < 7 * text.length + 6) return;
    names.x.push((x0 + x1) / 2); names.y.push((y0 + y1) / 2); names.text.push(text);
  }

  label(i) {
    return this.jobs[this.job[i]] + (this.number[i] ? `#${this.number[i]}` : "");
  }

  // Smaller ones where there are many.
  drawMarks({ view, sx, sy, ratio, canvas }) {
    const from = after(this.markDates, view.x0 - 1), to = after(this.markDates, view.x1);
    const seen = this.marks.slice(from, to).filter((mark) => this.inRows(mark, view));
    for (const [kind, sign] of Object.entries(SIGNS)) {
      const own = seen.filter((mark) => mark.kind === kind);
      const radius = Math.round((own.length < 200 ? 4 : own.length < 500 ? 2 : 1) * ratio);
      for (const mark of own)
        canvas.stamp((mark.at - view.x0) * sx, (mark.node - view.y0) * sy, radius, sign.inside, sign.colour);
    }
  }

  inRows(mark, view) { return mark.node >= view.y0 - 0.5 && mark.node <= view.y1 + 0.5; }

  // The attempt at a point, or -1.
  attemptAt(x, node) {
    let found = -1;
    this.attempts.meet(x, x, (i) => {
      for (let k = this.offset[i]; k < this.offset[i + 1]; k++)
        if (this.first[k] <= node && node <= this.last[k] && x < this.end[i]) found = i;
    });
    return found;
  }

  // The nearest sign within so many milliseconds and nodes, or undefined.
  markAt(x, y, dx, dy) {
    let best, least = 1;
    for (let k = after(this.markDates, x - dx); k < this.marks.length && this.markDates[k] <= x + dx; k++) {
      const mark = this.marks[k], far = Math.hypot((mark.at - x) / dx, (mark.node - y) / dy);
      if (far < least) { least = far; best = mark; }
    }
    return best;
  }

  outageAt(x, node) {
    let found = -1;
    this.outages.meet(x, x, (k) => {
      if (this.downFirst[k] <= node && node <= this.downLast[k]) found = k;
    });
    return found;
  }
}

// ---- words ----------------------------------------------------------------------------------

function date(ms) { // 3 d 04:05:06
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
    `${date(run.start[i])} to ${date(run.end[i])}, ${span(run.end[i] - run.start[i])}`,
    `waited ${span(run.start[i] - run.queued[i])}; submitted ${date(run.submitted[i])}`,
    `ended: ${cause}${why ? (cause === "stolen" ? `, its nodes taken ${why}` : ` (${why})`) : ""}`,
  ];
  if (run.tail[i] > 0) lines.push(`lost ${span(run.tail[i])} of each node`);
  if (run.firstPeriod[i] >= 0)
    lines.push(`checkpoints every ${span(run.period[i])}, ${span(run.cost[i])} each`
      + (run.recovery[i] ? `; recovery ${span(run.recovery[i])}` : ""));
  return lines;
}

function markLines(run, mark) {
  if (mark.kind === "failure") return [`Node ${mark.node} failed`, date(mark.at)];
  return attemptLines(run, mark.attempt);
}

// ---- the page -------------------------------------------------------------------------------

class Explorer {
  constructor(data, doc) {
    this.data = data;
    for (const cause of data.causes) cause.rgb = rgb(cause.colour);
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
    for (const property of [this.x.properties.start, this.x.properties.end, this.y.properties.start, this.y.properties.end])
      property.change.connect(soon);
    for (const run of this.runs) {
      run.figure.properties.inner_width.change.connect(soon);
      run.figure.properties.inner_height.change.connect(soon);
      this.hear(run.figure, (event) => this.linesAt(run, event.x, event.y));
    }
    for (const [name, figure] of this.series) this.hear(figure, (event) => this.valuesAt(name, event.x));
    const follow = (e) => { this.pointer = { x: e.clientX, y: e.clientY, touch: e.pointerType === "touch" }; };
    for (const name of ["pointermove", "pointerdown"]) document.addEventListener(name, follow, true);
    this.buttons();
  }

  hear(figure, lines) {
    const show = (event) => this.tip(lines(event));
    figure.on_event("mousemove", show);
    figure.on_event("tap", show);
    figure.on_event("mouseleave", () => this.pointer.touch || this.tip(null)); // a finger always leaves
    figure.on_event("panstart", () => this.tip(null));
  }

  buttons() {
    byId("whole").onclick = () => { this.choose(""); this.show(0, this.data.end, -0.5, this.data.nodes - 0.5); };
    byId("in").onclick = () => this.zoom(0.5);
    byId("out").onclick = () => this.zoom(2);
    byId("box").onclick = (event) => this.boxes(event.currentTarget);
    byId("colours").onchange = (event) => { this.mode = event.target.value; this.draw(); };
    byId("search").onsubmit = (event) => { event.preventDefault(); this.choose(byId("job").value.trim(), true); };
    byId("job").oninput = (event) => { if (!event.target.value) this.choose(""); };
  }

  boxes(button) { // dragging draws a box to zoom to, or moves
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

  // Pick a job out in all runs, and go there.
  choose(name, go = false) {
    const found = [], box = { x0: Infinity, x1: -Infinity, y0: Infinity, y1: -Infinity };
    for (const run of this.runs) {
      run.chosen = name !== "" && run.jobNumber.has(name) ? run.jobNumber.get(name) : -1;
      if (run.chosen >= 0) found.push(`${run.name}: ${this.extent(run, box)}`);
    }
    byId("told").textContent = name === "" ? "" : found.length ? `Job ${name} – ${found.join("; ")}` : `No job ${name}.`;
    if (go && box.x1 > box.x0) {
      const dx = 0.15 * (box.x1 - box.x0) + 1000, dy = 0.25 * (box.y1 - box.y0) + 2;
      this.show(box.x0 - dx, box.x1 + dx, box.y0 - dy, box.y1 + dy);
    }
    this.draw();
  }

  // Widens the box by the attempts of the chosen job; says how they ended.
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

  // So many dates on the axis as there is room for.
  tickWell() {
    for (const figure of [...this.runs.map((run) => run.figure), ...this.series.map(([, one]) => one)])
      for (const ticker of figure.below[0].ticker.tickers)
        ticker.desired_num_ticks = Math.max(2, Math.min(8, Math.floor(figure.inner_width / 90)));
  }

  drawSoon() { // once for all changes of one event, and before Bokeh paints
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    if (!(this.runs[0].figure.inner_width > 0)) return; // not laid out yet
    const began = performance.now();
    if (this.width !== this.runs[0].figure.inner_width) {
      this.width = this.runs[0].figure.inner_width;
      this.tickWell();
    }
    for (const run of this.runs) run.draw(this.view, this.mode, this.detail || 1);
    for (const [name, figure] of this.series) this.drawSeries(name, figure);
    this.drawMs = performance.now() - began;
    this.frames++;
    if (!this.ready) { this.ready = performance.now(); document.body.dataset.ready = "yes"; }
    this.settle();
  }

  // Where drawing takes long, half the detail while moving, and all of it when still.
  settle() {
    clearTimeout(this.timer);
    if (!this.detail && this.drawMs > 30) this.detail = 0.5;
    if (this.detail) this.timer = setTimeout(() => { this.detail = 1; this.draw(); this.detail = 0; clearTimeout(this.timer); }, 180);
  }

  drawSeries(name, figure) {
    const { x0, x1 } = this.view, columns = Math.max(50, figure.inner_width | 0);
    this.runs.forEach((run, k) => {
      figure.renderers[k].data_source.data = stepLine(run.series[name], x0, x1, columns);
    });
  }

  linesAt(run, x, y) {
    const { x0, x1, y0, y1 } = this.view, node = Math.round(y);
    const mark = run.markAt(x, y, 7 * (x1 - x0) / run.figure.inner_width, 7 * (y1 - y0) / run.figure.inner_height);
    if (mark) return markLines(run, mark);
    const i = run.attemptAt(x, node);
    if (i >= 0) return [...attemptLines(run, i), `node ${node} at ${date(x)}`];
    const k = run.outageAt(x, node);
    return k < 0 ? null : [`Node ${node} down`, `${date(run.down[k])} to ${date(run.up[k])}`];
  }

  valuesAt(name, x) {
    return [date(x), ...this.runs.map((run) => {
      const { at, value } = run.series[name], place = after(at, x) - 1;
      const share = name === "queued" ? "" : ` (${(100 * (value[place] || 0) / run.nodes).toFixed(1)} %)`;
      return `${run.name}: ${place < 0 ? 0 : value[place]}${share}`;
    })];
  }

  // Shows lines beside the pointer, within the window; text only, as names are foreign data.
  tip(lines) {
    const tip = byId("tip");
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    const { x, y } = this.pointer, { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
    tip.style.left = `${Math.min(Math.max(8, left), innerWidth - width - 8)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }
}

// A line of steps from x0 to x1; where steps are closer than pixels, from least to most of each.
function stepLine({ at, value }, x0, x1, columns) {
  const x = [], y = [], from = Math.max(0, after(at, x0) - 1), to = after(at, x1);
  let now = from < to ? value[from] : 0;
  x.push(Math.max(x0, 0)); y.push(now);
  if (to - from < 2 * columns) {
    for (let k = from + 1; k < to; k++) {
      x.push(at[k], at[k]); y.push(now, value[k]); now = value[k];
    }
  } else {
    const width = (x1 - x0) / columns;
    for (let c = 0, k = from + 1; c < columns && k < to; c++) {
      const until = x0 + (c + 1) * width, middle = until - width / 2;
      let least = now, most = now;
      for (; k < to && at[k] <= until; k++) {
        now = value[k];
        if (now < least) least = now;
        if (now > most) most = now;
      }
      x.push(middle, middle, middle); y.push(least, most, now);
    }
  }
  x.push(x1); y.push(now);
  return { x, y };
}

async function begin() {
  const data = await unpacked(byId("data").textContent);
  for (;;) { // Bokeh lays its figures out when the page is there
    const doc = window.Bokeh && Bokeh.documents[0];
    if (doc && doc.is_idle) return new Explorer(data, doc);
    await new Promise((resume) => setTimeout(resume, 15));
  }
}

begin().then((explorer) => { window.explorer = explorer; }, (error) => {
  byId("told").textContent = "DecompressionStream" in window
    ? `This page cannot be shown: ${error.message}` : "This page needs a newer browser.";
  console.error(error);
});
