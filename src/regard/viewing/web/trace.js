// A Trace: the JSON that Trace.to_json() writes, checked and ready for drawing; where an element gets it from; and what
// is selected of it: one map, or the mean or maximum of several heads, between tokens or whole words.

import { exact, isSigned } from "./colours.js";

/** Read a trace from its JSON text, from the parsed object, or from a result that has it as `trace`. */
export function readTrace(written) {
  const json = typeof written === "string" ? JSON.parse(written) : written;
  if (!json || typeof json !== "object") throw new Error("This is not a trace: it is no JSON object.");
  if (!("version" in json) && json.trace) return readTrace(json.trace);
  if (!("version" in json) && json.trace === null) throw new Error("This result has no attention to show.");
  if (json.version !== 3) {
    throw new Error(`This trace has version ${json.version}; this viewer reads version 3. Trace.load converts it.`);
  }
  return new Trace(json);
}

export class Trace {
  constructor(json) {
    this.json = json;
    this.kind = json.kind;
    this.image = checkedImage(json.image);
    this.boxes = json.boxes ?? [];
    this.series = json.series ?? [];
    this.extras = json.extras ?? {};
    /** The first slot of a memory that a head used, and how many slots there are up to the last. */
    this.usedSlots = json.used_slots;
    this.axes = (json.axes ?? []).map(readAxis);
    this.maps = (json.maps ?? []).map((map) => this.#readMap(map));
    for (const each of this.series) {
      if (each.values.length !== this.axis(each.axis).labels.length) {
        throw new Error(`Series ${each.name} needs one number per position of ${each.axis}.`);
      }
    }
  }

  axis(name) {
    const found = this.axes.find((axis) => axis.name === name);
    if (!found) throw new Error(`This trace has no axis ${name}.`);
    return found;
  }

  /** The map of this name, or undefined. */
  map(name) {
    return this.maps.find((map) => map.name === name);
  }

  /** The values of the series of this name, or undefined. */
  values(name) {
    return this.series.find((each) => each.name === name)?.values;
  }

  #readMap(map) {
    const height = this.axis(map.rows).labels.length;
    const width = this.axis(map.columns).labels.length;
    if (height * width && (map.weights.length !== height || map.weights.some((row) => row.length !== width))) {
      throw new Error(`Map ${map.name} needs ${height} x ${width} weights.`);
    }
    const weights = new Float32Array(height * width);
    if (weights.length) map.weights.forEach((row, t) => weights.set(row, t * width));
    return { ...map, height, width, weights };
  }
}

/** One row of a table of weights. */
export function rowOf({ weights, width }, row) {
  return weights.subarray(row * width, (row + 1) * width);
}

/** An axis, with all that a file may leave out; `words` are [word, number of tokens], where some have several. */
function readAxis(written) {
  const axis = { direction: "ltr", special: [], words: null, ...written };
  if (axis.labels) return axis;
  const [rows, columns] = axis.grid;
  const labels = [];
  for (let row = 1; row <= rows; row++)
    for (let column = 1; column <= columns; column++) labels.push(`${row},${column}`);
  return { ...axis, labels };
}

/** Only embedded images are shown: a trace must not make the page ask the network for anything. */
function checkedImage(image) {
  if (image === undefined || image === null) return null;
  if (!/^data:image\/(png|jpeg);base64,[A-Za-z0-9+/=]*$/.test(image)) {
    throw new Error("The image of a trace must be a PNG or JPEG data URI.");
  }
  return image;
}

/** Read the JSON script inside an element, as soon as the page has been parsed, and pass its text on. */
export function whenWritten(element, found) {
  const read = () => {
    const script = element.querySelector('script[type="application/json"]');
    if (script) found(script.textContent);
  };
  // While a page is parsed, an element is created before its children are.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", read, { once: true });
  else read();
}

/** Properties that were set before the element was defined hide its accessors: set them again, through those. */
export function upgradeProperties(element, names) {
  for (const name of names.filter((each) => Object.hasOwn(element, each))) {
    const value = element[name];
    delete element[name];
    element[name] = value;
  }
}

/** Maps over the same axes that differ only in layer and head: [{name, label, rows, columns, maps, layers, heads}]. */
export function families(trace, accepts = () => true) {
  const found = new Map();
  for (const map of trace.maps.filter(accepts)) {
    const numbered = map.layer !== undefined || map.head !== undefined;
    const name = numbered ? map.name.replace(/[\s.]*\d+(\.\d+)?$/, "") || map.name : map.name;
    const key = JSON.stringify([name, numbered, map.rows, map.columns]);
    if (!found.has(key)) found.set(key, { name, numbered, rows: map.rows, columns: map.columns, maps: [] });
    found.get(key).maps.push(map);
  }
  const all = [...found.values()];
  for (const family of all) {
    const twin = all.some((other) => other !== family && other.name === family.name);
    family.label = family.numbered && twin ? `${family.name}, by head` : family.name;
    family.layers = numbers(family.maps.map((map) => map.layer));
    family.heads = numbers(family.maps.map((map) => map.head));
  }
  return all;
}

/** The family that options ask for: by its label, by the name of a map, or one that has their layer and head. */
export function chosenFamily(all, { map, name, layer, head }) {
  const labelled = all.find((each) => each.label === map);
  if (labelled) return labelled;
  const suits = (each) =>
    (name === undefined || each.maps.some((map) => map.name === name || map.name.startsWith(`${name} `))) &&
    (!Number.isInteger(layer) || each.layers.includes(layer)) &&
    (!Number.isInteger(head) || each.heads.includes(head));
  return all.find(suits) ?? all[0];
}

