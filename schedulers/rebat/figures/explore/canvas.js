// SPDX-License-Identifier: Apache-2.0
// Rectangles and marks in pixels.

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const WHITE = [255, 255, 255], BLACK = [0, 0, 0];
let HELD = WHITE;
const mixed = (a, b, share) => a.map((v, k) => v * (1 - share) + b[k] * share);
const PALETTE = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777"].map(rgb);

// Sums of colour and cover per pixel. A pixel with several rectangles has their mean colour,
// weighted by area.
class Canvas {
  constructor(width, height) {
    this.width = width; this.height = height;
    this.sums = new Float32Array(4 * width * height);
    this.pixels = new Uint32Array(width * height);
  }

  clear() { this.sums.fill(0); }

  // Fills a rectangle in fractional pixels. "hatched" omits every other diagonal, "over" covers
  // earlier rectangles.
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

  // Draws a mark of "radius" pixels with a white edge around a point.
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
  failure: { colour: BLACK, inside: (dx, dy, r) => within(dx, dy, r) && Math.abs(dx) === Math.abs(dy) },
  stolen: { colour: rgb("#aa3377"), inside: (dx, dy, r) => within(dx, dy, r) && 2 * Math.abs(dx) <= r - dy },
  moved: { colour: rgb("#1f8fb0"), inside: (dx, dy, r) => within(dx, dy, r) && 2 * Math.abs(dy) <= r - dx },
};
