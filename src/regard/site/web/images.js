// Images as networks take them: scaled by bicubic interpolation with antialiasing, as Pillow does, or in the style of MNIST.

const bicubic = (x) => {
  const [t, a] = [Math.abs(x), -0.5];
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? (((t - 5) * t + 8) * t - 4) * a : 0;
};
const box = (x) => (x > -0.5 && x <= 0.5 ? 1 : 0);
const byte = (value) => Math.min(255, Math.max(0, Math.round(value)));

/** The part of an image that the network sees: all of it, or its central square; a canvas. */
function seenPart(canvas, resize) {
  if (resize === "stretch") return canvas;
  const side = Math.min(canvas.width, canvas.height);
  const part = Object.assign(document.createElement("canvas"), { width: side, height: side });
  part.getContext("2d").drawImage(canvas, -Math.floor((canvas.width - side) / 2), -Math.floor((canvas.height - side) / 2));
  return part;
}

/** One channel of an image in another size, first across, then down. */
function scaled({ data, width, height }, newWidth, newHeight, filter, reach) {
  const across = resampled(data, width, height, newWidth, (line, at) => line * width + at, filter, reach);
  return resampled(across, height, newWidth, newHeight, (line, at) => at * newWidth + line, filter, reach,
    (line, at) => at * newWidth + line);
}

function resampled(data, length, lines, newLength, from, filter, reach, to = (line, at) => line * newLength + at) {
  const scale = length / newLength;
  const stretch = Math.max(1, scale);
  const found = new Uint8ClampedArray(newLength * lines);
  for (let at = 0; at < newLength; at++) {
    const centre = (at + 0.5) * scale;
    const first = Math.max(0, Math.floor(centre - reach * stretch + 0.5));
    const last = Math.min(length, Math.floor(centre + reach * stretch + 0.5));
    const weights = Array.from({ length: last - first }, (_, index) => filter((index + first - centre + 0.5) / stretch));
    const sum = weights.reduce((one, other) => one + other, 0);
    for (let line = 0; line < lines; line++) {
      let value = 0;
      for (let index = 0; index < weights.length; index++) value += weights[index] * data[from(line, first + index)];
      found[to(line, at)] = byte(value / sum);
    }
  }
  return found;
}

function channelsOf(canvas) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const channel = (offset) => ({ width, height, data: Uint8ClampedArray.from({ length: width * height }, (_, at) => data[4 * at + offset]) });
  return [channel(0), channel(1), channel(2)];
}

/** Grey values, as Pillow computes them. */
function greyOf(canvas) {
  const [red, green, blue] = channelsOf(canvas);
  const data = red.data.map((value, at) => (value * 19595 + green.data[at] * 38470 + blue.data[at] * 7471 + 0x8000) >> 16);
  return { ...red, data };
}

/** The pixels of a square, channel by channel. */
function squared(canvas, side, resize, channels = 3) {
  const seen = seenPart(canvas, resize);
  const found = new Uint8Array(channels * side * side);
  (channels === 1 ? [greyOf(seen)] : channelsOf(seen)).forEach((channel, index) => {
    const isSame = channel.width === side && channel.height === side;
    found.set(isSame ? channel.data : scaled(channel, side, side, bicubic, 2), index * side * side);
  });
  return found;
}

const median = (values) => {
  const sorted = [...values].sort((one, other) => one - other);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
};

/** A drawn character as those of MNIST: light on dark, scaled to 5/7 of the side, centred by its mass. */
function mnistStyle(canvas, side) {
  const { data, width, height } = greyOf(canvas);
  const border = [];
  for (let x = 0; x < width; x++) border.push(data[x], data[(height - 1) * width + x]);
  for (let y = 0; y < height; y++) border.push(data[y * width], data[y * width + width - 1]);
  const isDarkOnLight = median(border) > 127;
  if (width === side && height === side && !isDarkOnLight) return Uint8Array.from(data);
  const paper = isDarkOnLight ? 255 - median(border) : median(border);
  const ink = Float32Array.from(data, (value) => Math.max(0, (isDarkOnLight ? 255 - value : value) - paper));
  const darkest = ink.reduce((one, other) => Math.max(one, other), 0);
  const found = new Uint8Array(side * side);
  if (darkest < 16) return found;
  let [top, bottom, left, right] = [height, -1, width, -1];
  ink.forEach((value, at) => {
    if (value <= darkest / 4) return;
    const [y, x] = [Math.floor(at / width), at % width];
    [top, bottom, left, right] = [Math.min(top, y), Math.max(bottom, y), Math.min(left, x), Math.max(right, x)];
  });
  const [cutWidth, cutHeight] = [right - left + 1, bottom - top + 1];
  const cut = Uint8ClampedArray.from({ length: cutWidth * cutHeight }, (_, at) =>
    Math.floor((ink[(top + Math.floor(at / cutWidth)) * width + left + (at % cutWidth)] * 255) / darkest));
  const scale = (side * 5) / 7 / Math.max(cutWidth, cutHeight);
  const [newWidth, newHeight] = [Math.max(1, Math.round(cutWidth * scale)), Math.max(1, Math.round(cutHeight * scale))];
  const small = scaled({ data: cut, width: cutWidth, height: cutHeight }, newWidth, newHeight, box, 0.5);
  let [sum, down, across] = [0, 0, 0];
  small.forEach((value, at) => {
    [sum, down, across] = [sum + value, down + value * Math.floor(at / newWidth), across + value * (at % newWidth)];
  });
  const shift = (moment, length) => Math.min(Math.max(0, Math.round((side - 1) / 2 - moment / Math.max(1, sum))), side - length);
  const [y, x] = [shift(down, newHeight), shift(across, newWidth)];
  small.forEach((value, at) => (found[(y + Math.floor(at / newWidth)) * side + x + (at % newWidth)] = value));
  return found;
}
