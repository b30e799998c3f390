// Models that run in the browser by onnxruntime-web: each is loaded once, and answers with a text and a trace.

const numbers = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [values.length]);
const table = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
/** A tensor of (rows, n) as a list of rows; the tensor's memory is copied. */
const rowsOf = ({ data, dims }) =>
  Array.from({ length: dims[0] }, (_, row) => Float32Array.prototype.slice.call(data, row * (data.length / dims[0]), (row + 1) * (data.length / dims[0])));

/** The rows of a tensor in another order, some of them several times. */
function chosen({ type, data, dims }, rows) {
  const size = dims.slice(1).reduce((one, other) => one * other, 1);
  const taken = new data.constructor(rows.length * size);
  rows.forEach((row, index) => taken.set(data.subarray(row * size, (row + 1) * size), index * size));
  return new ort.Tensor(type, taken, [rows.length, ...dims.slice(1)]);
}

/** What all models share: the files of an exported folder. */
class Model {
  /** `files` gives the content of a file of the folder: text for JSON, bytes for graphs. */
  static async load(files) {
    const config = JSON.parse(await files("config.json"));
    const model = new KINDS[config.system]();
    model.config = config.config;
    for (const [name, path] of Object.entries(config.assets)) model[name] = JSON.parse(await files(path));
    for (const name of Object.keys(config.assets).filter((each) => each.includes("tokenizer")))
      model[name] = new Tokenizer(model[name]);
    model.graphs = {};
    for (const [name, path] of Object.entries(config.export.graphs)) {
      model.graphs[name] = await ort.InferenceSession.create(await files(path), { executionProviders: ["wasm"] });
    }
    return model;
  }

  /** The best output for one input of the encoder. */
  async decode(inputs, { beam, limit, banned }) {
    const encoded = await this.graphs.encoder.run(inputs);
    const named = (start) => Object.entries(encoded).filter(([name]) => name.startsWith(start));
    const memory = Object.fromEntries(named("memory."));
    let past = Object.fromEntries(named("past."));
    let isFirst = true;
    const step = async (tokens, parents) => {
      const rows = isFirst ? parents.map(() => 0) : parents;
      past = Object.fromEntries(Object.entries(past).map(([name, tensor]) => [name, chosen(tensor, rows)]));
      isFirst = false;
      const found = await this.graphs.decoder.run({ input_ids: numbers(tokens), ...memory, ...past });
      past = Object.fromEntries(Object.keys(past).map((name) => [name, found[name.replace("past.", "present.")]]));
      const weights = found.distribution ?? found.attention;
      return {
        logProbs: rowsOf(found.log_probs),
        weights: weights && rowsOf(weights),
        gates: found.gate && [...found.gate.data],
      };
    };
    return { encoded, ...(await searched(step, { beam, limit, start: START, end: END, banned })) };
  }
}

class Translator extends Model {
  static label = "Translate";
  static elements = "matrix lines";

  /** The translations of the sentences of a text: [{text, trace}]. */
  async answer(text, { beam = 5 } = {}) {
    const sentences = this.config.split_sentences ? sentencesOf(text) : [text.trim()].filter(Boolean);
    const found = [];
    for (const sentence of sentences) found.push(await this.translate(prepared(sentence, this.source_tokenizer), beam));
    return found;
  }

  async translate({ given, isInCapitals }, beam) {
    const ids = [...this.source_tokenizer.encode(given), END];
    const inputs = { input_ids: table(ids, [1, ids.length]), attention_mask: table(ids.map(() => 1), [1, ids.length]) };
    const found = await this.decode(inputs, { beam, limit: 2 * ids.length + 10, banned: [PAD] });
    const text = this.target_tokenizer.decode(found.tokens);
    let weights = found.weights;
    // The attention of a word may be that of the step that reads it.
    if (this.config.alignment_step === "input") weights = [...weights.slice(1), weights.at(-1)];
    const axes = [
      { ...this.source_tokenizer.axis("source", ids.slice(0, -1), ["</s>"]), text: given },
      this.target_tokenizer.axis("target", found.tokens, found.finished ? ["</s>"] : []),
    ];
    const maps = weights[0] ? [{ name: "cross", rows: "target", columns: "source", weights: weights.map((row) => [...row]) }] : [];
    const series = [{ name: "log_prob", axis: "target", values: found.logProbs }];
    const trace = maps.length ? { version: 3, kind: "translation", axes, maps, series } : null;
    return { text: isInCapitals ? text.toUpperCase() : text, tokens: found.tokens, trace };
  }
}

class Captioner extends Model {
  static label = "Caption";
  static elements = "image";

