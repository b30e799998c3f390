// Attention laid over an image: as light, which dims what is not attended to, or as colour over the image in grey.

import { colourTable } from "./colours.js";

/** The overlays to choose from. */
export const OVERLAYS = [
  ["light", "light (dims the rest)"],
  ["magma", "magma"],
  ["viridis", "viridis"],
  ["cividis", "cividis"],
];

// The spread of a cell in a smooth overlay, in cells; what is left of the brightness where there is no attention; the
// brightness to which dark parts that are attended to are raised; how much colour covers at most.
const SPREAD = 0.55;
const DIMMED = 0.25;
const MIN_BRIGHTNESS = 0.45;
const COVER = 0.75;
/** How many decoded images are kept, for views of the same image and for the next trace of a page. */
const MAX_IMAGES = 24;
const images = new Map();

/** The decoded image of a data URI, or null while it is being decoded: then `ready` is called later. */
export function decoded(uri, ready) {
  const state = images.get(uri) ?? decoding(uri);
  // The last to be used is the last to be forgotten.
  images.delete(uri);
  images.set(uri, state);
  for (const [old, { waiting }] of images) {
    if (images.size <= MAX_IMAGES) break;
    if (!waiting) images.delete(old);
  }
  state.waiting?.push(ready);
  return state.image;
}

/** An image that is being decoded, and who waits for it; the image of a URI that cannot be decoded stays null. */
function decoding(uri) {
  const image = new Image();
  image.src = uri;
  const state = { image: null, waiting: [] };
  const done = () => {
    const { waiting } = state;
    state.waiting = null;
    for (const ready of waiting) ready();
  };
  image
    .decode()
    .then(
      () => (state.image = image),
      () => {},
    )
    .finally(done);
  return state;
}

/** The pixels of an image at a size, ready for many overlays: {width, height, pixels, brighter}. */
export function prepared(image, width, height) {
  const pixels = drawn(image, width, height);
  return { width, height, pixels, brighter: brightened(image, pixels) };
}

/** A blank, grey image for traces without one. */
export function blank(width, height) {
  const pixels = new ImageData(width, height);
  pixels.data.fill(205);
  for (let place = 3; place < pixels.data.length; place += 4) pixels.data[place] = 255;
  return { width, height, pixels, brighter: pixels.data };
}

/** How much each pixel is attended to, from 0 to 1 at the strongest cell; smooth, or even within each cell. */
export function attentionField(weights, [rows, columns], width, height, smooth) {
  const down = spread(rows, height, smooth);
  const across = spread(columns, width, smooth);
  // Columns first: rows x width numbers, then all pixels.
  const half = new Float32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const weight = Math.max(0, weights[row * columns + column]);
      if (weight) for (let x = 0; x < width; x++) half[row * width + x] += weight * across[x * columns + column];
    }
  }
  const field = new Float32Array(width * height);
  let highest = 1e-12;
  for (let y = 0; y < height; y++) {
    for (let row = 0; row < rows; row++) {
      const share = down[y * rows + row];
      if (share > 1e-4) for (let x = 0; x < width; x++) field[y * width + x] += share * half[row * width + x];
    }
    for (let x = 0; x < width; x++) highest = Math.max(highest, field[y * width + x]);
  }
  for (let place = 0; place < field.length; place++) field[place] /= highest;
  return field;
}

/** The image under an attention field, as a data URI. */
export function overlaid({ width, height, brighter }, field, overlay) {
  const out = new ImageData(width, height);
  const table = overlay === "light" ? null : colourTable(overlay, "dark");
  for (let place = 0; place < field.length; place++) {
    const at = 4 * place;
    const share = field[place];
    const grey = (brighter[at] + brighter[at + 1] + brighter[at + 2]) / 3;
    for (let part = 0; part < 3; part++) {
      const own = brighter[at + part];
      out.data[at + part] = table
        ? (1 - COVER * share) * 0.75 * grey + COVER * share * table[3 * Math.round(255 * share) + part]
        : share * own + (1 - share) * DIMMED * (0.7 * grey + 0.3 * own);
    }
    out.data[at + 3] = 255;
  }
  const canvas = surface(width, height);
  canvas.getContext("2d").putImageData(out, 0, 0);
  return canvas.toDataURL("image/jpeg", 0.92);
}

/** The image as it is, as a data URI. */
export function plain({ width, height, pixels }) {
  const canvas = surface(width, height);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas.toDataURL("image/jpeg", 0.92);
}

/** The pixels with their dark parts brightened by gamma, so that attention can be seen in dark photographs. */
function brightened(image, { data, width, height }) {
  // The brightness around each pixel: the image reduced to few pixels and enlarged again.
  const coarse = surface(12, 12);
  const pen = coarse.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, 12, 12);
  const around = drawn(coarse, width, height).data;
  const brighter = new Uint8ClampedArray(data.length);
  for (let at = 0; at < data.length; at += 4) {
    const mean = (around[at] + around[at + 1] + around[at + 2]) / 765;
    const darkness = Math.min(MIN_BRIGHTNESS, Math.max(0.05, mean));
    const gamma = Math.log(MIN_BRIGHTNESS) / Math.log(darkness);
    // What is black stays black under any gamma: it gets a veil.
    const veil = Math.max(0, MIN_BRIGHTNESS * (1 - mean / 0.05));
    for (let part = 0; part < 3; part++)
      brighter[at + part] = 255 * ((1 - veil) * (data[at + part] / 255) ** gamma + veil);
  }
  return brighter;
}

function drawn(image, width, height) {
  const pen = surface(width, height).getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, width, height);
  return pen.getImageData(0, 0, width, height);
}

function surface(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

/** How much of each cell falls on each pixel along one side, pixel by pixel. */
function spread(cells, length, smooth) {
  const shares = new Float32Array(length * cells);
  for (let pixel = 0; pixel < length; pixel++) {
    const place = ((pixel + 0.5) * cells) / length;
    for (let cell = 0; cell < cells; cell++) {
      const distance = place - cell - 0.5;
      shares[pixel * cells + cell] = smooth
        ? Math.exp(-(distance ** 2) / (2 * SPREAD ** 2))
        : Number(Math.floor(place) === cell);
    }
  }
  return shares;
}
