// SPDX-License-Identifier: Apache-2.0
"use strict";
// Unpacks the data of a page, finds spans by time, and draws step lines from series. Times are in
// milliseconds.

async function unpacked(text) {
  const zipped = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const headLength = new DataView(bytes.buffer).getUint32(0, true);
  let at = 4 + headLength;
  const kinds = { Float64Array, Int32Array, Uint8Array };
  // Each array has the lowest bytes of all its numbers first, then the next bytes.
  const unshuffled = (kind, length) => {
    const width = kinds[kind].BYTES_PER_ELEMENT, plain = new Uint8Array(width * length);
    for (let b = 0; b < width; b++)
      for (let i = 0, from = at + b * length; i < length; i++) plain[i * width + b] = bytes[from + i];
    at += width * length;
    return new kinds[kind](plain.buffer);
  };
  const filled = (value) => { // arrays are in packing order
    if (value === null || typeof value !== "object") return value;
    if (value.array) return unshuffled(value.array, value.length);
    for (const key of Object.keys(value)) value[key] = filled(value[key]);
    return value;
  };
  return filled(JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))));
}

const BLOCK = 128;

// Finds spans that overlap a time interval. Spans are sorted by start, and the latest end of each
// BLOCK of spans is stored.
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

// Returns the number of ascending values that are at most x.
function after(values, x, count = values.length) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

// Returns a step line from x0 to x1. If there are more steps than pixels, each pixel has a line
// from its smallest to its largest value.
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
