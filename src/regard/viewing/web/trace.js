// A Trace: the JSON that Trace.to_json() writes, checked and ready for drawing, and where an element gets it from.

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
