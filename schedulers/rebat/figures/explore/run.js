// SPDX-License-Identifier: Apache-2.0
// A run. It draws the visible part and its surroundings into an image with the resolution of the
// screen, so that the cost depends on pixels and not on jobs. It also returns the item at a point.
// x is time, y the number of a node, from the top.

class Run {
  constructor(data, causes, figure) {
    Object.assign(this, data);
    this.causes = causes; this.figure = figure; this.chosen = -1; this.canvas = null;
    this.attempts = new Spans(this.start, this.end, this.ran);
    this.outages = new Spans(this.down, this.up, this.down.length);
    this.holds = new Spans(this.heldFrom, this.heldTo, this.heldFrom.length);
    this.jobNumber = new Map(this.jobs.map((name, number) => [name, number]));
    this.image = figure.renderers[0].data_source;
    this.names = figure.renderers[1].data_source;
    this.marks = this.allMarks();
    this.radius = {}; // current radius of marks in pixels
  }

  // Returns failures, steals and moves, sorted by time.
  allMarks() {
    const marks = [];
    this.failedAt.forEach((at, k) => marks.push({ at, node: this.failedNode[k], kind: "failure" }));
    for (let i = 0; i < this.ran; i++) {
      const kind = this.causes[this.cause[i]].name;
      if (SIGNS[kind]) marks.push({ at: this.end[i], node: this.middle(i), kind, attempt: i });
    }
    marks.sort((a, b) => a.at - b.at);
    this.markTimes = Float64Array.from(marks, (mark) => mark.at);
    return marks;
  }

