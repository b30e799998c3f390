// The page: a model is chosen, gets an input, and shows its answer with what it attended to.

const element = (name, properties = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties))
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
};

const loaded = new Map();

/** A model by its name, loaded once. */
function modelOf(name) {
  if (!loaded.has(name)) {
    const loading = startRuntime().then(() => Model.load(filesOf(name)));
    loaded.set(name, loading);
    loading.catch(() => loaded.delete(name));
  }
  return loaded.get(name);
}

/** A canvas with an image, at most 1024 pixels wide and high. */
async function canvasOf(source) {
  const image = await createImageBitmap(source, { imageOrientation: "from-image" });
  const scale = Math.min(1, 1024 / Math.max(image.width, image.height));
  const [width, height] = [Math.round(image.width * scale), Math.round(image.height * scale)];
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0, width, height);
  return canvas;
}

class Page {
  constructor(entry) {
    this.entry = entry;
    this.kind = KINDS[entry.system];
    this.output = element("section", { "aria-live": "polite" });
    this.status = element("p", { className: "status", role: "status" });
    const input = entry.system === "caption" || entry.system === "recognize" ? this.images() : this.text();
    this.node = element("div", {}, element("h2", {}, entry.name), element("p", {}, entry.summary), input, this.status, this.output);
  }

  text() {
    const id = `text-${this.entry.name}`;
    const area = element("textarea", { id, rows: 3, value: this.entry.examples[0] ?? "" });
    const beam = element("select", { "aria-label": "Search" },
      element("option", { value: "5" }, "beam of 5"), element("option", { value: "1" }, "greedy"));
    const run = element("button", { onclick: () => this.run(area.value, { beam: Number(beam.value) }) }, this.kind.label);
    const examples = this.entry.examples.map((text, index) =>
      element("button", { onclick: () => ((area.value = text), run.click()) }, `Example ${index + 1}`));
    const isTranslator = this.entry.system === "translate";
    return element("div", {}, element("label", { htmlFor: id }, "Text"), area,
      element("div", { className: "bar" }, run, isTranslator ? beam : null, ...examples));
  }

  images() {
    const choose = element("input", { type: "file", accept: "image/*", "aria-label": "An image of yours" });
    choose.onchange = async () => choose.files[0] && this.run(await canvasOf(choose.files[0]));
    const examples = this.entry.examples.map((uri, index) => {
      const image = element("img", { src: uri, alt: `Example ${index + 1}` });
      return element("button", { onclick: async () => (await image.decode(), this.run(await canvasOf(image))) }, image);
    });
    const parts = [element("div", { className: "bar" }, choose), element("div", { className: "bar examples" }, ...examples)];
    return element("div", {}, ...(this.entry.system === "recognize" ? [this.drawing()] : []), ...parts);
  }

  drawing() {
    const canvas = element("canvas", { width: 280, height: 280, "aria-label": "Draw a digit here" });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const clear = () => ((pen.fillStyle = "white"), pen.fillRect(0, 0, 280, 280));
    clear();
    Object.assign(pen, { lineWidth: 22, lineCap: "round", lineJoin: "round" });
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      pen.beginPath();
      pen.moveTo(event.offsetX, event.offsetY);
    };
    canvas.onpointermove = (event) => {
      if (!event.buttons) return;
      pen.lineTo(event.offsetX, event.offsetY);
      pen.stroke();
    };
    const bar = element("div", { className: "bar" },
      element("button", { onclick: () => this.run(canvas) }, this.kind.label), element("button", { onclick: clear }, "Clear"));
    return element("div", {}, canvas, bar);
  }

  async run(input, options) {
    const started = performance.now();
    delete this.output.dataset.answers;
    this.status.textContent = loaded.has(this.entry.name) ? "Computing ..." : "Loading the model ...";
    try {
      const model = await modelOf(this.entry.name);
      const ready = performance.now();
      const answers = await model.answer(input, options);
      this.output.replaceChildren(...answers.flatMap((answer) => this.shown(answer)));
      const seconds = (time) => (time / 1000).toFixed(2);
      this.status.textContent = answers.length
        ? `${seconds(performance.now() - ready)} s, after ${seconds(ready - started)} s of loading.`
        : "There are no words to read.";
      this.output.dataset.answers = JSON.stringify(answers.map(({ text, tokens, classes }) => ({ text, tokens, classes })));
    } catch (error) {
      this.status.textContent = "";
      this.output.replaceChildren(element("p", { className: "error", role: "alert" }, String(error.message ?? error)));
    }
  }

  shown({ text, note, classes, trace }) {
    const rows = (classes ?? []).slice(0, 5).map(([label, share]) =>
      element("tr", {}, element("td", {}, label), element("td", {}, `${(100 * share).toFixed(1)} %`)));
    const parts = [element("p", { className: "answer" }, text)];
    if (note) parts.push(element("p", { className: "note" }, note));
    if (rows.length) parts.push(element("table", { className: "classes" }, element("tbody", {}, ...rows)));
    if (trace && this.kind.elements) {
      const view = element("attention-view", { elements: this.kind.elements });
      view.trace = trace;
      parts.push(view);
    }
    return parts;
  }
}

const pages = new Map();

function show(name) {
  const entry = MODELS.find((each) => each.name === name) ?? MODELS[0];
  if (!pages.has(entry.name)) pages.set(entry.name, new Page(entry));
  document.querySelector("main").replaceChildren(pages.get(entry.name).node);
  for (const button of document.querySelectorAll("nav button"))
    if (button.textContent === entry.name) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
}

document.querySelector("nav").append(...MODELS.map(({ name }) =>
  element("button", { onclick: () => (location.hash = name) }, name)));
addEventListener("hashchange", () => show(decodeURIComponent(location.hash.slice(1))));
show(decodeURIComponent(location.hash.slice(1)));