  /** The caption of an image, a canvas. */
  async answer(canvas, { beam = 5 } = {}) {
    const side = this.config.image_size;
    const pixels = squared(canvas, side, this.config.resize);
    const inputs = { pixel_values: new ort.Tensor("uint8", pixels, [1, 3, side, side]) };
    const found = await this.decode(inputs, { beam, limit: 30, banned: [PAD, UNKNOWN] });
    const text = this.tokenizer.decode(found.tokens);
    const words = found.tokens.length;
    const grid = found.weights[0] && Math.sqrt(found.weights[0].length);
    const axes = [
      { name: "cells", kind: "cells", grid: [grid, grid] },
      { ...this.tokenizer.axis("target", found.tokens), kind: "words", words: undefined },
    ];
    const maps = [{ name: "attention", rows: "target", columns: "cells", weights: found.weights.slice(0, words).map((row) => [...row]) }];
    const series = [{ name: "log_prob", axis: "target", values: found.logProbs.slice(0, words) }];
    if (found.gates[0] !== undefined) series.push({ name: "gate", axis: "target", values: found.gates.slice(0, words) });
    const image = seenPart(canvas, this.config.resize).toDataURL("image/jpeg", 0.9);
    const isForeign = (found.encoded.novelty?.data[0] ?? 0) > 1;
    const note = isForeign ? `This image is unlike those that the model knows (${this.config.domain}): expect a wrong caption.` : "";
    return [{ text, tokens: found.tokens, note, trace: grid ? { version: 3, kind: "caption", axes, maps, series, image } : null }];
  }
}

/** The classes of an image or a document with their probabilities, the likeliest first. */
function ranked(logits, labels) {
  const largest = Math.max(...logits);
  const shares = Array.from(logits, (logit) => Math.exp(logit - largest));
  const sum = shares.reduce((one, other) => one + other);
  return shares.map((share, index) => [labels[index], share / sum]).sort(([, one], [, other]) => other - one);
}

class Recognizer extends Model {
  static label = "Recognize";
  static elements = "";

  async answer(canvas) {
    const { image_size: side, channels, resize } = this.config;
    const pixels = resize === "mnist" ? mnistStyle(canvas, side) : squared(canvas, side, "center_crop", channels);
    const found = await this.graphs.model.run({ pixel_values: new ort.Tensor("uint8", pixels, [1, channels, side, side]) });
    const classes = ranked(found.logits.data, this.labels);
    return [{ text: classes[0][0], classes, trace: null }];
  }
}

class Classifier extends Model {
  static label = "Classify";
  static elements = "document";

  async answer(text) {
    const given = this.config.split === "lines" ? text.split("\n") : text.split("\n").flatMap(sentencesOf);
    const sentences = given.flatMap((sentence) => this.parts(sentence));
    if (!sentences.length) return [];
    const width = Math.max(...sentences.map(({ ids }) => ids.length));
    const padded = (row) => [...row, ...Array(width - row.length).fill(0)];
    const dims = [1, sentences.length, width];
    const found = await this.graphs.model.run({
      input_ids: table(sentences.flatMap(({ ids }) => padded(ids)), dims),
      attention_mask: table(sentences.flatMap(({ ids }) => padded(ids.map(() => 1))), dims),
    });
    const classes = ranked(found.logits.data, this.labels);
    return [{ text: classes[0][0], classes, trace: this.trace(sentences, found, classes, width) }];
  }

  /** A sentence in parts of at most `max_sentence_words` ids, each with its words and how many ids each of them has. */
  parts(sentence) {
    const found = [];
    for (const word of sentence.split(/\s+/u).filter(Boolean)) {
      const ids = this.tokenizer.encode(word).slice(0, this.config.max_sentence_words);
      const last = found.at(-1);
      if (!last || last.ids.length + ids.length > this.config.max_sentence_words) found.push({ words: [word], counts: [ids.length], ids });
      else found[found.length - 1] = { words: [...last.words, word], counts: [...last.counts, ids.length], ids: [...last.ids, ...ids] };
    }
    return found;
  }

  trace(sentences, found, classes, width) {
    const words = [];
    const weights = [];
    const owners = [];
    sentences.forEach(({ words: written, counts }, number) => {
      let id = 0;
      counts.forEach((count, word) => {
        words.push(written[word]);
        weights.push(found.word_weights.data.slice(number * width + id, number * width + id + count).reduce((one, other) => one + other, 0));
        owners.push(number);
        id += count;
      });
    });
    return {
      version: 3,
      kind: "document",
      axes: [
        { name: "label", kind: "classes", labels: [classes[0][0]] },
        { name: "sentences", kind: "sentences", labels: sentences.map((each) => each.words.join(" ")) },
        { name: "words", kind: "words", labels: words },
      ],
      maps: [
        { name: "sentences", rows: "label", columns: "sentences", weights: [[...found.sentence_weights.data].slice(0, sentences.length)] },
        { name: "words", rows: "label", columns: "words", weights: [weights] },
      ],
      series: [{ name: "sentence", axis: "words", values: owners }],
      extras: { probability: classes[0][1], probabilities: Object.fromEntries(classes), sentences_left_out: 0 },
    };
  }
}

const KINDS = { translate: Translator, caption: Captioner, recognize: Recognizer, classify: Classifier };