/**
 * The weights that options select: {name, rows, columns, height, width, weights}. A side (rows or columns) has
 * {axis, labels, members, direction}; `members` are the positions of the axis that each of its labels stands for.
 */
export function select(trace, options, accepts) {
  const family = chosenFamily(families(trace, accepts), options);
  if (!family) return null;
  const { name, weights } = reduced(family, options);
  const rows = side(trace.axis(family.rows), options);
  const columns = side(trace.axis(family.columns), options);
  return { name, rows, columns, ...regrouped(weights, family.maps[0].width, rows, columns, options) };
}

/** The value of a series for each label of a side: the sum of log-probabilities, the mean of anything else. */
export function seriesOf(trace, name, oneSide) {
  const series = trace.series.find((each) => each.name === name && each.axis === oneSide.axis.name);
  if (!series) return undefined;
  return oneSide.members.map((members) => {
    const sum = members.reduce((total, index) => total + series.values[index], 0);
    return name === "log_prob" ? sum : sum / members.length;
  });
}

/** The trace of a selection, as version 3 JSON, with the series along its axes. */
export function selectionTrace(trace, selection) {
  const sides = [selection.columns, selection.rows];
  const same = selection.rows.axis.name === selection.columns.axis.name;
  const axes = (same ? sides.slice(0, 1) : sides).map(({ axis, labels }) => {
    const { name, kind, text, direction, grid } = axis;
    return { name, kind, labels, text, direction, grid: labels.length === axis.labels.length ? grid : undefined };
  });
  const weights = Array.from({ length: selection.height }, (_, row) => Array.from(rowOf(selection, row), exact));
  const map = {
    name: selection.name,
    rows: selection.rows.axis.name,
    columns: selection.columns.axis.name,
    weights,
  };
  const series = [];
  for (const each of trace.series) {
    const oneSide = sides.find(({ axis }) => axis.name === each.axis);
    const whole = oneSide?.members.every((members) => members.length === 1);
    // A chosen input is an index, which means nothing for joined words.
    if (
      !oneSide ||
      (each.name === "choice" && (!whole || selection.columns.labels.length !== selection.columns.axis.labels.length))
    )
      continue;
    series.push({ name: each.name, axis: each.axis, values: seriesOf(trace, each.name, oneSide).map(exact) });
  }
  const written = { version: 3, kind: trace.kind, axes, maps: [map] };
  if (series.length) written.series = series;
  if (trace.image) written.image = trace.image;
  return written;
}

/** The strongest inputs of a row, as [column, weight] pairs. */
export function strongest(selection, row, count) {
  const pairs = Array.from(rowOf(selection, row), (weight, column) => [column, weight]);
  return pairs.sort((one, other) => Math.abs(other[1]) - Math.abs(one[1])).slice(0, count);
}

function numbers(all) {
  return [...new Set(all.filter((number) => number !== undefined))].sort((one, other) => one - other);
}

function reduced(family, { layer, head }) {
  const layers = family.layers.includes(layer) ? [layer] : null;
  const heads = family.heads.includes(head) ? [head] : null;
  const maps = family.maps.filter(
    (map) => (!layers || layers.includes(map.layer)) && (!heads || heads.includes(map.head)),
  );
  if (maps.length === 1) return maps[0];
  const how = head === "max" ? "max" : "mean";
  const weights = Float32Array.from(maps[0].weights);
  for (const map of maps.slice(1)) {
    map.weights.forEach((weight, index) => {
      weights[index] = how === "max" ? Math.max(weights[index], weight) : weights[index] + weight;
    });
  }
  if (how === "mean") weights.forEach((weight, index) => (weights[index] = weight / maps.length));
  const part = [layers && `layer ${layers[0]}`, heads && `head ${heads[0]}`].filter(Boolean).join(", ");
  return { name: `${family.name}, ${how} of ${maps.length}${part ? `, ${part}` : ""}`, weights };
}

function side(axis, { words, hideSpecial }) {
  const pieces = (words && axis.words) || axis.labels.map((label) => [label, 1]);
  let end = 0;
  let found = pieces.map(([label, count]) => {
    end += count;
    return { label, members: Array.from({ length: count }, (_, index) => end - count + index) };
  });
  if (hideSpecial) found = found.filter(({ members }) => !members.every((index) => axis.special.includes(index)));
  const labels = found.map(({ label }) => label);
  return { axis, labels, members: found.map(({ members }) => members), direction: axis.direction };
}

/**
 * Weights between the labels of two sides. Attention to a word is the sum over its tokens, attention of a word the
 * mean (Zenkel et al. 2019). Where inputs are hidden, each row is scaled to keep its sum.
 */
function regrouped(full, fullWidth, rows, columns, { hideSpecial }) {
  const height = rows.labels.length;
  const width = columns.labels.length;
  const shape = { height, width };
  if (full.length === height * width && fullWidth === width) return { ...shape, weights: full };
  const weights = new Float32Array(height * width);
  const keepsSum = hideSpecial && !isSigned(full);
  rows.members.forEach((indices, row) => {
    let total = 0;
    let kept = 0;
    for (const index of indices) {
      for (let column = 0; column < fullWidth; column++) total += full[index * fullWidth + column] / indices.length;
      columns.members.forEach((inputs, column) => {
        for (const input of inputs) {
          const part = full[index * fullWidth + input] / indices.length;
          weights[row * width + column] += part;
          kept += part;
        }
      });
    }
    if (keepsSum && kept > 0)
      for (let column = 0; column < width; column++) weights[row * width + column] *= total / kept;
  });
  return { ...shape, weights };
}