  // Returns the middle of the largest block of an attempt's nodes.
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
    return this.shaded(i, mode === "job" ? PALETTE[this.job[i] % PALETTE.length]
      : this.causes[this.cause[i]].rgb);
  }

  // Returns the colour of lost work at the end of an attempt; null: hatched in its own colour.
  lostColour(i, mode) {
    const { lostRgb } = this.causes[this.cause[i]];
    return mode === "job" || !lostRgb ? null : this.shaded(i, lostRgb);
  }

  // Returns a paler colour if another job is chosen.
  shaded(i, plain) {
    return this.chosen < 0 || this.job[i] === this.chosen ? plain : mixed(plain, WHITE, 0.75);
  }

  draw(shown, view, mode, detail) {
    const { figure } = this, ratio = detail * (window.devicePixelRatio || 1);
    const across = (view.x1 - view.x0) / view.dx, down = (view.y1 - view.y0) / view.dy;
    const width = Math.max(1, Math.round(figure.inner_width * ratio * across));
    const height = Math.max(1, Math.round(figure.inner_height * ratio * down));
    if (!this.canvas || this.canvas.width !== width || this.canvas.height !== height)
      this.canvas = new Canvas(width, height);
    const canvas = this.canvas, sx = width / (view.x1 - view.x0), sy = height / (view.y1 - view.y0);
    const place = { view, shown, sx, sy, ratio, canvas, names: { x: [], y: [], text: [] } };
    canvas.clear();
    this.attempts.meet(view.x0, view.x1, (i) => this.drawAttempt(i, place, mode));
    this.outages.meet(view.x0, view.x1, (k) => canvas.fill(
      (this.down[k] - view.x0) * sx, (this.up[k] - view.x0) * sx,
      (this.downFirst[k] - 0.5 - view.y0) * sy, (this.downLast[k] + 0.5 - view.y0) * sy, BLACK));
    this.holds.meet(view.x0, view.x1, (k) => canvas.fill(
      (this.heldFrom[k] - view.x0) * sx, (this.heldTo[k] - view.x0) * sx,
      (this.heldFirst[k] - 0.5 - view.y0) * sy, (this.heldLast[k] + 0.5 - view.y0) * sy, HELD));
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
    const { view, sx, sy, canvas, ratio } = place;
    const colour = this.colour(i, mode), lost = this.lostColour(i, mode);
    let x0 = (this.start[i] - view.x0) * sx, x1 = (this.end[i] - view.x0) * sx;
    const keptEnd = x1 - this.tail[i] * sx, chosen = this.job[i] === this.chosen;
    const cycle = this.firstPeriod[i] >= 0 ? this.period[i] + this.cost[i] : 0;
    const dark = cycle * sx > 6 * ratio ? mixed(colour, BLACK, 0.5) : null;
    const gap = x1 - x0 > 6 * ratio ? 0.5 * ratio : 0;
    x0 += gap; x1 -= gap;
    if (chosen && x1 - x0 < 3 * ratio) x1 = x0 + 3 * ratio;
    for (let k = this.offset[i]; k < this.offset[i + 1]; k++) {
      let y0 = (this.first[k] - 0.5 - view.y0) * sy, y1 = (this.last[k] + 0.5 - view.y0) * sy;
      if (y1 <= 0 || y0 >= canvas.height) continue;
      const inset = y1 - y0 > 6 * ratio ? 0.5 * ratio : 0;
      y0 += inset; y1 -= inset;
      if (chosen && y1 - y0 < 3 * ratio) y1 = y0 + 3 * ratio;
      if (this.tail[i] > 0) {
        if (keptEnd > x0) canvas.fill(x0, keptEnd, y0, y1, colour, false, chosen);
        canvas.fill(Math.max(keptEnd, x0), x1, y0, y1, lost || colour, !lost, chosen);
      } else canvas.fill(x0, x1, y0, y1, colour, false, chosen);
      if (dark) this.drawCheckpoints(i, place, y0, y1, dark);
    }
    if (sx * (this.end[i] - this.start[i]) > 40 * ratio) this.nameAttempt(i, place);
  }

  // Draws checkpoints at the times of the checkpoint pattern, if they are far enough apart.
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

  nameAttempt(i, { shown: view, sy, ratio, names }) {
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

  // Draws marks, with a smaller size if there are many.
  drawMarks({ view, sx, sy, ratio, canvas }) {
    const from = after(this.markTimes, view.x0 - 1), to = after(this.markTimes, view.x1);
    const seen = this.marks.slice(from, to).filter((mark) => this.inRows(mark, view));
    for (const [kind, sign] of Object.entries(SIGNS)) {
      const own = seen.filter((mark) => mark.kind === kind);
      this.radius[kind] = own.length < 200 ? 4 : own.length < 500 ? 2 : 1;
      const radius = Math.round(this.radius[kind] * ratio);
      for (const { at, node } of own)
        canvas.stamp((at - view.x0) * sx, (node - view.y0) * sy, radius, sign.inside, sign.colour);
    }
  }

  inRows(mark, view) { return mark.node >= view.y0 - 0.5 && mark.node <= view.y1 + 0.5; }

  // Returns the attempt at a point, or -1.
  attemptAt(x, node) {
    let attempt = -1;
    this.attempts.meet(x, x, (i) => {
      for (let k = this.offset[i]; k < this.offset[i + 1]; k++)
        if (this.first[k] <= node && node <= this.last[k] && x < this.end[i]) attempt = i;
    });
    return attempt;
  }

  // Returns the mark at a point, or undefined. dx, dy: milliseconds and nodes per pixel.
  markAt(x, y, dx, dy) {
    let best, least = Infinity;
    const from = after(this.markTimes, x - 8 * dx), to = after(this.markTimes, x + 8 * dx);
    for (const mark of this.marks.slice(from, to)) {
      const far = Math.hypot((mark.at - x) / dx, (mark.node - y) / dy);
      if (far < least && far <= this.radius[mark.kind] + 3) { least = far; best = mark; }
    }
    return best;
  }

  outageAt(x, node) { return this.spanAt(this.outages, this.downFirst, this.downLast, x, node); }

  holdAt(x, node) { return this.spanAt(this.holds, this.heldFirst, this.heldLast, x, node); }

  // Returns the span of nodes at a point, or -1.
  spanAt(spans, first, last, x, node) {
    let span = -1;
    spans.meet(x, x, (k) => { if (first[k] <= node && node <= last[k]) span = k; });
    return span;
  }
}
